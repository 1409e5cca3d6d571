//! Parts die at each phase of an agent's work, and every run ends as one that was left alone.

use crate::framework::{COMPONENTS, ControlPlane, Finished, World, call, calls, probed, says};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::task::JoinSet;

/// What an answer takes during which something is to die, in milliseconds.
const THINKING: u64 = 4_000;
/// What a tool takes during which something is to die, in seconds.
const WORKING: u32 = 5;
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
    let mut names: Vec<_> = victims().map(|(phase, victim)| name(phase, victim)).collect();
    names.push(ALONE.to_owned());
    world.model(&rules(&names)).await;
    let untouched = left_alone(&world).await;
    let mut runs = JoinSet::new();
    for (phase, victim) in victims() {
        let (world, run) = (world.clone(), name(phase, victim));
        runs.spawn(async move {
            start(&world, &run).await;
            reached(&world, &run, phase).await;
            kill(&world, &run, victim).await;
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
    let control_plane = ControlPlane::of(&world);
    let outcome = tokio::spawn(kill_the_control_plane(world.clone())).await;
    control_plane.restore().await;
    if let Err(error) = outcome {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn kill_the_control_plane(world: World) {
    let control_plane = ControlPlane::of(&world);
    let mut names = COMPONENTS.map(str::to_owned).to_vec();
    names.push(ALONE.to_owned());
    world.model(&rules(&names)).await;
    let untouched = left_alone(&world).await;
    for component in COMPONENTS {
        start(&world, component).await;
        for phase in PHASES {
            reached(&world, component, phase).await;
            control_plane.kill(component).await;
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
    let whose = format!("for {run}.");
    let fits = |asked: &Value| {
        let messages = asked["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let says = |message: &Value, words: &str| {
            message["content"]
                .as_str()
                .is_some_and(|text| text.contains(words))
        };
        messages.iter().any(|message| says(message, &whose))
            && messages.last().is_some_and(|last| says(last, phase.last))
    };
    let what = format!("{:?} of {run}", phase.last);
    world.when_asked(&what, fits).await;
}

async fn kill(world: &World, run: &str, task: &str) {
    let pod = world.running_pod(run, task).await;
    let now = DeleteParams::default().grace_period(0);
    world
        .api::<Pod>()
        .delete(&pod.name_any(), &now)
        .await
        .expect("killed");
}

/// What the agents of these runs hear. Each rule goes by what was said last, not by the turn: an interrupted call makes
/// one turn more.
fn rules(runs: &[String]) -> Value {
    let mut rules: Vec<_> = runs.iter().flat_map(|run| rules_of(run)).collect();
    rules.push(probed());
    Value::from(rules)
}

fn rules_of(run: &str) -> Vec<Value> {
    let write = |word: &str, seconds: u32| {
        let command =
            format!("sleep {seconds}; echo {word} > /mnt/user-data/outputs/{word}; echo made {word}");
        calls(&[call("bash", &json!({"description": "write", "command": command}))])
    };
    let late = |mut answer: Value| {
        answer["delayMs"] = json!(THINKING);
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
        lead("made one", write("two", WORKING)),
        lead(CUT_OFF, write("two", 0)),
        lead(ENDED, write("two", 0)),
        lead("made two", calls(&[call("task", &third)])),
        lead("The third is written", late(says("All are delivered."))),
        delegate("Write the third word", late(calls(&[call("bash", &begin)]))),
        delegate("made a start", write("three", WORKING)),
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
