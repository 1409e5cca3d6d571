//! Agents end to end: the real executor, and a model and a gateway that say what a test tells them to.

use crate::gateway::{Peer, soon};
use crate::model::{Asked, Turn, calls, fails, says};
use crate::real::{mounts, start_executor};
use crate::world::{World, assignment};
use agentrun_protocol::agent::{
    AgentKind, AgentTerms, DelegationState, DelegationTerms, ModelTraits, SkillCard, StopReason,
};
use agentrun_protocol::channel::{ToGateway, ToRuntime};
use agentrun_protocol::chat::{Message, ModelFailureCode, Role};
use agentrun_protocol::exit;
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::tool::{Effect, ToolName};
use agentrun_protocol::work::{Assignment, AttemptId, Work};
use agentrun_runtime::serve::{ServeError, serve};
use agentrun_runtime::store::calls;
use agentrun_runtime::store::evidence::Evidence;
use agentrun_runtime::store::sha256_of;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use tokio::sync::oneshot;

/// Milliseconds in which an agent asks its first question, on a busy machine too.
const ENOUGH_TO_BEGIN: u64 = 5_000;

/// A Pod with the real executor, and what outlives it.
struct Stage {
    world: World,
    pod: Option<Pod>,
    secret: &'static str,
}

/// A runtime on a thread of its own, so that it can be ended in the middle of anything, and its executor.
struct Pod {
    kill: Option<oneshot::Sender<()>>,
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Option<Result<u8, ServeError>>>>,
    executor: Child,
}

impl Pod {
    fn start(world: &World, secret: &str) -> Pod {
        let settings = world.settings.clone();
        let (kill, killed) = oneshot::channel::<()>();
        let (shutdown, told) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let ended = runtime.block_on(async {
                let told = async { told.await.unwrap_or(()) };
                tokio::select! {
                    ended = serve(settings, told) => Some(ended),
                    _ = killed => None,
                }
            });
            runtime.shutdown_background();
            ended
        });
        Pod {
            kill: Some(kill),
            shutdown: Some(shutdown),
            thread: Some(thread),
            executor: start_executor(world, ("API_KEY", secret)),
        }
    }

    /// As SIGKILL does.
    fn kill(&mut self) {
        if let Some(kill) = self.kill.take() {
            kill.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        self.executor.kill().ok();
        self.executor.wait().ok();
    }

    /// As SIGTERM does.
    fn shut_down(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    async fn exit_code(&mut self) -> u8 {
        let thread = self.thread.take().unwrap();
        let ended = tokio::task::spawn_blocking(move || thread.join().unwrap());
        let ended = soon("the end of the runtime", ended).await.unwrap().unwrap();
        ended.unwrap_or_else(|error| error.exit_code())
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kill();
        }
        self.executor.kill().ok();
        self.executor.wait().ok();
    }
}

impl Stage {
    async fn new() -> Stage {
        Stage::with_secret("").await
    }

    async fn with_secret(secret: &'static str) -> Stage {
        let mut world = World::new().await;
        world.settings.sandbox.mounts = mounts();
        world.settings.sandbox.secrets.env = vec!["API_KEY".to_owned()];
        Stage {
            world,
            pod: None,
            secret,
        }
    }

    /// A new Pod on the same volume; what was there is killed.
    async fn pod(&mut self) -> Peer {
        if let Some(mut pod) = self.pod.take() {
            pod.kill();
        }
        self.pod = Some(Pod::start(&self.world, self.secret));
        self.world.gateway.peer().await
    }

    fn state(&self, path: &str) -> PathBuf {
        self.world.path("state").join(path)
    }

    fn journal(&self) -> PathBuf {
        self.state("runs/run-uid/tasks/sub-task-uid/journal.jsonl")
    }

    /// Lines of a file of the workspace.
    fn lines(&self, file: &str) -> usize {
        let text = std::fs::read_to_string(self.world.path("data/workspace").join(file)).unwrap_or_default();
        text.lines().count()
    }

