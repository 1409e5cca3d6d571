//! `docs/openapi.json` is made from the types of the code: `UPDATE_OPENAPI=1 cargo test -p agentrun-gateway openapi`.

use super::*;
use crate::api::chat::request::ChatRequest;
use crate::api::chat::{ChatCompletion, ChatRefused, ModelList};
use crate::api::create::NewTask;
use crate::api::flow::FlowAnswer;
use crate::api::problem::ProblemBody;
use crate::api::stream::event::Event;
use crate::api::view::{Accepted, Task, TaskList};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

/// One operation.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Vec<(&'static str, &'static str, Value)>,
    /// Problems that it may end with besides 401, 403, 429 and 503.
    problems: &'static [&'static str],
}

fn operations(types: &mut SchemaGenerator) -> Vec<Operation> {
    let json_of = |schema: Value| json!({"application/json": {"schema": schema}});
    let accepted = json_of(reference::<Accepted>(types));
    let list = json_of(reference::<TaskList>(types));
    let task = json_of(reference::<Task>(types));
    let answer = json_of(reference::<FlowAnswer>(types));
    let new = json_of(reference::<NewTask>(types));
    let event = reference::<Event>(types);
    let events = json!({"text/event-stream": {"schema": {
        "type": "string",
        "description": "Server-sent events. The `data` of each is one JSON object as in the schema Event; `id` is what \
            `Last-Event-ID` takes. A comment comes every 15 seconds when there is nothing to say.",
        "contentMediaType": "application/json",
        "contentSchema": event,
    }}});
    let any = json_of(json!({"description": "The function's input: any JSON of at most 64 KiB."}));
    let key = header(
        "Idempotency-Key",
        "1 to 255 visible ASCII characters. The same request sent again makes nothing twice; \
        the same key with another body is refused with 409. It holds as long as the task's AgentRun is there.",
    );
    let call = |path, id, summary| Operation {
        method: "post",
        path,
        id,
        summary,
        parameters: vec![
            query(
                "timeout",
                &json!({"type": "string", "default": "60s"}),
                "How long the call may take with everything around it, at most 10m. A later end is 504.",
            ),
            query(
                "pool",
                &json!({"type": "string"}),
                "The SandboxPool whose sandboxes it may run in.",
            ),
            query(
                "envelope",
                &json!({"type": "boolean", "default": false}),
                "Whether the answer shows all that is known of the call.",
            ),
            key.clone(),
        ],
        body: Some(any.clone()),
        answers: vec![
            ("200", "The function's output.", answer.clone()),
            (
                "422",
                "The function refused its input, or wrote no valid output.",
                answer.clone(),
            ),
            ("500", "The function failed.", answer.clone()),
            (
                "504",
                "The function, or all around it, took too long.",
                answer.clone(),
            ),
            ("4XX", "The call was not made.", answer.clone()),
        ],
        problems: &[],
    };
    let calls = [
        call(
            "/flow/{skill}/{function}",
            "callFunction",
            "Call a function of a skill and wait for its answer",
        ),
        call(
            "/flow/{function}",
            "callUniqueFunction",
            "Call a function that only one skill of the namespace has",
        ),
    ];
    let mut all = vec![
        Operation {
            method: "post",
            path: "/tasks",
            id: "createTask",
            summary: "Make a task",
            parameters: vec![key.clone()],
            body: Some(new),
            answers: vec![(
                "202",
                "The task was taken. `Location` is its path.",
                accepted.clone(),
            )],
            problems: &["400", "409", "413", "415", "422"],
        },
        Operation {
            method: "get",
            path: "/tasks",
            id: "listTasks",
            summary: "List tasks by their ids",
            parameters: vec![
                query(
                    "limit",
                    &json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50}),
                    "Tasks of one page.",
                ),
                query(
                    "continue",
                    &json!({"type": "string"}),
                    "`continue` of the page before.",
                ),
            ],
            body: None,
            answers: vec![("200", "One page.", list)],
            problems: &["400", "410"],
        },
        Operation {
            method: "get",
            path: "/tasks/{id}",
            id: "getTask",
            summary: "Show a task with its plan and what became of it",
            parameters: Vec::new(),
            body: None,
            answers: vec![("200", "The task.", task)],
            problems: &["404"],
        },
        Operation {
            method: "get",
            path: "/tasks/{id}/stream",
            id: "streamTask",
            summary: "Follow a task's events",
            parameters: vec![header(
                "Last-Event-ID",
                "The last event that was had. What follows it comes, or a `gap` and everything that is known.",
            )],
            body: None,
            answers: vec![
                (
                    "200",
                    "The events, until the task is over or an hour has passed.",
                    events,
                ),
                (
                    "204",
                    "The task is over and its last event was had: do not come back.",
                    Value::Null,
                ),
            ],
            problems: &["404"],
        },
        Operation {
            method: "post",
            path: "/tasks/{id}/cancel",
            id: "cancelTask",
            summary: "Cancel a task",
            parameters: Vec::new(),
            body: None,
            answers: vec![
                ("202", "It is being cancelled.", accepted.clone()),
                ("200", "It is over already.", accepted),
            ],
            problems: &["404"],
        },
    ];
    all.extend(calls);
    all.extend(chat(types, &key));
    all
}

