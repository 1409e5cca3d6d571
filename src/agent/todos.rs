//! The list that an agent keeps of what it has to do.

use agentrun_core::agents::tools;
use agentrun_protocol::chat::ToolSpec;
use serde::Deserialize;
use serde_json::json;

/// The longest list.
const MOST: usize = 50;
/// The longest entry, in characters.
const MAX_CONTENT: usize = 300;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Todo {
    content: String,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    #[serde(alias = "open", alias = "todo")]
    Pending,
    #[serde(alias = "doing", alias = "active")]
    InProgress,
    #[serde(alias = "done", alias = "complete")]
    Completed,
}

impl Todo {
    /// One that is not begun.
    pub(crate) fn open(content: String) -> Todo {
        Todo {
            content,
            status: Status::Pending,
        }
    }
}

#[derive(Deserialize)]
struct Arguments {
    todos: Vec<Todo>,
}

pub(crate) fn spec() -> ToolSpec {
    let todo = json!({
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "What is to be done."},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
        },
        "required": ["content", "status"],
        "additionalProperties": false
    });
    ToolSpec {
        name: tools::WRITE_TODOS.to_owned(),
        description:
            "Replaces the list of what you have to do. For work of three steps or more: write it first, and \
                      again whenever a step is done. It is kept when the conversation is shortened."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"todos": {"type": "array", "items": todo, "description": "The whole list, in order."}},
            "required": ["todos"],
            "additionalProperties": false
        }),
    }
}

/// The list in a call's arguments.
pub(crate) fn parse(arguments: &str) -> Result<Vec<Todo>, String> {
    let parsed: Result<Arguments, _> = serde_json::from_str(arguments);
    let todos = parsed
        .map_err(|error| {
            format!(
                "{error}; expected is {{\"todos\": [{{\"content\": …, \"status\": \"pending\" or \
                                  \"in_progress\" or \"completed\"}}]}}"
            )
        })?
        .todos;
    let too_long = |todo: &Todo| todo.content.chars().count() > MAX_CONTENT;
    if todos.len() > MOST || todos.iter().any(too_long) {
        let found = todos.len();
        return Err(format!(
            "the list has {found} entries; at most {MOST} of {MAX_CONTENT} characters each are allowed"
        ));
    }
    Ok(todos)
}

/// The list as text.
pub(crate) fn render(todos: &[Todo]) -> String {
    let line = |todo: &Todo| {
        let mark = match todo.status {
            Status::Pending => "[ ]",
            Status::InProgress => "[>]",
            Status::Completed => "[x]",
        };
        format!("{mark} {}", todo.content)
    };
    todos.iter().map(line).collect::<Vec<_>>().join("\n")
}
