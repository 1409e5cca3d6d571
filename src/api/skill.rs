//! Skill: a folder of instructions and functions that agents and tasks use.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, FunctionFiles, common, rules};

/// Where the skill's files come from: exactly one of `configMap`, `inline`, `image` and `claim`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "Skill",
    plural = "skills",
    shortname = "sk",
    category = "agentrun-all",
    namespaced,
    status = "SkillStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Skill is a folder of instructions and functions, found at /mnt/skills/NAME in the sandboxes of the tasks \
           and agents that use it. A run pins the digest it starts with.",
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
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = 1),
    printcolumn(
        name = "Description",
        type_ = "string",
        json_path = ".status.description",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::skill()))]
pub struct SkillSpec {
    /// Keys of a ConfigMap of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSkill>,
    /// Files written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineSkill>,
    /// Name of an image whose root is the skill's folder; it is mounted. It is read when this spec changes, and work
    /// whose sandbox finds other files in it ends as `InputChanged`: name it by digest. The cluster must be able to
    /// mount images as volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// A folder on a claim of the namespace; it is mounted read-only. It is read when this spec changes, and work whose
    /// sandbox finds other files in it ends as `InputChanged`: put another version into another folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimSkill>,
}

/// Keys of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSkill {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which key is which file. Default: every key under its own name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub items: Vec<ConfigMapItem>,
}

/// A key of a ConfigMap as a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapItem {
    /// The key.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Path of the file in the skill, for example `functions/parse.py`.
    #[schemars(length(min = 1, max = 512), regex(pattern = common::RELATIVE_PATH))]
    pub path: String,
}

/// Files written here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineSkill {
    /// The files.
    #[schemars(length(min = 1, max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub files: Vec<InlineFile>,
}

/// A file written here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineFile {
    /// Path of the file in the skill, for example `functions/parse.py`.
    #[schemars(length(min = 1, max = 512), regex(pattern = common::RELATIVE_PATH))]
    pub path: String,
    /// Its text.
    #[schemars(length(max = 262_144))]
    pub content: String,
}

/// A folder on a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSkill {
    /// Name of the PersistentVolumeClaim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Folder on it. Default: its root.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512), regex(pattern = common::RELATIVE_PATH))]
    pub path: Option<String>,
}

/// What was found in the skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
    /// Its name as its SKILL.md says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub name: Option<String>,
    /// Its description as its SKILL.md says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// Words that suggest it, as its SKILL.md says them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 128)), extend("x-kubernetes-list-type" = "atomic"))]
    pub triggers: Vec<String>,
    /// The only tools that an agent may use while it follows the skill, as its SKILL.md says them. Absent where it says
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(max = 128)), extend("x-kubernetes-list-type" = "atomic"))]
    pub allowed_tools: Option<Vec<String>>,
    /// Its functions as its functions.yaml declares them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub functions: Vec<SkillFunction>,
    /// SHA-256 over its files: sorted paths, modes and contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub digest: Option<String>,
    /// The Pod that reads the files of an `image` or `claim` now; only its report is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection: Option<SkillInspection>,
}

/// A Pod that reads a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillInspection {
    /// Its name.
    #[schemars(length(max = 253))]
    pub pod_name: String,
    /// Its UID.
    #[serde(rename = "podUID")]
    #[schemars(length(max = 64))]
    pub pod_uid: String,
}

/// A function as the skill declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillFunction {
    /// Its name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// Its file in the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub file: Option<String>,
    /// Its memory limit in MB of 1,048,576 bytes.
    #[schemars(range(min = 1))]
    pub max_memory_mb: i32,
    /// Its time limit in seconds.
    #[schemars(range(min = 1))]
    pub timeout_sec: i32,
    /// The largest file it may write, in MB. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_file_mb: Option<i32>,
    /// How many files it may have open. Default: 32.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_open_files: Option<i32>,
    /// The image it needs. Default: the task's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// Which files of the user data it touches. Default: None.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FunctionFiles>,
    /// Processes that stay and serve many calls. Default: one process per call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<WarmFunction>,
}

/// Processes that stay and serve many calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WarmFunction {
    /// How many.
    #[schemars(range(min = 1, max = 32))]
    pub instances: i32,
    /// After how many calls one is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_calls: Option<i32>,
}
