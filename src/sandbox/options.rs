//! The command line. A Pod needs no argument; tests and the local mode move the paths.

use crate::resolve::Roots;
use agentrun_protocol::executor::SOCKET;
use agentrun_protocol::tool::{ToolName, UnknownTool};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// Shown after a mistake.
pub const USAGE: &str = "usage: agentrun-sandbox [--socket FILE] [--temp DIR [--shm DIR]] [--user-data DIR] [--hide DIR]...\n\
     \x20      agentrun-sandbox install DIR\n\
     \x20      agentrun-sandbox tool NAME [--user-data DIR] [--skills DIR] [--session FILE | --session-on-stdin]\n\
     \x20      agentrun-sandbox tools";

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Serve the runtime until its connection ends.
    Serve(Settings),
    /// Copy the own binary into a folder.
    Install(PathBuf),
    /// Supervise one call; started by `Serve` alone, with its connection as stdin.
    Supervise,
    /// Run a tool with the arguments on stdin.
    Tool(Tool),
    /// Become the shell of a `bash` call.
    Shell(Areas),
    /// Print the definitions of the tools.
    Tools,
}

/// A tool to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Which one.
    pub name: ToolName,
    /// Where its files are.
    pub areas: Areas,
    /// What it knows of earlier calls.
    pub session: SessionFrom,
}

/// Where a tool's session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFrom {
    /// There is none: nothing must have been read before it is changed.
    Nowhere,
    /// The first line of stdin; changes are the caller's to keep.
    Stdin,
    /// A file, made by the first call.
    File(PathBuf),
}

/// Where the areas of virtual paths are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Areas {
    /// Parent of `uploads`, `workspace` and `outputs`.
    pub user_data: PathBuf,
    /// Parent of the skills' folders.
    pub skills: PathBuf,
}

impl Default for Areas {
    fn default() -> Self {
        Areas {
            user_data: "/mnt/user-data".into(),
            skills: "/mnt/skills".into(),
        }
    }
}

impl Areas {
    /// For the resolver.
    pub fn roots(&self) -> Roots {
        Roots::new(&self.user_data, &self.skills)
    }

    /// For the command line of a process that uses the same.
    pub fn arguments(&self) -> [OsString; 4] {
        [
            "--user-data".into(),
            self.user_data.clone().into(),
            "--skills".into(),
            self.skills.clone().into(),
        ]
    }
}

/// Paths as this process sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The runtime's socket.
    pub socket: PathBuf,
    /// Parent of the private temp folders. All of it is emptied after an attempt, where it is this container's alone.
    pub temp: PathBuf,
    /// Shared memory of this container alone, emptied together with `temp`. Who moves `temp` is on a machine, where
    /// `/dev/shm` is everybody's.
    pub shm: Option<PathBuf>,
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
            shm: Some("/dev/shm".into()),
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
    /// No tool has this name.
    #[error(transparent)]
    UnknownTool(#[from] UnknownTool),
}

/// Understands the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut arguments = arguments.into_iter();
    let mut settings = Settings::default();
    let mut first = true;
    while let Some(argument) = arguments.next() {
        let mut value = |name| value_of(name, &mut arguments);
        match argument.to_str() {
            Some("install") if first => {
                let folder = value("install")?;
                return nothing_more(arguments, Command::Install(folder));
            }
            Some("supervise") if first => return nothing_more(arguments, Command::Supervise),
            Some("tools") if first => return nothing_more(arguments, Command::Tools),
            Some("shell") if first => return Ok(Command::Shell(tool_options(arguments)?.0)),
            Some("tool") if first => {
                let name = value("tool")?.to_string_lossy().parse()?;
                let (areas, session) = tool_options(arguments)?;
                return Ok(Command::Tool(Tool { name, areas, session }));
            }
            Some("--socket") => settings.socket = value("--socket")?,
            Some("--temp") => {
                settings.temp = value("--temp")?;
                settings.shm = None;
            }
            Some("--shm") => settings.shm = Some(value("--shm")?),
            Some("--user-data") => settings.user_data = value("--user-data")?,
            Some("--hide") => settings.hide.push(value("--hide")?),
            _ => return Err(UsageError::Unexpected(argument)),
        }
        first = false;
    }
    Ok(Command::Serve(settings))
}

fn value_of(
    name: &'static str,
    arguments: &mut impl Iterator<Item = OsString>,
) -> Result<PathBuf, UsageError> {
    arguments
        .next()
        .map(PathBuf::from)
        .ok_or(UsageError::NoValue(name))
}

fn tool_options(mut arguments: impl Iterator<Item = OsString>) -> Result<(Areas, SessionFrom), UsageError> {
    let mut areas = Areas::default();
    let mut session = SessionFrom::Nowhere;
    while let Some(argument) = arguments.next() {
        let mut value = |name| value_of(name, &mut arguments);
        match argument.to_str() {
            Some("--user-data") => areas.user_data = value("--user-data")?,
            Some("--skills") => areas.skills = value("--skills")?,
            Some("--session") => session = SessionFrom::File(value("--session")?),
            Some("--session-on-stdin") => session = SessionFrom::Stdin,
            _ => return Err(UsageError::Unexpected(argument)),
        }
    }
    Ok((areas, session))
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
        assert!(settings.shm.is_some());
        let Ok(Command::Serve(settings)) = check(&["--temp", "t"]) else {
            panic!("expected to serve");
        };
        assert_eq!(settings.shm, None, "a machine's shared memory is everybody's");
    }

    #[test]
    fn a_tool_is_named_and_its_areas_can_be_moved() {
        let Ok(Command::Tool(tool)) = check(&["tool", "read", "--user-data", "d", "--session", "s"]) else {
            panic!("expected a tool");
        };
        assert_eq!(tool.name, ToolName::ReadFile);
        assert_eq!(tool.areas.user_data, PathBuf::from("d"));
        assert_eq!(tool.areas.skills, PathBuf::from("/mnt/skills"));
        assert_eq!(tool.session, SessionFrom::File("s".into()));
        assert!(matches!(check(&["tool", "rm"]), Err(UsageError::UnknownTool(_))));
        assert_eq!(check(&["tool"]), Err(UsageError::NoValue("tool")));
        assert_eq!(check(&["shell"]), Ok(Command::Shell(Areas::default())));
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
