//! Agents on the real node, with a model that answers by a script.

use crate::framework::{MINUTE, World, call, calls, is_over, otherwise, says};
use agentrun_api::{StopReason, SubTask, SubTaskRole};
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// One rule: what the agent whose task contains `user` hears at its `turn`.
fn at(user: &str, turn: usize, answer: &Value) -> Value {
    json!({"when": {"system": "You are an agent", "turn": turn, "user": user}, "answer": answer})
}

pub async fn a_lead_works_on_its_goal_with_tools_and_delivers(world: World) {
    let script = "import csv\nrows = list(csv.DictReader(open('/mnt/user-data/uploads/in.csv')))\n\
                  open('/mnt/user-data/outputs/sum.txt', 'w').write(str(sum(int(row['n']) for row in rows)))\n";
    world
        .model(&json!([
            at(
                "Add the numbers",
                0,
                &calls(&[
                    call("ls", &json!({"path": "/mnt/user-data/uploads"})),
                    call(
                        "write_file",
                        &json!({"description": "the program", "path": "add.py", "content": script})
                    ),
                ])
            ),
            at(
                "Add the numbers",
                1,
                &calls(&[call(
                    "bash",
                    &json!({"description": "run", "command": "python3 add.py"})
                )])
            ),
            at(
                "Add the numbers",
                2,
                &calls(&[call(
                    "read_file",
                    &json!({"path": "/mnt/user-data/outputs/sum.txt"})
                )])
            ),
            at("Add the numbers", 3, &says("The sum is 42.")),
            otherwise(),
        ]))
        .await;
    let ended = world
        .finish(
            "sum",
            "goal: Add the numbers of in.csv\nfiles:\n- {path: in.csv, content: \"n\\n40\\n2\\n\"}\n\
             acceptance: [\"file:/mnt/user-data/outputs/sum.txt non-empty\", \"file:add.py exists\"]\n",
        )
        .await;
    let status = ended.succeeded().status();
    assert_eq!(
        status.output.as_ref().map(|output| &output.0["text"]),
        Some(&json!("The sum is 42."))
    );
    let artifacts: Vec<_> = status
        .artifacts
        .iter()
        .map(|artifact| artifact.path.as_str())
        .collect();
    assert_eq!(artifacts, ["/mnt/user-data/outputs/sum.txt"]);
    let usage = status.usage.as_ref().expect("what it used");
    assert_eq!(usage.tokens.get("lead"), Some(&480), "{usage:?}");
    assert_eq!(
        usage.cost.as_deref(),
        Some("0.00056"),
        "4 requests of 100 tokens at 1, 4 answers of 20 at 2"
    );
    assert!(status.acceptance[0].holds, "{:?}", status.acceptance);
}

pub async fn a_lead_delegates_and_hears_what_came_of_it(world: World) {
    let task = |word: &str| {
        call(
            "task",
            &json!({
                "description": word, "prompt": format!("Write the word {word}"), "subagent_type": "general-purpose",
                "acceptance_criteria": [format!("file:/mnt/user-data/outputs/{word}.txt non-empty")],
            }),
        )
    };
    let write = |word: &str| {
        calls(&[call(
            "bash",
            &json!({"description": "write", "command": format!("echo {word} > /mnt/user-data/outputs/{word}.txt")}),
        )])
    };
    world
        .model(&json!([
            {"when": {"system": "You are an agent", "turn": 0, "user": "Have words"}, "answer": calls(&[task("one"), task("two")])},
            {"when": {"last": "[holds]", "turn": 1}, "answer": says("Both are written.")},
            at("Write the word one", 0, &write("one")),
            at("Write the word two", 0, &write("two")),
            at("Write the word", 1, &says("Written.")),
            otherwise(),
        ]))
        .await;
    let ended = world
        .finish("words", "goal: Have words written\nlimits: {maxParallel: 1}\n")
        .await;
    let status = ended.succeeded().status();
    assert_eq!(
        status.output.as_ref().map(|output| &output.0["text"]),
        Some(&json!("Both are written."))
    );
    let delegates: Vec<_> = ended
        .tasks
        .0
        .iter()
        .filter(|task| task.spec.role == SubTaskRole::Delegate)
        .collect();
    assert_eq!(delegates.len(), 2);
    let delegation = status.delegation.clone().expect("delegations");
    assert_eq!((delegation.used, delegation.refused), (2, 0));
    let mut artifacts: Vec<_> = status
        .artifacts
        .iter()
        .map(|artifact| artifact.path.as_str())
        .collect();
    artifacts.sort_unstable();
    assert_eq!(
        artifacts,
        ["/mnt/user-data/outputs/one.txt", "/mnt/user-data/outputs/two.txt"]
    );
}

