//! Deterministic names of everything the operator creates, so that a crash between a create and its record is
//! found again by name instead of being repeated.
//!
//! Every result is a DNS label (RFC 1123, at most 63 characters), whatever the input.

use agentrun_api::{ClaimFile, FileSource, RunFile};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The longest DNS label (RFC 1035, section 2.3.4).
pub const MAX_LABEL: usize = 63;

const RUN_PART: usize = 28;
const TASK_PART: usize = 18;
const SHORT_HASH: usize = 10;
const CLAIM_HASH: usize = 20;
const THREAD_HASH: usize = 32;

/// The alphabet of RFC 4648 base32 in lower case, which is also a subset of what a DNS label allows.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The first `n` characters of the lower-case, unpadded RFC 4648 base32 of the SHA-256 over `fields` joined by NUL.
/// At most 52 characters exist.
pub fn h(n: usize, fields: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            hasher.update([0]);
        }
        hasher.update(field.as_bytes());
    }
    let mut text = base32(&hasher.finalize());
    text.truncate(n);
    text
}

fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(symbol(buffer >> bits));
        }
    }
    if bits > 0 {
        text.push(symbol(buffer << (5 - bits)));
    }
    text
}

fn symbol(bits: u32) -> char {
    char::from(BASE32[(bits & 31) as usize])
}

/// The name of the `SubTask` of a plan's task, or of one of its `forEach` items: by `key` where the task has one, else
/// by `index`.
pub fn subtask_name(
    run_name: &str,
    task: &str,
    run_uid: &str,
    index: Option<u32>,
    key: Option<&str>,
) -> String {
    let item = match (key, index) {
        (Some(key), _) => key.to_owned(),
        (None, Some(index)) => index.to_string(),
        (None, None) => String::new(),
    };
    join(&[
        &part(run_name, RUN_PART),
        &part(task, TASK_PART),
        &h(SHORT_HASH, &[run_uid, task, &item]),
    ])
}

/// The name of the `SubTask` that an agent asked for: `call` counts the calls of one model turn.
pub fn delegate_name(run_name: &str, agent_type: &str, parent_uid: &str, turn: u32, call: u32) -> String {
    let hash = h(SHORT_HASH, &[parent_uid, &turn.to_string(), &call.to_string()]);
    join(&[&part(run_name, RUN_PART), &part(agent_type, TASK_PART), &hash])
}

/// The name of the `SubTask` that runs a criterion again for an attempt of another one: `criterion` is its place in the
/// list.
pub fn rerun_name(run_name: &str, task: &str, subtask_name: &str, attempt: i32, criterion: usize) -> String {
    let hash = h(
        SHORT_HASH,
        &[subtask_name, &attempt.to_string(), &criterion.to_string()],
    );
    join(&[&part(run_name, RUN_PART), &part(task, TASK_PART), &hash])
}

/// The name of the Pod of one attempt. Attempts have at most two digits; the name stays a label beyond that.
pub fn pod_name(subtask_name: &str, attempt: u32) -> String {
    let attempt = attempt.to_string();
    join(&[&part(subtask_name, MAX_LABEL - 1 - attempt.len()), &attempt])
}

/// The name of a `Thread`; making an object of this name is the thread's lock.
pub fn thread_name(user: &str, thread: &str) -> String {
    format!("t-{}", h(THREAD_HASH, &[user, thread]))
}

/// The name of the claim owned by an `AgentRun` or a `Thread`.
pub fn claim_name(owner_uid: &str) -> String {
    format!("ud-{}", h(CLAIM_HASH, &[owner_uid]))
}

/// The name of a warm slot's claim, kept when the slot is claimed. Slot numbers are never used again.
pub fn slot_claim_name(pool_uid: &str, slot: u64) -> String {
    format!("ud-{}", h(CLAIM_HASH, &[pool_uid, &slot.to_string()]))
}

/// The name of the network policy for one set of egress rules: equal rules share a policy, whatever their key order.
pub fn egress_policy_name(rules: &Value) -> String {
    format!("agentrun-egress-{}", h(SHORT_HASH, &[&canonical_json(rules)]))
}

/// Name of the folder at which a runtime finds the claim that a file of a run is copied from. Nothing for files that
/// come over the channel.
pub fn source_folder(file: &FileSource) -> Option<String> {
    let of_run = |from: &RunFile| h(SHORT_HASH, &["run", &from.run]);
    let of_claim = |claim: &ClaimFile| h(SHORT_HASH, &["claim", &claim.name]);
    file.from
        .as_ref()
        .map(of_run)
        .or_else(|| file.claim.as_ref().map(of_claim))
}

/// JSON without white space and with the keys of every object sorted by their bytes.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(member, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// At most `max` characters that a DNS label may hold; what it may not hold becomes `-`.
fn part(text: &str, max: usize) -> String {
    let label: String = text
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(max)
        .collect();
    label.trim_matches('-').to_owned()
}

fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
