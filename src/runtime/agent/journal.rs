//! Writes down what happens, without the values of Secrets.

use crate::lock::lock;
use crate::store::journal::Journal;
use agentrun_agent::Entry;
use agentrun_core::redact::Secrets;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};

/// Members whose values are words of our own. A secret that is one of them would make a line that nobody can read.
const WORDS: [&str; 11] = [
    "entry",
    "asked",
    "of",
    "from",
    "by",
    "role",
    "finish",
    "code",
    "state",
    "stopReason",
    "family",
];
/// The longest of these words.
const MAX_WORD: usize = 16;

/// The journal of the agent that is at work.
#[derive(Debug)]
pub(super) struct Notebook {
    journal: Arc<Mutex<Journal>>,
    secrets: Secrets,
}

impl Notebook {
    pub(super) fn new(journal: Journal, secrets: &Secrets) -> Notebook {
        Notebook {
            journal: Arc::new(Mutex::new(journal)),
            secrets: secrets.clone(),
        }
    }

    /// Appends an entry; it is on disk when this returns.
    pub(super) async fn keep(&self, entry: Entry) -> io::Result<()> {
        let (journal, secrets) = (Arc::clone(&self.journal), self.secrets.clone());
        crate::blocking(move || append(&mut lock(&journal), &entry, &secrets)).await
    }
}

/// Appends an entry. Blocks.
pub(super) fn append(journal: &mut Journal, entry: &Entry, secrets: &Secrets) -> io::Result<()> {
    if secrets.is_empty() {
        return journal.append(entry);
    }
    journal.append(&blotted(entry, secrets)?)
}

/// `data` as JSON in which no string holds a secret; its form stays.
pub(super) fn blotted(data: &impl Serialize, secrets: &Secrets) -> io::Result<Value> {
    let mut value = serde_json::to_value(data)?;
    blot(&mut value, secrets);
    Ok(value)
}

fn blot(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => *text = secrets.blot(text),
        Value::Array(items) => items.iter_mut().for_each(|item| blot(item, secrets)),
        Value::Object(members) => {
            let is_image = members.contains_key("mediaType");
            for (name, member) in members {
                if !(is_word(name, member) || is_image && name == "data") {
                    blot(member, secrets);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_word(name: &str, member: &Value) -> bool {
    let is_short = |text: &str| text.len() <= MAX_WORD && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    WORDS.contains(&name) && member.as_str().is_some_and(is_short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_agent::Transcript;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(members) => members.values().for_each(|member| texts(member, found)),
            _ => {}
        }
    }

    /// Whatever of it is a secret.
    fn check<T: Serialize + DeserializeOwned>(line: &Value) {
        let entry: T = serde_json::from_value(line.clone()).unwrap();
        let mut secret = Vec::new();
        texts(line, &mut secret);
        for secret in secret {
            let written = blotted(&entry, &Secrets::new([secret.as_bytes()])).unwrap();
            if let Err(error) = serde_json::from_value::<T>(written) {
                panic!("{secret:?} is a secret: {error}");
            }
        }
    }

    #[test]
    fn a_line_can_be_read_whatever_the_secret_is() {
        let began = json!({"entry": "began", "terms": {
            "role": "summarizer", "prompt": "a prompt", "model": "some-model", "maxTurns": 3, "tools": ["read_file"],
            "traits": {"contextTokens": 1000},
        }, "attempt": 1, "snapshot": {"said": [{"by": "assistant", "text": "a text"}]}});
        check::<Entry>(&began);
        let answered = json!({"finish": "ContentFilter", "usage": {"input": 1, "output": 1}, "model": "some-model",
            "toolCalls": [{"id": "t0001c000", "name": "read_file", "arguments": "{\"path\": 1}"}]});
        for answer in [
            json!({ "Ok": answered }),
            json!({"Err": {"code": "ContextTooLong", "message": "it is so"}}),
        ] {
            check::<Entry>(&json!({"entry": "answered", "asked": "summary", "answer": answer}));
        }
        for outcome in [
            json!({"of": "delegate", "state": {"state": "Created", "name": "some-name"}}),
            json!({"of": "tool", "text": "a text", "images": [{"mediaType": "image/png", "data": "YWJjZGVmZ2hp"}]}),
            json!({"of": "delegate", "state": {"state": "Ended", "name": "some-name", "outcome": "Success",
                "reason": "Completed", "stopReason": "TurnCapped", "output": {"text": "a text"}, "acceptance": [
                {"criterion": "file:a exists", "family": "file", "checked": true, "holds": true, "detail": "a detail"}]}}),
        ] {
            check::<Entry>(&json!({"entry": "acted", "turn": 1, "call": 0, "outcome": outcome}));
        }
        check::<Transcript>(&json!({"said": [{"by": "assistant", "text": "a text"}]}));
    }

    #[test]
    fn what_is_written_down_holds_no_secret_and_keeps_its_form() {
        // A secret that looks like what the journal is written in.
        let secrets = Secrets::new([r#""text":"#.as_bytes(), b"hunter2hunter2"]);
        let entry = json!({"text": ["a hunter2hunter2", {"text": r#"say "text":"#}], "number": 7});
        assert_eq!(
            blotted(&entry, &secrets).unwrap(),
            json!({"text": ["a ***", {"text": "say ***"}], "number": 7})
        );
    }
}
