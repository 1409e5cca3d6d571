//! SHA-256 of bytes and files.

pub use agentrun_core::digest::sha256_hex as sha256_of;
use sha2::{Digest as _, Sha256};
use std::io::{self, Read};

const BLOCK: usize = 64 * 1024;

/// SHA-256 and length of all that `reader` gives. `go_on` is asked before each block; `None` when it said no.
pub fn hash_of(mut reader: impl Read, mut go_on: impl FnMut() -> bool) -> io::Result<Option<(String, u64)>> {
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK];
    let mut length = 0;
    loop {
        if !go_on() {
            return Ok(None);
        }
        let read = reader.read(&mut block)?;
        if read == 0 {
            return Ok(Some((hex::encode(hasher.finalize()), length)));
        }
        hasher.update(&block[..read]);
        length += read as u64;
    }
}
