//! Answers of a model that goes by a script.

use serde_json::{Value, json};

/// A call of a tool.
pub fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// An answer that calls tools.
pub fn calls(calls: &[Value]) -> Value {
    json!({"toolCalls": calls, "usage": [100, 20]})
}

/// An answer in words.
pub fn says(text: &str) -> Value {
    json!({"text": text, "usage": [100, 20]})
}

/// What the gateway's probe hears.
pub fn probed() -> Value {
    json!({"when": {"user": "Say ok"}, "answer": {"text": "ready", "usage": [1, 1]}})
}

/// What every request gets that no rule before was made for, the gateway's probe among them.
pub fn otherwise() -> Value {
    json!({"answer": {"text": "ready", "usage": [1, 1]}})
}
