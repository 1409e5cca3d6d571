//! Calls that are made, and calls that are none.

use super::*;
use agentrun_protocol::agent::CallPlace;
use agentrun_protocol::tool::ToolName;

#[test]
fn a_lead_calls_answers_and_is_done() {
    let mut bench = Bench::new(setup());
    bench.calls(&[bash("wc -l table.csv")]);
    let acts = bench.acts();
    assert_eq!(acts[0].at, CallPlace { turn: 1, call: 0 });
    let arguments = r#"{"command":"wc -l table.csv"}"#.to_owned();
    let kind = ActKind::Tool {
        tool: ToolName::Bash,
        arguments,
    };
    assert_eq!(acts[0].kind, kind);
    bench.act_with("12 table.csv").says("It has 12 rows.");
    assert_eq!(bench.text(), "It has 12 rows.");
    let facts = bench.finished().facts;
    assert_eq!((facts.turns, facts.stop_reason), (2, None));
    assert_eq!((facts.spent.tokens["lead"], facts.spent.cost_micros), (220, 10));
}

#[test]
fn calls_of_one_turn_come_together_and_their_answers_stand_in_the_order_of_the_calls() {
    let mut bench = Bench::new(setup());
    bench.calls(&[bash("a"), ("ls", json!({})), delegate("b")]);
    assert_eq!(bench.acts().len(), 3);
    bench.act(|act| match kind_of(act) {
        "task" => ended("st-1", "of task"),
        other => tool(&format!("of {other}")),
    });
    let answers = bench.answers();
    assert_eq!(answers[..2], ["of bash", "of ls"]);
    assert!(answers[2].contains("of task"));
}

#[test]
fn ids_are_unique_however_the_model_names_its_calls() {
    let mut bench = Bench::new(setup());
    for turn in 0..3 {
        bench
            .calls(&[bash(&format!("{turn}")), bash(&format!("{turn}b"))])
            .act_with("ok");
    }
    let mut ids: Vec<String> = Vec::new();
    for message in bench.request().messages {
        if let Message::Tool { id, .. } = message {
            assert!(!ids.contains(&id), "{id}");
            ids.push(id);
        }
    }
    assert_eq!(ids.len(), 6);
    assert!(
        ids.iter()
            .all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    );
}

#[test]
fn a_call_of_no_tool_names_what_was_found_and_what_there_is() {
    let mut bench = Bench::new(setup());
    bench.calls(&[("fly_to_the_moon", json!({}))]);
    let answer = &bench.answers()[0];
    assert!(
        answer.contains("\"fly_to_the_moon\"") && answer.contains("write_todos"),
        "{answer}"
    );
    assert!(!answer.contains("view_image"), "the model does not see: {answer}");
}

#[test]
fn arguments_that_are_no_json_are_answered_with_the_place_and_the_fields() {
    let mut bench = Bench::new(setup());
    bench.raw_calls(&[
        ("bash", "{\"command\": \"ls\""),
        ("read_file", "path=/etc/passwd"),
        ("write_file", "[1, 2]"),
        ("str_replace", "\u{1b}[31m\u{0}"),
    ]);
    let answers = bench.answers();
    assert!(answers[0].contains("EOF") && answers[0].contains("bash takes: command, description (optional)"));
    assert!(answers[1].contains("path=/etc/passwd"), "{}", answers[1]);
    assert!(answers[2].contains("one JSON object"), "{}", answers[2]);
    assert!(answers.iter().all(|answer| answer.starts_with("not done: ")));
    assert!(!answers[3].contains('\u{1b}'));
}

#[test]
fn what_a_model_means_is_understood_where_it_is_clear() {
    let mut bench = Bench::new(setup());
    bench.raw_calls(&[
        ("ls", ""),
        ("Read", "\"{\\\"path\\\": \\\"a\\\"}\""),
        ("functions.bash", "```json\n{\"command\": \"ls\"}\n```"),
        (
            "Edit",
            "{\"file_path\": \"a\", \"old_string\": \"b\", \"new_string\": \"c\"}",
        ),
    ]);
    let kinds: Vec<&str> = bench.acts().iter().map(kind_of).collect();
    assert_eq!(kinds, ["ls", "read_file", "bash", "str_replace"]);
}

