//! Value types that several resources share: durations, quantities, any-JSON, bounds and references.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A DNS label, as names of tasks and rules are.
pub const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A name of an environment variable.
pub(crate) const ENV_NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// A name of a thread.
pub(crate) const THREAD_NAME: &str = "^[A-Za-z0-9_-]{1,64}$";
/// A path from the root. Where it may lead is checked when it is used.
pub(crate) const ABSOLUTE_PATH: &str = "^/";
/// A path without `.`, `..` or an empty segment that does not begin at the root.
pub(crate) const RELATIVE_PATH: &str = r"^([^/.]|\.[^/.]|\.\.[^/])[^/]*(/([^/.]|\.[^/.]|\.\.[^/])[^/]*)*$";
/// An amount of money.
pub(crate) const DECIMAL: &str = r"^[0-9]{1,9}(\.[0-9]{1,6})?$";

/// Any JSON value, kept as it was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Value);

impl Json {
    /// The value itself.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        any_json(generator)
    }
}

/// The schema of a field that takes any JSON value, null included.
pub(crate) fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"nullable": true, "x-kubernetes-preserve-unknown-fields": true})
}

/// The schema of a field that takes any JSON object.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The schema of a map from roles to names of Models.
pub(crate) fn models_by_role(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 253},
    })
}

/// The schema of a map from roles to numbers of tokens.
pub(crate) fn tokens_by_role(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": {"type": "integer", "format": "int64", "minimum": 0},
    })
}

/// The schema of `conditions[]`: Kubernetes' own `Condition` with its documented bounds.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "maxLength": 64, "description": "What the condition is about."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {
                    "type": "string", "minLength": 1, "maxLength": 128,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why, as one word from the documented list.",
                },
                "message": {"type": "string", "maxLength": 4096, "description": "Why, as a sentence with the fix."},
                "observedGeneration": {
                    "type": "integer", "format": "int64", "minimum": 0,
                    "description": "The generation of the spec that this was decided from.",
                },
                "lastTransitionTime": {
                    "type": "string", "format": "date-time",
                    "description": "When `status` last changed.",
                },
            },
        },
    })
}

/// Keeps an explicit `null` apart from an absent field.
///
/// # Errors
/// Those of the value's own deserialisation.
pub(crate) fn present<'de, D>(deserializer: D) -> Result<Option<Json>, D::Error>
where
    D: Deserializer<'de>,
{
    Json::deserialize(deserializer).map(Some)
}

/// Conditions as every status here holds them.
pub type Conditions = Vec<Condition>;

/// A key of a ConfigMap or of a Secret in the object's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the ConfigMap or Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A run of the same namespace, identified beyond its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRef {
    /// Name of the AgentRun.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its UID: a run that was deleted and made again is another run.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// A sub-task of the same namespace, identified beyond its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubTaskRef {
    /// Name of the SubTask.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its UID.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}

/// A file with its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileRef {
    /// Where it is: a virtual path below `/mnt/user-data`, or one below the run's `state` folder.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
    /// Its size in bytes.
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// SHA-256 of its bytes in lower-case hexadecimal.
    #[schemars(length(max = 64))]
    pub sha256: String,
}

/// A file that a sub-task delivered in `outputs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Virtual path, for example `/mnt/user-data/outputs/report.pdf`.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
    /// Size in bytes.
    #[schemars(range(min = 0))]
    pub bytes: i64,
    /// SHA-256 of its bytes in lower-case hexadecimal.
    #[schemars(length(max = 64))]
    pub sha256: String,
    /// Media type, guessed from name and first bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub media_type: Option<String>,
}

/// What one acceptance criterion says about what was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The criterion as it was written.
    #[schemars(length(max = 500))]
    pub criterion: String,
    /// Its kind: `file`, `file_written`, `tests_passed`, `rerun`, or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub family: Option<String>,
    /// Whether it could be decided. False means unverified, whatever `holds` says.
    pub checked: bool,
    /// Whether it holds. Only meaningful with `checked`.
    pub holds: bool,
    /// What was found, in at most 160 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub detail: Option<String>,
}
