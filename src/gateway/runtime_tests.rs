//! The real runtime on the other side of the channel, with an executor that does what a test tells it to.

use crate::channel_tests::{Server, within};
use crate::fixtures::{Answer, Api, PATCH_TASK, POD, run, skill, subtask};
use agentrun_protocol::Blob;
use agentrun_protocol::environment::SandboxFacts;
use agentrun_protocol::executor::{Ended, Exec, ProcessEnd, Stream, StreamEnd, ToExecutor, ToRuntime};
use agentrun_protocol::frame::encode;
use agentrun_protocol::probe::ProbeTargets;
use agentrun_runtime::frames::FrameReader;
use agentrun_runtime::serve::serve;
use agentrun_runtime::settings::{Bounds, Folders, Gateway, SeenFolders, Settings};
use agentrun_testkit::openai::{Answer as Said, Scenario, Scripted};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

fn settings(server: &Server, folder: &Path) -> Settings {
    let path = |name: &str| folder.join(name);
    for name in [
        "data/uploads",
        "data/workspace",
        "data/outputs",
        "state",
        "skills",
    ] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    std::fs::write(path("token"), POD).unwrap();
    Settings {
        gateway: Gateway {
            address: server.address,
            authorities: server.authority_pem.clone(),
            token_file: path("token"),
            runtime_digest: "sha256:0".into(),
        },
        executor_socket: path("executor.sock"),
        folders: Folders {
            user_data: path("data"),
            state: path("state"),
            skills: path("skills"),
            sources: path("sources"),
        },
        seen: SeenFolders {
            user_data: path("data").to_string_lossy().into_owned(),
            skills: path("skills").to_string_lossy().into_owned(),
        },
        sandbox: SandboxFacts::default(),
        probe: ProbeTargets::default(),
        bounds: Bounds {
            quiet: Duration::from_millis(50),
            ..Bounds::default()
        },
    }
}

