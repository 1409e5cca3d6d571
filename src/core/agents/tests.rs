use super::delegate::{self, Refusal};
use super::models::{self, Need, NoModel, choose};
use super::tools::{self, Possible};
use super::{caps::Caps, money, role, types};
use agentrun_api::{AgentRunSpec, ContextMode, Model, SubTask, SubTaskRole, SubTaskSpec};
use agentrun_protocol::agent::{CallPlace, Delegation};
use agentrun_protocol::chat::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn run(spec: Value) -> AgentRunSpec {
    serde_json::from_value(spec).unwrap()
}

fn model(name: &str, spec: &Value) -> Model {
    let mut whole = json!({"endpoint": "http://models", "model": name});
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    Model::new(name, serde_json::from_value(whole).unwrap())
}

fn chosen(models: &[Model], run: &AgentRunSpec, asked: Option<&str>, role: Role) -> Result<String, NoModel> {
    let models: Vec<_> = models.iter().collect();
    choose(&models, asked, &run.models, role).map(|model| model.metadata.name.clone().unwrap())
}

#[test]
fn a_model_is_chosen_by_name_then_by_the_run_then_by_role_then_by_default() {
    let models = [
        model("strong", &json!({"roles": ["lead"]})),
        model("cheap", &json!({"default": true})),
        model("other", &json!({})),
    ];
    let plain = run(json!({}));
    let by_role = run(json!({"models": {"lead": "other"}}));
    let of = |run: &AgentRunSpec, asked, role| chosen(&models, run, asked, role).unwrap();
    assert_eq!(of(&by_role, Some("cheap"), Role::Lead), "cheap");
    assert_eq!(of(&by_role, None, Role::Lead), "other");
    assert_eq!(of(&plain, None, Role::Lead), "strong");
    assert_eq!(of(&plain, None, Role::Executor), "cheap");
}

#[test]
fn what_no_model_serves_is_said_with_the_ways_out() {
    let two = [
        model("b", &json!({"roles": ["lead"]})),
        model("a", &json!({"roles": ["lead"]})),
    ];
    let plain = run(json!({}));
    let told = |asked, role| chosen(&two, &plain, asked, role).unwrap_err().to_string();
    assert_eq!(
        told(None, Role::Lead),
        "Models a and b all serve role lead (roles): name one in spec.models.lead, or leave it to one of them"
    );
    assert_eq!(
        told(None, Role::Executor),
        "no Model of the namespace serves role executor: give one `roles: [executor]`, make one `default: true`, or name one \
         in spec.models.executor"
    );
    assert_eq!(
        told(Some("c"), Role::Lead),
        "Model c does not exist; it was named for role lead"
    );
}

#[test]
fn a_run_needs_the_models_of_its_agents_and_of_those_they_may_delegate_to() {
    let roles = |spec| -> Vec<_> {
        let needs = models::needs(&run(spec));
        needs
            .into_iter()
            .map(|Need { role, asked }| (role, asked))
            .collect()
    };
    assert_eq!(
        roles(json!({"tasks": [{"name": "a", "command": {"argv": ["true"]}}]})),
        []
    );
    assert_eq!(
        roles(json!({"goal": "x"})),
        [(Role::Lead, None), (Role::Executor, None)]
    );
    assert_eq!(
        roles(json!({"goal": "x", "delegation": {"maxDepth": 0}})),
        [(Role::Lead, None)]
    );
    assert_eq!(
        roles(json!({"goal": "x", "lead": {"tools": ["bash"], "model": "m"}})),
        [(Role::Lead, Some("m".to_owned()))]
    );
    assert_eq!(
        roles(json!({"goal": "x", "lead": {"tools": []}, "models": {"planner": "p", "reviewer": "r"}})),
        [(Role::Lead, None), (Role::Planner, None), (Role::Reviewer, None)]
    );
    assert_eq!(
        roles(json!({"goal": "x", "delegation": {"agents": [{"name": "researcher"}]}})),
        [
            (Role::Lead, None),
            (Role::Researcher, None),
            (Role::Executor, None)
        ]
    );
}

