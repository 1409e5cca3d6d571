//! Earlier results of functions: `state/cache/KEY.json`, where user code cannot reach them.
//!
//! The key covers all that a function may depend on: its skill's digest, its name, its input, the files that the task
//! says it reads, its environment and the image by the name that was asked for. What an image's tag points to, the
//! time, and the network are not covered; a task asks for the cache to say that they do not matter.

use crate::store::{Durability, hash_of, sha256_of, write};
use agentrun_protocol::work::{Assignment, Work};
use agentrun_sandbox::resolve::{Links, Location, ResolveError, Roots};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::input::Source;
use super::judge::MAX_DOCUMENT;

/// Below `state`.
const FOLDER: &str = "cache";
/// Only our own user reads what is cached.
const MODE: u32 = 0o640;
/// The most results that a thread keeps; the oldest quarter goes when there are more.
const MAX_ENTRIES: usize = 4096;
/// How long hashing of input and files may take; a key that takes longer is none, and the work runs.
const HASH_TIME: Duration = Duration::from_secs(20);

/// The place of one result, and the files that it stands for.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    place: PathBuf,
    /// Path and digest of each file before the work; its digest is null where there was none.
    reads: Vec<(String, Value)>,
}

/// The place of this work's result, if the task asked for the cache. Blocks.
pub(super) fn entry(
    assignment: &Assignment,
    image: &str,
    state: &Path,
    roots: &Roots,
    input: &mut Source,
) -> io::Result<Option<Entry>> {
    let (Some(cache), Work::Function { skill, name, .. }) = (&assignment.cache, &assignment.work) else {
        return Ok(None);
    };
    let digest = assignment
        .skills
        .iter()
        .find(|files| files.name == *skill)
        .map(|files| &files.digest);
    let until = Instant::now() + HASH_TIME;
    let Some(input) = hash_input(input, until)? else {
        return Ok(None);
    };
    let mut reads = Vec::new();
    for path in &cache.reads {
        match hash_read(roots, path, until) {
            Some(read) => reads.push((path.clone(), read)),
            None => return Ok(None),
        }
    }
    let key = json!({
        "skill": digest, "function": name, "input": input, "reads": reads, "env": assignment.env, "image": image,
        "limits": assignment.limits,
    });
    let name = format!("{}.json", sha256_of(key.to_string().as_bytes()));
    let place = state.join(FOLDER).join(name);
    Ok(Some(Entry { place, reads }))
}

fn hash_input(input: &mut Source, until: Instant) -> io::Result<Option<String>> {
    match input {
        Source::Bytes(bytes) => Ok(Some(sha256_of(bytes))),
        Source::File(file) => {
            let hash = hash_of(&mut *file, || Instant::now() < until)?;
            file.rewind()?;
            Ok(hash.map(|(sha256, _)| sha256))
        }
    }
}

/// The digest of a file that the function reads. A file that is not there is a fact like another; one that cannot be
/// read, or is none, makes the result unfit for the cache.
fn hash_read(roots: &Roots, path: &str, until: Instant) -> Option<Value> {
    let location = Location::parse(path).ok()?;
    match roots.open_file(&location, Links::Inside) {
        Ok(file) => {
            let (sha256, bytes) = hash_of(file, || Instant::now() < until).ok()??;
            Some(json!([sha256, bytes]))
        }
        Err(ResolveError::Missing { .. }) => Some(Value::Null),
        Err(_) => None,
    }
}

impl Entry {
    /// What the function wrote the last time. Blocks.
    pub(super) fn load(&self) -> Option<Vec<u8>> {
        let file = fs::File::open(&self.place).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Keeps what the function wrote, if the files that it read are what they were before: others may write them while
    /// it runs, and so may the function. A result that cannot be kept is a result all the same. Blocks.
    pub(super) fn store(&self, roots: &Roots, document: &[u8]) {
        if !self.is_still_so(roots) {
            tracing::info!(
                "the result is not kept for the cache: a file that it reads has changed meanwhile"
            );
            return;
        }
        let stored = write(&self.place, document, MODE, Durability::Process).and_then(|()| self.make_room());
        if let Err(error) = stored {
            tracing::warn!(%error, "the result is not kept for the cache");
        }
    }

    /// A file that cannot be read in time may be another one.
    fn is_still_so(&self, roots: &Roots) -> bool {
        let until = Instant::now() + HASH_TIME;
        self.reads
            .iter()
            .all(|(path, before)| hash_read(roots, path, until).as_ref() == Some(before))
    }

    fn make_room(&self) -> io::Result<()> {
        let Some(folder) = self.place.parent() else {
            return Ok(());
        };
        let mut entries: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Another runtime of this thread may make room at the same time.
            let Ok(modified) = entry.metadata().and_then(|data| data.modified()) else {
                continue;
            };
            entries.push((modified, entry.path()));
        }
        if entries.len() <= MAX_ENTRIES {
            return Ok(());
        }
        entries.sort_unstable();
        for (_, path) in entries.iter().take(MAX_ENTRIES / 4) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
