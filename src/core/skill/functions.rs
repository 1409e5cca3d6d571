//! functions.yaml: what a skill's functions need.

use crate::schema::Schema;
use agentrun_api::{FunctionFiles, SkillFunction, WarmFunction};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The most functions of a skill.
const MAX_FUNCTIONS: usize = 100;
/// The most memory that a function may declare, in MiB: 1 TiB.
const MAX_MEMORY_MB: i32 = 1 << 20;
/// The longest time that a function may declare, in seconds: a day.
const MAX_TIMEOUT: i32 = 24 * 3600;
/// The most processes of a warm function.
const MAX_INSTANCES: i32 = 32;

/// What a function takes and gives.
#[derive(Debug, Default)]
pub struct Schemas {
    /// Of its input; without one, any JSON is taken.
    pub input: Option<Schema>,
    /// Of its output.
    pub output: Option<Schema>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    functions: Vec<Declared>,
}

/// One entry, with the keys as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    name: String,
    description: Option<String>,
    file: Option<String>,
    max_memory_mb: i32,
    timeout_sec: i32,
    max_file_mb: Option<i32>,
    max_open_files: Option<i32>,
    image: Option<String>,
    files: Option<Files>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    warm: Option<Warm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Files {
    None,
    Read,
    Write,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Warm {
    instances: i32,
    max_calls: Option<i32>,
}

/// Parses the declarations. `find` names the program of a function without `file`, `exists` says whether a path is there.
pub(super) fn parse(
    text: &str,
    find: &dyn Fn(&str) -> Option<String>,
    exists: &dyn Fn(&str) -> bool,
) -> Result<Vec<SkillFunction>, String> {
    let file = read(text)?;
    if file.functions.len() > MAX_FUNCTIONS {
        return Err(format!(
            "declares {} functions, at most {MAX_FUNCTIONS} are allowed",
            file.functions.len()
        ));
    }
    let mut seen = BTreeSet::new();
    let functions = file.functions.into_iter().map(|declared| {
        if !seen.insert(declared.name.clone()) {
            return Err(format!("declares {:?} twice", declared.name));
        }
        function(declared, find, exists)
    });
    functions.collect()
}

fn read(text: &str) -> Result<File, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// The schemas of the function `name`; empty for one that is not declared.
pub(super) fn schemas(text: &str, name: &str) -> Result<Schemas, String> {
    let mut functions = read(text)?.functions.into_iter();
    let declared = functions.find(|function| function.name == name);
    declared.as_ref().map_or(Ok(Schemas::default()), compile)
}

fn compile(declared: &Declared) -> Result<Schemas, String> {
    let one = |key: &str, schema: Option<&Value>| {
        let compiled = schema.map(Schema::compile).transpose();
        compiled.map_err(|error| format!("function {}: {key}: {error}", declared.name))
    };
    Ok(Schemas {
        input: one("input_schema", declared.input_schema.as_ref())?,
        output: one("output_schema", declared.output_schema.as_ref())?,
    })
}

fn function(
    declared: Declared,
    find: &dyn Fn(&str) -> Option<String>,
    exists: &dyn Fn(&str) -> bool,
) -> Result<SkillFunction, String> {
    compile(&declared)?;
    let name = declared.name;
    let name_fits = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !name_fits {
        return Err(format!(
            "name {name:?}: allowed are letters, digits, _ and -, at most 64"
        ));
    }
    within(&name, "max_memory_mb", declared.max_memory_mb, MAX_MEMORY_MB)?;
    within(&name, "timeout_sec", declared.timeout_sec, MAX_TIMEOUT)?;
    if let Some(warm) = &declared.warm {
        within(&name, "warm.instances", warm.instances, MAX_INSTANCES)?;
        within(&name, "warm.maxCalls", warm.max_calls.unwrap_or(1), i32::MAX)?;
    }
    let file = match declared.file {
        Some(file) if exists(&file) => file,
        Some(file) => return Err(format!("function {name}: its file {file} is not in the skill")),
        None => find(&name).ok_or_else(|| {
            format!("function {name}: found no functions/{name}.py, .js, .mjs, .sh or program")
        })?,
    };
    Ok(SkillFunction {
        description: declared.description,
        file: Some(file),
        max_memory_mb: declared.max_memory_mb,
        timeout_sec: declared.timeout_sec,
        max_file_mb: declared.max_file_mb,
        max_open_files: declared.max_open_files,
        image: declared.image,
        files: declared.files.map(|files| match files {
            Files::None => FunctionFiles::None,
            Files::Read => FunctionFiles::Read,
            Files::Write => FunctionFiles::Write,
        }),
        warm: declared.warm.map(|warm| WarmFunction {
            instances: warm.instances,
            max_calls: warm.max_calls,
        }),
        name,
    })
}

fn within(function: &str, key: &str, found: i32, most: i32) -> Result<(), String> {
    if (1..=most).contains(&found) {
        return Ok(());
    }
    Err(format!(
        "function {function}: {key} is {found}, allowed are 1 to {most}"
    ))
}
