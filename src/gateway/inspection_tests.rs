use super::*;

fn pod(namespace: &str, uid: &str) -> PodIdentity {
    PodIdentity {
        namespace: namespace.into(),
        name: "inspect-1".into(),
        uid: uid.into(),
    }
}

fn skill(generation: i64, inspected_by: Option<&str>) -> Skill {
    let inspection = inspected_by.map(|uid| json!({"podName": "inspect-1", "podUID": uid}));
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Skill",
        "metadata": {
            "name": "math", "namespace": "team-a", "uid": "skill-uid", "resourceVersion": "5",
            "generation": generation,
        },
        "spec": {"image": "skills/math:1"},
        "status": {},
    });
    if let Some(inspection) = inspection {
        object["status"]["inspection"] = inspection;
    }
    serde_json::from_value(object).unwrap()
}

fn id() -> AttemptId {
    AttemptId {
        uid: "skill-uid".into(),
        attempt: 2,
    }
}

fn valid() -> SkillFound {
    SkillFound::Valid {
        name: "math".into(),
        description: "Adds.".into(),
        triggers: vec!["sum".into()],
        allowed_tools: Some(vec!["bash".into()]),
        functions: vec![
            json!({"name": "add", "file": "functions/add.py", "maxMemoryMb": 64, "timeoutSec": 5}),
        ],
        digest: "sha256:aa".into(),
    }
}

fn decide(skill: Option<&Skill>, pod: &PodIdentity, found: &SkillFound) -> Plan {
    plan(skill, pod, &id(), found, Timestamp::UNIX_EPOCH)
}

#[test]
fn the_report_of_the_named_pod_becomes_the_status_and_ends_the_inspection() {
    let Plan::Write(patch) = decide(Some(&skill(2, Some("u"))), &pod("team-a", "u"), &valid()) else {
        panic!("expected a write");
    };
    assert_eq!(patch[0]["value"], "5");
    let status = &patch[1]["value"];
    assert_eq!(status["triggers"], json!(["sum"]));
    assert_eq!(status["allowedTools"], json!(["bash"]));
    assert_eq!(status["digest"], "sha256:aa");
    assert_eq!(status["functions"][0]["name"], "add");
    assert_eq!(status["conditions"][0]["status"], "True");
    assert_eq!(status["observedGeneration"], 2);
    assert!(status.get("inspection").is_none(), "{status}");
}

#[test]
fn a_mistake_is_named_and_leaves_no_functions() {
    let found = SkillFound::Invalid {
        message: "has no SKILL.md".into(),
    };
    let Plan::Write(patch) = decide(Some(&skill(2, Some("u"))), &pod("team-a", "u"), &found) else {
        panic!("expected a write");
    };
    let condition = &patch[1]["value"]["conditions"][0];
    assert_eq!(
        (
            condition["status"].as_str(),
            condition["reason"].as_str(),
            condition["message"].as_str()
        ),
        (Some("False"), Some("Invalid"), Some("has no SKILL.md"))
    );
    assert!(patch[1]["value"].get("digest").is_none());
}

#[test]
fn nobody_but_the_named_pod_is_believed() {
    let named = skill(2, Some("u"));
    assert_eq!(
        decide(Some(&named), &pod("team-a", "other"), &valid()),
        Plan::Wait
    );
    assert!(matches!(
        decide(Some(&named), &pod("team-b", "u"), &valid()),
        Plan::Drop(_)
    ));
    assert_eq!(
        decide(Some(&skill(2, None)), &pod("team-a", "u"), &valid()),
        Plan::Wait
    );
    assert_eq!(decide(None, &pod("team-a", "u"), &valid()), Plan::Wait);
}

#[test]
fn a_report_of_an_older_generation_is_dropped() {
    assert!(matches!(
        decide(Some(&skill(3, Some("u"))), &pod("team-a", "u"), &valid()),
        Plan::Drop(_)
    ));
}
