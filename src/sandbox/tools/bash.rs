//! `bash`: what is run, what is recorded and what is said. Who runs it has the process.

use super::arguments::Bash;
use super::{Result, ToolError, parse};
use crate::resolve::{Area, Links, Location, ResolveError, Roots};
use agentrun_protocol::tool::{
    BashRecord, Facts, MAX_RECORDED_COMMAND, RECORDED_END, Session, ToolName, ToolOutput,
};
use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The longest command line: the kernel takes 128 KiB as one argument.
pub const MAX_COMMAND: usize = 64 * 1024;
/// Time limit of a shell that asks for none.
pub const DEFAULT_TIME: Duration = Duration::from_mins(5);
/// The longest time limit.
pub const MAX_TIME: Duration = Duration::from_mins(30);
/// Between SIGTERM and SIGKILL at the time limit.
pub const GRACE: Duration = Duration::from_secs(2);

/// Tells where the shell ends, by its exit trap; a trap of the command's own replaces it.
const TRAP: &str = "trap 'pwd -P >>\"$AGENTRUN_OUTPUT\" 2>/dev/null' EXIT; ";

/// A shell that may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The command line.
    pub command: String,
    /// Its time limit.
    pub time: Duration,
}

impl Shell {
    /// Understands the arguments of the tool.
    pub fn parse(arguments: &[u8]) -> Result<Shell> {
        let arguments: Bash = parse(ToolName::Bash, arguments)?;
        let refuse = |found: String, allowed: &str| ToolError::Value {
            name: "command",
            found,
            allowed: allowed.to_owned(),
        };
        let command = arguments.command;
        if command.trim().is_empty() {
            return Err(refuse("empty".to_owned(), "give a command line"));
        }
        if command.len() > MAX_COMMAND {
            return Err(refuse(
                format!("{} bytes long", command.len()),
                "at most 65536 are allowed; write a script with write_file and run that",
            ));
        }
        if command.contains('\0') {
            return Err(refuse("a text with a zero byte".to_owned(), "no shell takes one"));
        }
        let most = MAX_TIME.as_secs();
        let seconds = super::bound(
            "timeout_seconds",
            arguments.timeout_seconds,
            DEFAULT_TIME.as_secs(),
            most,
        )?;
        Ok(Shell {
            command,
            time: Duration::from_secs(seconds),
        })
    }

    /// What the shell is told to run.
    pub(crate) fn script(&self) -> String {
        format!("{TRAP}{}", self.command)
    }
}

/// Opens the folder where the next shell starts: that where the last one ended, or the workspace when that is
/// gone.
pub(crate) fn working_folder(session: &Session, roots: &Roots) -> Result<OwnedFd> {
    let last = session
        .cwd
        .as_deref()
        .and_then(|path| open_folder(path, roots).ok());
    let workspace = || -> Result<OwnedFd> {
        let workspace = Location::in_area(Area::Workspace, "")?;
        Ok(roots.open_folder(&workspace, Links::Inside)?)
    };
    last.map_or_else(workspace, Ok)
}

/// A shell may end in any folder that it can enter; those of the areas are opened beneath them.
fn open_folder(path: &str, roots: &Roots) -> std::result::Result<OwnedFd, ResolveError> {
    match Location::parse(path) {
        Ok(location) => roots.open_folder(&location, Links::Inside),
        Err(error) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).map_err(|_| error)
        }
    }
}

/// Where a shell started and ended, out of the file that it left: the first path, a zero byte, the last path. User
/// code can write to that file, so this is only where the next shell will try to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// Virtual path where it started.
    pub start: Option<String>,
    /// Virtual path where it ended.
    pub end: Option<String>,
}

