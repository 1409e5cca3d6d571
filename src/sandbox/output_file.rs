//! Sends the file that a program left as its output.

use crate::job::Job;
use crate::peer::Peer;
use agentrun_protocol::Blob;
use agentrun_protocol::executor::{MAX_OUTPUT_FILE, ToRuntime};
use agentrun_protocol::frame::{FrameError, MAX_BLOB};
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use std::fs::File;
use std::io::Read;

/// Sends `name` in the private temp folder, if the call has such a file and wrote it. Anything but a
/// regular file counts as not written.
pub(crate) fn send(job: &Job, name: &str, to: &mut Peer) -> Result<(), FrameError> {
    if !job.exec.io_files {
        return Ok(());
    }
    let Some((data, total)) = read(job, name) else {
        return Ok(());
    };
    let mut pieces: Vec<&[u8]> = data.chunks(MAX_BLOB).collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        to.send(&message(job, piece, false, total))?;
    }
    to.send(&message(job, last, true, total))
}

fn message(job: &Job, data: &[u8], last: bool, total: u64) -> ToRuntime {
    ToRuntime::OutputFile {
        id: job.exec.id,
        data: Blob(data.to_vec()),
        last,
        total,
    }
}

/// At most [`MAX_OUTPUT_FILE`] bytes, and the size of all.
fn read(job: &Job, name: &str) -> Option<(Vec<u8>, u64)> {
    // A link may name what the program could not read, also one in place of the folder; a FIFO would never end.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let folder = open(&job.scratch, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let file = openat(&folder, name, flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut data = Vec::new();
    File::from(file)
        .take(MAX_OUTPUT_FILE)
        .read_to_end(&mut data)
        .ok()?;
    Some((data, u64::try_from(stat.st_size).unwrap_or(0)))
}
