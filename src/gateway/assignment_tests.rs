use super::*;
use crate::fixtures::{run, sha, skill, subtask};
use crate::skills;
use serde_json::{Value, json};

struct Case {
    subtask: SubTask,
    run: Option<AgentRun>,
    skill: Option<Skill>,
    pool: Option<SandboxPool>,
    input_task: Option<SubTask>,
    models: Vec<Model>,
    depth: Option<u32>,
}

impl Case {
    fn command(change: impl FnOnce(&mut Value)) -> Self {
        Self {
            subtask: subtask(change),
            run: Some(run(|_| ())),
            skill: None,
            pool: None,
            input_task: None,
            models: Vec::new(),
            depth: Some(0),
        }
    }

    fn function(change: impl FnOnce(&mut Value)) -> Self {
        let function = |object: &mut Value| {
            object["spec"]["command"] = json!(null);
            object["spec"]["function"] = json!({"skill": "math", "name": "add"});
            change(object);
        };
        Self {
            skill: Some(skill(|_| ())),
            ..Self::command(function)
        }
    }

    fn resolve(&self) -> Result<Assignment, NotAssignable> {
        let id = AttemptId {
            uid: "task-uid".into(),
            attempt: 1,
        };
        let files = self
            .skill
            .as_ref()
            .map(|skill| skills::folder("math", "d1", &skills::contents(skill, None)));
        let known = SkillFacts {
            name: "math",
            skill: self.skill.as_ref(),
            files: files.as_ref(),
        };
        let names_one = self.skill.is_some()
            || self.subtask.spec.function.is_some()
            || self
                .subtask
                .spec
                .agent
                .as_ref()
                .is_some_and(|work| work.agent.skills.is_some());
        let skills: Vec<_> = names_one.then_some(known).into_iter().collect();
        let models: Vec<_> = self.models.iter().collect();
        assignment(Facts {
            id: &id,
            subtask: &self.subtask,
            run: self.run.as_ref(),
            skills: &skills,
            models: &models,
            depth: self.depth,
            pool: self.pool.as_ref(),
            input_task: self.input_task.as_ref(),
            now: "2030-01-01T00:01:00Z".parse().unwrap(),
        })
    }

    fn never(&self) -> (&'static str, String) {
        match self.resolve() {
            Err(NotAssignable::Never { reason, message }) => (reason, message),
            other => panic!("{other:?}"),
        }
    }

