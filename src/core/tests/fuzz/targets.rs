//! What is given inputs, and what must hold.

use crate::fuzz;
use agentrun_core::contract::tail::Capture;
use agentrun_core::contract::{diagnose, parse_stdout};
use agentrun_core::schema::Schema;
use agentrun_core::skill::{self, FUNCTIONS_FILE, SKILL_FILE};
use agentrun_core::survives::survives;
use agentrun_protocol::Blob;
use agentrun_protocol::channel::{ToGateway, ToRuntime as FromGateway};
use agentrun_protocol::executor::{Exec, ProcessEnd, Stream, ToExecutor, ToRuntime};
use agentrun_protocol::frame::{Decoder, encode};
use agentrun_protocol::work::{FileAccess, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;

fn frames() -> Vec<Vec<u8>> {
    let exec = Exec {
        id: 1,
        argv: vec!["sh".to_owned(), "-c".to_owned(), "true".to_owned()],
        cwd: "/mnt".to_owned(),
        env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        inherit_env: vec!["KEY".to_owned()],
        access: FileAccess::Read,
        tcp: false,
        limits: Limits::FUNCTION,
        output_bytes: 1,
        io_files: true,
    };
    let output = ToRuntime::Output {
        id: 1,
        stream: Stream::Stderr,
        data: Blob(b"\xff\0text".to_vec()),
    };
    let rested = ToRuntime::Rested {
        id: 1,
        peak_memory_bytes: 1 << 20,
        cpu_ms: 3,
        clean: true,
    };
    let mut seeds = vec![
        encode(&ToExecutor::Exec(Box::new(exec))).unwrap(),
        encode(&ToExecutor::Kill { id: 1, grace_ms: 0 }).unwrap(),
        encode(&output).unwrap(),
        encode(&rested).unwrap(),
        encode(&FromGateway::Pong).unwrap(),
    ];
    seeds.push(seeds.concat());
    seeds
}

/// Whatever the cuts between reads, the same messages come out, and each is read back as it was.
fn decodes_alike<M: Serialize + DeserializeOwned + PartialEq + Debug>(input: &[u8]) {
    let read = |piece: usize| {
        let mut decoder = Decoder::default();
        let mut found: Vec<M> = Vec::new();
        for bytes in input.chunks(piece) {
            decoder.push(bytes);
            loop {
                match decoder.next() {
                    Ok(Some(message)) => found.push(message),
                    Ok(None) => break,
                    Err(_) => return found,
                }
            }
        }
        found
    };
    let found = read(input.len().max(1));
    assert_eq!(found, read(7));
    for message in found {
        let mut decoder = Decoder::default();
        decoder.push(&encode(&message).unwrap());
        assert_eq!(decoder.next().unwrap(), Some(message));
    }
}

#[test]
fn frames_of_any_bytes_are_messages_or_an_error() {
    let seeds = frames();
    let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
    fuzz(&seeds, |input| {
        decodes_alike::<ToExecutor>(input);
        decodes_alike::<ToRuntime>(input);
        decodes_alike::<FromGateway>(input);
        decodes_alike::<ToGateway>(input);
    });
}

// F056, F060, F061, F063, F065, F066
#[test]
fn stdout_is_one_document_or_an_error_that_names_a_place() {
    let seeds: [&[u8]; 8] = [
        b"{\"a\":[1,2.5,-3e2,null,true,\"\\u00fc \xf0\x9f\x98\x80\"],\"b\":{}}",
        b"[[[[[[[[]]]]]]]]",
        b"  \"text\"\n",
        b"log line\n{\"a\":1}\n",
        b"{}\n{}",
        b"```json\n{}\n```",
        b"{\"n\":NaN,\"i\":-Infinity}",
        b"9007199254740993",
    ];
    fuzz(&seeds, |input| match parse_stdout(input) {
        Ok(document) => {
            assert_eq!(
                serde_json::from_str::<Value>(document.raw).unwrap(),
                document.value
            );
            if survives(input) {
                let printed = serde_json::to_vec(&document.value).unwrap();
                assert_eq!(parse_stdout(&printed).unwrap().value, document.value);
            }
        }
        Err(error) => {
            assert!(error.at <= input.len(), "{error:?}");
            assert!(error.to_string().len() < 1500, "{error}");
            assert!(!survives(input) || std::str::from_utf8(input).is_err());
        }
    });
}

#[test]
fn tails_of_any_bytes_are_text_within_their_bounds() {
    fuzz(&["漢字😀 text\n".repeat(400).as_bytes(), b"short"], |input| {
        let mut capture = Capture::new(500, 500);
        for piece in input.chunks(97) {
            capture.push(piece);
        }
        assert_eq!(capture.total(), input.len() as u64);
        assert!(capture.tail(300).len() <= 300 && capture.head_and_tail(300).len() <= 300);
    });
}

#[test]
fn any_stderr_has_a_diagnosis_of_bounded_length() {
    let seeds: [&[u8]; 4] = [
        b"Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n",
        b"{\"code\":\"NO_SUCH\",\"message\":\"m\"}\n",
        b"FATAL ERROR: JavaScript heap out of memory\n 1: 0xb78db3 node::Abort\n",
        b"env: 'python9': No such file or directory\n",
    ];
    fuzz(&seeds, |input| {
        let stderr = String::from_utf8_lossy(input);
        for end in [
            ProcessEnd::Exited { code: 1 },
            ProcessEnd::Signalled { signal: 6 },
        ] {
            let diagnosis = diagnose::diagnose(&end, &stderr);
            assert!(diagnosis.message.len() < 2000, "{}", diagnosis.message);
        }
    });
}

#[test]
fn any_line_is_a_criterion_or_an_error_of_bounded_length() {
    let seeds: [&[u8]; 4] = [
        b"file:/mnt/user-data/outputs/table.csv csv-columns:a,\"b,c\"",
        b"file_written:report.md",
        b"tests_passed:python -m pytest 'a b'",
        b"file:x json-schema:/mnt/skills/s/x.json",
    ];
    fuzz(&seeds, |input| {
        // The schema allows no more.
        let text: String = String::from_utf8_lossy(input).chars().take(500).collect();
        if let Err(error) = agentrun_core::acceptance::parse(&text) {
            assert!(error.to_string().len() < 10_000, "{error}");
        }
    });
}

const SKILL: &[u8] = b"---\nname: math\ndescription: Grades sheets.\nallowed-tools: [read]\n---\n# Math\n";
const FUNCTIONS: &[u8] = include_bytes!("../../../../skills/math-grader/functions.yaml");

#[test]
fn skill_md_of_any_bytes_is_read_or_refused() {
    fuzz(
        &[
            SKILL,
            b"---\nname: x\ndescription: >\n  folded\n  text\nmetadata: {a: b}\n---\n",
        ],
        |input| {
            let _ = skill::parse(&BTreeMap::from([(SKILL_FILE.to_owned(), input.to_vec())]));
        },
    );
}

#[test]
fn functions_yaml_of_any_bytes_is_read_or_refused() {
    let small = b"functions:\n- {name: add, max_memory_mb: 64, timeout_sec: 5, input_schema: {type: object}, warm: {instances: 2}}\n";
    fuzz(&[FUNCTIONS, small], |input| {
        let mut files = BTreeMap::from([
            (SKILL_FILE.to_owned(), SKILL.to_vec()),
            (FUNCTIONS_FILE.to_owned(), input.to_vec()),
        ]);
        for name in ["add", "split_sheet", "math_parser", "math_validator", "report"] {
            files.insert(format!("functions/{name}.py"), Vec::new());
        }
        if let Ok(skill) = skill::parse(&files) {
            for function in skill.functions {
                // What was taken once is taken again where the function runs.
                skill::schemas(input, &function.name).unwrap();
            }
        }
    });
}

#[test]
fn schemas_and_values_of_any_bytes_cost_no_more_than_their_bound() {
    let seeds: [&[u8]; 3] = [
        b"{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{\"pattern\":\"^(a+)+$\"}}}\n{\"a\":\"aaaa\"}",
        b"{\"$defs\":{\"n\":{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}]}},\"$ref\":\"#/$defs/n\"}\n[1]",
        b"{\"items\":{\"oneOf\":[{\"minimum\":1},{\"multipleOf\":0.1}]},\"uniqueItems\":true}\n[1,2,3]",
    ];
    fuzz(&seeds, |input| {
        let text = String::from_utf8_lossy(input);
        let (schema, value) = text.split_once('\n').unwrap_or((&text, "null"));
        let (Ok(schema), Ok(value)) = (serde_json::from_str(schema), serde_json::from_str(value)) else {
            return;
        };
        if let Ok(schema) = Schema::compile(&schema) {
            let _ = schema.validate(&value);
        }
    });
}
