//! The record of an attempt's tool calls, `calls.jsonl`: one line for each, appended when it is over.

use super::evidence::Evidence;
use crate::lock::lock;
use agentrun_protocol::tool::CallRecord;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex};

/// The most bytes of all records of an attempt (32 MiB).
const MAX_BYTES: u64 = 32 << 20;
/// The longest line (512 KiB): two ends of an output and a command, each character escaped, or all files of one call
/// of `present_files`.
const MAX_LINE: u64 = 512 * 1024;

/// Appends to the record of one attempt; clones append to the same.
#[derive(Clone, Debug)]
pub struct CallLog(Arc<Mutex<Open>>);

#[derive(Debug)]
struct Open {
    file: File,
    next: u64,
    bytes: u64,
}

impl CallLog {
    /// Opens the record of an attempt, and goes on after the last call when there is one.
    pub fn open(evidence: &Evidence) -> io::Result<CallLog> {
        let path = evidence.calls_path();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o640)
            .open(&path)?;
        let last = read(evidence)?.last().map_or(0, |record| record.number);
        // Half a line of a process that died: what follows begins on its own line.
        let bytes = file.metadata()?.len();
        if bytes > 0 {
            file.write_all(b"\n")?;
        }
        let next = last + 1;
        Ok(CallLog(Arc::new(Mutex::new(Open { file, next, bytes }))))
    }

    /// Appends a call; its number is the next one.
    pub fn append(&self, mut record: CallRecord) -> io::Result<()> {
        let mut open = lock(&self.0);
        record.number = open.next;
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        open.bytes += line.len() as u64;
        if open.bytes > MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("the records of all calls have more than {MAX_BYTES} bytes"),
            ));
        }
        open.file.write_all(&line)?;
        open.next += 1;
        Ok(())
    }
}

/// The calls of an attempt, oldest first; none when it made none. A damaged line is left out.
pub fn read(evidence: &Evidence) -> io::Result<impl Iterator<Item = CallRecord> + use<>> {
    let file = match File::open(evidence.calls_path()) {
        Ok(file) => Some(BufReader::new(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut file = file;
    let lines = std::iter::from_fn(move || {
        let mut line = Vec::new();
        let count = file.as_mut()?.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
        (count > 0).then_some(line)
    });
    Ok(lines.filter_map(|line| serde_json::from_slice(&line).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_protocol::tool::{Effect, ToolName};

    fn evidence(state: &std::path::Path) -> Evidence {
        let assignment = serde_json::json!({
            "uid": "sub", "attempt": 1, "subtask": "default/one", "runUid": "run", "task": "one",
            "work": {"kind": "Command", "argv": ["true"]}, "remainingMs": 1,
            "limits": agentrun_protocol::work::Limits::COMMAND,
        });
        Evidence::new(state, &serde_json::from_value(assignment).unwrap()).unwrap()
    }

    fn record(tool: ToolName) -> CallRecord {
        CallRecord {
            number: 0,
            tool,
            ok: true,
            duration_ms: 1,
            effect: Effect::None,
        }
    }

    #[test]
    fn calls_are_numbered_on_after_a_restart_and_half_a_line_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let evidence = evidence(folder.path());
        assert_eq!(read(&evidence).unwrap().count(), 0);
        let log = CallLog::open(&evidence).unwrap();
        log.append(record(ToolName::Ls)).unwrap();
        log.append(record(ToolName::Grep)).unwrap();
        let path = evidence.calls_path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"{\"number\":3,\"to");
        std::fs::write(&path, bytes).unwrap();
        CallLog::open(&evidence)
            .unwrap()
            .append(record(ToolName::Glob))
            .unwrap();
        let found: Vec<_> = read(&evidence)
            .unwrap()
            .map(|call| (call.number, call.tool))
            .collect();
        assert_eq!(
            found,
            [(1, ToolName::Ls), (2, ToolName::Grep), (3, ToolName::Glob)]
        );
    }

    #[test]
    fn the_longest_record_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let evidence = evidence(folder.path());
        let log = CallLog::open(&evidence).unwrap();
        let file = |number: usize| agentrun_protocol::result::ArtifactRef {
            path: format!("/mnt/user-data/outputs/{}{number:03}", "d/".repeat(499)),
            bytes: 1,
            sha256: "0".repeat(64),
            media_type: "text/plain".to_owned(),
        };
        let longest = CallRecord {
            effect: Effect::Presented {
                files: (0..256).map(file).collect(),
            },
            ..record(ToolName::PresentFiles)
        };
        log.append(longest).unwrap();
        log.append(record(ToolName::Ls)).unwrap();
        let found: Vec<_> = read(&evidence)
            .unwrap()
            .map(|call| (call.number, call.tool))
            .collect();
        assert_eq!(found, [(1, ToolName::PresentFiles), (2, ToolName::Ls)]);
    }
}