    async fn shell_begins(&self) {
        let runs = self.world.path("data/workspace/runs");
        soon("the shell's begin", appears(&runs)).await;
    }
}

fn terms() -> AgentTerms {
    let tools = [
        "bash",
        "ls",
        "read_file",
        "write_file",
        "str_replace",
        "glob",
        "grep",
    ];
    AgentTerms {
        role: Role::Lead,
        prompt: "Say hello to the world.".to_owned(),
        instructions: None,
        model: None,
        traits: ModelTraits {
            context_tokens: 32_000,
            vision: false,
        },
        tools: tools.map(str::to_owned).to_vec(),
        skills: Vec::new(),
        max_turns: 20,
        output_schema: None,
        delegation: None,
        snapshot: None,
        continues: false,
        is_planned: false,
        reviews: None,
    }
}

fn agent(terms: AgentTerms) -> Assignment {
    Assignment {
        remaining_ms: 60_000,
        ..assignment(Work::Agent(Box::new(terms)))
    }
}

fn attempt(number: i32, assignment: &Assignment) -> Assignment {
    let mut assignment = assignment.clone();
    assignment.id.attempt = number;
    assignment
}

/// Writes a script, runs it, reads what it made, and says so.
fn hello(asked: &Asked) -> crate::model::Said {
    match asked.turns() {
        0 => calls(&[(
            "write_file",
            json!({"path": "hello.sh", "content": "echo hello >> ../outputs/hello.txt; echo ran >> runs\n"}),
        )]),
        1 => calls(&[("bash", json!({"command": "sh hello.sh && echo done"}))]),
        2 => calls(&[("read_file", json!({"path": "/mnt/user-data/outputs/hello.txt"}))]),
        _ => says("It says hello."),
    }
}

#[track_caller]
fn assert_success(result: &AttemptResult, text: &str) {
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Success, "Completed"),
        "{}",
        result.message
    );
    assert_eq!(result.output, Some(json!({"text": text})));
    assert!(result.process_tree_empty);
}

#[tokio::test]
async fn a_lead_writes_a_file_runs_it_reads_it_and_says_what_it_did() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let mut assignment = agent(terms());
    assignment.acceptance = vec!["file:/mnt/user-data/outputs/hello.txt non-empty".to_owned()];
    peer.assign(&assignment).await;
    let mut answers = Vec::new();
    let mut spent = Vec::new();
    let result = peer
        .play(|asked| {
            assert_eq!(asked.request.role, Role::Lead);
            answers.push(asked.last_text().to_owned());
            spent.push(asked.spent.tokens.get("lead").copied().unwrap_or_default());
            hello(asked)
        })
        .await;
    assert_success(&result, "It says hello.");
    assert_eq!(answers[2], "done\n");
    assert!(answers[3].contains("hello\n"), "{}", answers[3]);
    assert_eq!(spent, [0, 110, 220, 330]);
    assert_eq!(result.stdout_tail, "It says hello.");
    let facts = result.agent.unwrap();
    assert_eq!((facts.turns, facts.stop_reason), (4, None));
    assert_eq!((facts.spent.tokens["lead"], facts.spent.cost_micros), (440, 28));
    let artifacts: Vec<_> = result.artifacts.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(artifacts, ["/mnt/user-data/outputs/hello.txt"]);
    assert!(result.acceptance[0].holds);
    assert!(result.usage.peak_memory_bytes > 0);
    let evidence = Evidence::new(&stage.state(""), &assignment).unwrap();
    let calls: Vec<_> = calls::read(&evidence).unwrap().collect();
    let tools: Vec<_> = calls.iter().map(|call| call.tool).collect();
    assert_eq!(tools, [ToolName::WriteFile, ToolName::Bash, ToolName::ReadFile]);
    assert!(matches!(&calls[1].effect, Effect::Bash(record) if record.exit_code == Some(0)));
}