#[test]
fn a_fence_within_a_string_is_part_of_the_string() {
    let mut bench = Bench::new(setup());
    let content = "# Use\n```sh\nmake\n```\n";
    bench.calls(&[("write_file", json!({"path": "README.md", "content": content}))]);
    match &bench.acts()[0].kind {
        ActKind::Tool { arguments, .. } => {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert_eq!(arguments["content"], content);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ten_thousand_levels_of_json_are_refused_and_the_conversation_stays_readable() {
    let mut bench = Bench::new(setup());
    let deep = format!("{{\"command\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    bench.raw_calls(&[("bash", &deep)]);
    assert!(bench.answers()[0].contains("recursion limit"));
    check_arguments(&bench.request());
}

#[test]
fn arguments_beyond_the_bound_are_refused() {
    let mut bench = Bench::new(setup());
    let long = json!({"path": "a", "content": "x".repeat(3 << 20)});
    bench.calls(&[("write_file", long)]);
    assert!(bench.answers()[0].contains("at most 2097152"));
    assert!(serde_json::to_vec(&bench.request()).unwrap().len() < 200_000);
}

#[test]
fn a_long_file_is_written_whole_and_remembered_short() {
    let mut bench = Bench::new(setup());
    let content = "line\n".repeat(100_000);
    bench.calls(&[("write_file", json!({"path": "a", "content": content}))]);
    match &bench.acts()[0].kind {
        ActKind::Tool { arguments, .. } => assert!(arguments.len() > 500_000),
        other => panic!("{other:?}"),
    }
    bench.act_with("written");
    assert!(serde_json::to_vec(&bench.request()).unwrap().len() < 100_000);
    check_arguments(&bench.request());
}

#[test]
fn a_megabyte_of_text_with_control_characters_is_an_answer() {
    let mut bench = Bench::new(setup());
    let text = "a\u{7}\u{1b}[0m\r\n".repeat(150_000);
    bench.says(&text);
    let answer = bench.text();
    assert!(answer.len() >= (1 << 20) - 4 && answer.len() <= 1 << 20);
    assert!(!answer.contains('\u{1b}') && !answer.contains('\r'));
}

#[test]
fn names_with_control_characters_reach_neither_tools_nor_the_conversation() {
    let mut bench = Bench::new(setup());
    bench.raw_calls(&[("ba\u{0}sh\n", "{}"), ("", "{}"), ("\u{202e}\u{7f}", "{}")]);
    let text = serde_json::to_string(&bench.request()).unwrap();
    assert!(!text.contains("\\u0000") && !text.contains('\u{7f}'));
    for message in bench.request().messages {
        if let Message::Assistant { tool_calls, .. } = message {
            assert!(tool_calls.iter().all(|call| !call.name.is_empty()));
        }
    }
}

#[test]
fn a_long_answer_of_a_tool_is_cut_in_the_middle() {
    let mut bench = Bench::new(setup());
    bench
        .calls(&[bash("a")])
        .act_with(&format!("BEGIN{}END", "x".repeat(500_000)));
    let answer = &bench.answers()[0];
    assert!(answer.len() < 66_000 && answer.starts_with("BEGIN") && answer.ends_with("END"));
    assert!(answer.contains("bytes left out"));
}

#[test]
fn more_calls_than_a_turn_may_have_are_dropped_and_told() {
    let mut bench = Bench::new(setup());
    let calls: Vec<(&str, Value)> = (0..100).map(|number| bash(&number.to_string())).collect();
    bench.calls(&calls);
    assert_eq!(bench.acts().len(), 64);
    bench.act_with("ok");
    assert!(bench.last_message().contains("36 more calls"));
}

#[test]
fn a_call_that_was_cut_at_the_length_limit_is_not_made_and_the_others_are() {
    let mut bench = Bench::new(setup());
    let mut answer = calling(&[
        ("ls", "{}".to_owned()),
        ("write_file", "{\"path\": \"a\", \"con".to_owned()),
    ]);
    answer.finish = Finish::Length;
    bench.answer(answer);
    assert_eq!(bench.acts().len(), 1);
    bench.act_with("ok");
    let answers = bench.answers();
    assert!(
        answers[1].contains("was cut off") && answers[1].contains("append"),
        "{}",
        answers[1]
    );
}

#[test]
fn the_list_of_what_is_to_be_done_is_kept_by_the_agent_itself() {
    let mut bench = Bench::new(setup());
    bench.calls(&[
        (
            "write_todos",
            json!({"todos": [{"content": "read", "status": "in_progress"}]}),
        ),
        ("write_todos", json!({"todos": "read"})),
    ]);
    let answers = bench.answers();
    assert_eq!(answers[0], "the list is kept");
    assert!(answers[1].contains("in_progress"), "{}", answers[1]);
}

#[test]
fn pictures_are_shown_to_a_model_that_sees_and_the_newest_only_as_far_as_they_fit() {
    let mut seeing = terms();
    seeing.traits.vision = true;
    let mut bench = Bench::of(seeing);
    for name in ["a.png", "b.png"] {
        bench.calls(&[("view_image", json!({ "path": name }))]);
        bench.act(|_| Outcome::Tool {
            text: name.to_owned(),
            images: vec![agentrun_protocol::chat::Image {
                media_type: "image/png".to_owned(),
                data: agentrun_protocol::Blob(vec![0; 2 << 20]),
            }],
        });
    }
    let shown: Vec<usize> = bench
        .request()
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { images, .. } => Some(images.len()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, [0, 1]);
}

fn seeing() -> Bench {
    let mut seeing = terms();
    seeing.traits.vision = true;
    seeing.traits.context_tokens = 400_000;
    Bench::of(seeing)
}

fn image(bytes: usize) -> Outcome {
    Outcome::Tool {
        text: "here".to_owned(),
        images: vec![agentrun_protocol::chat::Image {
            media_type: "image/png".to_owned(),
            data: agentrun_protocol::Blob(vec![0; bytes]),
        }],
    }
}

fn images(request: &ModelRequest) -> usize {
    let images = request.messages.iter().map(|message| match message {
        Message::Tool { images, .. } => images.len(),
        _ => 0,
    });
    images.sum()
}

#[test]
fn an_image_that_the_endpoint_does_not_take_is_let_go_of_and_ends_nothing() {
    let mut bench = seeing();
    bench.calls(&[("view_image", json!({"path": "damaged.png"}))]);
    bench.act(|_| image(10));
    assert_eq!(images(&bench.request()), 1);
    bench.fail(ModelFailureCode::Refused);
    assert_eq!(images(&bench.request()), 0);
    assert!(bench.answers()[0].contains("refused"), "{:?}", bench.answers());
    bench.says("it is damaged");
    assert_eq!(bench.text(), "it is damaged");
}

#[test]
fn no_more_images_are_kept_than_are_sent_and_one_turn_shows_no_more_either() {
    let mut bench = seeing();
    for number in 0..15 {
        bench.calls(&[("view_image", json!({"path": format!("{number}.png")}))]);
        bench.act(|_| image(2 << 20));
    }
    let kept = |bench: &Bench| {
        let lines = bench.agent.state.lines.iter();
        let images = lines.map(|line| match &line.message {
            Message::Tool { images, .. } => images.len(),
            _ => 0,
        });
        images.sum::<usize>()
    };
    assert_eq!(kept(&bench), 1);
    let many: Vec<_> = (0..40)
        .map(|number| ("view_image", json!({"path": format!("again{number}.png")})))
        .collect();
    bench.calls(&many);
    bench.act(|_| image(1 << 20));
    assert_eq!(kept(&bench), 3);
    assert!(bench.answers()[0].contains("in a turn of its own"));
}

fn check_arguments(request: &ModelRequest) {
    for message in &request.messages {
        if let Message::Assistant { tool_calls, .. } = message {
            for call in tool_calls {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                assert!(arguments.is_object());
            }
        }
    }
}
