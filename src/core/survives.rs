//! Whether JSON comes back from the API server as it went in.

use crate::json_scan;

/// The deepest nesting that is kept in an object's status; deeper outputs become files.
pub const MAX_INLINE_DEPTH: usize = 64;

/// Whether `bytes` is one JSON document that a round trip through the API server leaves unchanged: integers within
/// int64 without fraction, exponent or `-0`; floats with a non-zero fraction that parse and print to the same value;
/// no duplicate key, no lone surrogate, nesting up to [`MAX_INLINE_DEPTH`]. Key order and white space do not count.
pub fn survives(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else {
        return false;
    };
    let Ok(scanned) = json_scan::scan(text, 0, MAX_INLINE_DEPTH) else {
        return false;
    };
    scanned.exact_numbers && json_scan::skip_white_space(bytes, scanned.end) == bytes.len()
}

#[cfg(test)]
#[path = "survives_tests.rs"]
mod tests;
