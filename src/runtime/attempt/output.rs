//! Where an output goes: into the result, or into a file that the result names.

use crate::store::evidence::Evidence;
use agentrun_core::survives::survives;
use agentrun_protocol::work::FileRef;
use serde_json::Value;
use std::io;

/// The largest output that stands in a status (16 KiB).
const MAX_INLINE: usize = 16 * 1024;

/// An output in its place.
#[derive(Debug)]
pub(super) enum Placed {
    Inline(Value),
    Stored(FileRef),
}

/// Places the document `bytes`, whose value is `value`. Blocks.
pub(super) fn place(bytes: &[u8], value: &Value, evidence: &Evidence) -> io::Result<Placed> {
    if bytes.len() <= MAX_INLINE && survives(bytes) {
        return Ok(Placed::Inline(value.clone()));
    }
    evidence.store_output(bytes).map(Placed::Stored)
}
