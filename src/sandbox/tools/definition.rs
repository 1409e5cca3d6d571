//! The tools as models are told of them.

use agentrun_protocol::tool::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// JSON Schemas of the arguments, by tool; made from [`super::arguments`], see the test.
const SCHEMAS: &str = include_str!("schemas.json");

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name.
    pub name: ToolName,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// All tools, in the order of [`ToolName::ALL`].
pub fn definitions() -> Vec<Definition> {
    let mut schemas = schemas();
    let definition = |name: ToolName| Definition {
        name,
        description: description(name).to_owned(),
        parameters: schemas.remove(name.as_str()).unwrap_or_default(),
    };
    ToolName::ALL.into_iter().map(definition).collect()
}

fn schemas() -> BTreeMap<String, Value> {
    // Committed and tested; there is nobody to tell of an error.
    serde_json::from_str(SCHEMAS).unwrap_or_default()
}

/// The fields of a tool's arguments, for an error.
pub(super) fn fields(tool: ToolName) -> String {
    let schema = schemas().remove(tool.as_str()).unwrap_or_default();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema["properties"].as_object();
    let fields = properties.into_iter().flatten().map(|(name, schema)| {
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str),
            kind => kind.as_str(),
        };
        let optional = if required.contains(&name.as_str()) {
            ""
        } else {
            ", optional"
        };
        format!("{name} ({}{optional})", kind.unwrap_or("any"))
    });
    fields.collect::<Vec<_>>().join(", ")
}

fn description(tool: ToolName) -> &'static str {
    match tool {
        ToolName::Bash => {
            "Runs a command line in a new shell (bash, or sh where there is none) and gives its exit code and its \
             output, stdout and stderr together; of a long output the beginning and the end. The working folder is \
             kept from call to call, variables are not. Processes in the background end with the call. There is no \
             network unless the task was given some. Writable are /mnt/user-data/workspace, /mnt/user-data/outputs \
             and $TMPDIR, which is emptied after each call."
        }
        ToolName::Ls => {
            "Lists a folder and the folders in it, with sizes. The areas are /mnt/user-data/uploads (files of the \
             user, read-only), /mnt/user-data/workspace (for work), /mnt/user-data/outputs (results for the user) \
             and /mnt/skills/NAME (read-only)."
        }
        ToolName::ReadFile => {
            "Reads a text file, with line numbers: at most 2,000 lines or 50 KB from start_line on. The answer says \
             how to go on."
        }
        ToolName::WriteFile => {
            "Writes a whole text file below workspace or outputs, or with append adds to its end. An existing file \
             must have been read before it is replaced. To change a part of a file use str_replace."
        }
        ToolName::StrReplace => {
            "Replaces a text in a file below workspace or outputs. The old text must be exactly as in the file, \
             without line numbers, and occur once, unless replace_all is set. The file must have been read before."
        }
        ToolName::Glob => {
            "Finds files by name, sorted by path. What .gitignore and .ignore files name, and .git itself, is left \
             out unless include_ignored is set (.git always)."
        }
        ToolName::Grep => {
            "Finds lines by a regular expression (the syntax of ripgrep: no look-around, no back-references), as \
             PATH:LINE:TEXT. Binary files, .git and what .gitignore and .ignore files name are left out."
        }
        ToolName::ViewImage => "Shows a PNG, JPEG, GIF or WebP file of at most 3 MiB.",
        ToolName::PresentFiles => {
            "Hands finished files to the user, who sees nothing else. They must be below /mnt/user-data/outputs."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments;
    use super::*;
    use schemars::generate::SchemaSettings;
    use schemars::{JsonSchema, Schema};

    fn schema<T: JsonSchema>() -> Schema {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<T>();
        schema.remove("title");
        schema.remove("description");
        schema
    }

    fn of_types() -> BTreeMap<&'static str, Schema> {
        let schema_of = |tool| match tool {
            ToolName::Bash => schema::<arguments::Bash>(),
            ToolName::Ls => schema::<arguments::Ls>(),
            ToolName::ReadFile => schema::<arguments::ReadFile>(),
            ToolName::WriteFile => schema::<arguments::WriteFile>(),
            ToolName::StrReplace => schema::<arguments::StrReplace>(),
            ToolName::Glob => schema::<arguments::Glob>(),
            ToolName::Grep => schema::<arguments::Grep>(),
            ToolName::ViewImage => schema::<arguments::ViewImage>(),
            ToolName::PresentFiles => schema::<arguments::PresentFiles>(),
        };
        ToolName::ALL
            .into_iter()
            .map(|tool| (tool.as_str(), schema_of(tool)))
            .collect()
    }

    #[test]
    fn committed_schemas_are_those_of_the_types() {
        let made = serde_json::to_string_pretty(&of_types()).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/schemas.json");
            std::fs::write(path, &made).unwrap();
            return;
        }
        assert_eq!(made, SCHEMAS, "run this test with UPDATE_SCHEMAS=1");
    }

    #[test]
    fn every_tool_is_an_object_of_described_fields() {
        for definition in definitions() {
            let schema = &definition.parameters;
            assert_eq!(
                schema["additionalProperties"],
                Value::Bool(false),
                "{}",
                definition.name
            );
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{} {name}", definition.name);
            }
            assert!(definition.description.len() > 40);
        }
        assert_eq!(
            fields(ToolName::ReadFile),
            "description (string, optional), end_line (integer, optional), path (string), start_line (integer, optional)"
        );
    }
}