struct Executor {
    reader: FrameReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Executor {
    async fn ready(socket: &Path) -> Self {
        let connecting = async {
            loop {
                match UnixStream::connect(socket).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        let (reader, writer) = within(connecting).await.into_split();
        let mut executor = Self {
            reader: FrameReader::new(reader),
            writer,
        };
        assert!(matches!(executor.next().await, ToExecutor::Expect { .. }));
        executor
            .say(ToRuntime::Ready {
                landlock_abi: 6,
                secrets: Vec::new(),
            })
            .await;
        executor
    }

    async fn next(&mut self) -> ToExecutor {
        loop {
            let message = within(self.reader.next()).await.unwrap();
            match message.expect("the runtime is gone") {
                ToExecutor::Clear => self.say(ToRuntime::Cleared { clean: true }).await,
                message => return message,
            }
        }
    }

    async fn say(&mut self, message: ToRuntime) {
        self.writer.write_all(&encode(&message).unwrap()).await.unwrap();
    }

    async fn exec(&mut self) -> (Exec, Vec<u8>) {
        let ToExecutor::Exec(exec) = self.next().await else {
            panic!("expected a program")
        };
        let mut stdin = Vec::new();
        loop {
            let ToExecutor::Stdin { data, last, .. } = self.next().await else {
                panic!("expected stdin")
            };
            stdin.extend(data.0);
            if last {
                return (*exec, stdin);
            }
        }
    }

    async fn end(&mut self, id: u64, stdout: &str, end: ProcessEnd) {
        let data = Blob(stdout.as_bytes().to_vec());
        self.say(ToRuntime::Output {
            id,
            stream: Stream::Stdout,
            data,
        })
        .await;
        let ended = Ended {
            id,
            end,
            duration_ms: 7,
            peak_memory_bytes: 4096,
            cpu_ms: 3,
            stdout: StreamEnd {
                total: stdout.len() as u64,
                ..StreamEnd::default()
            },
            stderr: StreamEnd::default(),
            killed_descendants: 0,
            tree_empty: true,
            too_many_processes: false,
            killed_for_memory: false,
            stopped: false,
            blocked_on_stdin: false,
        };
        self.say(ToRuntime::Ended(Box::new(ended))).await;
    }
}

/// The values of the one patch, by path.
async fn patched(api: &Api) -> serde_json::Map<String, Value> {
    within(async {
        while api.patches().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let patch = api.patches().remove(0);
    let operations = patch.as_array().unwrap().iter();
    operations
        .map(|operation| {
            (
                operation["path"].as_str().unwrap().to_owned(),
                operation["value"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_function_runs_from_its_skill_to_its_stored_output() {
    let api = Api::default().on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    let server = Server::start(&api).await;
    server.gateway.change(|board| {
        board.put_run(run(|_| ()));
        board.put_skill(skill(|_| ()));
        board.put_subtask(subtask(|o| {
            o["spec"]["command"] = json!(null);
            o["spec"]["function"] = json!({"skill": "math", "name": "add"});
            o["spec"]["input"] = json!({"a": 1});
        }))
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&server, folder.path());
    let runtime = tokio::spawn(serve(settings.clone(), std::future::pending()));
    let mut executor = Executor::ready(&settings.executor_socket).await;
    let (exec, stdin) = executor.exec().await;
    assert_eq!(serde_json::from_slice::<Value>(&stdin).unwrap(), json!({"a": 1}));
    assert_eq!(exec.limits.memory_bytes, Some(64 << 20));
    assert_eq!(
        std::fs::read(folder.path().join("data/uploads/in.csv")).unwrap(),
        b"a,b\n"
    );
    let program = std::fs::read(folder.path().join("skills/math/functions/add.py")).unwrap();
    assert_eq!(program, b"def run(i): return 1\n");
    executor
        .end(exec.id, "{\"sum\": null}", ProcessEnd::Exited { code: 0 })
        .await;
    let patched = patched(&api).await;
    assert_eq!(patched["/status/outcome"], json!("Success"));
    assert_eq!(patched["/status/output"], json!({"sum": null}));
    assert_eq!(patched["/status/usage"], json!({"peakMemory": 4096, "cpu": 3}));
    runtime.abort();
}

#[tokio::test]
async fn a_cancelled_run_ends_the_work_and_leaves_the_outcome_to_the_operator() {
    let api = Api::default().on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    let server = Server::start(&api).await;
    server.gateway.change(|board| {
        board.put_run(run(|_| ()));
        board.put_subtask(subtask(|_| ()))
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&server, folder.path());
    let runtime = tokio::spawn(serve(settings.clone(), std::future::pending()));
    let mut executor = Executor::ready(&settings.executor_socket).await;
    let (exec, _) = executor.exec().await;
    let cancelled = run(|o| o["status"]["cancelRequestedAt"] = json!("2030-01-01T00:00:00Z"));
    server.gateway.change(|board| board.put_run(cancelled));
    assert!(matches!(
        executor.next().await,
        ToExecutor::Kill { grace_ms: 5000, .. }
    ));
    executor
        .end(exec.id, "", ProcessEnd::Signalled { signal: 15 })
        .await;
    let patched = patched(&api).await;
    assert_eq!(patched["/status/attempts/0/outcome"], json!("Cancelled"));
    assert!(!patched.contains_key("/status/outcome"));
    runtime.abort();
}

#[tokio::test]
async fn a_lead_asks_its_model_through_every_trouble_and_its_answer_is_stored_with_what_it_used() {
    let todos = json!({"todos": [{"content": "answer", "status": "in_progress"}]});
    let cut = Said {
        cut_after: Some(2),
        ..Said::text("A first answer")
    };
    let answers = [
        Said::calls([("write_todos", todos)]),
        Said::error(429, "slow down").header("retry-after", "0"),
        cut,
        Said::text("Seven rows."),
    ];
    let endpoint = Scripted::start(Scenario::in_order(answers)).await;
    let api = Api::default().on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    let server = Server::start(&api).await;
    let model = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model",
        "metadata": {"name": "strong", "namespace": "team-a", "uid": "m", "generation": 1},
        "spec": {
            "endpoint": endpoint.endpoint(), "model": "large", "roles": ["lead"], "price": {"input": "1", "output": "2"},
        },
    });
    server.gateway.change(|board| {
        board.put_model(serde_json::from_value(model).unwrap());
        board.put_run(run(|o| o["spec"]["goal"] = json!("Count the rows.")));
        board.put_subtask(subtask(|o| {
            o["spec"]["command"] = json!(null);
            o["spec"]["role"] = json!("Lead");
            o["spec"]["timeout"] = json!("60s");
            o["spec"]["agent"] = json!({"prompt": "Count the rows."});
        }))
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&server, folder.path());
    let runtime = tokio::spawn(serve(settings.clone(), std::future::pending()));
    let _executor = Executor::ready(&settings.executor_socket).await;
    let patched = patched(&api).await;
    assert_eq!(patched["/status/outcome"], json!("Success"), "{patched:?}");
    assert_eq!(patched["/status/output"], json!({"text": "Seven rows."}));
    // Two answers of 10 and 5 tokens: what was refused and cut is not counted.
    let usage = &patched["/status/usage"];
    assert_eq!(
        (&usage["tokens"], &usage["cost"]),
        (&json!(30), &json!("0.00004"))
    );
    assert_eq!(endpoint.asked().len(), 4);
    assert_eq!(endpoint.asked()[0].body["model"], "large");
    runtime.abort();
}
