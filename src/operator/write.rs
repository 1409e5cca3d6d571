//! The few ways in which the operator writes to objects that others write too.

use crate::error::ReconcileError;
use json_patch::Patch as JsonPatch;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt as _};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fmt::Debug;

/// Replaces the status if nobody has written the object since it was read. A JSON patch, since a merge patch
/// would take null members out of outputs.
pub(crate) async fn status<K, S>(api: &Api<K>, read: &K, status: &S) -> Result<K, ReconcileError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    S: Serialize,
{
    let patch = guarded(read, &json!([{"op": "add", "path": "/status", "value": status}]))?;
    let params = PatchParams::default();
    Ok(api
        .patch_status(&read.name_any(), &params, &Patch::<()>::Json(patch))
        .await?)
}

/// Sets the finalizers if nobody has written the object since it was read.
pub(crate) async fn finalizers<K>(api: &Api<K>, read: &K, finalizers: &[String]) -> Result<K, ReconcileError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    metadata(api, read, "finalizers", &json!(finalizers)).await
}

/// Sets one annotation if nobody has written the object since it was read.
pub(crate) async fn annotation<K>(
    api: &Api<K>,
    read: &K,
    name: &str,
    value: &str,
) -> Result<K, ReconcileError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut annotations = read.annotations().clone();
    annotations.insert(name.to_owned(), value.to_owned());
    metadata(api, read, "annotations", &json!(annotations)).await
}

async fn metadata<K>(api: &Api<K>, read: &K, field: &str, value: &Value) -> Result<K, ReconcileError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = guarded(
        read,
        &json!([{"op": "add", "path": format!("/metadata/{field}"), "value": value}]),
    )?;
    Ok(api
        .patch(
            &read.name_any(),
            &PatchParams::default(),
            &Patch::<()>::Json(patch),
        )
        .await?)
}

/// Puts the test of the resource version before the operations.
fn guarded<K: Resource>(read: &K, operations: &Value) -> Result<JsonPatch, ReconcileError> {
    let version = read
        .meta()
        .resource_version
        .clone()
        .ok_or(ReconcileError::Conflict)?;
    let mut all = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    all.extend(operations.as_array().cloned().unwrap_or_default());
    serde_json::from_value(Value::Array(all))
        .map_err(|error| ReconcileError::Api(kube::Error::SerdeError(error)))
}