#[tokio::test]
async fn a_question_is_asked_again_when_the_connection_broke_before_the_answer() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    let first = peer.asked().await;
    peer.kill();
    let mut peer = stage.world.gateway.peer().await;
    let again = peer.asked().await;
    assert_eq!((again.call, again.text()), (first.call, first.text()));
    peer.answer(&again, hello(&again)).await;
    let second = peer.asked().await;
    assert!(second.call > first.call);
    // An answer to what is not asked any more changes nothing.
    peer.answer(&first, says("late")).await;
    peer.answer(&second, hello(&second)).await;
    assert_success(&peer.play(hello).await, "It says hello.");
    assert_eq!(stage.lines("runs"), 1);
}

#[tokio::test]
async fn wherever_the_runtime_dies_the_next_attempt_comes_to_the_same_end_and_repeats_no_shell() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    let whole = peer.play(hello).await;
    let journal = std::fs::read_to_string(stage.journal()).unwrap();
    let lines: Vec<_> = journal.split_inclusive('\n').collect();
    assert!(lines.len() >= 7, "{journal}");
    let bash_ended = lines.iter().position(|line| line.contains("done\\n")).unwrap();
    for (number, kept) in (0..lines.len()).enumerate() {
        let mut cut: String = lines[..kept].concat();
        // Half of the next line is none.
        cut.push_str(&lines[kept][..lines[kept].len() / 2]);
        std::fs::write(stage.journal(), &cut).unwrap();
        std::fs::remove_file(stage.world.path("data/workspace/runs")).ok();
        let mut peer = stage.pod().await;
        let next = attempt(i32::try_from(number).unwrap() + 2, &agent(terms()));
        peer.assign(&next).await;
        let result = peer.play(hello).await;
        assert_eq!(
            (&result.output, result.ending),
            (&whole.output, whole.ending),
            "after {kept} lines: {}",
            result.message
        );
        assert_eq!(result.agent, whole.agent, "after {kept} lines");
        let ran = stage.lines("runs");
        let expected = usize::from(kept <= bash_ended);
        assert!(ran <= expected, "after {kept} lines the shell ran {ran} times");
    }
}

#[tokio::test]
async fn a_shell_that_died_with_its_runtime_is_told_as_interrupted() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    let asked = peer.asked().await;
    let command = "echo begun >> runs; sleep 300";
    peer.answer(&asked, calls(&[("bash", json!({"command": command}))]))
        .await;
    stage.shell_begins().await;
    let mut peer = stage.pod().await;
    peer.assign(&attempt(2, &agent(terms()))).await;
    let asked = peer.asked().await;
    assert!(asked.last_text().contains("interrupted"), "{}", asked.last_text());
    assert_eq!(asked.spent.tokens["lead"], 110);
    peer.answer(&asked, says("I stop here.")).await;
    assert_success(&peer.play(hello).await, "I stop here.");
    assert_eq!(stage.lines("runs"), 1);
}

#[tokio::test]
async fn cancelling_withdraws_the_question() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let assignment = agent(terms());
    peer.assign(&assignment).await;
    let asked = peer.asked().await;
    cancel(&peer, &assignment.id).await;
    let Turn::Other(withdrawn) = peer.turn().await else {
        panic!("expected the question to be withdrawn");
    };
    let (id, call) = (assignment.id.clone(), asked.call);
    assert_eq!(withdrawn, ToGateway::ModelCancel { id, call });
    let result = peer.play(hello).await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Cancelled, "Cancelled")
    );
    assert!(result.process_tree_empty);
}

async fn cancel(peer: &Peer, id: &AttemptId) {
    let id = id.clone();
    peer.say(ToRuntime::Cancel { id, grace_ms: 100 }).await;
}

#[tokio::test]
async fn cancelling_ends_a_shell_at_once() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let assignment = agent(terms());
    peer.assign(&assignment).await;
    let asked = peer.asked().await;
    let command = json!({"command": "echo begun >> runs; sleep 300"});
    peer.answer(&asked, calls(&[("bash", command)])).await;
    stage.shell_begins().await;
    cancel(&peer, &assignment.id).await;
    let result = peer.play(hello).await;
    assert_eq!(result.ending, Ending::Cancelled);
    assert!(result.process_tree_empty);
    assert!(result.timing.run_ms < 30_000);
}

