//! The journal of a sub-task: one line of JSON for each thing that happened, on disk before anything follows from it.
//! It goes through all attempts: a later one begins where the last line of an earlier one ends.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The most bytes of all lines (128 MiB). They are read one by one.
pub const MAX_BYTES: u64 = 128 << 20;

/// The lines that a journal holds when an attempt begins, oldest first. It ends at the first one that cannot be read;
/// [`Lines::finish`] says so.
#[derive(Debug)]
pub struct Lines<E> {
    path: PathBuf,
    reader: BufReader<File>,
    /// Bytes of the whole lines so far.
    whole: u64,
    number: u64,
    /// The first entry, until it is taken.
    first: Option<E>,
    failed: Option<io::Error>,
}

impl<E: DeserializeOwned> Lines<E> {
    /// Opens the journal, and makes it where there is none. Blocks.
    pub fn open(path: &Path) -> io::Result<Lines<E>> {
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
        let mut lines = Lines {
            path: path.to_owned(),
            reader: BufReader::new(file),
            whole: 0,
            number: 0,
            first: None,
            failed: None,
        };
        lines.first = lines.read();
        Ok(lines)
    }

    /// There is no whole line.
    pub fn is_empty(&self) -> bool {
        self.number == 0
    }

    fn read(&mut self) -> Option<E> {
        let mut line = Vec::new();
        if let Err(error) = self.reader.read_until(b'\n', &mut line) {
            self.failed = Some(error);
            return None;
        }
        if line.last() != Some(&b'\n') {
            return None;
        }
        self.number += 1;
        self.whole += line.len() as u64;
        let entry = serde_json::from_slice(&line);
        entry
            .map_err(|error| self.failed = Some(self.damaged(&error)))
            .ok()
    }

    fn damaged(&self, error: &serde_json::Error) -> io::Error {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let number = self.number;
        let message = format!("line {number} of {name} is not what this version writes ({error})");
        io::Error::new(io::ErrorKind::InvalidData, message)
    }

    /// Goes on behind the last whole line, once all have been taken. Half a line at the end, of a process that died
    /// while it wrote, is cut off: nothing has followed from it yet. Blocks.
    pub fn finish(mut self) -> io::Result<Journal> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let file = self.reader.into_inner();
        if self.whole < file.metadata()?.len() {
            file.set_len(self.whole)?;
            file.sync_data()?;
        }
        Ok(Journal {
            file,
            bytes: self.whole,
        })
    }
}

impl<E: DeserializeOwned> Iterator for Lines<E> {
    type Item = E;

    fn next(&mut self) -> Option<E> {
        let first = self.first.take();
        first.or_else(|| self.failed.is_none().then(|| self.read()).flatten())
    }
}

/// Appends to the journal of one sub-task.
#[derive(Debug)]
pub struct Journal {
    file: File,
    bytes: u64,
}

impl Journal {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> io::Result<(Journal, Vec<String>)> {
        let mut lines = Lines::open(path)?;
        let found: Vec<_> = lines.by_ref().collect();
        Ok((lines.finish()?, found))
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
    fn half_a_line_alone_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        std::fs::write(&path, "\"on").unwrap();
        assert!(Lines::<String>::open(&path).unwrap().is_empty());
        assert_eq!(lines(&path).unwrap().1, Vec::<String>::new());
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_damaged_line_within_is_named_and_nothing_is_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        for (text, number) in [("{]\n", 1), ("\"one\"\n{]\n\"three\"\n", 2)] {
            std::fs::write(&path, text).unwrap();
            let error = lines(&path).unwrap_err().to_string();
            let expected = format!("line {number} of journal.jsonl is not what");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn it_never_grows_beyond_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(lines(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        file.set_len(0).unwrap();
        let mut journal = Journal {
            file,
            bytes: MAX_BYTES - 5,
        };
        journal.append(&12).unwrap();
        assert_eq!(
            journal.append(&12).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }
}