    fn waits_or_else(&self) -> Option<&'static str> {
        match self.resolve() {
            Err(NotAssignable::Wait { or_else, .. }) => or_else,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_command_is_assigned_with_everything_it_needs() {
    let case = Case::command(|o| {
        o["spec"]["input"] = json!({"a": null});
        o["spec"]["command"]["workingDir"] = json!("/mnt/user-data/workspace");
        o["spec"]["sandbox"] = json!({
            "env": [{"name": "TZ", "value": "UTC"}],
            "secrets": [{"name": "s", "items": [{"key": "k", "env": "TOKEN"}, {"key": "f", "path": "f"}]}],
            "egress": [{"name": "db", "cidr": "192.0.2.5/32", "port": 5432, "protocol": "TCP"}],
        });
    });
    let assigned = case.resolve().unwrap();
    let work = Work::Command {
        argv: vec!["true".into()],
        working_dir: Some("/mnt/user-data/workspace".into()),
    };
    assert_eq!(assigned.work, work);
    assert_eq!(assigned.subtask, "team-a/st-1");
    assert_eq!((&*assigned.run_uid, &*assigned.task), ("run-uid", "build"));
    assert_eq!(
        assigned.input,
        Some(Input::Inline {
            value: json!({"a": null})
        })
    );
    assert_eq!(
        assigned.files,
        [FileRef {
            path: "in.csv".into(),
            bytes: 4,
            sha256: sha("a,b\n")
        }]
    );
    assert_eq!(assigned.env, BTreeMap::from([("TZ".into(), "UTC".into())]));
    assert_eq!(assigned.inherit_env, ["TOKEN"]);
    assert!(assigned.tcp);
    assert_eq!(assigned.limits, Limits::COMMAND);
    assert_eq!(assigned.remaining_ms, 10_000);
}

#[test]
fn a_function_comes_with_its_skill_and_its_own_limits() {
    let assigned = Case::function(|_| ()).resolve().unwrap();
    let Work::Function {
        skill,
        name,
        file,
        files,
        warm,
    } = &assigned.work
    else {
        panic!("{:?}", assigned.work)
    };
    assert_eq!((&**skill, &**name, &**file), ("math", "add", "functions/add.py"));
    assert_eq!((*files, *warm), (FileAccess::None, None));
    assert_eq!(assigned.limits.memory_bytes, Some(64 << 20));
    assert!(!assigned.tcp);
    let paths: Vec<_> = assigned.skills[0]
        .files
        .iter()
        .map(|file| &*file.file.path)
        .collect();
    assert_eq!(paths, ["SKILL.md", "functions/add.py"]);
}

#[test]
fn a_criterion_that_is_run_again_comes_with_the_skills_of_its_task() {
    let mut case = Case::command(|_| ());
    assert_eq!(case.resolve().unwrap().skills, []);
    case.skill = Some(skill(|_| ()));
    let assigned = case.resolve().unwrap();
    assert_eq!(assigned.skills.len(), 1);
    assert_eq!(
        (&*assigned.skills[0].name, assigned.skills[0].files.len()),
        ("math", 2)
    );
}

#[test]
fn a_mounted_skill_travels_not() {
    let mut case = Case::function(|_| ());
    case.skill = Some(skill(|o| {
        o["spec"] = json!({"image": "skills/math"});
        o["status"]["functions"][0]["file"] = json!("functions/add.sh");
    }));
    let skills = case.resolve().unwrap().skills;
    assert!(skills[0].mounted && skills[0].files.is_empty(), "{skills:?}");
    assert!(skills[0].digest.starts_with("sha256:"), "{skills:?}");
}

#[test]
fn what_can_never_work_is_named() {
    let changed = Case::function(|o| o["spec"]["function"]["digest"] = json!("d0")).never();
    assert_eq!(changed.0, "InputChanged");
    assert!(
        changed.1.contains("sha256:") && changed.1.contains("d0"),
        "{}",
        changed.1
    );
    let unknown = Case::function(|o| o["spec"]["function"]["name"] = json!("sub")).never();
    assert_eq!(unknown.0, "FunctionNotFound");
    assert!(unknown.1.contains("it has: add"), "{}", unknown.1);
    assert_eq!(
        Case::command(|o| o["spec"]["command"] = json!(null)).never().0,
        "Invalid"
    );
}

#[test]
fn what_may_still_come_is_waited_for() {
    let no_skill = Case {
        skill: None,
        ..Case::function(|_| ())
    };
    assert_eq!(no_skill.waits_or_else(), Some("SkillNotFound"));
    let no_run = Case {
        run: None,
        ..Case::command(|_| ())
    };
    assert_eq!(no_run.waits_or_else(), None);
    let no_pool = Case::command(|o| o["spec"]["sandbox"] = json!({"pool": "python"}));
    assert_eq!(no_pool.waits_or_else(), Some("PoolNotFound"));
}

#[test]
fn a_pool_gives_egress_and_variables_that_the_task_overrides() {
    let mut case = Case::command(|o| {
        o["spec"]["sandbox"] = json!({"pool": "python", "env": [{"name": "A", "value": "task"}]});
    });
    let pool = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "python"},
        "spec": {"template": {
            "env": [{"name": "A", "value": "pool"}, {"name": "B", "value": "pool"}],
            "egress": [{"name": "db", "cidr": "192.0.2.5/32", "port": 1, "protocol": "TCP"}],
        }},
    });
    case.pool = Some(serde_json::from_value(pool).unwrap());
    let assigned = case.resolve().unwrap();
    assert!(assigned.tcp);
    assert_eq!(
        assigned.env,
        BTreeMap::from([("A".into(), "task".into()), ("B".into(), "pool".into())])
    );
}

#[test]
fn the_time_is_cut_to_what_the_run_has_left() {
    let left = |deadline: &str| Case {
        run: Some(run(|o| o["status"]["deadline"] = json!(deadline))),
        ..Case::command(|_| ())
    };
    assert_eq!(
        left("2030-01-01T00:01:04Z").resolve().unwrap().remaining_ms,
        4_000
    );
    assert_eq!(
        left("2031-01-01T00:00:00Z").resolve().unwrap().remaining_ms,
        10_000
    );
    assert_eq!(left("2030-01-01T00:00:59Z").waits_or_else(), None);
    let unset = Case::command(|o| o["spec"]["timeout"] = json!(null))
        .resolve()
        .unwrap();
    assert_eq!(unset.remaining_ms, 30 * 60 * 1000);
}

