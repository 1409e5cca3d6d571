use super::*;
use serde_json::{Value, json};

fn review(change: impl FnOnce(&mut Value)) -> Result<PodIdentity, AuthError> {
    let mut status = json!({
        "authenticated": true,
        "audiences": ["agentrun-gateway"],
        "user": {
            "username": "system:serviceaccount:team-a:agentrun-sandbox",
            "extra": {POD_NAME: ["p-1"], POD_UID: ["u-1"]},
        },
    });
    change(&mut status);
    identity(serde_json::from_value(status).unwrap())
}

#[test]
fn a_pod_bound_token_of_the_sandbox_account_names_its_pod() {
    let expected = PodIdentity {
        namespace: "team-a".into(),
        name: "p-1".into(),
        uid: "u-1".into(),
    };
    assert_eq!(review(|_| ()).unwrap(), expected);
}

#[test]
fn anything_else_is_rejected_with_its_cause() {
    type Change = fn(&mut Value);
    let table: [(&str, Change); 6] = [
        ("has expired", |s| s["authenticated"] = json!(false)),
        ("token is stale", |s| *s = json!({"error": "token is stale"})),
        ("another audience", |s| {
            s["audiences"] = json!(["https://kubernetes"]);
        }),
        ("another account", |s| {
            s["user"]["username"] = json!("system:serviceaccount:team-a:default");
        }),
        ("another account", |s| {
            s["user"]["username"] = json!("agentrun-sandbox");
        }),
        ("not bound to a Pod", |s| s["user"]["extra"] = json!({})),
    ];
    for (expected, change) in table {
        let Err(AuthError::Rejected(message)) = review(change) else {
            panic!("{expected} was accepted")
        };
        assert!(message.contains(expected), "{message}");
    }
}
