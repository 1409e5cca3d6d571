use super::*;
use serde_json::json;

fn read(events: &[Value], offered: bool) -> Result<Reply, Fault> {
    let mut reader = Reader::default();
    for event in events {
        reader.event(&event.to_string())?;
    }
    reader.event("[DONE]")?;
    reader.finish(offered, &BTreeSet::new())
}

#[allow(clippy::needless_pass_by_value, reason = "callers write the value in place")]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The calls as (id, name, arguments).
fn calls(events: &[Value]) -> Vec<(String, String, String)> {
    let reply = read(events, true).unwrap();
    assert_eq!(reply.finish, Finish::ToolCalls);
    let calls = reply.tool_calls.into_iter();
    calls.map(|call| (call.id, call.name, call.arguments)).collect()
}

fn triple(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.into(), name.into(), arguments.into())
}

#[test]
fn text_comes_in_pieces_and_usage_in_the_last_chunk_without_choices() {
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8},
    }});
    let events = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo"})),
        end("stop"),
        usage,
    ];
    let reply = read(&events, false).unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("Hello", Finish::Stop));
    let counted = TokenUsage {
        input: 12,
        output: 3,
        cached_input: 8,
        estimated: false,
    };
    assert_eq!(reply.usage, Some(counted));
}

#[test]
fn openai_sends_calls_in_pieces_side_by_side() {
    let piece = |index: u32, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let first = |index: u32, id: &str, name: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}),
        )
    };
    let events = [
        first(0, "a", "ls"),
        piece(0, "{\"pa"),
        first(1, "b", "cat"),
        piece(0, "th\":\"/\"}"),
        piece(1, "{}"),
        end("tool_calls"),
    ];
    assert_eq!(
        calls(&events),
        [triple("a", "ls", "{\"path\":\"/\"}"), triple("b", "cat", "{}")]
    );
}

#[test]
fn ollama_and_llama_cpp_send_whole_calls_with_objects_without_ids_or_indexes() {
    let events = [
        delta(json!({"tool_calls": [{"function": {"name": "ls", "arguments": {"path": "/"}}}]})),
        delta(json!({"tool_calls": [{"function": {"name": "ls", "arguments": {"path": "/tmp"}}}]})),
        end("stop"),
    ];
    assert_eq!(
        calls(&events),
        [
            triple("call00000", "ls", "{\"path\":\"/\"}"),
            triple("call00001", "ls", "{\"path\":\"/tmp\"}")
        ]
    );
    // The same index for all of them.
    let one = |id: &str| json!({"index": 0, "id": id, "function": {"name": "ls", "arguments": "{}"}});
    let events = [
        delta(json!({"tool_calls": [one("x"), one("y"), one("")]})),
        end("tool_calls"),
    ];
    let ids: Vec<_> = calls(&events).into_iter().map(|call| call.0).collect();
    assert_eq!(ids, ["x", "y", "call00000"]);
    // The same index, and nothing but the id tells them apart.
    let bare = |id: &str| json!({"index": 0, "id": id, "function": {"name": "ls", "arguments": ""}});
    let events = [
        delta(json!({"tool_calls": [bare("x"), bare("y")]})),
        end("tool_calls"),
    ];
    assert_eq!(calls(&events), [triple("x", "ls", ""), triple("y", "ls", "")]);
}

#[test]
fn a_whole_answer_instead_of_a_stream_is_read_too() {
    let body = json!({"choices": [{"message": {"content": null, "tool_calls": [
        {"id": "a", "function": {"name": "ls", "arguments": "{}"}},
    ]}, "finish_reason": "tool_calls"}], "usage": {"input_tokens": 1, "output_tokens": 2}});
    let mut reader = Reader::default();
    reader.whole(body.to_string().as_bytes()).unwrap();
    let reply = reader.finish(true, &BTreeSet::new()).unwrap();
    assert_eq!(reply.tool_calls[0].name, "ls");
    assert_eq!(reply.usage.unwrap().output, 2);
}

#[test]
fn hermes_and_qwen_write_calls_into_the_text_if_tools_were_offered() {
    let text = "<think>which?</think><tool_call>{\"name\":\"ls\",\"arguments\":{\"path\":\"/\"}}</tool_call>";
    let events = [delta(json!({"content": text})), end("stop")];
    assert_eq!(calls(&events), [triple("call00000", "ls", "{\"path\":\"/\"}")]);
    let reply = read(&events, false).unwrap();
    assert!(reply.tool_calls.is_empty() && reply.text.starts_with("<tool_call>"));
}

