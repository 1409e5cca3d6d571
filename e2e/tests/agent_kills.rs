//! Parts die at each phase of an agent's work, and every run ends as one that was left alone.

use crate::framework::{COMPONENTS, ControlPlane, Finished, World, call, calls, probed, says};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::task::JoinSet;

/// Seconds that an answer or a tool takes during which a Pod is to die.
const POD_DIES: u32 = 5;
/// The same for a part of the control plane, which has to be back by then.
const PART_DIES: u32 = 15;
const LEAD: &str = "lead";
const DELEGATE: &str = "general-purpose";
/// What an agent is told of a tool that was at work when its Pod died: the Pod told it to end, or nothing could be told any more.
const ENDED: &str = "ended by signal 15";
const CUT_OFF: &str = "was interrupted";
/// The run that nothing happens to.
const ALONE: &str = "alone";

/// A moment in the work: the model has been asked something whose last message has these words.
#[derive(Clone, Copy)]
struct Phase {
    name: &'static str,
    last: &'static str,
    /// Whose Pods work at it.
    pods: &'static [&'static str],
}

const PHASES: [Phase; 5] = [
    // The answer takes a while: a call of the model is open.
    Phase {
        name: "asked",
        last: "Deliver three words",
        pods: &[LEAD],
    },
    // The answer comes at once and calls a tool that takes a while.
    Phase {
        name: "working",
        last: "made one",
        pods: &[LEAD],
    },
    // The lead waits, and a call of its delegate is open.
    Phase {
        name: "delegated",
        last: "Write the third word",
        pods: &[LEAD, DELEGATE],
    },
    // The lead waits, and a tool of its delegate works.
    Phase {
        name: "helped",
        last: "made a start",
        pods: &[LEAD, DELEGATE],
    },
    // The last answer is on its way.
    Phase {
        name: "ending",
        last: "The third is written",
        pods: &[LEAD],
    },
];

/// Invariant 12: an agent comes to the same end after a restart at any step.
pub async fn pods_of_a_lead_and_its_delegate_die_at_each_phase_and_the_end_is_the_same(world: World) {
    let victims = || {
        PHASES
            .iter()
            .flat_map(|phase| phase.pods.iter().map(move |victim| (*phase, *victim)))
    };
    let name = |phase: Phase, victim: &str| format!("{}-{victim}", phase.name);
    let names = victims().map(|(phase, victim)| name(phase, victim));
    world.model(&rules(names, POD_DIES)).await;
    let untouched = left_alone(&world).await;
    let mut runs = JoinSet::new();
    for (phase, victim) in victims() {
        let (world, run) = (world.clone(), name(phase, victim));
        runs.spawn(async move {
            start(&world, &run).await;
            reached(&world, &run, phase).await;
            world.kill_pod(&run, victim).await;
            let ended = world.finished(&run).await;
            assert_eq!(
                ended.tasks.get(victim).attempts.len(),
                2,
                "the kill of {run} came to nothing"
            );
            (run, Ending::of(&ended))
        });
    }
    while let Some(done) = runs.join_next().await {
        let (run, ending) = done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        assert_eq!(ending, untouched, "{run}");
    }
}

pub async fn operator_and_gateway_die_at_each_phase_and_the_end_is_the_same(world: World) {
    ControlPlane::during(&world, kill_the_control_plane(world.clone())).await;
}

async fn kill_the_control_plane(world: World) {
    let control_plane = ControlPlane::of(&world);
    let names = COMPONENTS.map(str::to_owned);
    world.model(&rules(names, PART_DIES)).await;
    let untouched = left_alone(&world).await;
    for component in COMPONENTS {
        start(&world, component).await;
        for phase in PHASES {
            reached(&world, component, phase).await;
            control_plane.kill(component).await;
            // Else the next one would die in another phase than it is said to.
            assert!(
                is_in(&world, component, phase).await,
                "{}: the {component} was away longer",
                phase.name
            );
        }
        let ended = world.finished(component).await;
        assert_eq!(Ending::of(&ended), untouched, "{component}");
        for task in &ended.tasks.0 {
            let attempts = task.status.as_ref().map_or(0, |status| status.attempts.len());
            assert_eq!(
                attempts, 1,
                "{} began anew when the {component} died",
                task.spec.task
            );
        }
    }
}

async fn left_alone(world: &World) -> Ending {
    start(world, ALONE).await;
    let ended = world.finished(ALONE).await;
    let untouched = Ending::of(ended.succeeded());
    assert_eq!(
        (untouched.artifacts.len(), untouched.delegations),
        (3, (1, 0)),
        "{untouched:#?}"
    );
    untouched
}