pub async fn a_lead_is_planned_before_and_reviewed_after(world: World) {
    let plan = json!({"steps": [{"name": "write", "description": "Write the word"}]}).to_string();
    let refused = json!({"accepted": false, "notes": ["The word is not named."]}).to_string();
    let accepted = json!({"accepted": true, "notes": []}).to_string();
    world
        .model(&json!([
            {"when": {"system": "You plan the work"}, "answer": says(&plan)},
            {"when": {"system": "You review the result", "user": "It is written: word."}, "answer": says(&accepted)},
            {"when": {"system": "You review the result"}, "answer": says(&refused)},
            {"when": {"system": "You are an agent", "last": "- write: Write the word"}, "answer": says("It is written.")},
            {"when": {"system": "You are an agent", "last": "The word is not named."}, "answer": says("It is written: word.")},
            otherwise(),
        ]))
        .await;
    let ended = world
        .finish(
            "planned",
            "goal: Write a word\nmodels: {planner: scripted, reviewer: scripted}\n",
        )
        .await;
    let status = ended.succeeded().status();
    assert_eq!(
        status.output.as_ref().map(|output| &output.0["text"]),
        Some(&json!("It is written: word."))
    );
    let tokens = &status.usage.as_ref().expect("what it used").tokens;
    let of = |role: &str| tokens.get(role).copied();
    assert_eq!(
        (of("planner"), of("lead"), of("reviewer")),
        (Some(120), Some(240), Some(240))
    );
    let review = ended.tasks.get("lead").review.clone();
    assert!(review.is_some_and(|review| review.accepted));
}

pub async fn a_model_that_only_delegates_is_held_to_its_caps(world: World) {
    let storm: Vec<_> = (0..100)
        .map(|number| call("task", &json!({"description": "more", "prompt": format!("Delegate more, {number}"), "subagent_type": "general-purpose"})))
        .collect();
    world
        .model(&json!([
            {"when": {"tools": true, "user": "elegate more"}, "answer": calls(&storm)},
            {"when": {"system": "You are an agent"}, "answer": says("Enough.")},
            otherwise(),
        ]))
        .await;
    world
        .start(
            "storm",
            "goal: Delegate more\nlead: {maxTurns: 4}\ndelegation: {maxPerTurn: 3, maxPerRun: 6, maxDepth: 3}\nlimits: {maxParallel: 2}\n",
        )
        .await;
    world.when("storm", 3 * MINUTE, "its end", is_over).await;
    let ended = world.finished("storm").await;
    let delegation = ended
        .succeeded()
        .status()
        .delegation
        .clone()
        .expect("delegations");
    assert_eq!(delegation.used, 6, "{delegation:?}");
    assert!(delegation.refused > 0, "{delegation:?}");
    let ran = ended.tasks.0.iter().filter(|task| {
        task.spec.role == SubTaskRole::Delegate
            && task
                .status
                .as_ref()
                .is_some_and(|status| !status.attempts.is_empty())
    });
    assert_eq!(ran.count(), 6);
}

