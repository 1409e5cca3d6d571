//! A tool as a process: arguments on stdin, one answer on stdout.
//!
//! The runtime starts it as a call like any other, so that a huge file or a search without end costs that call
//! alone; a command in the sandbox may start it too.

use crate::options::{SessionFrom, Tool};
use crate::tools::{self, refusal};
use crate::{complain, confine, tool_shell};
use agentrun_protocol::tool::{MAX_ARGUMENTS, Session, ToolName, ToolOutput};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// The longest line with a session: 256 paths of 4,095 bytes, and some.
const MAX_SESSION: usize = 2 << 20;

/// Stdin or the session file is not what it must be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("it could not be read: {0}")]
    Io(#[from] io::Error),
    #[error("it has more than {0} bytes")]
    TooLong(usize),
    #[error("its first line is no session")]
    NoLine,
    #[error("the session is damaged: {0}")]
    Session(#[from] serde_json::Error),
}

/// Runs one tool. The exit code is 0 when it did what it was asked to, 1 when it was refused or failed.
pub(crate) fn run(tool: &Tool) -> ExitCode {
    let output = match answer(tool) {
        Ok(output) => output,
        Err(error) => refusal("arguments", format!("the call cannot be understood: {error}")),
    };
    let written = serde_json::to_vec(&output)
        .map_err(io::Error::from)
        .and_then(|mut line| {
            line.push(b'\n');
            io::stdout().write_all(&line)
        });
    match written {
        Ok(()) if output.ok => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            complain(&format!("the answer could not be written: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints the definitions of all tools.
pub(crate) fn print_definitions() -> ExitCode {
    let printed = serde_json::to_string_pretty(&tools::definitions())
        .map_err(io::Error::from)
        .and_then(|text| writeln!(io::stdout(), "{text}"));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(tool: &Tool) -> Result<ToolOutput, InputError> {
    // Nobody of the same user looks into this process or writes its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from)?;
    let mut kept = match &tool.session {
        SessionFrom::File(path) => Some(open_session(path)?),
        SessionFrom::Nowhere | SessionFrom::Stdin => None,
    };
    let mut session = match (&tool.session, &kept) {
        (SessionFrom::File(_), Some(file)) => read_session(file)?,
        _ => Session::default(),
    };
    let arguments = if tool.session == SessionFrom::Stdin {
        let (given, arguments) = session_and_arguments(io::stdin().lock())?;
        session = given;
        arguments
    } else {
        bounded(io::stdin().lock(), MAX_ARGUMENTS)?
    };
    let roots = tool.areas.roots();
    let output = if tool.name == ToolName::Bash {
        let (output, cwd) = tool_shell::run(&arguments, &session, &tool.areas);
        session.cwd = cwd.or(session.cwd);
        output
    } else {
        confine::see_only(&roots.folders()).map_err(io::Error::other)?;
        tools::run(tool.name, &arguments, &session, &roots)
    };
    if let Some(file) = &mut kept {
        session.remember(output.seen.iter().cloned());
        write_session(file, &session)?;
    }
    Ok(output)
}

/// Stdin of a call of the runtime: a line with the session, then the arguments.
pub(crate) fn session_and_arguments(from: impl Read) -> Result<(Session, Vec<u8>), InputError> {
    let mut bytes = bounded(from, MAX_SESSION + MAX_ARGUMENTS)?;
    let end = memchr::memchr(b'\n', &bytes).ok_or(InputError::NoLine)?;
    let arguments = bytes.split_off(end + 1);
    Ok((serde_json::from_slice(&bytes)?, arguments))
}

fn bounded(from: impl Read, most: usize) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(InputError::TooLong(most));
    }
    Ok(bytes)
}

fn open_session(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// A new file is the beginning of a guarded session.
fn read_session(file: &File) -> Result<Session, InputError> {
    let bytes = bounded(file, MAX_SESSION)?;
    if bytes.is_empty() {
        return Ok(Session::guarded());
    }
    Ok(serde_json::from_slice(&bytes)?)
}

fn write_session(file: &mut File, session: &Session) -> Result<(), InputError> {
    let bytes = serde_json::to_vec(session)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&bytes)?;
    Ok(())
}