impl Whereabouts {
    /// Understands the file.
    pub fn parse(file: &[u8], roots: &Roots) -> Whereabouts {
        const MAX_PATH: usize = 4096;
        let mut parts = file.splitn(2, |byte| *byte == 0);
        let mut next = || {
            let path = std::str::from_utf8(parts.next()?).ok()?;
            let path = path.strip_suffix('\n').unwrap_or(path);
            let is_path = path.starts_with('/') && path.len() <= MAX_PATH && !path.contains(['\0', '\n']);
            is_path.then(|| {
                roots
                    .virtual_path(path.as_ref())
                    .unwrap_or_else(|| path.to_owned())
            })
        };
        Whereabouts {
            start: next(),
            end: next(),
        }
    }
}

/// Keeps the ends and the digest of a shell's output.
#[derive(Debug, Default)]
pub struct Recorder {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    hash: Sha256,
    total: u64,
    missing: bool,
}

impl Recorder {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.keep(bytes);
    }

    /// Takes the end of an output of which so many bytes were never received.
    pub fn skip(&mut self, bytes: u64, tail: &[u8]) {
        if bytes == 0 {
            return;
        }
        self.missing = true;
        let total = self.total + bytes;
        self.keep(tail);
        self.total = total;
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at((RECORDED_END - self.head.len()).min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(RECORDED_END)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(RECORDED_END);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Writes what was seen into a record.
    pub fn finish(self, record: &mut BashRecord) {
        record.output_bytes = self.total;
        record.sha256 = (!self.missing).then(|| hex::encode(self.hash.finalize()));
        let tail: Vec<u8> = self.tail.into();
        if self.total == (self.head.len() + tail.len()) as u64 {
            // Nothing is missing between them: no character is cut.
            let all = [self.head.as_slice(), &tail].concat();
            record.head = String::from_utf8_lossy(&all).into_owned();
        } else {
            record.head = String::from_utf8_lossy(&self.head).into_owned();
            record.tail = String::from_utf8_lossy(&tail).into_owned();
        }
    }
}

/// The first bytes of a command, for its record.
pub fn recorded_command(command: &str) -> String {
    let end = command.floor_char_boundary(MAX_RECORDED_COMMAND.min(command.len()));
    command[..end].to_owned()
}

/// What the model is told. `moved` is where the next shell starts, when that is not where this one did.
pub fn answer(record: BashRecord, moved: Option<&str>, wanted: Option<&str>) -> ToolOutput {
    let mut text = record.head.clone();
    if !record.tail.is_empty() {
        let shown = (record.head.len() + record.tail.len()) as u64;
        let left_out = record.output_bytes.saturating_sub(shown);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "[{left_out} of {} bytes left out; write them to a file and look into it with grep or read_file]",
            record.output_bytes
        );
        text.push_str(&record.tail);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut note = |line: String| {
        let _ = writeln!(text, "[{line}]");
    };
    if let Some(wanted) = wanted {
        note(format!("the folder {wanted} is gone; this ran in {}", record.cwd));
    }
    let seconds = Duration::from_millis(record.duration_ms).as_secs_f32();
    match (&record.not_started, record.exit_code, record.signal) {
        (Some(why), ..) => note(format!("not started: {why}")),
        _ if record.timed_out => note(format!(
            "ended at its time limit after {seconds:.1} s; give more with timeout_seconds, or do less at once"
        )),
        (_, Some(0), _) if record.output_bytes > 0 => {}
        (_, Some(0), _) => note("no output, exit code 0".to_owned()),
        (_, Some(code), _) => note(format!("exit code {code}")),
        (_, _, Some(signal)) => note(format!("ended by signal {signal}")),
        _ => note("ended, nobody knows how".to_owned()),
    }
    if let Some(folder) = moved {
        note(format!("the next call starts in {}", super::names::shown(folder)));
    }
    ToolOutput {
        ok: record.exit_code == Some(0) && !record.timed_out,
        text,
        facts: Facts::Bash(record),
        seen: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn recorded(pieces: &[&[u8]]) -> BashRecord {
        let mut recorder = Recorder::default();
        for piece in pieces {
            recorder.push(piece);
        }
        let mut record = BashRecord {
            exit_code: Some(0),
            ..BashRecord::default()
        };
        recorder.finish(&mut record);
        record
    }

    // F064
    #[test]
    fn a_short_output_is_kept_whole_and_joined_before_it_is_decoded() {
        let record = recorded(&[
            "a\u{e4}".as_bytes().split_at(2).0,
            "a\u{e4}".as_bytes().split_at(2).1,
        ]);
        assert_eq!((record.head.as_str(), record.tail.as_str()), ("a\u{e4}", ""));
        assert_eq!(record.output_bytes, 3);
        let long = "\u{e4}".repeat(RECORDED_END / 2 + 100);
        assert_eq!(recorded(&[b"x", long.as_bytes()]).head, format!("x{long}"));
    }

    // F057
    #[test]
    fn of_a_long_output_both_ends_are_kept_and_the_rest_is_counted() {
        let noise = vec![b'n'; 5 << 20];
        let record = recorded(&[b"first\n", &noise, b"\nthe error"]);
        assert!(record.head.starts_with("first\n"));
        assert!(record.tail.ends_with("\nthe error"));
        assert_eq!(record.output_bytes, 6 + (5 << 20) + 10);
        let text = answer(record, None, None).text;
        assert!(text.contains(" bytes left out"), "{text}");
        assert!(text.len() < 3 * RECORDED_END);
    }

    #[test]
    fn an_output_that_was_not_received_has_no_digest() {
        let mut recorder = Recorder::default();
        recorder.push(b"abc");
        recorder.skip(999_997, b"end");
        let mut record = BashRecord::default();
        recorder.finish(&mut record);
        assert_eq!(record.sha256, None);
        assert_eq!(record.output_bytes, 1_000_000);
    }

    #[test]
    fn arguments_have_bounds() {
        let refused = |arguments: &str| Shell::parse(arguments.as_bytes()).unwrap_err().to_string();
        assert!(refused(r#"{"command": " "}"#).contains("command is empty"));
        assert!(refused(r#"{"command": "a\u0000b"}"#).contains("zero byte"));
        assert!(refused(r#"{"command": "a", "timeout": 0}"#).contains("allowed is 1 to 1800"));
        assert!(refused(r#"{"cmd": "a"}"#).contains("unknown field `cmd`"));
        let long = format!(r#"{{"command": "{}"}}"#, "x".repeat(MAX_COMMAND + 1));
        assert!(refused(&long).contains("65537 bytes long"));
    }

    #[test]
    fn whereabouts_are_virtual_and_only_taken_when_they_are_paths() {
        let roots = Roots::new("/real/data", "/real/skills");
        let of = |file: &[u8]| Whereabouts::parse(file, &roots);
        let both = of(b"/real/data/workspace\0/real/data/workspace/a\n");
        assert_eq!(both.start.as_deref(), Some("/mnt/user-data/workspace"));
        assert_eq!(both.end.as_deref(), Some("/mnt/user-data/workspace/a"));
        assert_eq!(of(b"/x\0/tmp\n").end.as_deref(), Some("/tmp"));
        for file in [
            &b""[..],
            b"/x",
            b"/x\0",
            b"/x\0rubbish\n",
            b"/x\0/a\nb\n",
            b"/x\0\xff\n",
        ] {
            assert_eq!(of(file).end, None);
        }
        assert_eq!(roots.virtual_path(Path::new("/real/data/state")), None);
    }

    #[test]
    fn an_end_is_told() {
        let text = |record| answer(record, None, None).text;
        let record = BashRecord::default;
        assert_eq!(
            text(BashRecord {
                exit_code: Some(0),
                ..record()
            }),
            "[no output, exit code 0]\n"
        );
        assert_eq!(
            text(BashRecord {
                exit_code: Some(3),
                head: "x".into(),
                ..record()
            }),
            "x\n[exit code 3]\n"
        );
        assert_eq!(
            text(BashRecord {
                signal: Some(9),
                ..record()
            }),
            "[ended by signal 9]\n"
        );
    }
}
