use super::*;
use std::fmt::Write as _;

const SKILL: &str = "---\nname: math\ndescription: Grades sheets.\n---\n# Math\n";
const FUNCTIONS: &str = "functions:\n- {name: add, max_memory_mb: 64, timeout_sec: 5}\n";

fn folder(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    files
        .iter()
        .map(|(path, content)| ((*path).to_owned(), content.as_bytes().to_vec()))
        .collect()
}

fn error(files: &[(&str, &str)]) -> String {
    parse(&folder(files)).unwrap_err().to_string()
}

#[test]
fn a_skill_with_a_function_is_read_and_its_program_found() {
    let files = [
        ("SKILL.md", SKILL),
        ("functions.yaml", FUNCTIONS),
        ("functions/add.py", "def run(i): return i"),
    ];
    let skill = parse(&folder(&files)).unwrap();
    assert_eq!(skill.frontmatter.name, "math");
    assert_eq!(skill.functions[0].file.as_deref(), Some("functions/add.py"));
    assert!(skill.digest.starts_with("sha256:"));
}

#[test]
fn the_digest_changes_with_every_path_and_byte() {
    let digest = |files: &[(&str, &str)]| digest(&folder(files));
    let base = digest(&[("a", "bc")]);
    assert_ne!(base, digest(&[("ab", "c")]));
    assert_ne!(base, digest(&[("a", "bd")]));
    assert_ne!(digest(&[("a", "x")]), digest(&[("a", "#!x")]));
    assert_eq!(base, digest(&[("a", "bc")]));
}

#[test]
fn every_broken_rule_names_what_was_found_and_what_is_allowed() {
    let functions = |yaml: &str| {
        error(&[
            ("SKILL.md", SKILL),
            ("functions.yaml", yaml),
            ("functions/add.py", ""),
        ])
    };
    assert!(error(&[("README", "x")]).contains("has no SKILL.md; found: README"));
    assert!(error(&[("SKILL.md", "# no head")]).contains("begins without a frontmatter"));
    let kept_back = "---\nname: a\ndescription: b\nsecrets-autonomous: false\n---\n";
    assert!(error(&[("SKILL.md", kept_back)]).contains("secrets-autonomous is false, which cannot be kept"));
    assert!(error(&[("SKILL.md", "---\nname: x\n")]).contains("has no end"));
    assert!(error(&[("SKILL.md", "---\nname: X y\ndescription: d\n---\n")]).contains("name is \"X y\""));
    assert!(error(&[("SKILL.md", "---\nname: x\ndescription: d\ncolour: red\n---\n")]).contains("colour"));
    assert!(error(&[("SKILL.md", "---\nname: x\n---\n")]).contains("description"));
    assert!(error(&[("SKILL.md", SKILL), ("../x", "")]).contains("../x"));
    assert!(functions("functions:\n- {name: add, timeout_sec: 5}\n").contains("max_memory_mb"));
    assert!(
        functions("functions:\n- {name: add, max_memory_mb: 0, timeout_sec: 5}\n")
            .contains("max_memory_mb is 0")
    );
    assert!(
        functions("functions:\n- {name: sub, max_memory_mb: 1, timeout_sec: 5}\n")
            .contains("found no functions/sub.py")
    );
    assert!(
        functions("functions:\n- {name: add, max_memory_mb: 1, timeout_sec: 5, speed: 3}\n")
            .contains("speed")
    );
}

#[test]
fn a_bomb_of_yaml_aliases_is_refused() {
    let mut bomb =
        String::from("---\nname: x\ndescription: d\nmetadata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(bomb, "  a{level}: &a{level} [{list}]");
    }
    bomb.push_str("---\n");
    assert!(parse(&folder(&[("SKILL.md", &bomb)])).is_err());
}

fn declaring(rest: &str) -> Result<ParsedSkill, SkillError> {
    let yaml = format!("functions:\n- {{name: add, max_memory_mb: 64, timeout_sec: 5, {rest}}}\n");
    parse(&folder(&[
        ("SKILL.md", SKILL),
        ("functions.yaml", &yaml),
        ("functions/add.py", ""),
    ]))
}

#[test]
fn a_bad_schema_makes_the_skill_invalid_and_names_its_function() {
    let error = declaring("input_schema: {type: integre}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("function add: input_schema: this is no valid JSON Schema"),
        "{error}"
    );
    let remote = "output_schema: {$ref: \"https://example.com/s.json\"}";
    let error = declaring(remote).unwrap_err().to_string();
    assert!(
        error.contains("function add: output_schema") && error.contains("#/$defs"),
        "{error}"
    );
}

#[test]
fn schemas_are_those_of_the_function() {
    let yaml = "functions:\n- {name: a, max_memory_mb: 1, timeout_sec: 1, input_schema: {type: integer}}\n\
                - {name: b, max_memory_mb: 1, timeout_sec: 1}\n";
    let a = schemas(yaml.as_bytes(), "a").unwrap();
    assert!(a.output.is_none());
    assert_eq!(
        a.input.unwrap().validate(&serde_json::json!("x")).unwrap().len(),
        1
    );
    assert!(schemas(yaml.as_bytes(), "b").unwrap().input.is_none());
}

#[test]
fn a_warm_function_has_bounds() {
    assert!(declaring("warm: {instances: 3, maxCalls: 100}").is_ok());
    let error = |rest: &str| declaring(rest).unwrap_err().to_string();
    assert!(error("warm: {instances: 33}").contains("warm.instances is 33, allowed are 1 to 32"));
    assert!(error("warm: {instances: 1, maxCalls: 0}").contains("warm.maxCalls is 0"));
}

/// The files of a shipped skill, as `deploy/examples/generate` puts them into a ConfigMap.
fn shipped(folder: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for part in ["", "functions", "scripts", "references"] {
        let Ok(entries) = std::fs::read_dir(folder.join(part)) else {
            continue;
        };
        for entry in entries.map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn every_shipped_skill_keeps_the_rules_and_has_its_folders_name() {
    let skills = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    let folders = std::fs::read_dir(skills)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let folders: Vec<_> = folders
        .filter(|folder| folder.join(SKILL_FILE).is_file())
        .collect();
    assert!(folders.len() >= 8, "{folders:?}");
    for folder in folders {
        let skill = parse(&shipped(&folder)).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        assert!(folder.ends_with(&skill.frontmatter.name), "{}", folder.display());
    }
}

#[test]
fn triggers_and_tools_are_lists_or_one_text_and_nothing_is_no_restriction() {
    let head = |more: &str| {
        let text = format!("---\nname: math\ndescription: Grades.\n{more}---\n");
        let files = BTreeMap::from([(SKILL_FILE.to_owned(), text.into_bytes())]);
        parse(&files).unwrap().frontmatter
    };
    assert_eq!(
        head("triggers: [grade, exam sheet]\n").trigger_words(),
        ["grade", "exam sheet"]
    );
    assert_eq!(
        head("triggers: grade, exam sheet\n").trigger_words(),
        ["grade", "exam sheet"]
    );
    assert!(head("").trigger_words().is_empty());
    let tools = |more: &str| head(more).tools();
    assert_eq!(tools("allowed-tools: Bash Read\n").unwrap(), ["Bash", "Read"]);
    assert_eq!(tools("allowed-tools: [bash]\n").unwrap(), ["bash"]);
    assert_eq!(
        tools("allowed-tools: []\n"),
        Some(Vec::new()),
        "an empty list allows nothing"
    ); // F108
    assert_eq!(tools(""), None);
}
