//! From the events of a stream to an answer, in every dialect that endpoints speak; pure.

use super::fault::{self, Fault, Next, Said};
use super::prose::Prose;
use super::spoken;
use agentrun_protocol::chat::{Finish, ModelFailureCode, TokenUsage, ToolCall};
use serde_json::Value;
use std::collections::BTreeSet;

/// The longest answer in bytes: text and arguments of calls together.
pub(super) const MAX_ANSWER: usize = 512 * 1024;
/// The longest stream in bytes, thoughts and packaging included.
pub(super) const MAX_STREAM: usize = 32 << 20;
/// Tool calls of one answer; more are no plan any more.
const MAX_CALLS: usize = 256;

/// What a stream said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Text without thoughts.
    pub(super) text: String,
    /// Calls, each with an id of its own.
    pub(super) tool_calls: Vec<ToolCall>,
    /// Why it ended.
    pub(super) finish: Finish,
    /// What the endpoint counted, if it did.
    pub(super) usage: Option<TokenUsage>,
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    prose: Prose,
    calls: Vec<Call>,
    arguments: usize,
    finish: Option<Finish>,
    usage: Option<TokenUsage>,
    spoke: bool,
    done: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Reader {
    /// Takes the data of one event and gives back the text that people may follow.
    pub(super) fn event(&mut self, data: &str) -> Result<String, Fault> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(String::new());
        }
        if data.is_empty() || self.done {
            return Ok(String::new());
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|error| Fault::bad_answer(format!("the stream holds what is no JSON: {error}")))?;
        self.take(&event)
    }

    /// Takes a whole answer, from an endpoint that does not stream.
    pub(super) fn whole(&mut self, body: &[u8]) -> Result<String, Fault> {
        let answer: Value = serde_json::from_slice(body)
            .map_err(|error| Fault::bad_answer(format!("the endpoint's answer is no JSON: {error}")))?;
        self.done = true;
        self.take(&answer)
    }

    fn take(&mut self, event: &Value) -> Result<String, Fault> {
        let is_error = event.get("error").is_some_and(|error| !error.is_null());
        if is_error || event.get("object").and_then(Value::as_str) == Some("error") {
            return Err(fault::of_stream(&Said::of(event)));
        }
        if let Some(usage) = event.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        let choices = event.get("choices").and_then(Value::as_array);
        let Some(choice) = choices.and_then(|choices| choices.iter().find(|choice| is_first(choice))) else {
            return Ok(String::new());
        };
        self.spoke = true;
        if let Some(usage) = choice.get("usage").and_then(usage) {
            self.usage = Some(usage);
        }
        let said = choice.get("delta").or_else(|| choice.get("message"));
        let shown = said.map_or_else(|| Ok(String::new()), |said| self.said(said))?;
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = finish(reason).or(self.finish);
        }
        Ok(shown)
    }

    fn said(&mut self, said: &Value) -> Result<String, Fault> {
        let shown = said.get("content").map(text).map(|text| self.prose.push(&text));
        for call in said
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.call(call)?;
        }
        // What tools were before they were called tools.
        if let Some(function) = said.get("function_call").filter(|call| call.is_object()) {
            self.function(Some(0), "", function)?;
        }
        if self.prose.len() + self.arguments > MAX_ANSWER {
            return Err(Fault::new(
                ModelFailureCode::BadAnswer,
                Next::Nowhere,
                format!(
                    "the answer is longer than {MAX_ANSWER} bytes: set `maxOutputTokens` of the Model, or ask for less"
                ),
            ));
        }
        Ok(shown.unwrap_or_default())
    }

    fn call(&mut self, call: &Value) -> Result<(), Fault> {
        let index = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        // Some leave the inner object out.
        let function = call
            .get("function")
            .filter(|inner| inner.is_object())
            .unwrap_or(call);
        self.function(index, id, function)
    }

    fn function(&mut self, index: Option<u64>, id: &str, function: &Value) -> Result<(), Fault> {
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = function.get("arguments").map(spoken::written).unwrap_or_default();
        self.arguments += name.len() + id.len() + arguments.len();
        let place = match self.place(index, id, name) {
            Some(place) => place,
            None if self.calls.len() == MAX_CALLS => {
                return Err(Fault::bad_answer(format!(
                    "the answer calls more than {MAX_CALLS} tools at once"
                )));
            }
            None => {
                self.calls.push(Call::default());
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[place];
        call.index = call.index.or(index);
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(&arguments);
        Ok(())
    }

    /// The call that a delta goes on with; `None` for a new one. A new one has an index of its own, or, where all have
    /// the same or none, an id of its own, or a name after a call that is whole already.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let candidate = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => match self
                .calls
                .iter()
                .rposition(|call| !id.is_empty() && call.id == id)
            {
                Some(place) => place,
                None => self.calls.len().checked_sub(1)?,
            },
        };
        let call = &self.calls[candidate];
        let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let again = !name.is_empty() && !call.name.is_empty() && is_whole(&call.arguments);
        (!other_id && !again).then_some(candidate)
    }

    /// The answer. `offered` says that tools were offered, so that calls written as text are calls; ids that are missing or
    /// in `taken` are made up.
    pub(super) fn finish(self, offered: bool, taken: &BTreeSet<&str>) -> Result<Reply, Fault> {
        if self.finish.is_none() && !self.done {
            return Err(Fault::bad_answer(
                "the stream broke off before the answer was whole",
            ));
        }
        if !self.spoke {
            return Err(Fault::bad_answer("the endpoint's answer has no choices"));
        }
        let mut text = self.prose.finish();
        let mut calls: Vec<(String, String, String)> = self
            .calls
            .into_iter()
            .map(|call| (call.id, call.name, call.arguments))
            .collect();
        if offered && calls.is_empty() {
            let (words, spoken) = spoken::take_calls(&text);
            text = words;
            let spoken = spoken.into_iter().take(MAX_CALLS);
            calls = spoken
                .map(|(name, arguments)| (String::new(), name, arguments))
                .collect();
        }
        let finish = match self.finish {
            Some(cut @ (Finish::Length | Finish::ContentFilter)) => cut,
            _ if !calls.is_empty() => Finish::ToolCalls,
            Some(Finish::ToolCalls) => Finish::Stop,
            Some(finish) => finish,
            None => Finish::Unknown,
        };
        Ok(Reply {
            text,
            tool_calls: with_ids(calls, taken),
            finish,
            usage: self.usage,
        })
    }

    /// Whether the answer is whole and nothing more needs to be read.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether it has said why it ended: a connection that breaks after that takes nothing away.
    pub(super) fn has_finished(&self) -> bool {
        self.done || self.finish.is_some()
    }
}