pub async fn delegates_of_delegates_go_as_deep_as_they_may_and_no_deeper(world: World) {
    let storm: Vec<_> = (0..100)
        .map(|number| call("task", &json!({"description": "deeper", "prompt": format!("Delegate deeper, {number}"), "subagent_type": "general-purpose"})))
        .collect();
    world
        .model(&json!([
            {"when": {"tools": true, "turn": 0, "user": "elegate deeper"}, "answer": calls(&storm)},
            {"when": {"system": "You are an agent"}, "answer": says("Enough.")},
            otherwise(),
        ]))
        .await;
    let ended = world
        .finish(
            "deep",
            "goal: Delegate deeper\ndelegation: {maxPerTurn: 1, maxPerRun: 50, maxDepth: 3}\n",
        )
        .await;
    let used = ended
        .succeeded()
        .status()
        .delegation
        .as_ref()
        .map(|delegation| delegation.used);
    assert_eq!(used, Some(3), "one of each hundred, three deep");
    let tasks = &ended.tasks.0;
    assert_eq!(tasks.len(), 4, "{tasks:#?}");
    let child_of = |parent: &str| {
        let is_child = |task: &&SubTask| {
            task.spec
                .parent_ref
                .as_ref()
                .is_some_and(|found| found.name == parent)
        };
        tasks.iter().find(is_child).map(SubTask::name_any)
    };
    let lead = tasks.iter().find(|task| task.spec.role == SubTaskRole::Lead);
    let chain = std::iter::successors(lead.map(SubTask::name_any), |parent| child_of(parent));
    assert_eq!(chain.count(), 4, "each has the one before for its parent");
}

pub async fn a_lead_whose_pod_is_killed_goes_on_where_it_was(world: World) {
    let bash = |command: &str| calls(&[call("bash", &json!({"description": "count", "command": command}))]);
    let mut late = bash("cat count");
    late["delayMs"] = json!(5_000);
    world
        .model(&json!([
            at("Count up", 0, &bash("echo x >> count")),
            at("Count up", 1, &late),
            at("Count up", 2, &says("Done.")),
            otherwise(),
        ]))
        .await;
    world.start("count", "goal: Count up\n").await;
    world.running_pod("count", "lead").await;
    world
        .when_asked("what follows its first call", |asked| turn_of(asked) == 1)
        .await;
    world.kill_pod("count", "lead").await;
    let ended = world.finished("count").await;
    let lead = ended.succeeded().tasks.get("lead");
    assert_eq!(lead.attempts.len(), 2, "{lead:#?}");
    let asked = world.asked().await;
    let last = asked
        .iter()
        .find(|asked| turn_of(asked) == 2)
        .expect("its last turn");
    let messages = last["messages"].as_array().expect("messages");
    // What `cat` showed: the count went on once, though two attempts worked at it.
    assert_eq!(messages.last().expect("an answer")["content"], "x\n");
}

/// How often the assistant had spoken.
fn turn_of(asked: &Value) -> usize {
    let messages = asked["messages"].as_array().map_or(&[][..], Vec::as_slice);
    messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count()
}

pub async fn tokens_that_are_used_up_end_an_agent_with_what_it_has(world: World) {
    world
        .model(&json!([
            {"when": {"tools": true, "user": "Go on"}, "answer": {"text": "So far so good.", "toolCalls": [call("bash", &json!({"description": "work", "command": "date >> log; cat log"}))], "usage": [400, 100]}},
            {"when": {"system": "You are an agent"}, "answer": says("That is all.")},
            otherwise(),
        ]))
        .await;
    let ended = world
        .finish("budget", "goal: Go on for ever\nlimits: {tokens: 2000}\n")
        .await;
    let lead = ended.tasks.get("lead");
    assert_eq!(lead.stop_reason, Some(StopReason::TokenCapped), "{lead:#?}");
    let used = ended
        .status()
        .usage
        .as_ref()
        .and_then(|usage| usage.tokens.get("lead").copied());
    assert!(
        used.is_some_and(|used| (1_500..=2_600).contains(&used)),
        "{used:?}"
    );
}

pub async fn a_goal_without_a_model_waits_and_names_it(world: World) {
    world.start("nobody", "goal: Do something\n").await;
    world
        .when("nobody", MINUTE, "it names the missing Model", |status| {
            status.reason.as_deref() == Some("ModelNotFound")
        })
        .await;
    world
        .model(&json!([at("Do something", 0, &says("Done.")), otherwise()]))
        .await;
    world.finished("nobody").await.succeeded();
}
