//! The body of a request, as OpenAI-compatible endpoints read it; pure.

use super::quirks::{Quirk, Quirks};
use agentrun_api::ModelSpec;
use agentrun_protocol::chat::{Image, Message, ModelRequest, ToolCall};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The longest name of a tool that endpoints take.
const MAX_TOOL_NAME: usize = 64;

/// The body of a streamed request.
pub(super) fn body(spec: &ModelSpec, request: &ModelRequest, quirks: Quirks) -> Vec<u8> {
    let mut body = spec.parameters.clone().unwrap_or_default();
    if let Some(most) = spec.max_output_tokens {
        let name = match quirks.has(Quirk::MaxTokens) || body.contains_key("max_completion_tokens") {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body.insert(name.into(), most.into());
    } else if quirks.has(Quirk::MaxTokens)
        && let Some(most) = body.remove("max_tokens")
    {
        body.insert("max_completion_tokens".into(), most);
    }
    body.insert("model".into(), spec.model.clone().into());
    body.insert(
        "messages".into(),
        messages(&request.messages, spec.vision == Some(true)),
    );
    body.insert("stream".into(), true.into());
    // One answer is asked for and read.
    body.remove("n");
    if quirks.has(Quirk::StreamOptions) {
        body.remove("stream_options");
    } else {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if request.tools.is_empty() {
        for name in ["tools", "tool_choice", "parallel_tool_calls"] {
            body.remove(name);
        }
    } else {
        body.insert("tools".into(), tools(request));
    }
    response_format(&mut body, request, quirks);
    Value::Object(body).to_string().into_bytes()
}

fn response_format(body: &mut Map<String, Value>, request: &ModelRequest, quirks: Quirks) {
    if quirks.has(Quirk::ResponseFormat) {
        body.remove("response_format");
    } else if let Some(schema) = &request.output_schema {
        let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
        body.insert("response_format".into(), format);
    }
}

fn tools(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(|tool| {
        let function = json!({
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        });
        json!({"type": "function", "function": function})
    });
    tools.collect()
}

fn messages(messages: &[Message], sees: bool) -> Value {
    let mut written = Vec::with_capacity(messages.len());
    // Results of tools carry text only: their images follow, after the last result of the turn.
    let mut shown = Vec::new();
    for message in messages {
        if !matches!(message, Message::Tool { .. }) {
            show(&mut written, &mut shown);
        }
        written.push(match message {
            Message::System { text } => json!({"role": "system", "content": text}),
            Message::User { text, images } => json!({"role": "user", "content": content(text, images, sees)}),
            Message::Assistant { text, tool_calls } => assistant(text, tool_calls),
            Message::Tool { id, text, images, .. } => {
                if sees && !images.is_empty() {
                    shown.push(json!({"type": "text", "text": format!("Images of the result of the tool call {id}:")}));
                    shown.extend(images.iter().map(picture));
                }
                let text = with_note(text, images, sees);
                json!({"role": "tool", "tool_call_id": id, "content": text})
            }
        });
    }
    show(&mut written, &mut shown);
    Value::Array(written)
}

fn show(written: &mut Vec<Value>, shown: &mut Vec<Value>) {
    if !shown.is_empty() {
        let content = std::mem::take(shown);
        written.push(json!({"role": "user", "content": content}));
    }
}

fn content(text: &str, images: &[Image], sees: bool) -> Value {
    if images.is_empty() || !sees {
        return with_note(text, images, sees).into();
    }
    let words = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
    words.into_iter().chain(images.iter().map(picture)).collect()
}

/// A model that does not see is told that there was something to see.
fn with_note(text: &str, images: &[Image], sees: bool) -> String {
    match images.len() {
        0 => text.to_owned(),
        _ if sees => text.to_owned(),
        left_out => format!("{text}\n[{left_out} images left out: this model reads none]"),
    }
}

fn picture(image: &Image) -> Value {
    let url = format!(
        "data:{};base64,{}",
        image.media_type,
        STANDARD.encode(&image.data.0)
    );
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn assistant(text: &str, calls: &[ToolCall]) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    let content = match text {
        "" if !calls.is_empty() => Value::Null,
        text => text.into(),
    };
    message.insert("content".into(), content);
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            let function = json!({"name": name(&call.name), "arguments": arguments(&call.arguments)});
            json!({"id": call.id, "type": "function", "function": function})
        });
        message.insert("tool_calls".into(), calls.collect());
    }
    Value::Object(message)
}

/// A name as endpoints take it: models make up others, and one of those in the conversation would have it refused.
fn name(name: &str) -> String {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fine = name
        .chars()
        .take(MAX_TOOL_NAME)
        .map(|c| if is_fine(c) { c } else { '_' });
    match fine.collect::<String>() {
        empty if empty.is_empty() => "unknown".to_owned(),
        fine => fine,
    }
}

