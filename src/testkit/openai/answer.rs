//! What the endpoint says to one request.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// One answer. Everything that is left out is as a well-behaved endpoint does it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// Status of the response. Default: 200. Any other comes with `body`, and without a stream.
    pub status: Option<u16>,
    /// Further headers of the response.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of a response that is no stream: JSON, or a string as it is.
    pub body: Option<Value>,
    /// Text; it comes in two pieces.
    #[serde(default)]
    pub text: String,
    /// Thoughts, in `reasoning_content`.
    #[serde(default)]
    pub reasoning: String,
    /// Calls of tools.
    #[serde(default)]
    pub tool_calls: Vec<Call>,
    /// How calls are written. Default: as OpenAI does.
    #[serde(default)]
    pub dialect: Dialect,
    /// `finish_reason`. Default: `tool_calls` where there are any, else `stop`.
    pub finish: Option<String>,
    /// Figures of the last chunk, as (request, answer); none where null. Default: 10 and 5.
    #[serde(default = "figures")]
    pub usage: Option<(u64, u64)>,
    /// These chunks instead of those made from the above.
    pub events: Option<Vec<Value>>,
    /// Wait this long before the first byte, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Wait this long between two chunks.
    #[serde(default)]
    pub pause_ms: u64,
    /// Break the connection after so many chunks, in the middle of the next one.
    pub cut_after: Option<usize>,
    /// Say the last chunk again and again, for ever.
    #[serde(default)]
    pub endless: bool,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// Name of the tool.
    pub name: String,
    /// Its arguments; a string is written as it is.
    pub arguments: Value,
}

/// How calls are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Ids and indexes; arguments in pieces.
    #[default]
    Openai,
    /// Whole calls with objects for arguments, without ids and indexes.
    Ollama,
    /// In the text.
    Hermes,
    /// No stream: one JSON.
    Whole,
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "the type of the field that it is the default of"
)]
fn figures() -> Option<(u64, u64)> {
    Some((10, 5))
}

impl Answer {
    /// An answer of text alone.
    pub fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            usage: figures(),
            ..Self::default()
        }
    }

    /// An answer that calls these tools with these arguments.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let call = |(name, arguments): (&str, Value)| Call {
            name: name.to_owned(),
            arguments,
        };
        Self {
            tool_calls: calls.into_iter().map(call).collect(),
            usage: figures(),
            ..Self::default()
        }
    }

    /// A refusal with a message in OpenAI's words.
    pub fn error(status: u16, message: &str) -> Self {
        Self {
            status: Some(status),
            body: Some(json!({"error": {"message": message, "type": "scripted"}})),
            ..Self::default()
        }
    }

    /// The same with a header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The time to wait before anything is said.
    pub(super) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    /// The body of an answer that is no stream.
    pub(super) fn whole(&self) -> Option<Bytes> {
        if let Some(body) = &self.body {
            let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            return Some(text.into());
        }
        (self.dialect == Dialect::Whole).then(|| self.message().to_string().into())
    }

    fn message(&self) -> Value {
        let calls = self.tool_calls.iter().enumerate();
        let calls: Vec<_> = calls
            .map(|(index, call)| openai(index, call, &written(&call.arguments)))
            .collect();
        let mut answer = json!({"object": "chat.completion", "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": self.text, "tool_calls": calls},
            "finish_reason": self.reason(),
        }]});
        if let Some(usage) = self.usage {
            answer["usage"] = used(usage);
        }
        answer
    }

    /// The chunks of the stream.
    pub(super) fn chunks(&self) -> Vec<String> {
        if let Some(events) = &self.events {
            return events
                .iter()
                .map(|event| event.as_str().map_or_else(|| event.to_string(), str::to_owned))
                .collect();
        }
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        if !self.reasoning.is_empty() {
            deltas.push(json!({"reasoning_content": self.reasoning}));
        }
        let text = self.spoken();
        let middle = text
            .char_indices()
            .nth(text.chars().count() / 2)
            .map_or(0, |(at, _)| at);
        let (begin, end) = text.split_at(middle);
        let pieces = [begin, end].into_iter().filter(|piece| !piece.is_empty());
        deltas.extend(pieces.map(|piece| json!({"content": piece})));
        deltas.extend(self.calling());
        let chunk = |delta: Value, reason: Option<&str>| json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        let mut chunks: Vec<_> = deltas.into_iter().map(|delta| chunk(delta, None)).collect();
        chunks.push(chunk(json!({}), Some(&self.reason())));
        if let Some(usage) = self.usage {
            chunks.push(json!({"object": "chat.completion.chunk", "choices": [], "usage": used(usage)}));
        }
        let chunks = chunks.into_iter().map(|chunk| chunk.to_string());
        chunks.chain(["[DONE]".to_owned()]).collect()
    }

    fn spoken(&self) -> String {
        let calls = self.tool_calls.iter().filter(|_| self.dialect == Dialect::Hermes);
        let calls = calls.map(|call| {
            let call = json!({"name": call.name, "arguments": call.arguments});
            format!("\n<tool_call>\n{call}\n</tool_call>")
        });
        std::iter::once(self.text.clone()).chain(calls).collect()
    }

    fn calling(&self) -> Vec<Value> {
        let calls = self.tool_calls.iter();
        match self.dialect {
            Dialect::Hermes | Dialect::Whole => Vec::new(),
            Dialect::Ollama => calls
                .map(|call| json!({"tool_calls": [{"function": {"name": call.name, "arguments": call.arguments}}]}))
                .collect(),
            Dialect::Openai => calls
                .enumerate()
                .flat_map(|(index, call)| {
                    let written = written(&call.arguments);
                    let half = written.char_indices().nth(written.chars().count() / 2).map_or(0, |(at, _)| at);
                    let (begin, end) = written.split_at(half);
                    let more = |piece: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
                    [json!({"tool_calls": [openai(index, call, "")]}), more(begin), more(end)]
                })
                .collect(),
        }
    }

    fn reason(&self) -> String {
        let usual = match self.tool_calls.is_empty() || self.dialect == Dialect::Hermes {
            true => "stop",
            false => "tool_calls",
        };
        self.finish.clone().unwrap_or_else(|| usual.to_owned())
    }
}

fn openai(index: usize, call: &Call, arguments: &str) -> Value {
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"index": index, "id": format!("call_{}_{index}", call.name), "type": "function", "function": function})
}

fn written(arguments: &Value) -> String {
    arguments
        .as_str()
        .map_or_else(|| arguments.to_string(), str::to_owned)
}

fn used((input, output): (u64, u64)) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