#[tokio::test]
async fn the_deadline_holds_while_the_model_is_silent_and_while_a_shell_runs() {
    for shell in [false, true] {
        let mut stage = Stage::new().await;
        let mut peer = stage.pod().await;
        let mut assignment = agent(terms());
        assignment.remaining_ms = ENOUGH_TO_BEGIN;
        peer.assign(&assignment).await;
        let asked = peer.asked().await;
        if shell {
            let command = json!({"command": "sleep 300"});
            peer.answer(&asked, calls(&[("bash", command)])).await;
        }
        let result = peer.play(hello).await;
        assert_eq!(
            (result.ending, result.reason.as_str()),
            (Ending::Timeout, "DeadlineExceeded"),
            "{}",
            result.message
        );
        assert!(result.process_tree_empty);
        assert_eq!(result.agent.unwrap().turns, u32::from(shell));
    }
}

#[tokio::test]
async fn a_gateway_that_is_away_is_waited_for_until_the_deadline_and_then_told() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let mut assignment = agent(terms());
    assignment.remaining_ms = ENOUGH_TO_BEGIN;
    peer.assign(&assignment).await;
    peer.asked().await;
    peer.kill();
    // It is there again, but does not welcome anybody.
    let stranger = stage.world.gateway.stranger().await;
    let result = stage.world.evidence("result.json");
    soon("the end of the attempt", appears(&result)).await;
    stranger.kill();
    let mut peer = stage.world.gateway.peer().await;
    let Turn::Ended(_, result) = peer.turn().await else {
        panic!("expected the end and no question");
    };
    assert_eq!(result.ending, Ending::Timeout);
}