#[test]
fn thoughts_are_dropped_in_every_dialect() {
    let events = [
        delta(json!({"reasoning_content": "hm"})),
        delta(json!({"reasoning": "hm", "thinking": "hm"})),
        delta(json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes"}]})),
        delta(json!({"content": "."})),
        end("stop"),
    ];
    assert_eq!(read(&events, false).unwrap().text, "Yes.");
}

#[test]
fn the_old_function_call_is_a_call() {
    let events = [
        delta(json!({"function_call": {"name": "ls", "arguments": "{\"a\""}})),
        delta(json!({"function_call": {"arguments": ":1}"}})),
        end("function_call"),
    ];
    assert_eq!(calls(&events), [triple("call00000", "ls", "{\"a\":1}")]);
}

#[test]
fn arguments_that_are_no_json_are_given_on_for_the_agent_to_tell() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"path\": /"}}]});
    assert_eq!(
        calls(&[delta(call), end("tool_calls")]),
        [triple("a", "ls", "{\"path\": /")]
    );
}

#[test]
fn ids_are_new_to_the_conversation() {
    let call = |id: &str| json!({"index": null, "id": id, "function": {"name": "ls", "arguments": "{}"}});
    let mut reader = Reader::default();
    let event = delta(json!({"tool_calls": [call("old"), call("new")]}));
    reader.event(&event.to_string()).unwrap();
    reader.event(&end("tool_calls").to_string()).unwrap();
    let reply = reader
        .finish(true, &BTreeSet::from(["old", "call00002"]))
        .unwrap();
    let ids: Vec<_> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call00003", "new"]);
}

#[test]
fn an_answer_without_choices_is_none() {
    let fault = read(&[json!({"choices": []})], false).unwrap_err();
    assert_eq!(fault.code, ModelFailureCode::BadAnswer);
    assert!(fault.message.contains("no choices"), "{}", fault.message);
}

#[test]
fn an_unknown_finish_is_told_as_such_and_a_cut_one_is_no_answer() {
    let events = [delta(json!({"content": "x"})), end("because")];
    assert_eq!(read(&events, false).unwrap().finish, Finish::Unknown);
    let mut reader = Reader::default();
    reader.event(&delta(json!({"content": "x"})).to_string()).unwrap();
    let fault = reader.finish(false, &BTreeSet::new()).unwrap_err();
    assert_eq!(fault.next, Next::Again(None));
    let cut = [
        delta(json!({"tool_calls": [{"function": {"name": "ls", "arguments": "{"}}]})),
        end("length"),
    ];
    assert_eq!(read(&cut, true).unwrap().finish, Finish::Length);
}

#[test]
fn an_error_in_the_stream_ends_it() {
    let error = json!({"error": {"message": "overloaded", "code": "rate_limit_exceeded"}});
    let fault = read(&[delta(json!({"content": "x"})), error], false).unwrap_err();
    assert_eq!(fault.code, ModelFailureCode::RateLimited);
    let fault = read(&[json!({"object": "error", "message": "x"})], false).unwrap_err();
    assert_eq!(fault.code, ModelFailureCode::Unreachable);
}

#[test]
fn an_answer_of_a_megabyte_is_refused_while_it_comes() {
    let mut reader = Reader::default();
    let block = delta(json!({"content": "x".repeat(100_000)})).to_string();
    let fault = (0..10).find_map(|_| reader.event(&block).err()).unwrap();
    assert_eq!(
        (fault.code, fault.next),
        (ModelFailureCode::BadAnswer, Next::Nowhere)
    );
    let mut reader = Reader::default();
    let call =
        json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "x".repeat(100_000)}}]});
    let block = delta(call).to_string();
    assert!((0..10).any(|_| reader.event(&block).is_err()));
}

#[test]
fn more_calls_than_anyone_needs_are_refused() {
    let mut reader = Reader::default();
    let call = json!({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]});
    let block = delta(call).to_string();
    assert!((0..=MAX_CALLS).any(|_| reader.event(&block).is_err()));
}
