//! Model: an LLM behind an OpenAI-compatible endpoint.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Conditions, KeyRef, common, rules};

/// How the model is reached and what it can do.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "Model",
    plural = "models",
    shortname = "mo",
    category = "agentrun-all",
    namespaced,
    status = "ModelStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Model is a large language model behind an OpenAI-compatible endpoint. Calls are made by the gateway; the \
           key never enters a sandbox.",
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model"),
    printcolumn(name = "Roles", type_ = "string", json_path = ".spec.roles"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        json_path = ".spec.endpoint",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ModelSpec {
    /// Base URL of the OpenAI-compatible API, up to and without `/chat/completions`.
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^https?://"))]
    pub endpoint: String,
    /// Name of the model at the endpoint.
    #[schemars(length(min = 1, max = 256))]
    pub model: String,
    /// Key of a Secret of the namespace that holds the API key. Default: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeyRef>,
    /// Further request headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub headers: Vec<Header>,
    /// Key of a ConfigMap that holds CA certificates in PEM to trust for the endpoint. Default: the public ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_ref: Option<KeyRef>,
    /// Roles it serves in this namespace: `lead`, `planner`, `researcher`, `executor`, `reviewer`, `summarizer`. Two
    /// Models with the same role are `AmbiguousModel` for runs that do not choose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 40)), extend("x-kubernetes-list-type" = "set"))]
    pub roles: Vec<String>,
    /// Whether it serves the roles that no other Model of the namespace has. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
    /// Size of its context in tokens; conversations are summed up before it is full. Default: 32000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context_tokens: Option<i32>,
    /// How many tokens one answer may have. Default: the endpoint's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<i32>,
    /// Whether it reads images, which gives agents the tool `view_image`. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// Further members of every request body, for example `{temperature: 0}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "common::any_object")]
    pub parameters: Option<Map<String, Value>>,
    /// What its tokens cost, for `limits.cost`. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Names of Models to use when it fails, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub fallbacks: Vec<String>,
}

/// A request header: exactly one of `value` and `secretRef`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::header()))]
pub struct Header {
    /// Its name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9-]+$"))]
    pub name: String,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub value: Option<String>,
    /// Key of a Secret that holds its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeyRef>,
}

/// What tokens cost, as decimals per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Currency, for example `EUR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3), regex(pattern = r"^[A-Z]{3}$"))]
    pub currency: Option<String>,
    /// A million tokens of the request.
    #[schemars(length(max = 20), regex(pattern = common::DECIMAL))]
    pub input: String,
    /// A million tokens of the answer.
    #[schemars(length(max = 20), regex(pattern = common::DECIMAL))]
    pub output: String,
    /// A million tokens of the request that the endpoint had cached; as `input` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = common::DECIMAL))]
    pub cached_input: Option<String>,
}

/// Whether the model answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// `Ready`, found out by a short call: `AuthFailed`, `Unreachable` and `NoTools` say what to mend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
}