async fn start(world: &World, run: &str) {
    let spec = format!(
        "goal: Deliver three words for {run}.\nacceptance: [\"file:/mnt/user-data/outputs/three non-empty\"]\n"
    );
    world.start(run, &spec).await;
}

/// Waits until the model has been asked what begins a phase of a run.
async fn reached(world: &World, run: &str, phase: Phase) {
    let begins = |asked: &Value| is_of(run, asked) && ends_with(asked, phase.last);
    world
        .when_asked(&format!("{:?} of {run}", phase.last), begins)
        .await;
}

/// Whether the model has not been asked anything later of a run.
async fn is_in(world: &World, run: &str, phase: Phase) -> bool {
    let asked = world.asked().await;
    let newest = asked.iter().rfind(|asked| is_of(run, asked));
    newest.is_some_and(|newest| ends_with(newest, phase.last))
}

/// Whether a request is one of a run's agents, which all are told its name.
fn is_of(run: &str, asked: &Value) -> bool {
    let whose = format!("for {run}.");
    messages(asked).iter().any(|message| says_words(message, &whose))
}

fn ends_with(asked: &Value, words: &str) -> bool {
    messages(asked).last().is_some_and(|last| says_words(last, words))
}

fn messages(asked: &Value) -> &[Value] {
    asked["messages"].as_array().map_or(&[], Vec::as_slice)
}

fn says_words(message: &Value, words: &str) -> bool {
    message["content"]
        .as_str()
        .is_some_and(|text| text.contains(words))
}

/// What the agents of these runs hear, and of one that is left alone; a phase takes so many seconds. Each rule goes by what was said last, not by the turn: an interrupted call makes
/// one turn more.
fn rules(runs: impl IntoIterator<Item = String>, seconds: u32) -> Value {
    let rules = runs.into_iter().flat_map(|run| rules_of(&run, seconds));
    let others = rules_of(ALONE, 0).into_iter().chain([probed()]);
    rules.chain(others).collect()
}

fn rules_of(run: &str, seconds: u32) -> Vec<Value> {
    let write = |word: &str, seconds: u32| {
        let command =
            format!("sleep {seconds}; echo {word} > /mnt/user-data/outputs/{word}; echo made {word}");
        calls(&[call("bash", &json!({"description": "write", "command": command}))])
    };
    let late = |mut answer: Value| {
        answer["delayMs"] = json!(1_000 * seconds);
        answer
    };
    let after = |user: &str, last: &str, answer: Value| json!({"when": {"tools": true, "user": format!("{user} for {run}."), "last": last}, "answer": answer});
    let lead = |last: &str, answer| after("Deliver three words", last, answer);
    let delegate = |last: &str, answer| after("Write the third word", last, answer);
    let third = json!({
        "description": "third", "prompt": format!("Write the third word for {run}."), "subagent_type": DELEGATE,
    });
    let begin = json!({"description": "begin", "command": "echo made a start"});
    vec![
        lead("Deliver three words", late(write("one", 0))),
        lead("made one", write("two", seconds)),
        lead(CUT_OFF, write("two", 0)),
        lead(ENDED, write("two", 0)),
        lead("made two", calls(&[call("task", &third)])),
        lead("The third is written", late(says("All are delivered."))),
        delegate("Write the third word", late(calls(&[call("bash", &begin)]))),
        delegate("made a start", write("three", seconds)),
        delegate(CUT_OFF, write("three", 0)),
        delegate(ENDED, write("three", 0)),
        delegate("made three", says("The third is written.")),
    ]
}

/// All of an end that must not depend on what died meanwhile.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    end: String,
    output: Value,
    artifacts: BTreeSet<(String, String)>,
    tasks: BTreeSet<(String, String)>,
    delegations: (i32, i32),
    holds: bool,
}

impl Ending {
    fn of(ended: &Finished) -> Self {
        let status = ended.status();
        let delegation = status.delegation.clone().unwrap_or_default();
        let tasks = ended.tasks.0.iter().map(|task| task.spec.task.clone());
        Self {
            end: ended.end(),
            output: status
                .output
                .as_ref()
                .map_or(Value::Null, |output| output.0.clone()),
            artifacts: status
                .artifacts
                .iter()
                .map(|found| (found.path.clone(), found.sha256.clone()))
                .collect(),
            tasks: tasks.map(|task| (ended.tasks.end(&task), task)).collect(),
            delegations: (delegation.used, delegation.refused),
            holds: status.acceptance.iter().all(|criterion| criterion.holds),
        }
    }
}
