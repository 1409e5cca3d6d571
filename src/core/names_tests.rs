use proptest::prelude::*;
use serde_json::json;

use super::*;

fn is_label(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.len() <= MAX_LABEL
        && edge(name.chars().next())
        && edge(name.chars().next_back())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[test]
fn base32_matches_the_vectors_of_rfc_4648() {
    for (input, expected) in [
        ("", ""),
        ("f", "my"),
        ("fo", "mzxq"),
        ("foo", "mzxw6"),
        ("foob", "mzxw6yq"),
        ("fooba", "mzxw6ytb"),
        ("foobar", "mzxw6ytboi"),
    ] {
        assert_eq!(base32(input.as_bytes()), expected);
    }
}

#[test]
fn the_hash_is_stable_over_releases() {
    // SHA-256 of "abc" is ba7816bf...; of NUL-joined fields the fields cannot run into each other.
    assert_eq!(h(10, &["abc"]), "xj4bnp4pah");
    assert_ne!(h(10, &["ab", "c"]), h(10, &["a", "bc"]));
    assert_eq!(h(52, &["x"]).len(), 52);
    assert_eq!(h(99, &["x"]).len(), 52);
}

#[test]
fn a_subtask_name_reads_well_and_differs_by_item() {
    let name = subtask_name("grade.class-7", "parse", "uid-1", None, None);
    assert!(name.starts_with("grade-class-7-parse-"), "{name}");
    let first = subtask_name("run", "parse", "uid-1", Some(0), None);
    let second = subtask_name("run", "parse", "uid-1", Some(1), None);
    assert_ne!(first, second);
    assert_ne!(first, name);
    let keyed = subtask_name("run", "parse", "uid-1", Some(1), Some("q7"));
    assert_eq!(
        keyed,
        subtask_name("run", "parse", "uid-1", Some(9), Some("q7")),
        "the key decides, not the place"
    );
}

#[test]
fn cut_parts_do_not_end_in_a_dash() {
    let name = subtask_name(
        "abcdefghijklmnopqrstuvwxyza-tail",
        "t23456789012345.7-tail",
        "u",
        None,
        None,
    );
    assert!(
        name.starts_with("abcdefghijklmnopqrstuvwxyza-t23456789012345-7-"),
        "{name}"
    );
}

#[test]
fn egress_names_do_not_depend_on_key_order() {
    let one: Value = serde_json::from_str(r#"[{"port":5432,"cidr":"192.0.2.5/32"}]"#).unwrap();
    let two: Value = serde_json::from_str(r#"[{"cidr":"192.0.2.5/32","port":5432}]"#).unwrap();
    assert_eq!(egress_policy_name(&one), egress_policy_name(&two));
    assert_eq!(canonical_json(&one), r#"[{"cidr":"192.0.2.5/32","port":5432}]"#);
    assert_ne!(egress_policy_name(&one), egress_policy_name(&json!([])));
}

proptest! {
    #[test]
    fn every_name_is_a_dns_label(
        run in "\\PC{0,300}", task in "\\PC{0,80}", uid in "\\PC{0,40}", item in proptest::option::of(any::<u32>()),
        key in proptest::option::of("\\PC{0,40}"), attempt in any::<u32>(), slot in any::<u64>(),
    ) {
        let subtask = subtask_name(&run, &task, &uid, item, key.as_deref());
        for name in [
            pod_name(&subtask, attempt),
            pod_name(&run.chars().chain("x".chars()).collect::<String>(), attempt),
            delegate_name(&run, &task, &uid, attempt, 3),
            thread_name(&run, &task),
            claim_name(&uid),
            slot_claim_name(&uid, slot),
            egress_policy_name(&json!([{"cidr": task}])),
            subtask,
        ] {
            prop_assert!(is_label(&name), "{name:?}");
        }
    }

    #[test]
    fn two_attempts_of_real_names_keep_the_whole_name(run in "[a-z]([-a-z0-9.]{0,60}[a-z0-9])?", task in "[a-z]([-a-z0-9]{0,38}[a-z0-9])?") {
        let subtask = subtask_name(&run, &task, "uid", None, None);
        prop_assert!(subtask.len() <= 58);
        prop_assert_eq!(pod_name(&subtask, 99), format!("{subtask}-99"));
    }
}
