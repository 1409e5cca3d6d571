//! The file and shell tools: what a call is given, and what it gives back.
//!
//! A tool runs in the sandbox as a call of its own, an [`crate::executor::Exec`] of [`PROGRAM`], or of whatever
//! names the executor's binary. Its stdin is one line with the [`Session`] and then the arguments as JSON; its
//! stdout is one [`ToolOutput`]. The shell is the exception: the call becomes the shell, so that its exit code
//! is one that the executor saw and nobody reported.

use crate::Blob;
use crate::result::ArtifactRef;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The program of a tool's call: the executor's own binary, wherever it lies.
pub const PROGRAM: &str = "/proc/self/exe";
/// The most bytes of arguments of one call (2 MiB).
pub const MAX_ARGUMENTS: usize = 2 << 20;
/// The most bytes of a tool's stdout (8 MiB): an image in base64 and its description fit.
pub const MAX_OUTPUT: usize = 8 << 20;
/// The most files that a session remembers; the oldest are forgotten first.
pub const MAX_SEEN: usize = 256;
/// The most bytes of a command that a [`BashRecord`] keeps.
pub const MAX_RECORDED_COMMAND: usize = 8 * 1024;
/// Bytes of each end of a command's output that a [`BashRecord`] keeps.
pub const RECORDED_END: usize = 8 * 1024;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolName {
    /// Runs a command line in a shell.
    Bash,
    /// Lists a folder, two levels deep.
    Ls,
    /// Reads lines of a text file.
    ReadFile,
    /// Writes a whole file, or appends to one.
    WriteFile,
    /// Replaces exact text in a file.
    StrReplace,
    /// Finds files by name.
    Glob,
    /// Finds lines by a regular expression.
    Grep,
    /// Shows an image to a model that sees.
    ViewImage,
    /// Hands files below `outputs` to the user.
    PresentFiles,
}

impl ToolName {
    /// All of them.
    pub const ALL: [ToolName; 9] = [
        ToolName::Bash,
        ToolName::Ls,
        ToolName::ReadFile,
        ToolName::WriteFile,
        ToolName::StrReplace,
        ToolName::Glob,
        ToolName::Grep,
        ToolName::ViewImage,
        ToolName::PresentFiles,
    ];

    /// The name that models and manifests use.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolName::Bash => "bash",
            ToolName::Ls => "ls",
            ToolName::ReadFile => "read_file",
            ToolName::WriteFile => "write_file",
            ToolName::StrReplace => "str_replace",
            ToolName::Glob => "glob",
            ToolName::Grep => "grep",
            ToolName::ViewImage => "view_image",
            ToolName::PresentFiles => "present_files",
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No tool has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no tool {0:?}; there are bash, ls, read_file (or read), write_file (or write), str_replace, glob, grep, \
     view_image and present_files"
)]
pub struct UnknownTool(pub String);

impl FromStr for ToolName {
    type Err = UnknownTool;

    /// Also takes the aliases `read` and `write`.
    fn from_str(name: &str) -> Result<Self, UnknownTool> {
        let name = match name {
            "read" => "read_file",
            "write" => "write_file",
            name => name,
        };
        let mut all = ToolName::ALL.into_iter();
        all.find(|tool| tool.as_str() == name)
            .ok_or_else(|| UnknownTool(name.chars().take(64).collect()))
    }
}

/// What a caller keeps between the calls of one conversation, and gives to each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Session {
    /// Whether a file must have been read before it is overwritten or edited.
    #[serde(default)]
    pub guard: bool,
    /// Working folder of the next shell, a virtual path; the workspace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Files that were read or written, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
}

impl Session {
    /// The session of an agent: files are read before they are changed.
    pub fn guarded() -> Session {
        Session {
            guard: true,
            ..Session::default()
        }
    }

    /// Takes over what a call has seen.
    pub fn remember(&mut self, seen: impl IntoIterator<Item = Seen>) {
        for file in seen {
            self.seen.retain(|known| known.path != file.path);
            self.seen.push(file);
        }
        let surplus = self.seen.len().saturating_sub(MAX_SEEN);
        self.seen.drain(..surplus);
    }

    /// What is known of a file.
    pub fn seen(&self, path: &str) -> Option<&Seen> {
        self.seen.iter().find(|file| file.path == path)
    }
}

/// A file as it was when it was read or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Virtual path.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change of its content, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Lower-case hexadecimal SHA-256; absent when the file was too large to be read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What a tool answers. A refusal is an answer too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// The tool did what it was asked to. For a shell: exit code 0.
    pub ok: bool,
    /// For the model. Bounded, and names files by virtual paths only.
    pub text: String,
    /// The same for programs.
    pub facts: Facts,
    /// Files that the session shall remember.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
}