#[test]
fn an_own_type_replaces_a_built_in_one_and_keeps_what_it_leaves_open() {
    let spec = run(json!({"delegation": {"agents": [
        {"name": "bash", "instructions": "be careful"}, {"name": "chart-maker", "maxTurns": 20},
    ]}}));
    let types = types::of_run(&spec);
    let names: Vec<_> = types.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["bash", "chart-maker", "general-purpose"]);
    assert_eq!(types[0].agent.tools, Some(vec!["bash".to_owned()]));
    assert_eq!(types[0].agent.max_turns, Some(60));
    assert_eq!(types[0].agent.instructions.as_deref(), Some("be careful"));
}

fn agent(role: SubTaskRole, task: &str, spec: &Value) -> SubTaskSpec {
    let mut whole = json!({"prompt": "do it"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    SubTaskSpec {
        role,
        task: task.to_owned(),
        agent: Some(serde_json::from_value(whole).unwrap()),
        ..SubTaskSpec::default()
    }
}

const ALL: Possible = Possible {
    delegation: true,
    skills: true,
    vision: true,
};

#[test]
fn a_lead_has_every_tool_that_is_of_use_to_it() {
    let lead = agent(SubTaskRole::Lead, "lead", &json!({}));
    let tools = tools::of(&lead, ALL).unwrap();
    for tool in [
        "bash",
        "view_image",
        "present_files",
        "task",
        "skill",
        "write_todos",
    ] {
        assert!(tools.iter().any(|known| known == tool), "{tool}: {tools:?}");
    }
    let none = Possible {
        delegation: false,
        skills: false,
        vision: false,
    };
    let tools = tools::of(&lead, none).unwrap();
    for tool in ["view_image", "task", "skill"] {
        assert!(!tools.iter().any(|known| known == tool), "{tool}: {tools:?}");
    }
}

#[test]
fn a_list_of_tools_is_taken_as_it_is_and_the_skills_bring_their_own() {
    let lead = agent(
        SubTaskRole::Lead,
        "lead",
        &json!({"tools": ["read", "bash", "read_file"]}),
    );
    assert_eq!(tools::of(&lead, ALL).unwrap(), ["read_file", "bash", "skill"]);
    let nothing = agent(SubTaskRole::Lead, "lead", &json!({"tools": []}));
    let without = Possible { skills: false, ..ALL };
    assert!(tools::of(&nothing, without).unwrap().is_empty());
    let wrong = agent(SubTaskRole::Lead, "lead", &json!({"tools": ["web_search"]}));
    assert!(
        tools::of(&wrong, ALL)
            .unwrap_err()
            .to_string()
            .starts_with("there is no tool \"web_search\"; there are bash, ")
    );
}

#[test]
fn an_agent_of_the_plan_delegates_only_when_it_is_told_to() {
    let has_task = |spec: &SubTaskSpec| tools::of(spec, ALL).unwrap().iter().any(|tool| tool == "task");
    assert!(!has_task(&agent(SubTaskRole::Task, "a", &json!({}))));
    assert!(has_task(&agent(
        SubTaskRole::Task,
        "a",
        &json!({"tools": ["task"]})
    )));
    assert!(has_task(&agent(
        SubTaskRole::Delegate,
        "general-purpose",
        &json!({})
    )));
}

#[test]
fn a_delegate_has_the_role_that_its_type_is_named_after() {
    let role_of = |role, task| role::of(&agent(role, task, &json!({})));
    assert_eq!(role_of(SubTaskRole::Lead, "lead"), Role::Lead);
    assert_eq!(role_of(SubTaskRole::Delegate, "reviewer"), Role::Reviewer);
    assert_eq!(role_of(SubTaskRole::Delegate, "lead"), Role::Executor);
    assert_eq!(role_of(SubTaskRole::Delegate, "chart-maker"), Role::Executor);
    assert_eq!(role_of(SubTaskRole::Task, "reviewer"), Role::Executor);
}

fn parent(spec: SubTaskSpec) -> SubTask {
    let mut parent = SubTask::new("parent", spec);
    parent.metadata.uid = Some("parent-uid".into());
    parent.spec.run_ref.uid = "run-uid".into();
    parent.spec.run_ref.name = "run".into();
    parent
}

fn ask(change: impl FnOnce(&mut Delegation)) -> Delegation {
    let mut ask = Delegation {
        at: CallPlace { turn: 3, call: 1 },
        agent: "general-purpose".into(),
        description: "find\nit".into(),
        prompt: "Find it.".into(),
        acceptance: Vec::new(),
        snapshot: None,
    };
    change(&mut ask);
    ask
}

fn lead() -> SubTask {
    parent(agent(SubTaskRole::Lead, "lead", &json!({"skills": ["pdf"]})))
}

fn refused(spec: Value, depth: u32, change: impl FnOnce(&mut Delegation)) -> String {
    delegate::subtask_spec(&run(spec), &lead(), depth, &ask(change))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_delegate_is_made_of_its_type_the_run_and_what_was_asked() {
    let spec = run(json!({
        "goal": "x",
        "sandbox": {"image": "base", "env": [{"name": "A", "value": "1"}]},
        "delegation": {"agents": [{
            "name": "chart-maker", "tools": ["bash"], "maxTurns": 20, "timeout": "5m",
            "sandbox": {"resources": {"memory": "1Gi"}},
        }]},
    }));
    let asked = ask(|ask| {
        ask.agent = "chart-maker".into();
        ask.acceptance = vec![
            "file:a.png exists".into(),
            " file:a.png exists ".into(),
            String::new(),
        ];
    });
    let made = delegate::subtask_spec(&spec, &lead(), 0, &asked).unwrap();
    assert_eq!(made.role, SubTaskRole::Delegate);
    assert_eq!(made.task, "chart-maker");
    assert_eq!(made.parent_ref.as_ref().unwrap().uid, "parent-uid");
    assert_eq!(made.description.as_deref(), Some("find\\nit"));
    assert_eq!(made.timeout.as_ref().unwrap().0, "5m");
    assert_eq!(made.acceptance, ["file:a.png exists"]);
    assert_eq!(made.context.as_ref().unwrap().mode, Some(ContextMode::Isolated));
    let sandbox = made.sandbox.as_ref().unwrap();
    assert_eq!(sandbox.image.as_deref(), Some("base"));
    assert!(sandbox.resources.is_some() && sandbox.env.is_some());
    let agent = &made.agent.as_ref().unwrap().agent;
    assert_eq!(agent.max_turns, Some(20));
    assert_eq!(
        agent.skills,
        Some(vec!["pdf".to_owned()]),
        "those of the agent that asks"
    );
    assert_eq!(delegate::name(&lead(), &asked), delegate::name(&lead(), &asked));
}

// F102: depth and kinds are the control plane's to decide.
#[test]
fn what_may_not_be_delegated_is_refused_with_what_is_allowed() {
    let plain = || json!({"goal": "x"});
    let said = refused(plain(), 0, |ask| ask.agent = "hacker".into());
    assert_eq!(
        said,
        "there is no agent type \"hacker\"; there are general-purpose, bash: name one of them"
    );
    let said = refused(plain(), 1, |_| ());
    assert!(said.contains("delegation.maxDepth is 1"), "{said}");
    let said = refused(plain(), 0, |ask| ask.prompt = "x".repeat(32_769));
    assert!(
        said.contains("has 32769 characters, allowed are 1 to 32768"),
        "{said}"
    );
    assert!(refused(plain(), 0, |ask| ask.prompt = " \n".into()).contains("allowed are 1"));
    let said = refused(plain(), 0, |ask| {
        ask.acceptance = (0..21).map(|n| format!("point {n}")).collect();
    });
    assert!(
        said.contains("there are 21 acceptance criteria, at most 20"),
        "{said}"
    );
    let said = refused(plain(), 0, |ask| ask.acceptance = vec!["y".repeat(501)]);
    assert!(said.contains("longer than 500 characters"), "{said}");
    let said = refused(plain(), 0, |ask| {
        ask.acceptance = vec!["file:/etc/passwd exists".into()];
    });
    assert!(
        said.starts_with("acceptance criterion \"file:/etc/passwd exists\""),
        "{said}"
    );
    let quiet = parent(agent(SubTaskRole::Lead, "lead", &json!({"tools": ["bash"]})));
    let error = delegate::subtask_spec(&run(plain()), &quiet, 0, &ask(|_| ())).unwrap_err();
    assert_eq!(error, Refusal::TooDeep { max: 1 }, "it has no tool to delegate");
}

#[test]
fn a_snapshot_lies_below_the_state_of_its_own_run() {
    let check = |path: &str| {
        let file = serde_json::from_value(json!({"path": path, "bytes": 1, "sha256": "aa"})).unwrap();
        delegate::check_snapshot(&file, "run-uid").is_ok()
    };
    assert!(check("state/runs/run-uid/snapshots/a.json"));
    for path in [
        "state/runs/other/snapshots/a.json",
        "state/runs/run-uid/../other/a.json",
        "state/runs/run-uid/",
        "state/runs/run-uid//a",
        "/state/runs/run-uid/a",
        "uploads/a",
    ] {
        assert!(!check(path), "{path}");
    }
}

// F103
#[test]
fn what_a_turn_asks_for_beyond_its_cap_is_surplus_however_it_is_asked() {
    let place = |call| CallPlace { turn: 1, call };
    let places = |calls: &[u32]| -> BTreeSet<_> { calls.iter().map(|call| place(*call)).collect() };
    let all: BTreeSet<_> = (0..100).map(place).collect();
    let cut = delegate::surplus(&BTreeSet::new(), &all, 3);
    assert_eq!(cut.len(), 97);
    assert!(!cut.contains(&place(2)) && cut.contains(&place(3)));
    assert!(
        delegate::surplus(&places(&[0, 1, 2]), &places(&[0, 1, 2]), 3).is_empty(),
        "the same again"
    );
    assert_eq!(
        delegate::surplus(&places(&[0, 1, 2]), &places(&[3, 4]), 3),
        places(&[3, 4])
    );
    let next = BTreeSet::from([CallPlace { turn: 2, call: 0 }]);
    assert!(
        delegate::surplus(&places(&[0, 1, 2]), &next, 3).is_empty(),
        "another turn"
    );
}

#[test]
fn the_place_of_a_call_is_read_back_from_its_annotation() {
    let place = CallPlace { turn: 12, call: 7 };
    assert_eq!(delegate::read(&delegate::written(place)), Some(place));
    assert_eq!(delegate::read("12"), None);
}

#[test]
fn caps_have_defaults() {
    let caps = Caps::of(&run(json!({})));
    assert_eq!((caps.per_turn, caps.per_run, caps.depth), (3, 6, 1));
    let caps = Caps::of(&run(json!({"delegation": {"maxPerRun": 2, "maxDepth": 0}})));
    assert_eq!((caps.per_turn, caps.per_run, caps.depth), (3, 2, 0));
}

#[test]
fn money_is_exact() {
    for (text, micros) in [("0", 0), ("1.5", 1_500_000), ("0.000001", 1), ("12", 12_000_000)] {
        assert_eq!(money::parse(text), Some(micros));
        assert_eq!(money::written(micros), text);
    }
    assert_eq!(money::parse("1.50"), Some(1_500_000));
    for text in ["", "1.", ".5", "-1", "1.0000001", "1e3"] {
        assert_eq!(money::parse(text), None, "{text}");
    }
}
