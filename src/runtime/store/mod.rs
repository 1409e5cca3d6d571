//! What the runtime writes: uploads, skills and evidence.

pub mod agents;
pub mod calls;
pub mod copies;
pub mod evidence;
pub mod files;
pub mod journal;
pub mod mounted;
pub mod skills;
pub mod volume;

mod atomic;
mod digest;

pub use atomic::{Durability, write};
pub use digest::{hash_of, sha256_of};
