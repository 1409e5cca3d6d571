//! Becomes the shell of a `bash` call: then the exit code is the shell's own, seen by whoever waits for it.

use crate::options::Areas;
use crate::tools::bash::{Shell, working_folder};
use crate::{complain, program, sys, tool_process};
use agentrun_protocol::executor::OUTPUT_VARIABLE;
use rustix::fs::{Mode, OFlags};
use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// As shells say that they found a program but could not run it.
const NOT_STARTED: u8 = 126;

/// Why there is no shell.
#[derive(Debug, thiserror::Error)]
enum NoShell {
    #[error("the call cannot be understood: {0}")]
    Input(#[from] tool_process::InputError),
    #[error(transparent)]
    Refused(#[from] crate::tools::ToolError),
    #[error("a system call failed: {0}")]
    System(#[from] io::Error),
}

/// Returns only when that fails.
pub(crate) fn run(areas: &Areas) -> ExitCode {
    match become_shell(areas) {
        Ok(never) => match never {},
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn become_shell(areas: &Areas) -> Result<Infallible, NoShell> {
    let (session, arguments) = tool_process::session_and_arguments(io::stdin().lock())?;
    let shell = Shell::parse(&arguments)?;
    let folder = working_folder(&session, &areas.roots())?;
    rustix::process::fchdir(&folder).map_err(io::Error::from)?;
    tell_start()?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    rustix::stdio::dup2_stdin(null.map_err(io::Error::from)?).map_err(io::Error::from)?;
    // One stream, in the order in which it was written.
    rustix::stdio::dup2_stderr(rustix::stdio::stdout()).map_err(io::Error::from)?;
    sys::reset_signals()?;
    Err(execute(&shell)?.into())
}

/// Writes where the shell starts; see [`crate::tools::bash::Whereabouts`].
fn tell_start() -> io::Result<()> {
    let Some(file) = std::env::var_os(OUTPUT_VARIABLE) else {
        return Ok(());
    };
    let mut start = std::env::current_dir()?.into_os_string().into_vec();
    start.push(0);
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(file)?
        .write_all(&start)
}

/// Gives the error.
fn execute(shell: &Shell) -> io::Result<io::Error> {
    let path = std::env::var("PATH").unwrap_or_default();
    let find = |name| program::find(name, &path, Path::new("/"));
    let program = find("bash")
        .or_else(|| find("sh"))
        .unwrap_or_else(|| PathBuf::from("/bin/sh"));
    let c_string = |bytes: Vec<u8>| CString::new(bytes).map_err(io::Error::other);
    let variables = std::env::vars_os().map(|(name, value)| {
        let mut line = name.into_vec();
        line.push(b'=');
        line.extend(value.into_vec());
        c_string(line)
    });
    let variables: Vec<CString> = variables.collect::<io::Result<_>>()?;
    let program = c_string(program.into_os_string().into_vec())?;
    let script = c_string(shell.script().into_bytes())?;
    let variables: Vec<&CStr> = variables.iter().map(CString::as_c_str).collect();
    Ok(sys::execve(&program, &[&program, c"-c", &script], &variables))
}