/// Arguments as endpoints take them, a JSON object: templates of models parse them.
fn arguments(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(_)) => written.to_owned(),
        _ if written.trim().is_empty() => "{}".to_owned(),
        _ => json!({"invalid": written}).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_protocol::Blob;
    use agentrun_protocol::chat::{Role, ToolSpec};

    fn spec(change: impl FnOnce(&mut ModelSpec)) -> ModelSpec {
        let mut spec = ModelSpec {
            endpoint: "http://x/v1".into(),
            model: "m".into(),
            ..ModelSpec::default()
        };
        change(&mut spec);
        spec
    }

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            role: Role::Lead,
            model: None,
            messages,
            tools: Vec::new(),
            output_schema: None,
        }
    }

    fn made(spec: &ModelSpec, request: &ModelRequest, quirks: &[Quirk]) -> Value {
        let mut known = Quirks::default();
        for quirk in quirks {
            assert!(known.learn(*quirk));
        }
        serde_json::from_slice(&body(spec, request, known)).unwrap()
    }

    fn image() -> Image {
        Image {
            media_type: "image/png".into(),
            data: Blob(b"png".to_vec()),
        }
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: "c1".into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn the_users_parameters_are_taken_but_not_over_what_the_gateway_needs() {
        let spec = spec(|spec| {
            let parameters =
                json!({"temperature": 0, "stream": false, "model": "other", "n": 5, "tools": [1]});
            spec.parameters = parameters.as_object().cloned();
            spec.max_output_tokens = Some(100);
        });
        let made = made(&spec, &request(Vec::new()), &[]);
        assert_eq!(
            made,
            json!({
                "temperature": 0, "stream": true, "model": "m", "max_tokens": 100, "messages": [],
                "stream_options": {"include_usage": true},
            })
        );
    }

    #[test]
    fn what_an_endpoint_does_not_know_is_left_out_or_said_in_its_words() {
        let spec = spec(|spec| spec.max_output_tokens = Some(100));
        let mut request = request(Vec::new());
        request.output_schema = Some(json!({"type": "object"}));
        let plain = made(&spec, &request, &[]);
        assert_eq!(
            plain["response_format"]["json_schema"]["schema"],
            json!({"type": "object"})
        );
        let quirks = [Quirk::StreamOptions, Quirk::ResponseFormat, Quirk::MaxTokens];
        let made = made(&spec, &request, &quirks);
        assert_eq!(
            made,
            json!({"stream": true, "model": "m", "max_completion_tokens": 100, "messages": []})
        );
    }

    #[test]
    fn tools_calls_and_results_are_written_as_openai_does() {
        let mut request = request(vec![
            Message::System { text: "s".into() },
            Message::Assistant {
                text: String::new(),
                tool_calls: vec![call("ls", "{\"path\":\"/\"}")],
            },
            Message::Tool {
                id: "c1".into(),
                name: "ls".into(),
                text: "a".into(),
                images: Vec::new(),
            },
        ]);
        request.tools = vec![ToolSpec {
            name: "ls".into(),
            description: "lists".into(),
            parameters: json!({"type": "object"}),
        }];
        let made = made(&spec(|_| ()), &request, &[]);
        assert_eq!(
            made["messages"],
            json!([
                {"role": "system", "content": "s"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\"/\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "a"},
            ])
        );
        assert_eq!(made["tools"][0]["function"]["name"], "ls");
    }

    #[test]
    fn calls_that_the_model_made_up_do_not_get_the_conversation_refused() {
        let long = "x".repeat(100);
        for (name, arguments, sent_name, sent_arguments) in [
            ("do it!", "{\"a\": 1", "do_it_", "{\"invalid\":\"{\\\"a\\\": 1\"}"),
            ("", "", "unknown", "{}"),
            (long.as_str(), "[1]", &long[..64], "{\"invalid\":\"[1]\"}"),
        ] {
            let message = assistant("", &[call(name, arguments)]);
            let function = &message["tool_calls"][0]["function"];
            assert_eq!(function["name"], sent_name);
            assert_eq!(function["arguments"], sent_arguments);
        }
    }

    #[test]
    fn images_go_to_a_model_that_sees_after_the_results_of_the_turn() {
        let result = |id: &str, images: Vec<Image>| Message::Tool {
            id: id.into(),
            name: "view_image".into(),
            text: "seen".into(),
            images,
        };
        let conversation = [
            result("c1", vec![image()]),
            result("c2", Vec::new()),
            Message::User {
                text: "and?".into(),
                images: vec![image()],
            },
        ];
        let written = messages(&conversation, true);
        let roles: Vec<_> = written
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["role"].clone())
            .collect();
        assert_eq!(roles, ["tool", "tool", "user", "user"]);
        assert_eq!(
            written[2]["content"][1]["image_url"]["url"],
            "data:image/png;base64,cG5n"
        );
        assert_eq!(written[3]["content"][0]["text"], "and?");
        let blind = messages(&conversation, false);
        assert_eq!(blind.as_array().unwrap().len(), 3);
        assert!(
            blind[0]["content"]
                .as_str()
                .unwrap()
                .contains("1 images left out")
        );
    }
}
