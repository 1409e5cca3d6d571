//! The file tools: `ls`, `read_file`, `write_file`, `str_replace`, `glob`, `grep`, `view_image`,
//! `present_files`; and what is said about the shell.
//!
//! A tool is a function from arguments, a session and the areas to an answer. All of them name files by virtual
//! paths, resolve them beneath their area ([`crate::resolve`]), and bound what they read, say and remember. They
//! run in a process of their own ([`crate::tool_process`]), under the limits of a call.

pub mod arguments;
pub mod bash;
mod definition;
mod encoding;
mod error;
mod files;
mod glob;
mod grep;
mod image;
mod list;
pub mod media;
mod names;
mod pattern;
mod present;
mod read;
mod replace;
#[cfg(test)]
mod tests;
mod walk;
mod window;
mod write;

pub use definition::{Definition, definitions};
pub use error::ToolError;

use crate::resolve::Roots;
use agentrun_protocol::tool::{Facts, MAX_ARGUMENTS, Session, ToolName, ToolOutput};
use serde::de::DeserializeOwned;

/// What a tool answers when it was not refused.
struct Answer {
    text: String,
    facts: Facts,
    seen: Vec<agentrun_protocol::tool::Seen>,
}

impl Answer {
    fn new(text: String, facts: Facts) -> Answer {
        Answer {
            text,
            facts,
            seen: Vec::new(),
        }
    }
}

type Result<T> = std::result::Result<T, ToolError>;

/// Runs a file tool. `arguments` is one JSON object.
pub fn run(tool: ToolName, arguments: &[u8], session: &Session, roots: &Roots) -> ToolOutput {
    match dispatch(tool, arguments, session, roots) {
        Ok(answer) => ToolOutput {
            ok: true,
            text: answer.text,
            facts: answer.facts,
            seen: answer.seen,
        },
        Err(error) => refusal(error.code(), error.to_string()),
    }
}

/// The answer of a tool that does not do it.
pub fn refusal(code: &str, text: String) -> ToolOutput {
    ToolOutput {
        ok: false,
        text,
        facts: Facts::Refused {
            code: code.to_owned(),
        },
        seen: Vec::new(),
    }
}

fn dispatch(tool: ToolName, arguments: &[u8], session: &Session, roots: &Roots) -> Result<Answer> {
    match tool {
        ToolName::Bash => Err(ToolError::Value {
            name: "the tool",
            found: "bash".to_owned(),
            allowed: "a shell is a process of its own and started by whoever runs the tools".to_owned(),
        }),
        ToolName::Ls => list::run(&parse(tool, arguments)?, roots),
        ToolName::ReadFile => read::run(&parse(tool, arguments)?, roots),
        ToolName::WriteFile => write::run(&parse(tool, arguments)?, session, roots),
        ToolName::StrReplace => replace::run(&parse(tool, arguments)?, session, roots),
        ToolName::Glob => glob::run(&parse(tool, arguments)?, roots),
        ToolName::Grep => grep::run(&parse(tool, arguments)?, roots),
        ToolName::ViewImage => image::run(&parse(tool, arguments)?, roots),
        ToolName::PresentFiles => present::run(&parse(tool, arguments)?, roots),
    }
}

/// Understands arguments: one JSON object, each field once, no field that nobody knows.
pub(crate) fn parse<A: DeserializeOwned>(tool: ToolName, arguments: &[u8]) -> Result<A> {
    let refuse = |problem: String| ToolError::Arguments {
        tool,
        problem,
        expected: definition::fields(tool),
    };
    if arguments.len() > MAX_ARGUMENTS {
        return Err(refuse(format!(
            "they have {} bytes, at most {MAX_ARGUMENTS} are allowed",
            arguments.len()
        )));
    }
    // A sequence would be taken for the fields in their order.
    if arguments.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(refuse("they do not begin with {".to_owned()));
    }
    serde_json::from_slice(arguments).map_err(|error| refuse(names::shown(&error.to_string())))
}

/// A bound that a call may choose up to a maximum.
fn bound(name: &'static str, asked: Option<u64>, default: u64, most: u64) -> Result<u64> {
    match asked {
        None => Ok(default),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(asked) => Err(ToolError::Value {
            name,
            found: asked.to_string(),
            allowed: format!("allowed is 1 to {most}, {default} when absent"),
        }),
    }
}
