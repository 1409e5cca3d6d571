//! Why a try gave no answer, and what is worth doing about it; pure.

use super::quirks::Quirk;
use agentrun_core::text::one_line;
use agentrun_protocol::chat::{ModelFailure, ModelFailureCode};
use http::StatusCode;
use serde_json::Value;
use std::time::Duration;

/// The longest text of an endpoint that is told on, in characters.
const MAX_SAID: usize = 300;
/// Words with which endpoints say that a conversation is too long for them.
const TOO_LONG: [&str; 9] = [
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "context size",
    "too many tokens",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
];

/// A failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Its kind, for the agent.
    pub(super) code: ModelFailureCode,
    /// What was found, what is allowed and what to do.
    pub(super) message: String,
    /// What may help.
    pub(super) next: Next,
}

/// What may help after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The same again, not before this long if the endpoint said so.
    Again(Option<Duration>),
    /// The same without something that the endpoint does not know.
    Without(Quirk),
    /// The same with another key, if there is one.
    OtherKey,
    /// Another model.
    Elsewhere,
    /// Nothing: the asker has to change what it asks.
    Nowhere,
}

impl Fault {
    pub(super) fn new(code: ModelFailureCode, next: Next, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            next,
        }
    }

    /// The answer is none; another try may bring a better one.
    pub(super) fn bad_answer(message: impl Into<String>) -> Self {
        Self::new(ModelFailureCode::BadAnswer, Next::Again(None), message)
    }

    /// Nothing answers, at least now.
    pub(super) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(ModelFailureCode::Unreachable, Next::Again(None), message)
    }
}

impl From<Fault> for ModelFailure {
    fn from(fault: Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
        }
    }
}

/// What an endpoint says about an error.
#[derive(Debug, Default)]
pub(super) struct Said {
    message: String,
    code: String,
}

impl Said {
    /// Reads the dialects of error bodies. Of a body that is none nothing is told on: who knows what answers there.
    pub(super) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).map_or_else(|_| Self::default(), |body: Value| Self::of(&body))
    }

    /// The same for JSON that is read already.
    pub(super) fn of(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let member = |names: [&str; 3]| names.iter().find_map(|name| error.get(*name).and_then(text));
        let message = text(error).or_else(|| member(["message", "detail", "error_description"]));
        Self {
            message: one_line(
                &message.unwrap_or_default().replace(char::is_control, " "),
                MAX_SAID,
            ),
            code: member(["code", "type", "status"]).unwrap_or_default(),
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words
            .iter()
            .any(|word| message.contains(word) || self.code.contains(word))
    }

    /// What it says, for a sentence's end.
    fn quoted(&self) -> String {
        match self.message.as_str() {
            "" => String::new(),
            message => format!(": {message}"),
        }
    }
}

/// What an answer with this status means. `after` is what it says about when to come again.
pub(super) fn of_status(status: StatusCode, said: &Said, after: Option<Duration>) -> Fault {
    use ModelFailureCode::{AuthFailed, RateLimited, Refused, Unreachable};
    let number = status.as_u16();
    let quoted = said.quoted();
    match number {
        401 | 403 => Fault::new(
            AuthFailed,
            Next::OtherKey,
            format!(
                "the endpoint answers {number} and does not take the key{quoted}: check `secretRef` of the Model"
            ),
        ),
        429 if said.has(&["insufficient_quota", "billing"]) => Fault::new(
            RateLimited,
            Next::Elsewhere,
            format!("the account behind the key has used up what it may{quoted}"),
        ),
        429 => Fault::new(
            RateLimited,
            Next::Again(after),
            format!("the endpoint answers 429, too many requests{quoted}"),
        ),
        413 => too_long(&quoted),
        400 | 422 | 500 if said.has(&TOO_LONG) => too_long(&quoted),
        400 | 422 | 500 if let Some(quirk) = quirk(said) => Fault::new(
            Refused,
            Next::Without(quirk),
            format!("the endpoint answers {number}{quoted}"),
        ),
        404 => Fault::new(
            Refused,
            Next::Elsewhere,
            format!("the endpoint answers 404{quoted}: check `endpoint` and `model` of the Model"),
        ),
        300..400 => Fault::new(
            Refused,
            Next::Elsewhere,
            format!(
                "the endpoint answers {number}, and redirections are not followed: name the address itself"
            ),
        ),
        408 | 409 | 425 | 500.. => Fault::new(
            Unreachable,
            Next::Again(after),
            format!("the endpoint answers {number}{quoted}"),
        ),
        _ => Fault::new(
            Refused,
            Next::Elsewhere,
            format!("the endpoint answers {number} and refuses the request{quoted}"),
        ),
    }
}

