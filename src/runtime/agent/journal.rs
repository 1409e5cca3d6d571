//! Writes down what happens, without the values of Secrets.

use crate::lock::lock;
use crate::store::journal::Journal;
use agentrun_agent::Entry;
use agentrun_core::redact::Secrets;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};

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
        Value::Object(members) => members.values_mut().for_each(|member| blot(member, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
