use super::*;

fn caller(name: &str) -> Caller {
    let mut caller = Caller::default();
    name.clone_into(&mut caller.name);
    caller
}

fn new(body: Value) -> NewTask {
    serde_json::from_value(body).unwrap()
}

#[test]
fn an_instruction_is_taken_word_for_word() {
    let body = json!({"instruction": "what is ${params.x} and $${y}?", "spec": {"params": {"x": 1}}});
    let spec = spec(new(body), &caller("lena")).unwrap();
    assert_eq!(spec["goal"], "what is $${params.x} and $$${y}?");
    assert_eq!(spec["params"]["x"], 1);
}

#[test]
fn the_user_comes_from_the_token_where_the_body_names_none() {
    let user = |spec_in: Value| {
        let body = json!({"spec": {"tasks": [], "userData": spec_in}});
        spec(new(body), &caller("system:serviceaccount:a:b")).unwrap()["userData"].clone()
    };
    assert_eq!(
        user(json!({"thread": "t"})),
        json!({"thread": "t", "user": "system:serviceaccount:a:b"})
    );
    assert_eq!(user(json!({"user": "max"})), json!({"user": "max"}));
    assert_eq!(user(json!("nonsense")), json!("nonsense"));
    let long = "x".repeat(300);
    assert!(caller(&long).user().len() <= 128);
    assert_ne!(caller(&long).user(), caller(&"y".repeat(300)).user());
}

#[test]
fn a_body_is_the_same_whatever_the_order_of_its_members() {
    let one = new(json!({"spec": {"a": 1, "b": {"c": 1, "d": 2}}, "mode": "auto"}));
    let two = new(json!({"spec": {"b": {"d": 2, "c": 1}, "a": 1}}));
    let other = new(json!({"spec": {"b": {"d": 2, "c": 1}, "a": 2}}));
    assert_eq!(digest(&one), digest(&two));
    assert_ne!(digest(&one), digest(&other));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (body, code) in [
        (json!({}), Code::Invalid),
        (json!({"instruction": "a", "spec": {"goal": "b"}}), Code::Invalid),
        (json!({"instruction": "a", "mode": "plan"}), Code::NotYetSupported),
    ] {
        assert_eq!(spec(new(body), &caller("lena")).unwrap_err().code, code);
    }
}

#[test]
fn each_user_has_keys_of_their_own() {
    let name = |user: &str, key: &str| keyed_name("task", "team-a", &caller(user), key);
    assert_eq!(name("lena", "k"), name("lena", "k"));
    assert_ne!(name("lena", "k"), name("max", "k"));
    assert_ne!(name("lena", "k"), name("lena", "l"));
    assert!(name("lena", "k").starts_with("task-") && name("lena", "k").len() == 25);
}