fn is_first(choice: &Value) -> bool {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0
}

/// Text, whether it is one or in parts. Parts that are thoughts are left out.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part.get("type").and_then(Value::as_str).unwrap_or("text") == "text")
            .filter_map(|part| part.get("text").and_then(Value::as_str).or_else(|| part.as_str()))
            .collect(),
        _ => String::new(),
    }
}

fn is_whole(arguments: &str) -> bool {
    matches!(serde_json::from_str::<Value>(arguments), Ok(Value::Object(_)))
}

fn finish(reason: &str) -> Option<Finish> {
    Some(match reason {
        "" => return None,
        "stop" | "stop_sequence" | "end_turn" | "eos" | "eos_token" | "complete" => Finish::Stop,
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" | "model_length" => Finish::Length,
        "content_filter" | "safety" => Finish::ContentFilter,
        _ => Finish::Unknown,
    })
}

/// Figures of an endpoint; `None` where it has none that make sense.
fn usage(usage: &Value) -> Option<TokenUsage> {
    let figure = |names: [&str; 2]| names.iter().find_map(|name| usage.get(*name)?.as_u64());
    let input = figure(["prompt_tokens", "input_tokens"])?;
    let output = figure(["completion_tokens", "output_tokens"]).unwrap_or(0);
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let cached = details
        .iter()
        .find_map(|name| usage.get(*name)?.get("cached_tokens")?.as_u64());
    let cached = cached.or_else(|| usage.get("prompt_cache_hit_tokens")?.as_u64());
    (input + output > 0).then_some(TokenUsage {
        input,
        output,
        cached_input: cached.unwrap_or(0).min(input),
        estimated: false,
    })
}

/// Gives every call an id that its conversation does not have: nine letters and digits, which every endpoint takes back.
fn with_ids(calls: Vec<(String, String, String)>, taken: &BTreeSet<&str>) -> Vec<ToolCall> {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut next = taken.len();
    let mut ids = Vec::with_capacity(calls.len());
    for (id, name, arguments) in calls {
        let mut id = id;
        while id.is_empty() || taken.contains(id.as_str()) || used.contains(&id) {
            id = format!("call{next:05}");
            next += 1;
        }
        used.insert(id.clone());
        ids.push(ToolCall { id, name, arguments });
    }
    ids
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
