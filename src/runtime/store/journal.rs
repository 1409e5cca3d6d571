//! The journal of a sub-task: one line of JSON for each thing that happened, on disk before anything follows from it.
//! It goes through all attempts: a later one begins where the last line of an earlier one ends.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The most bytes of all lines (32 MiB). All of it is read when an attempt begins, in a container of 64 MiB.
pub const MAX_BYTES: u64 = 32 << 20;

/// Appends to the journal of one sub-task.
#[derive(Debug)]
pub struct Journal {
    file: File,
    bytes: u64,
}

impl Journal {
    /// Opens the journal, makes it where there is none, and gives all its lines to `take`. Half a line at its end, of a
    /// process that died while it wrote, is cut off: nothing has followed from it yet. Blocks.
    pub fn open<E: DeserializeOwned>(path: &Path, mut take: impl FnMut(E)) -> io::Result<Journal> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .read(true)
            .mode(0o640)
            .open(path)?;
        let length = file.metadata()?.len();
        if length > MAX_BYTES {
            return Err(too_long(length));
        }
        let mut reader = BufReader::new(&file);
        let (mut bytes, mut line) = (0, Vec::new());
        for number in 1_u64.. {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let entry = serde_json::from_slice(&line).map_err(|error| damaged(path, number, &error))?;
            take(entry);
            bytes += line.len() as u64;
        }
        if bytes < length {
            file.set_len(bytes)?;
            file.sync_data()?;
        }
        Ok(Journal { file, bytes })
    }

    /// Appends a line; it is on disk when this returns. Blocks.
    pub fn append(&mut self, entry: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let bytes = self.bytes + line.len() as u64;
        if bytes > MAX_BYTES {
            return Err(too_long(bytes));
        }
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.bytes = bytes;
        Ok(())
    }
}

fn too_long(bytes: u64) -> io::Error {
    let message =
        format!("the journal of the agent would have {bytes} bytes, at most {MAX_BYTES} are allowed");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

fn damaged(path: &Path, number: u64, error: &serde_json::Error) -> io::Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let message = format!("line {number} of {name} is not what this version writes ({error})");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> io::Result<(Journal, Vec<String>)> {
        let mut lines = Vec::new();
        let journal = Journal::open(path, |line| lines.push(line))?;
        Ok((journal, lines))
    }

    #[test]
    fn half_a_line_is_cut_off_and_what_comes_next_stands_behind_the_whole_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/journal.jsonl");
        let (mut journal, found) = lines(&path).unwrap();
        assert_eq!(found, Vec::<String>::new());
        journal.append(&"one\n").unwrap();
        journal.append(&"two").unwrap();
        let mut whole = std::fs::read(&path).unwrap();
        whole.extend(b"\"thr");
        std::fs::write(&path, &whole).unwrap();
        let (mut journal, found) = lines(&path).unwrap();
        assert_eq!(found, ["one\n", "two"]);
        journal.append(&"three").unwrap();
        assert_eq!(lines(&path).unwrap().1, ["one\n", "two", "three"]);
    }

    #[test]
    fn a_damaged_line_within_is_named_and_nothing_is_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        std::fs::write(&path, "\"one\"\n{]\n\"three\"\n").unwrap();
        let error = lines(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("line 2 of journal.jsonl is not what"),
            "{error}"
        );
    }

    #[test]
    fn it_never_grows_beyond_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, _) = lines(&path).unwrap();
        let half = "x".repeat(usize::try_from(MAX_BYTES / 2).unwrap());
        journal.append(&half).unwrap();
        assert_eq!(
            journal.append(&half).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        assert_eq!(lines(&path).unwrap().1, [half]);
    }
}