async fn appears(file: &Path) {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_budget_that_is_used_up_ends_an_agent_with_what_it_has() {
    for (text, ending) in [("", Ending::Error), ("Half of it is done.", Ending::Success)] {
        let mut stage = Stage::new().await;
        let mut peer = stage.pod().await;
        peer.assign(&agent(terms())).await;
        let result = peer
            .play(|asked| match asked.turns() {
                0 => calls(&[("ls", json!({"path": "."}))]).map(|mut answer| {
                    answer.text = text.to_owned();
                    answer
                }),
                _ => fails(ModelFailureCode::BudgetExceeded, "2000000 tokens are used up"),
            })
            .await;
        assert_eq!(result.ending, ending, "{}", result.message);
        let facts = result.agent.unwrap();
        assert_eq!(facts.stop_reason, Some(StopReason::TokenCapped));
        if ending == Ending::Error {
            assert_eq!(result.reason, "BudgetExceeded");
            assert!(result.message.contains("2000000 tokens"), "{}", result.message);
        } else {
            assert_eq!(result.output, Some(json!({"text": text})));
        }
    }
}

#[tokio::test]
async fn every_failure_of_a_model_has_its_reason() {
    for (code, reason) in [
        (ModelFailureCode::NoModel, "NoModel"),
        (ModelFailureCode::AuthFailed, "ModelAuthFailed"),
        (ModelFailureCode::Unreachable, "ModelUnavailable"),
        (ModelFailureCode::RateLimited, "ModelUnavailable"),
        (ModelFailureCode::ContextTooLong, "ContextTooLong"),
        (ModelFailureCode::Refused, "ModelRefused"),
        (ModelFailureCode::BadAnswer, "ModelBadAnswer"),
    ] {
        let mut stage = Stage::new().await;
        let mut peer = stage.pod().await;
        peer.assign(&agent(terms())).await;
        let result = peer.play(|_| fails(code, "what was found")).await;
        assert_eq!(
            (result.ending, result.reason.as_str()),
            (Ending::Error, reason),
            "{code:?}"
        );
        assert!(result.message.contains("what was found"), "{}", result.message);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_schema_may_be_repaired() {
    let schema = json!({
        "type": "object", "required": ["greeting"],
        "properties": {"greeting": {"type": "string"}}
    });
    let terms = AgentTerms {
        output_schema: Some(schema),
        ..terms()
    };
    for repaired in [true, false] {
        let mut stage = Stage::new().await;
        let mut peer = stage.pod().await;
        peer.assign(&agent(terms.clone())).await;
        let result = peer
            .play(|asked| match asked.turns() {
                0 => says("{\"greeting\": 1}"),
                _ if repaired => says("```json\n{\"greeting\": \"hello\"}\n```"),
                _ => says("I cannot."),
            })
            .await;
        if repaired {
            assert_eq!(result.ending, Ending::Success, "{}", result.message);
            assert_eq!(result.output, Some(json!({"greeting": "hello"})));
        } else {
            assert_eq!(
                (result.ending, result.reason.as_str()),
                (Ending::ParseError, "InvalidOutput"),
                "{}",
                result.message
            );
        }
    }
}

fn delegating() -> AgentTerms {
    let mut terms = terms();
    terms.tools.push("task".to_owned());
    terms.delegation = Some(DelegationTerms {
        max_per_turn: 3,
        max_per_run: 6,
        agents: vec![AgentKind {
            name: "general-purpose".to_owned(),
            description: "does anything".to_owned(),
        }],
    });
    terms
}

fn task(prompt: &str, context: &str) -> serde_json::Value {
    json!({
        "description": "find out", "prompt": prompt, "subagent_type": "general-purpose", "context_mode": context,
        "acceptance_criteria": [],
    })
}

fn ended(name: &str, text: &str) -> DelegationState {
    let end = json!({
        "state": "Ended", "name": name, "outcome": "Success", "reason": "Completed", "output": {"text": text},
    });
    let parsed: Result<DelegationState, _> = serde_json::from_value(end);
    parsed.unwrap()
}

#[tokio::test]
async fn delegates_of_a_turn_are_waited_for_through_reconnects() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let assignment = agent(delegating());
    peer.assign(&assignment).await;
    let asked = peer.asked().await;
    let tools = [
        ("task", task("one", "isolated")),
        ("bash", json!({"command": "echo ran >> runs"})),
        ("task", task("two", "isolated")),
    ];
    peer.answer(&asked, calls(&tools)).await;
    let delegations = peer.delegated().await;
    let prompts: Vec<_> = delegations.iter().map(|one| one.prompt.as_str()).collect();
    assert_eq!(prompts, ["one", "two"]);
    let id = &assignment.id;
    let name = "child".to_owned();
    peer.delegate_is(id, &delegations[0], DelegationState::Created { name })
        .await;
    peer.delegate_is(id, &delegations[1], ended("second", "it is two"))
        .await;
    peer.kill();
    let mut peer = stage.world.gateway.peer().await;
    assert_eq!(peer.delegated().await, delegations);
    peer.delegate_is(id, &delegations[1], ended("second", "it is two"))
        .await;
    peer.delegate_is(id, &delegations[0], ended("first", "it is one"))
        .await;
    let asked = peer.asked().await;
    let text = asked.text();
    assert!(text.contains("it is one") && text.contains("it is two"), "{text}");
    assert_eq!(stage.lines("runs"), 1);
    peer.answer(&asked, says("Both are known.")).await;
    assert_success(&peer.play(hello).await, "Both are known.");
}

#[tokio::test]
async fn a_parent_that_died_while_it_waited_asks_for_the_same_delegates() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(delegating())).await;
    let asked = peer.asked().await;
    let tools = [
        ("task", task("one", "snapshot")),
        ("task", task("two", "isolated")),
    ];
    peer.answer(&asked, calls(&tools)).await;
    let before = peer.delegated().await;
    let mut peer = stage.pod().await;
    let second = attempt(2, &agent(delegating()));
    peer.assign(&second).await;
    let after = peer.delegated().await;
    assert_eq!(before, after, "place, prompt and snapshot are the same");
    for delegation in &after {
        let message = "no".to_owned();
        peer.delegate_is(&second.id, delegation, DelegationState::Refused { message })
            .await;
    }
    let asked = peer.asked().await;
    peer.answer(&asked, says("Then not.")).await;
    let Turn::Ended(..) = peer.turn().await else {
        panic!("expected the end");
    };
}