fn chat(types: &mut SchemaGenerator, key: &Value) -> [Operation; 2] {
    let json_of = |schema: Value| json!({"application/json": {"schema": schema}});
    let refused = json_of(reference::<ChatRefused>(types));
    let answers = |description, of: Value| {
        vec![
            ("200", description, json_of(of)),
            (
                "4XX",
                "It was refused; nothing was made, but for 422 of a run that never started.",
                refused.clone(),
            ),
            (
                "5XX",
                "The run ended without an answer, took too long, or was not made (503).",
                refused.clone(),
            ),
        ]
    };
    [
        Operation {
            method: "get",
            path: "/v1/models",
            id: "listModels",
            summary: "List what `model` of a chat completion takes",
            parameters: Vec::new(),
            body: None,
            answers: answers("The models.", reference::<ModelList>(types)),
            problems: &[],
        },
        Operation {
            method: "post",
            path: "/v1/chat/completions",
            id: "completeChat",
            summary: "Let a run answer a conversation, as a model would",
            parameters: vec![key.clone()],
            body: Some(json_of(reference::<ChatRequest>(types))),
            answers: answers("The lead agent's answer.", reference::<ChatCompletion>(types)),
            problems: &[],
        },
    ]
}

fn reference<T: JsonSchema>(types: &mut SchemaGenerator) -> Value {
    types.subschema_for::<T>().to_value()
}

fn query(name: &str, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "schema": schema, "description": description})
}

fn header(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "header", "schema": {"type": "string"}, "description": description})
}

fn in_path(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter =
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    names.map(parameter).collect()
}

fn operation(operation: &Operation, path: &str, problem: &Value) -> Value {
    let mut answers = Map::new();
    let always = ["401", "403", "429", "503"];
    for status in operation.problems.iter().chain(&always) {
        answers.insert(
            (*status).to_owned(),
            json!({"description": "Refused.", "content": problem}),
        );
    }
    for (status, description, content) in &operation.answers {
        let mut answer = json!({"description": description});
        if !content.is_null() {
            answer["content"] = content.clone();
        }
        answers.insert((*status).to_owned(), answer);
    }
    let mut parameters = in_path(path);
    parameters.extend(operation.parameters.iter().cloned());
    let short = !path.contains("{namespace}");
    let mut made = json!({
        "operationId": if short { format!("{}Here", operation.id) } else { operation.id.to_owned() },
        "summary": operation.summary,
        "parameters": parameters,
        "responses": answers,
    });
    if let Some(body) = &operation.body {
        made["requestBody"] = json!({"required": true, "content": body});
    }
    made
}

fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut types = settings.into_generator();
    let operations = operations(&mut types);
    let problem = json!({"application/json": {"schema": reference::<ProblemBody>(&mut types)}});
    let mut paths = Map::new();
    for prefix in ["/api/namespaces/{namespace}", "/api"] {
        for it in &operations {
            let path = format!("{prefix}{}", it.path);
            let made = operation(it, &path, &problem);
            let entry = paths.entry(path).or_insert_with(|| json!({}));
            entry[it.method] = made;
        }
    }
    for (path, summary) in [
        ("/health", "Whether the process works"),
        ("/ready", "Whether it should be sent anyone"),
    ] {
        let ok = json!({"description": "Yes."});
        let get = json!({"summary": summary, "security": [], "responses": {"200": ok, "503": {"description": "No."}}});
        paths.insert(path.to_owned(), json!({"get": get}));
    }
    let schemas: Map<String, Value> = types.take_definitions(true).into_iter().collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "AgentRun",
            "version": "v1alpha1",
            "description": "Tasks of AI agents and functions, run in locked-down sandboxes on Kubernetes. A namespace is a \
                tenant; paths without one are about the namespace that the gateway is configured with. A token is one for \
                the audience `agentrun-api`: `kubectl create token NAME --audience agentrun-api`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

#[test]
fn the_openapi_document_says_what_the_code_does() {
    let made = format!("{}\n", serde_json::to_string_pretty(&document()).unwrap());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(FILE, &made).unwrap();
    }
    let committed = std::fs::read_to_string(FILE).unwrap();
    assert!(
        committed == made,
        "docs/openapi.json is not what the code says: UPDATE_OPENAPI=1 cargo test -p agentrun-gateway openapi"
    );
}

#[tokio::test]
async fn every_path_of_the_openapi_document_is_served_and_asks_for_a_token() {
    let stage = Stage::new();
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    for (path, methods) in paths {
        let open = path.starts_with("/health") || path.starts_with("/ready");
        let path = path.replace("{namespace}", "team-a").replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys() {
            let answer = stage
                .answer(request(&method.to_uppercase(), &path, "", &[], ""))
                .await;
            let expected = if open { 200 } else { 401 };
            assert_eq!(answer.status.as_u16(), expected, "{method} {path}");
        }
    }
    let served = stage.answer(request("GET", "/openapi.json", "", &[], "")).await;
    assert_eq!(served.status, 200);
}

#[test]
fn every_reference_of_the_openapi_document_leads_somewhere() {
    fn check(value: &Value, document: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                    let pointer = target.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{target}");
                }
                members.values().for_each(|member| check(member, document));
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, document)),
            _ => {}
        }
    }
    let document = document();
    check(&document, &document);
}
