use super::*;
use crate::fixtures::skill;
use serde_json::json;

fn config_map() -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"name": "math-files"},
        "data": {"add.sh": "#!/bin/sh\n", "readme": "text"},
        "binaryData": {"tool": "f0VMRg=="},
    }))
    .unwrap()
}

fn listed(spec: serde_json::Value) -> Vec<(String, bool)> {
    let skill = skill(|object| object["spec"] = spec);
    let config_map = config_map();
    let folder = folder("math", "d", &contents(&skill, Some(&config_map)));
    folder
        .files
        .into_iter()
        .map(|file| (file.file.path, file.executable))
        .collect()
}

#[test]
fn every_key_is_a_file_unless_items_say_which() {
    let all = [
        ("add.sh".into(), true),
        ("readme".into(), false),
        ("tool".into(), true),
    ];
    assert_eq!(listed(json!({"configMap": {"name": "math-files"}})), all);
    let items = json!([{"key": "add.sh", "path": "functions/add.sh"}, {"key": "gone", "path": "gone"}]);
    let some = [("functions/add.sh".into(), true)];
    assert_eq!(
        listed(json!({"configMap": {"name": "math-files", "items": items}})),
        some
    );
}

#[test]
fn a_list_carries_sizes_and_digests() {
    let skill = skill(|_| ());
    let folder = folder("math", "d1", &contents(&skill, None));
    let file = &folder.files[0].file;
    assert_eq!(
        (&*file.path, file.bytes, &*file.sha256),
        ("SKILL.md", 6, &*sha256_hex(b"# math"))
    );
}

#[test]
fn lists_are_remembered_by_skill_and_digest_and_bounded() {
    let folders = SkillFolders::default();
    let name = |name: &str| Name {
        namespace: "a".into(),
        name: name.into(),
    };
    let put = |skill: &str| folders.put(name(skill), Arc::new(folder(skill, "d", &Contents::new())));
    put("one");
    assert!(folders.get(&name("one"), "d").is_some());
    assert!(folders.get(&name("one"), "other").is_none());
    (0..bounds::SKILL_FOLDERS).for_each(|index| put(&index.to_string()));
    assert!(folders.known.lock().unwrap().len() <= bounds::SKILL_FOLDERS);
}