#[tokio::test]
async fn a_delegate_sees_its_parents_conversation_where_it_was_given_to_it() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let parent = agent(delegating());
    peer.assign(&parent).await;
    let asked = peer.asked().await;
    let bash = json!({"command": "echo the secret word is xyzzy"});
    peer.answer(&asked, calls(&[("bash", bash)])).await;
    let asked = peer.asked().await;
    let tools = [("task", task("use the word", "snapshot"))];
    peer.answer(&asked, calls(&tools)).await;
    let delegation = peer.delegated().await.remove(0);
    let snapshot = delegation.snapshot.clone().unwrap();
    assert!(
        snapshot.path.starts_with("state/runs/run-uid/"),
        "{}",
        snapshot.path
    );
    cancel(&peer, &parent.id).await;
    assert_eq!(peer.play(hello).await.ending, Ending::Cancelled);
    let mut child = agent(AgentTerms {
        role: Role::Executor,
        prompt: delegation.prompt.clone(),
        snapshot: Some(snapshot.clone()),
        ..terms()
    });
    child.id.uid = "child".to_owned();
    peer.assign(&child).await;
    let asked = peer.asked().await;
    assert!(asked.text().contains("xyzzy"), "{}", asked.text());
    peer.answer(&asked, says("Used.")).await;
    let Turn::Ended(id, result) = peer.turn().await else {
        panic!("expected the end");
    };
    assert_success(&result, "Used.");
    peer.say(ToRuntime::Ack(id)).await;
    // One that is not as it was is of no use.
    std::fs::write(stage.state(snapshot.path.strip_prefix("state/").unwrap()), "[]").unwrap();
    child.id.uid = "other-child".to_owned();
    peer.assign(&child).await;
    let Turn::Ended(_, result) = peer.turn().await else {
        panic!("expected the end");
    };
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Error, "InputChanged"),
        "{}",
        result.message
    );
}

#[tokio::test]
async fn an_executor_that_is_lost_while_an_agent_waits_is_told() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    peer.asked().await;
    stage.pod.as_mut().unwrap().executor.kill().unwrap();
    let lost = loop {
        match peer.turn().await {
            Turn::Other(ToGateway::ModelCancel { .. }) => {}
            other => break other,
        }
    };
    assert!(
        matches!(lost, Turn::Other(ToGateway::ExecutorLost { .. })),
        "{lost:?}"
    );
    peer.say(ToRuntime::Ack(agent(terms()).id)).await;
    let code = stage.pod.as_mut().unwrap().exit_code().await;
    assert_eq!(code, exit::EXECUTOR_LOST);
}

#[tokio::test]
async fn the_end_of_the_pod_cancels_an_agent_and_a_later_attempt_goes_on() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    for _ in 0..2 {
        let asked = peer.asked().await;
        peer.answer(&asked, hello(&asked)).await;
    }
    peer.asked().await;
    stage.pod.as_mut().unwrap().shut_down();
    assert_eq!(peer.play(hello).await.ending, Ending::Cancelled);
    let mut peer = stage.pod().await;
    peer.assign(&attempt(2, &agent(terms()))).await;
    let result = peer.play(hello).await;
    assert_success(&result, "It says hello.");
    assert_eq!(stage.lines("runs"), 1);
    // The first attempt made it, and the agent delivers it.
    let artifacts: Vec<_> = result.artifacts.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(artifacts, ["/mnt/user-data/outputs/hello.txt"]);
}

#[tokio::test]
async fn an_attempt_that_follows_on_unmet_criteria_goes_on_with_what_was_missed() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    peer.play(hello).await;
    let mut second = attempt(2, &agent(terms()));
    second.notes = vec!["file:report.md exists: there is no such file".to_owned()];
    peer.assign(&second).await;
    let asked = peer.asked().await;
    assert!(asked.last_text().contains("report.md"), "{}", asked.last_text());
    assert!(asked.text().contains("It says hello."), "{}", asked.text());
    peer.answer(&asked, says("Now it is there.")).await;
    assert_success(&peer.play(hello).await, "Now it is there.");
}

