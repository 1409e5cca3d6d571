//! What users and the API server see of the resources: the definitions, their rules, and manifests.

#[cfg(test)]
mod crds;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod rules;
