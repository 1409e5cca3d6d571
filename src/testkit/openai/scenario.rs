//! Which answer a request gets.

use super::Answer;
use serde::Deserialize;
use serde_json::Value;

/// Rules in order: the first that fits a request, and is not used up, answers it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The rules.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What a request must be like. Default: any.
    #[serde(default)]
    pub when: When,
    /// How often it answers. Default: without end.
    pub times: Option<u32>,
    /// What it answers.
    pub answer: Answer,
}

/// What a request must be like; all of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The newest message of the user contains this.
    pub user: Option<String>,
    /// The first system message contains this.
    pub system: Option<String>,
    /// The newest message, whoever said it, contains this.
    pub last: Option<String>,
    /// The assistant has spoken so often before.
    pub turn: Option<usize>,
    /// Name of the model.
    pub model: Option<String>,
    /// Whether tools are offered.
    pub tools: Option<bool>,
}

impl Scenario {
    /// Reads the JSON form.
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).expect("a scenario")
    }

    /// These answers one after the other, the last of them for ever.
    pub fn in_order(answers: impl IntoIterator<Item = Answer>) -> Self {
        let rule = |answer| Rule {
            times: Some(1),
            answer,
            ..Rule::default()
        };
        let mut rules: Vec<Rule> = answers.into_iter().map(rule).collect();
        if let Some(last) = rules.last_mut() {
            last.times = None;
        }
        Self { rules }
    }

    /// The answer to a request; uses up a rule.
    pub(super) fn answer(&mut self, request: &Value) -> Option<Answer> {
        let fits = |rule: &&mut Rule| rule.times != Some(0) && rule.when.fits(request);
        let rule = self.rules.iter_mut().find(fits)?;
        rule.times = rule.times.map(|left| left - 1);
        Some(rule.answer.clone())
    }
}

impl When {
    fn fits(&self, request: &Value) -> bool {
        let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let of = |role: &str| {
            messages
                .iter()
                .filter(move |message| message["role"] == role)
                .collect::<Vec<_>>()
        };
        let contains = |wanted: &Option<String>, message: Option<&Value>| {
            let Some(wanted) = wanted else { return true };
            message.is_some_and(|message| content(message).contains(wanted.as_str()))
        };
        contains(&self.user, of("user").last().copied())
            && contains(&self.system, of("system").first().copied())
            && contains(&self.last, messages.last())
            && self.turn.is_none_or(|turn| of("assistant").len() == turn)
            && self
                .model
                .as_ref()
                .is_none_or(|model| request["model"] == **model)
            && self
                .tools
                .is_none_or(|tools| request["tools"].is_array() == tools)
    }
}

fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_rule_that_fits_and_is_not_used_up_answers() {
        let mut scenario = Scenario::from_json(
            r#"{"rules": [
                {"when": {"user": "weather"}, "times": 1, "answer": {"status": 429, "headers": {"retry-after": "1"}}},
                {"when": {"user": "weather", "turn": 1}, "answer": {"text": "second turn", "usage": null}},
                {"when": {"last": "rain", "tools": true}, "answer": {"toolCalls": [{"name": "ls", "arguments": {}}]}},
                {"when": {"system": "be kind", "model": "m"}, "answer": {"text": "kind", "usage": [1, 2]}}
            ]}"#,
        );
        let mut said = |request: Value| {
            scenario
                .answer(&request)
                .map(|answer| (answer.status, answer.text))
        };
        let message = |role: &str, text: &str| json!({"role": role, "content": text});
        let weather = json!({"messages": [message("user", "the weather?")]});
        assert_eq!(said(weather.clone()), Some((Some(429), String::new())));
        assert_eq!(said(weather), None);
        let second = json!({"messages": [message("assistant", "x"), message("user", "the weather?")]});
        assert_eq!(said(second), Some((None, "second turn".into())));
        let rain = json!({"messages": [message("tool", "rain")], "tools": []});
        assert_eq!(said(rain), Some((None, String::new())));
        let kind = json!({"model": "m", "messages": [message("system", "be kind"), message("user", "x")]});
        assert_eq!(said(kind), Some((None, "kind".into())));
    }

    #[test]
    #[should_panic(expected = "a scenario")]
    fn a_key_that_nobody_knows_is_a_mistake() {
        Scenario::from_json(r#"{"rules": [{"answer": {"txt": "typo"}}]}"#);
    }
}
