//! Why a tool refuses. The text is for a model: what was found, what is allowed, what to do.

use crate::resolve::{Location, ResolveError};
use agentrun_protocol::tool::ToolName;
use rustix::io::Errno;
use std::fmt::Write as _;
use std::io;

/// A refusal.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The arguments are not what the tool takes.
    #[error("the arguments of {tool} cannot be understood: {problem}. They are one JSON object: {expected}")]
    Arguments {
        /// The tool.
        tool: ToolName,
        /// What is wrong, with its position.
        problem: String,
        /// The fields.
        expected: String,
    },
    /// An argument has a value that cannot be.
    #[error("{name} is {found}; {allowed}")]
    Value {
        /// The argument.
        name: &'static str,
        /// What it was.
        found: String,
        /// What it may be, and what to do.
        allowed: String,
    },
    /// The path cannot be used.
    #[error("{}", with_advice(.0))]
    Path(#[from] ResolveError),
    /// The system failed.
    #[error("{path:?} cannot be used: {}", explain(.error))]
    System {
        /// Virtual path.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Not a text file.
    #[error(
        "{path:?} is no text in UTF-8 or UTF-16, but {media_type} of {bytes} bytes{detail}. Use bash with a program for \
         this format, or view_image for an image"
    )]
    NotText {
        /// Virtual path.
        path: String,
        /// What it seems to be.
        media_type: &'static str,
        /// Its size.
        bytes: u64,
        /// Where it stops being text.
        detail: String,
    },
    /// A file is larger than the tool handles.
    #[error("{path:?} has {bytes} bytes, at most {most} are allowed; {advice}")]
    TooLarge {
        /// Virtual path.
        path: String,
        /// What was found.
        bytes: u64,
        /// What is allowed.
        most: u64,
        /// What to do.
        advice: &'static str,
    },
    /// It would be changed without having been read.
    #[error("{path:?} {why}; read it with read_file, then try again")]
    Unread {
        /// Virtual path.
        path: String,
        /// `was not read yet`, or `has changed since …`.
        why: &'static str,
    },
    /// The text to replace is not there, or not unique.
    #[error("old_str {problem} in {path:?}; {advice}")]
    NoUniqueText {
        /// Virtual path.
        path: String,
        /// How often it occurs, and where.
        problem: String,
        /// What to do.
        advice: &'static str,
    },
    /// A pattern is none.
    #[error("pattern {pattern:?} cannot be used: {problem}")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Not an image that can be shown.
    #[error(
        "{path:?} cannot be shown: {problem}; shown are PNG, JPEG, GIF and WebP of at most {most} pixels a side"
    )]
    NotShown {
        /// Virtual path.
        path: String,
        /// What it is.
        problem: String,
        /// The longest side.
        most: u64,
    },
    /// Only files below outputs can be presented.
    #[error("{path:?} is not below /mnt/user-data/outputs; copy it there with bash, then present the copy")]
    NotAnOutput {
        /// As it was given.
        path: String,
    },
}

impl ToolError {
    /// A system error about a file.
    pub(super) fn system(location: &Location, error: impl Into<io::Error>) -> ToolError {
        ToolError::System {
            path: location.to_string(),
            error: error.into(),
        }
    }

    /// One word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            ToolError::Arguments { .. } | ToolError::Value { .. } => "arguments",
            ToolError::Path(error) => match error {
                ResolveError::Outside { .. } => "outside",
                ResolveError::Leaves { .. } => "leaves",
                ResolveError::Missing { .. } => "missing",
                ResolveError::WrongKind { .. } => "wrong_kind",
                ResolveError::ReadOnly { .. } => "read_only",
                ResolveError::Restless { .. } => "restless",
                ResolveError::System { source, .. } => code_of(source),
            },
            ToolError::System { error, .. } => code_of(error),
            ToolError::NotText { .. } => "not_text",
            ToolError::TooLarge { .. } => "too_large",
            ToolError::Unread { .. } => "unread",
            ToolError::NoUniqueText { .. } => "no_unique_text",
            ToolError::Pattern { .. } => "pattern",
            ToolError::NotShown { .. } => "not_shown",
            ToolError::NotAnOutput { .. } => "not_an_output",
        }
    }
}

fn code_of(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "no_space",
        Some(Errno::ROFS) => "read_only",
        Some(Errno::ACCESS | Errno::PERM) => "denied",
        Some(Errno::NAMETOOLONG) => "path",
        Some(Errno::FBIG) => "too_large",
        _ => "system",
    }
}

fn with_advice(error: &ResolveError) -> String {
    let mut text = error.to_string();
    let _ = match error {
        ResolveError::Missing { .. } => write!(text, "; find it with ls or glob"),
        ResolveError::WrongKind { found: "folder", .. } => write!(text, "; look into it with ls"),
        ResolveError::ReadOnly { .. } => {
            write!(text, "; copy it to /mnt/user-data/workspace and change the copy")
        }
        ResolveError::System { source, .. } => write!(text, ": {}", explain(source)),
        _ => Ok(()),
    };
    text
}

fn explain(error: &io::Error) -> String {
    let text = match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT) => {
            "the disk is full: no space or no more files are left; remove what is not needed, then try again"
        }
        Some(Errno::ROFS) => "this disk is read-only",
        Some(Errno::ACCESS | Errno::PERM) => "permission denied; its owner or mode does not allow it",
        Some(Errno::NAMETOOLONG) => "a name may have 255 bytes and a path 4,095",
        Some(Errno::FBIG) => "it would be larger than a file may be here",
        _ => return error.to_string(),
    };
    text.to_owned()
}