/// What a call did, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Facts {
    /// It could not be done.
    Refused {
        /// One word for programs: `arguments`, `path`, `missing`, `read_only`, `no_space`, …
        code: String,
    },
    /// Lines were read.
    Read {
        /// Virtual path.
        path: String,
        /// Size of the file in bytes.
        bytes: u64,
        /// Number of the first line, from 1.
        first_line: u64,
        /// Lines in the text.
        lines: u64,
        /// Lines of the file; absent when it was not read to its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_lines: Option<u64>,
    },
    /// A file was written.
    Written {
        /// Virtual path.
        path: String,
        /// Its size now.
        bytes: u64,
        /// Lower-case hexadecimal SHA-256 of its content now.
        sha256: String,
        /// It did not exist before.
        created: bool,
        /// Texts that were replaced in it; 0 when it was written whole.
        #[serde(default)]
        replaced: u64,
    },
    /// Files or lines were found.
    Found {
        /// How many the text holds.
        shown: u64,
        /// How many there are; at least this many when `more`.
        total: u64,
        /// There are more than were counted.
        more: bool,
        /// Virtual paths of the files, in the order of the text.
        paths: Vec<String>,
    },
    /// An image.
    Image {
        /// Virtual path.
        path: String,
        /// Media type by content.
        media_type: String,
        /// Pixels.
        width: u64,
        /// Pixels.
        height: u64,
        /// The file.
        data: Blob,
    },
    /// Files were presented.
    Presented {
        /// In the order of the arguments.
        files: Vec<ArtifactRef>,
    },
    /// A shell ran.
    Bash(BashRecord),
}

/// The record of one shell call. Made by the runtime, from what its executor saw, it is evidence. The output that it
/// speaks of is what was written down: without the values of Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashRecord {
    /// The command line; its first [`MAX_RECORDED_COMMAND`] bytes.
    pub command: String,
    /// Virtual path of the folder in which it started, as it stands in a file that its command can write too.
    pub cwd: String,
    /// Exit code; absent when it did not exit by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// It was ended at its time limit.
    #[serde(default)]
    pub timed_out: bool,
    /// Why it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_started: Option<String>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Bytes of output in all, stdout and stderr together.
    pub output_bytes: u64,
    /// Lower-case hexadecimal SHA-256 of the output; absent when not all of it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The first [`RECORDED_END`] bytes of the output, as text.
    pub head: String,
    /// The last [`RECORDED_END`] bytes of what follows the head.
    pub tail: String,
}

/// One line of the calls of an attempt, `state/…/calls.jsonl`, in the order in which they ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// Counts the calls of the attempt, from 1.
    pub number: u64,
    /// The tool.
    pub tool: ToolName,
    /// See [`ToolOutput::ok`].
    pub ok: bool,
    /// Wall time in milliseconds, as the runtime saw it.
    pub duration_ms: u64,
    /// What it did to the world.
    pub effect: Effect,
}

/// What a call did to the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// It only looked, or was refused.
    None,
    /// It wrote a file.
    Wrote {
        /// Virtual path.
        path: String,
        /// Its size afterwards.
        bytes: u64,
        /// Lower-case hexadecimal SHA-256 of its content afterwards.
        sha256: String,
    },
    /// It presented files.
    Presented {
        /// As they were.
        files: Vec<ArtifactRef>,
    },
    /// It ran a shell, which may have done anything.
    Bash(BashRecord),
}

impl Effect {
    /// What of the facts of a call has a lasting meaning.
    pub fn of(facts: &Facts) -> Effect {
        match facts {
            Facts::Written {
                path, bytes, sha256, ..
            } => Effect::Wrote {
                path: path.clone(),
                bytes: *bytes,
                sha256: sha256.clone(),
            },
            Facts::Presented { files } => Effect::Presented { files: files.clone() },
            Facts::Bash(record) => Effect::Bash(record.clone()),
            Facts::Refused { .. } | Facts::Read { .. } | Facts::Found { .. } | Facts::Image { .. } => {
                Effect::None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_one_name_and_two_have_an_alias() {
        for tool in ToolName::ALL {
            assert_eq!(tool.as_str().parse(), Ok(tool));
            assert_eq!(
                serde_json::to_value(tool).unwrap(),
                serde_json::json!(tool.as_str())
            );
        }
        assert_eq!("read".parse(), Ok(ToolName::ReadFile));
        assert_eq!("write".parse(), Ok(ToolName::WriteFile));
        assert!("Read".parse::<ToolName>().is_err());
    }

    #[test]
    fn a_session_forgets_the_oldest_file_first() {
        let file = |number: usize| Seen {
            path: number.to_string(),
            bytes: 0,
            modified_ns: 0,
            sha256: None,
        };
        let mut session = Session::guarded();
        session.remember((0..MAX_SEEN).map(file));
        session.remember([file(0), file(MAX_SEEN)]);
        assert_eq!(session.seen.len(), MAX_SEEN);
        assert!(session.seen("0").is_some());
        assert!(session.seen("1").is_none());
    }

    #[test]
    fn facts_keep_their_form() {
        let output = ToolOutput {
            ok: false,
            text: "no".to_owned(),
            facts: Facts::Refused {
                code: "missing".to_owned(),
            },
            seen: Vec::new(),
        };
        let text = r#"{"ok":false,"text":"no","facts":{"kind":"refused","code":"missing"}}"#;
        assert_eq!(serde_json::to_string(&output).unwrap(), text);
        assert_eq!(serde_json::from_str::<ToolOutput>(text).unwrap(), output);
    }
}