#[tokio::test]
async fn what_a_shell_prints_of_a_secret_reaches_neither_model_nor_journal() {
    let mut stage = Stage::with_secret("hunter2hunter2").await;
    let mut peer = stage.pod().await;
    let mut assignment = agent(terms());
    assignment.inherit_env = vec!["API_KEY".to_owned()];
    peer.assign(&assignment).await;
    let asked = peer.asked().await;
    peer.answer(
        &asked,
        calls(&[("bash", json!({"command": "echo key $API_KEY"}))]),
    )
    .await;
    let asked = peer.asked().await;
    assert_eq!(asked.last_text(), "key ***\n");
    peer.answer(&asked, says("The key is hunter2hunter2.")).await;
    let result = peer.play(hello).await;
    assert_eq!(result.stdout_tail, "The key is ***.");
    let journal = std::fs::read_to_string(stage.journal()).unwrap();
    assert!(!journal.contains("hunter2hunter2"), "{journal}");
}

#[tokio::test]
async fn a_threads_next_run_goes_on_with_the_conversation() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    peer.play(hello).await;
    let mut next = agent(AgentTerms {
        prompt: "And now in French.".to_owned(),
        continues: true,
        ..terms()
    });
    next.run_uid = "next-run".to_owned();
    next.id.uid = "next".to_owned();
    peer.assign(&next).await;
    let asked = peer.asked().await;
    let text = asked.text();
    assert!(
        text.contains("Say hello to the world.") && text.contains("It says hello."),
        "{text}"
    );
    assert!(asked.last_text().contains("And now in French."), "{text}");
    peer.answer(&asked, says("Bonjour.")).await;
    let Turn::Ended(_, result) = peer.turn().await else {
        panic!("expected the end");
    };
    assert_success(&result, "Bonjour.");
}

#[tokio::test]
async fn an_image_is_shown_to_a_model_that_sees_and_goes_in_pieces() {
    let mut stage = Stage::new().await;
    let mut png = vec![0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13];
    png.extend(b"IHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0");
    png.resize(1 << 20, 7);
    std::fs::write(stage.world.path("data/workspace/chart.png"), &png).unwrap();
    let mut terms = terms();
    terms.tools.push("view_image".to_owned());
    terms.traits.vision = true;
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms)).await;
    let result = peer
        .play(|asked| {
            if asked.turns() == 0 {
                return calls(&[("view_image", json!({"path": "chart.png"}))]);
            }
            let Some(Message::Tool { images, text, .. }) = asked.request.messages.last() else {
                panic!("expected an answer");
            };
            assert_eq!(images.len(), 1, "{text}");
            assert_eq!(
                (images[0].media_type.as_str(), &images[0].data.0),
                ("image/png", &png)
            );
            says("I have seen it.")
        })
        .await;
    assert_success(&result, "I have seen it.");
}

// F123
#[tokio::test]
async fn tests_that_an_earlier_attempt_ran_count_as_the_agents() {
    let mut stage = Stage::new().await;
    let file = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n";
    std::fs::write(stage.world.path("data/workspace/test_it.py"), file).unwrap();
    let mut assignment = agent(terms());
    let command = "python3 -m unittest test_it";
    assignment.acceptance = vec![
        format!("tests_passed:{command}"),
        "tests_passed:pytest -q".to_owned(),
    ];
    let mut peer = stage.pod().await;
    peer.assign(&assignment).await;
    let asked = peer.asked().await;
    peer.answer(&asked, calls(&[("bash", json!({"command": command}))]))
        .await;
    let asked = peer.asked().await;
    assert!(asked.last_text().contains("OK"), "{}", asked.last_text());
    let mut peer = stage.pod().await;
    peer.assign(&attempt(2, &assignment)).await;
    let result = peer.play(|_| says("The tests pass.")).await;
    assert_success(&result, "The tests pass.");
    let found: Vec<_> = result
        .acceptance
        .iter()
        .map(|verdict| (verdict.checked, verdict.holds))
        .collect();
    assert_eq!(found, [(true, true), (false, false)], "{:?}", result.acceptance);
}