#[test]
fn the_output_of_a_task_is_the_input_inline_or_as_a_stored_file() {
    let mut case = Case::command(|o| o["spec"]["inputFrom"] = json!({"task": "before"}));
    assert_eq!(case.waits_or_else(), Some("InputChanged"));
    case.input_task = Some(subtask(|o| o["status"]["output"] = json!(null)));
    assert_eq!(
        case.resolve().unwrap().input,
        Some(Input::Inline { value: json!(null) })
    );
    case.input_task = Some(subtask(|o| {
        o["status"]["outputRef"] = json!({"path": "state/runs/r/o.json", "bytes": 9, "sha256": "abc"});
    }));
    let file = FileRef {
        path: "state/runs/r/o.json".into(),
        bytes: 9,
        sha256: "abc".into(),
    };
    assert_eq!(case.resolve().unwrap().input, Some(Input::Stored { file }));
    let path = Case::command(|o| o["spec"]["inputFrom"] = json!({"path": "/mnt/user-data/uploads/a.json"}));
    let input = path.resolve().unwrap().input;
    assert_eq!(
        input,
        Some(Input::File {
            path: "/mnt/user-data/uploads/a.json".into()
        })
    );
}

#[test]
fn uploads_are_named_relative_however_they_are_written() {
    assert_eq!(below_uploads("/mnt/user-data/uploads/a/b"), "a/b");
    assert_eq!(below_uploads("a/b"), "a/b");
}

#[test]
fn files_of_claims_are_copied_and_do_not_travel() {
    let mut case = Case::command(|_| ());
    case.run = Some(run(|o| {
        o["spec"]["files"] = json!([
            {"path": "in.csv", "content": "a,b\n"},
            {"path": "new/a.csv", "from": {"run": "export", "path": "outputs/x/a.csv"}},
            {"path": "b.csv", "claim": {"name": "data", "path": "b.csv"}},
        ]);
        o["status"]["files"] = json!([
            {"path": "in.csv", "bytes": 4, "sha256": sha("a,b\n")},
            {"path": "new/a.csv", "bytes": 2, "sha256": "aa"},
        ]);
    }));
    let assignment = case.resolve().unwrap();
    let paths: Vec<_> = assignment.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["in.csv"]);
    let copies: Vec<_> = assignment
        .copies
        .iter()
        .map(|copy| (&*copy.path, &*copy.from, copy.sha256.as_deref()))
        .collect();
    assert_eq!(
        copies,
        [("new/a.csv", "x/a.csv", Some("aa")), ("b.csv", "b.csv", None)]
    );
    assert_ne!(assignment.copies[0].folder, assignment.copies[1].folder);
}

#[test]
fn a_warm_function_says_how_many_processes_there_may_be_and_for_how_many_calls() {
    let mut case = Case::function(|_| ());
    let skill = case.skill.as_mut().unwrap();
    skill.status.as_mut().unwrap().functions[0].warm = Some(agentrun_api::WarmFunction {
        instances: 3,
        max_calls: Some(100),
    });
    let Work::Function { warm, .. } = case.resolve().unwrap().work else {
        panic!("no function");
    };
    let warm = warm.unwrap();
    assert_eq!((warm.instances, warm.max_calls), (3, Some(100)));
}

#[test]
fn another_attempt_is_told_what_was_not_met() {
    let case = |policy: &str| {
        Case::command(|o| {
            o["spec"]["acceptance"] = json!(["file:a exists", "file:b exists"]);
            o["spec"]["acceptancePolicy"] = json!(policy);
            o["status"]["acceptance"] = json!([
                {"criterion": "file:a exists", "checked": true, "holds": false, "detail": "it does not exist"},
                {"criterion": "file:b exists", "checked": true, "holds": true},
            ]);
        })
        .resolve()
        .unwrap()
    };
    let assignment = case("Require");
    assert_eq!(assignment.acceptance, ["file:a exists", "file:b exists"]);
    assert_eq!(
        assignment.notes,
        ["[does not hold] file:a exists: it does not exist"]
    );
    assert!(case("Report").notes.is_empty());
}

fn model(spec: &Value) -> Model {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model", "metadata": {"name": "m"},
        "spec": {"endpoint": "http://models/v1", "model": "m", "default": true},
    });
    object["spec"]
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn agent(change: impl FnOnce(&mut Value)) -> Case {
    let agent = |object: &mut Value| {
        object["spec"]["command"] = json!(null);
        object["spec"]["role"] = json!("Lead");
        object["spec"]["task"] = json!("lead");
        object["spec"]["history"] = json!("Continue");
        object["spec"]["agent"] = json!({"prompt": "Count.", "skills": ["math"]});
        change(object);
    };
    Case {
        models: vec![model(&json!({"contextTokens": 9000, "vision": true}))],
        skill: Some(skill(|_| ())),
        ..Case::command(agent)
    }
}

