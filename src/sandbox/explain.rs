//! Says why a program did not start, and what to do.

use crate::program::first_line;
use agentrun_protocol::executor::StartError;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Travels from the forked child to its supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotStarted {
    pub(crate) error: StartError,
    pub(crate) message: String,
}

impl NotStarted {
    pub(crate) fn new(error: StartError, message: impl Into<String>) -> NotStarted {
        NotStarted {
            error,
            message: message.into(),
        }
    }

    /// A limit or layer that could not be applied.
    pub(crate) fn unconfined(what: &str, error: impl std::fmt::Display) -> NotStarted {
        NotStarted::new(
            StartError::NotConfined,
            format!("{what} could not be applied, so nothing was started: {error}"),
        )
    }
}

/// No folder of `PATH` has the program.
pub(crate) fn not_in_path(name: &str, path: &str) -> NotStarted {
    let message = format!(
        "program {name:?} is in no folder of PATH ({path}); use an image that has it, or name it by its absolute path"
    );
    NotStarted::new(StartError::NotFound, message)
}

/// The working folder cannot be entered.
pub(crate) fn no_working_dir(cwd: &str, error: Errno) -> NotStarted {
    let message =
        format!("working folder {cwd:?} cannot be entered ({error}); create it first or name another");
    NotStarted::new(StartError::NoWorkingDir, message)
}

/// `execve` of `file` failed.
pub(crate) fn exec_failed(file: &Path, error: &io::Error) -> NotStarted {
    let shown = file.display();
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR) => not_found(file),
        Some(Errno::ACCESS | Errno::PERM) => NotStarted::new(
            StartError::PermissionDenied,
            format!(
                "{shown} may not be executed; give it the executable bit (chmod +x) and check that its folder is no noexec mount"
            ),
        ),
        Some(Errno::NOEXEC) => NotStarted::new(
            StartError::NotExecutable,
            format!(
                "{shown} is neither a program for {} nor a script with a first line such as #!/bin/sh",
                std::env::consts::ARCH
            ),
        ),
        Some(Errno::TOOBIG) => NotStarted::new(
            StartError::NoResources,
            format!(
                "the arguments and environment of {shown} are too long; pass large data on stdin or as a file"
            ),
        ),
        _ => NotStarted::new(
            StartError::NoResources,
            format!("{shown} could not be started: {error}"),
        ),
    }
}

fn not_found(file: &Path) -> NotStarted {
    let shown = file.display();
    let message = if !file.exists() {
        format!("program {shown} does not exist")
    } else if let Some(interpreter) = first_line(file).first() {
        let ending = if interpreter.ends_with('\r') {
            " (the line ends with a carriage return: save the file with Unix line ends)"
        } else {
            ""
        };
        format!(
            "{shown} names the interpreter {interpreter:?}, which does not exist{ending}; install it or change the first line"
        )
    } else {
        format!(
            "{shown} needs a dynamic loader or library that this image does not have; use a static build or another image"
        )
    };
    NotStarted::new(StartError::NotFound, message)
}