#[tokio::test]
async fn a_damaged_journal_is_named_and_nothing_is_done_twice() {
    let mut stage = Stage::new().await;
    std::fs::create_dir_all(stage.journal().parent().unwrap()).unwrap();
    std::fs::write(stage.journal(), "{\"entry\":\"nova\"}\n").unwrap();
    let mut peer = stage.pod().await;
    peer.assign(&agent(terms())).await;
    let result = peer.play(hello).await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Error, "StartFailed")
    );
    assert!(
        result.message.contains("line 1 of journal.jsonl"),
        "{}",
        result.message
    );
    assert!(result.process_tree_empty);
}

#[tokio::test]
async fn a_delegates_long_output_is_shortened_and_can_be_read_whole() {
    let mut stage = Stage::new().await;
    let mut peer = stage.pod().await;
    let assignment = agent(delegating());
    peer.assign(&assignment).await;
    let asked = peer.asked().await;
    peer.answer(&asked, calls(&[("task", task("write much", "isolated"))]))
        .await;
    let delegation = peer.delegated().await.remove(0);
    let text = "line\n".repeat(2_000) + "the last line\n";
    let output = serde_json::to_vec(&json!({"text": text})).unwrap();
    let path = "runs/run-uid/tasks/child/1/output.json";
    std::fs::create_dir_all(stage.state(path).parent().unwrap()).unwrap();
    std::fs::write(stage.state(path), &output).unwrap();
    let end = json!({
        "state": "Ended", "name": "child", "outcome": "Success", "reason": "Completed",
        "outputRef": {"path": format!("state/{path}"), "bytes": output.len(), "sha256": sha256_of(&output)},
    });
    let parsed: Result<DelegationState, _> = serde_json::from_value(end);
    peer.delegate_is(&assignment.id, &delegation, parsed.unwrap())
        .await;
    let asked = peer.asked().await;
    assert_eq!(asked.request.role, Role::Summarizer);
    assert!(asked.text().contains("the last line"), "{}", asked.text());
    peer.answer(&asked, says("Many lines.")).await;
    let asked = peer.asked().await;
    assert!(
        asked.last_text().contains("Many lines.") && asked.last_text().contains("artifact://child"),
        "{}",
        asked.last_text()
    );
    assert_eq!(asked.spent.tokens["summarizer"], 110);
    let read = json!({"path": "artifact://child", "start_line": 2001});
    peer.answer(&asked, calls(&[("read_file", read)])).await;
    let asked = peer.asked().await;
    assert!(
        asked.last_text().contains("the last line"),
        "{}",
        asked.last_text()
    );
    peer.answer(&asked, says("Read.")).await;
    assert_success(&peer.play(hello).await, "Read.");
}

#[tokio::test]
async fn a_skill_is_loaded_when_the_agent_asks_for_it() {
    let mut stage = Stage::new().await;
    std::fs::create_dir_all(stage.world.path("skills/greeting")).unwrap();
    let body = "---\nname: greeting\ndescription: greets\n---\nAlways say hello twice.\n";
    std::fs::write(stage.world.path("skills/greeting/SKILL.md"), body).unwrap();
    let mut peer = stage.pod().await;
    let mut terms = terms();
    terms.tools.push("skill".to_owned());
    terms.skills = vec![SkillCard {
        name: "greeting".to_owned(),
        description: "greets".to_owned(),
        triggers: Vec::new(),
        allowed_tools: None,
    }];
    peer.assign(&agent(terms)).await;
    let asked = peer.asked().await;
    assert!(!asked.text().contains("hello twice"), "on demand alone");
    peer.answer(&asked, calls(&[("skill", json!({"name": "greeting"}))]))
        .await;
    let asked = peer.asked().await;
    assert!(
        asked.last_text().contains("Always say hello twice."),
        "{}",
        asked.last_text()
    );
    peer.answer(&asked, says("hello hello")).await;
    assert_success(&peer.play(hello).await, "hello hello");
}