fn terms(case: &Case) -> agentrun_protocol::agent::AgentTerms {
    match case.resolve().unwrap().work {
        Work::Agent(terms) => *terms,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lead_is_assigned_with_tools_skills_model_and_whom_it_may_ask() {
    let case = agent(|_| ());
    let found = terms(&case);
    assert_eq!(found.prompt, "Count.");
    assert_eq!(found.role.as_str(), "lead");
    assert_eq!((found.traits.context_tokens, found.traits.vision), (9000, true));
    assert_eq!((found.max_turns, found.continues), (150, true));
    for tool in ["bash", "view_image", "task", "skill", "write_todos"] {
        assert!(found.tools.iter().any(|known| known == tool), "{tool}");
    }
    assert_eq!(found.skills[0].name, "math");
    let delegation = found.delegation.unwrap();
    assert_eq!((delegation.max_per_turn, delegation.max_per_run), (3, 6));
    let names: Vec<_> = delegation.agents.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["general-purpose", "bash"]);
    assert_eq!(case.resolve().unwrap().skills.len(), 1, "its files come along");
}

#[test]
fn an_agent_that_is_too_deep_has_nobody_to_ask() {
    let deep = Case {
        depth: Some(1),
        ..agent(|_| ())
    };
    let found = terms(&deep);
    assert!(found.delegation.is_none() && !found.tools.iter().any(|tool| tool == "task"));
    let unknown = Case {
        depth: None,
        ..agent(|_| ())
    };
    assert_eq!(unknown.waits_or_else(), None);
}

#[test]
fn a_lead_is_planned_and_reviewed_only_where_somebody_was_made_for_it() {
    let with = |role: &str, roles: &Value| {
        let mut own = model(&json!({"roles": roles, "default": false}));
        own.metadata.name = Some("own".into());
        let case = agent(|o| o["spec"]["role"] = json!(role));
        let found = terms(&Case {
            models: vec![model(&json!({})), own],
            ..case
        });
        (found.is_planned, found.reviews)
    };
    assert_eq!(
        with("Lead", &json!([])),
        (false, None),
        "a default Model is not enough"
    );
    assert_eq!(with("Lead", &json!(["planner"])), (true, None));
    assert_eq!(with("Lead", &json!(["reviewer"])), (false, Some(1)));
    assert_eq!(with("Task", &json!(["planner", "reviewer"])), (false, None));
    let named = Case {
        run: Some(run(|o| {
            o["spec"]["models"] = json!({"planner": "m", "reviewer": "m"});
        })),
        ..agent(|o| o["spec"]["retry"] = json!({"attempts": 3}))
    };
    let found = terms(&named);
    assert_eq!((found.is_planned, found.reviews), (true, Some(2)));
}

#[test]
fn a_model_that_is_missing_is_waited_for_and_two_that_compete_are_not() {
    let none = Case {
        models: Vec::new(),
        ..agent(|_| ())
    };
    assert_eq!(none.waits_or_else(), Some("ModelNotFound"));
    let mut second = model(&json!({}));
    second.metadata.name = Some("n".into());
    let two = Case {
        models: vec![model(&json!({})), second],
        ..agent(|_| ())
    };
    assert_eq!(two.never().0, "AmbiguousModel");
}

#[test]
fn a_skill_that_is_not_what_it_was_when_the_run_started_ends_the_agent() {
    let pin = |digest: &str| {
        let run =
            run(|o| o["status"]["provenance"] = json!({"skills": [{"name": "math", "digest": digest}]}));
        Case {
            run: Some(run),
            ..agent(|_| ())
        }
    };
    let (reason, message) = pin("sha256:0").never();
    assert_eq!(reason, "InputChanged");
    assert!(message.contains("the run started with sha256:0"), "{message}");
    let digest = skill(|_| ()).status.unwrap().digest.unwrap();
    assert!(pin(&digest).resolve().is_ok());
}

#[test]
fn a_delegate_sees_a_conversation_only_where_its_run_keeps_them() {
    let delegate = |path: &str| {
        agent(|o| {
            o["spec"]["role"] = json!("Delegate");
            o["spec"]["task"] = json!("researcher");
            o["spec"]["history"] = json!(null);
            o["spec"]["context"] = json!({"mode": "Snapshot"});
            let file = json!({"path": path, "bytes": 3, "sha256": "aa"});
            o["metadata"]["annotations"] = json!({"agentrun.dev/snapshot": file.to_string()});
        })
    };
    let found = terms(&delegate("state/runs/run-uid/snapshots/a"));
    assert_eq!(found.snapshot.unwrap().path, "state/runs/run-uid/snapshots/a");
    assert_eq!((found.role.as_str(), found.continues), ("researcher", false));
    let (reason, message) = delegate("state/runs/other/snapshots/a").never();
    assert_eq!(reason, "Invalid");
    assert!(
        message.contains("does not lie below state/runs/run-uid/"),
        "{message}"
    );
}