/// What an error in the middle of a stream means.
pub(super) fn of_stream(said: &Said) -> Fault {
    let quoted = said.quoted();
    if said.has(&TOO_LONG) {
        return too_long(&quoted);
    }
    if said.has(&["rate_limit", "rate limit", "429"]) {
        let message = format!("the endpoint ends its answer, too many requests{quoted}");
        return Fault::new(ModelFailureCode::RateLimited, Next::Again(None), message);
    }
    Fault::unreachable(format!("the endpoint ends its answer with an error{quoted}"))
}

/// Whether the endpoint says that the model has no tools.
pub(super) fn says_no_tools(fault: &Fault) -> bool {
    fault.code == ModelFailureCode::Refused && fault.message.to_lowercase().contains("tool")
}

fn too_long(quoted: &str) -> Fault {
    Fault::new(
        ModelFailureCode::ContextTooLong,
        Next::Nowhere,
        format!("the conversation is longer than the model reads{quoted}"),
    )
}

fn quirk(said: &Said) -> Option<Quirk> {
    if said.has(&["stream_options"]) {
        Some(Quirk::StreamOptions)
    } else if said.has(&["response_format", "json_schema", "grammar"]) {
        Some(Quirk::ResponseFormat)
    } else if said.has(&["max_completion_tokens"]) {
        Some(Quirk::MaxTokens)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(status: u16, body: &Value) -> Fault {
        of_status(StatusCode::from_u16(status).unwrap(), &Said::of(body), None)
    }

    #[test]
    fn every_dialect_of_an_error_is_read() {
        for body in [
            json!({"error": {"message": "no such model", "code": "x"}}),
            json!({"error": "no such model"}),
            json!({"object": "error", "message": "no such model", "code": 404}),
            json!({"detail": "no such model"}),
            json!([{"error": {"message": "no such model"}}]),
        ] {
            assert!(fault(404, &body).message.contains("no such model"), "{body}");
        }
    }

    #[test]
    fn a_body_that_is_no_error_message_is_not_told_on() {
        let said = Said::read(b"<html>secret of another service</html>");
        let fault = of_status(StatusCode::BAD_REQUEST, &said, None);
        assert!(!fault.message.contains("secret"), "{}", fault.message);
    }

    #[test]
    fn what_is_worth_another_try_is_told_from_what_is_not() {
        use ModelFailureCode as Code;
        let nothing = json!({});
        let too_long = json!({"error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}});
        let format = json!({"error": {"message": "response_format is not supported"}});
        let quota =
            json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}});
        for (status, body, code, next) in [
            (401, &nothing, Code::AuthFailed, Next::OtherKey),
            (429, &nothing, Code::RateLimited, Next::Again(None)),
            (429, &quota, Code::RateLimited, Next::Elsewhere),
            (500, &nothing, Code::Unreachable, Next::Again(None)),
            (529, &nothing, Code::Unreachable, Next::Again(None)),
            (400, &too_long, Code::ContextTooLong, Next::Nowhere),
            (413, &nothing, Code::ContextTooLong, Next::Nowhere),
            (400, &format, Code::Refused, Next::Without(Quirk::ResponseFormat)),
            (400, &nothing, Code::Refused, Next::Elsewhere),
            (404, &nothing, Code::Refused, Next::Elsewhere),
            (302, &nothing, Code::Refused, Next::Elsewhere),
        ] {
            let fault = fault(status, body);
            assert_eq!((fault.code, fault.next), (code, next), "{status} {body}");
        }
    }

    #[test]
    fn long_and_odd_texts_are_cut_to_one_line() {
        let body = json!({"error": {"message": format!("a\nb\u{7}{}", "ü".repeat(1000))}});
        let message = fault(400, &body).message;
        assert!(message.chars().count() < 400 && message.ends_with('…'));
        assert!(!message.contains(['\n', '\u{7}']));
    }
}
