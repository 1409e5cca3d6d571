//! The command line. A Pod needs no argument; tests and the local mode move the paths.

use agentrun_protocol::executor::SOCKET;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// Shown after a mistake.
pub const USAGE: &str = "usage: agentrun-sandbox [--socket FILE] [--temp DIR] [--user-data DIR] [--hide DIR]...\n\
     \x20      agentrun-sandbox install DIR";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Serve the runtime until its connection ends.
    Serve(Settings),
    /// Copy the own binary into a folder.
    Install(PathBuf),
    /// Supervise one call; started by `Serve` alone, with its connection as stdin.
    Supervise,
}

/// Paths as this process sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The runtime's socket.
    pub socket: PathBuf,
    /// Parent of the private temp folders.
    pub temp: PathBuf,
    /// Parent of `uploads`, `workspace` and `outputs`.
    pub user_data: PathBuf,
    /// Folders that no call may read; for machines whose file system is not a container's.
    pub hide: Vec<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            socket: SOCKET.into(),
            temp: "/tmp".into(),
            user_data: "/mnt/user-data".into(),
            hide: Vec::new(),
        }
    }
}

/// The command line cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// A word that nobody knows.
    #[error("unexpected argument {0:?}")]
    Unexpected(OsString),
    /// An option or subcommand without its value.
    #[error("{0} needs a value")]
    NoValue(&'static str),
}

/// Understands the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut arguments = arguments.into_iter();
    let mut settings = Settings::default();
    let mut first = true;
    while let Some(argument) = arguments.next() {
        let mut value = |name| {
            arguments
                .next()
                .map(PathBuf::from)
                .ok_or(UsageError::NoValue(name))
        };
        match argument.to_str() {
            Some("install") if first => {
                let folder = value("install")?;
                return nothing_more(arguments, Command::Install(folder));
            }
            Some("supervise") if first => return nothing_more(arguments, Command::Supervise),
            Some("--socket") => settings.socket = value("--socket")?,
            Some("--temp") => settings.temp = value("--temp")?,
            Some("--user-data") => settings.user_data = value("--user-data")?,
            Some("--hide") => settings.hide.push(value("--hide")?),
            _ => return Err(UsageError::Unexpected(argument)),
        }
        first = false;
    }
    Ok(Command::Serve(settings))
}

fn nothing_more(mut rest: impl Iterator<Item = OsString>, command: Command) -> Result<Command, UsageError> {
    rest.next()
        .map_or(Ok(command), |word| Err(UsageError::Unexpected(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str]) -> Result<Command, UsageError> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn without_arguments_the_paths_are_those_of_the_pod() {
        assert_eq!(check(&[]), Ok(Command::Serve(Settings::default())));
    }

    #[test]
    fn paths_can_be_moved() {
        let Ok(Command::Serve(settings)) = check(&["--socket", "s", "--hide", "a", "--hide", "b"]) else {
            panic!("expected to serve");
        };
        assert_eq!(settings.socket, PathBuf::from("s"));
        assert_eq!(settings.hide, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(settings.temp, PathBuf::from("/tmp"));
    }

    #[test]
    fn a_mistake_is_named() {
        assert_eq!(check(&["install"]), Err(UsageError::NoValue("install")));
        assert_eq!(check(&["--temp"]), Err(UsageError::NoValue("--temp")));
        assert_eq!(
            check(&["install", "a", "b"]),
            Err(UsageError::Unexpected("b".into()))
        );
        assert_eq!(
            check(&["--tmp", "a"]),
            Err(UsageError::Unexpected("--tmp".into()))
        );
    }
}
