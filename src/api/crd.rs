//! The CustomResourceDefinitions as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{AgentRun, Model, SandboxPool, Skill, SubTask, Thread};

/// Every CustomResourceDefinition of AgentRun, ready to install.
///
/// Install these and not what `CustomResourceExt::crd` gives: the derive marks optional fields as nullable and takes
/// over serde's defaults. A stored `null` would count as given in the rules, and what the API server fills in
/// shows up as a difference in GitOps tools.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        AgentRun::crd(),
        SubTask::crd(),
        Thread::crd(),
        SandboxPool::crd(),
        Skill::crd(),
        Model::crd(),
    ];
    let versions = crds.iter_mut().flat_map(|crd| &mut crd.spec.versions);
    let schemas = versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    schemas.for_each(take_as_written);
    crds
}

/// Name of the file that holds a definition, for example `agentrun.dev_agentruns.yaml`.
pub fn crd_file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// A definition as YAML; the same types give the same bytes.
///
/// # Errors
/// Never for the types of this crate; a test renders all of them.
pub fn crd_yaml(crd: &CustomResourceDefinition) -> Result<String, serde_yaml::Error> {
    let text = serde_yaml::to_string(crd)?;
    Ok(format!(
        "# Generated from src/api by `agentrun crds`. Do not edit.\n{text}"
    ))
}

/// Takes `default` away, and `nullable` wherever the value has a type.
fn take_as_written(schema: &mut JSONSchemaProps) {
    let any_json = schema.type_.is_none() && schema.x_kubernetes_preserve_unknown_fields == Some(true);
    if !any_json {
        schema.nullable = None;
    }
    schema.default = None;
    schema
        .properties
        .iter_mut()
        .flat_map(|fields| fields.values_mut())
        .for_each(take_as_written);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        take_as_written(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        take_as_written(values);
    }
}
