//! Virtual paths: the one way from a name to a file, for every reader and writer.
//!
//! Everybody — tools, criteria, artifacts, the API — names files by the paths that user code sees. A
//! [`Location`] is such a path, understood; [`Roots`] says where its areas lie for this process, and opens
//! it with `openat2(RESOLVE_BENEATH)`: whatever links user code plants, and however fast it swaps them, the
//! kernel opens nothing outside of the area. Links that stay inside are followed, also absolute ones.

mod error;
mod location;
mod roots;
#[cfg(test)]
mod tests;
mod write;

pub use error::ResolveError;
pub use location::{Area, Location};
pub(crate) use roots::beneath;
pub use roots::{Links, Roots};
