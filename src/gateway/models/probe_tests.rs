use super::*;
use crate::fixtures::{Answer, Api};
use agentrun_protocol::chat::ModelFailureCode as Code;
use serde_json::Value;

fn model(change: impl FnOnce(&mut Value)) -> Model {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model",
        "metadata": {"name": "m", "namespace": "team-a", "uid": "u", "generation": 2, "resourceVersion": "5"},
        "spec": {"endpoint": "http://127.0.0.1:9/v1", "model": "m"},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn with(status: &str, generation: i64) -> Model {
    model(|o| {
        o["status"] = json!({"observedGeneration": generation, "conditions": [{
            "type": "Ready", "status": status, "reason": "Ready", "message": "", "observedGeneration": generation,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }]});
    })
}

#[tokio::test(start_paused = true)]
async fn a_model_is_looked_at_when_it_is_new_changed_suspected_or_not_ready() {
    let now = Instant::now() + PROBE_AGAIN * 2;
    let looked = |generation, at| {
        let generation = Some(generation);
        Some(Look {
            generation,
            at,
            vain: 0,
        })
    };
    let just_now = looked(2, now);
    let long_ago = looked(2, now - PROBE_AGAIN);
    // New, and changed.
    assert!(is_due(&model(|_| ()), None, false, now));
    assert!(is_due(&with("True", 1), looked(1, now), false, now));
    assert!(!is_due(&with("True", 1), just_now, false, now));
    // Ready: only under suspicion, and not without pause.
    assert!(!is_due(&with("True", 2), None, false, now));
    assert!(is_due(&with("True", 2), long_ago, true, now));
    assert!(!is_due(&with("True", 2), just_now, true, now));
    // Not ready: after a while, soon where an object is missing.
    let missing = model(|o| {
        o["status"] = json!({"conditions": [{
            "type": "Ready", "status": "False", "reason": "SecretNotFound", "message": "", "observedGeneration": 2,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }]});
    });
    assert!(is_due(&missing, looked(2, now - PROBE_MISSING), false, now));
    assert!(!is_due(&missing, just_now, false, now));
    assert!(is_due(&with("False", 2), long_ago, false, now));
    assert!(!is_due(&with("False", 2), just_now, false, now));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_get_ready_is_looked_at_ever_later() {
    let now = Instant::now();
    let mut look = Look::next(&model(|_| ()), None, now);
    let mut pauses = Vec::new();
    for _ in 0..7 {
        pauses.push(look.pause().as_secs());
        look = Look::next(&with("False", 2), Some(look), now);
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 120, 120]);
    // A change, or a time of readiness, begins anew.
    let changed = model(|o| o["metadata"]["generation"] = json!(3));
    assert_eq!(Look::next(&changed, Some(look), now).pause(), PROBE_SOON);
    assert_eq!(Look::next(&with("True", 2), Some(look), now).pause(), PROBE_SOON);
}

#[test]
fn what_failed_says_what_to_mend() {
    let reason = |code, message: &str| match found(&Fault::new(code, Next::Elsewhere, message)) {
        Found::Is(is, reason, _) => Some((is, reason)),
        Found::Nothing(_) => None,
    };
    for (code, message, expected) in [
        (Code::AuthFailed, "no", Some((Is::False, ReadyReason::AuthFailed))),
        (
            Code::Unreachable,
            "no",
            Some((Is::False, ReadyReason::Unreachable)),
        ),
        (Code::BadAnswer, "no", Some((Is::False, ReadyReason::Unreachable))),
        (
            Code::Refused,
            "m does not support tools",
            Some((Is::False, ReadyReason::NoTools)),
        ),
        (Code::Refused, "404", Some((Is::False, ReadyReason::Invalid))),
        (
            Code::Refused,
            "the model output limit was reached",
            Some((Is::True, ReadyReason::Ready)),
        ),
        (Code::RateLimited, "no", None),
    ] {
        assert_eq!(reason(code, message), expected, "{message}");
    }
}

#[tokio::test]
async fn a_model_that_lacks_its_secret_is_told_so_in_one_guarded_write() {
    const PATCH: &str = "PATCH /apis/agentrun.dev/v1alpha1/namespaces/team-a/models/m/status";
    let seen = model(|o| o["spec"]["secretRef"] = json!({"name": "keys", "key": "api"}));
    let api = Api::default().on(PATCH, [Answer::ok(&seen)]);
    let gateway = api.gateway();
    gateway.change(|board| board.put_model(seen.clone()));
    look(&gateway, &seen).await;
    let patches = api.patches();
    assert_eq!(patches.len(), 1, "{patches:?}");
    assert_eq!(
        patches[0][0],
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"})
    );
    let status: ModelStatus = serde_json::from_value(patches[0][1]["value"].clone()).unwrap();
    let ready = conditions::get(&status.conditions, READY).unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "SecretNotFound")
    );
    assert_eq!(status.observed_generation, Some(2));
    // The same again is no write.
    gateway.change(|board| {
        board.put_model(Model {
            status: Some(status),
            ..seen.clone()
        })
    });
    look(&gateway, &seen).await;
    assert_eq!(api.patches().len(), 1);
}
