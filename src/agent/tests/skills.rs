//! Skills on demand.

use super::*;
use agentrun_protocol::agent::SkillCard;

fn card(name: &str, description: &str, triggers: &[&str]) -> SkillCard {
    SkillCard {
        name: name.to_owned(),
        description: description.to_owned(),
        triggers: triggers.iter().map(|text| (*text).to_owned()).collect(),
        allowed_tools: None,
    }
}

fn shipped() -> Vec<SkillCard> {
    vec![
        card(
            "csv-report",
            "Turns a CSV table with a yes/no column into a report on who said yes. Cleans the table, compares groups in \
             parallel, draws charts and writes report.pdf and summary.json with sources.",
            &[
                "report on a csv table",
                "compare groups in a table",
                "survival by group",
            ],
        ),
        card(
            "math-grader",
            "Grades arithmetic answer sheets exactly. Splits a CSV sheet into answers, parses question and answer, checks \
             each with rational arithmetic, and writes grades.csv and summary.json.",
            &["grade the maths sheet", "check arithmetic answers"],
        ),
        card(
            "pdf-tables",
            "Takes the tables out of PDF files and writes each as a CSV file, one file per sub-task, with an index of all \
             tables found. For PDF files with text and drawn rules, not for scans.",
            &["extract tables from pdf", "pdf to csv"],
        ),
    ]
}

fn suggested(prompt: &str) -> Vec<String> {
    crate::skill::fitting(&shipped(), prompt)
}

#[test]
fn a_task_finds_its_skill_and_another_task_none() {
    assert_eq!(
        suggested("Extract the tables from the PDF files in uploads and give me CSV files"),
        ["pdf-tables"]
    );
    assert_eq!(
        suggested("Please grade the maths sheet of class 7"),
        ["math-grader"]
    );
    assert_eq!(
        suggested("Write a report on the CSV table titanic.csv: survival by group, with charts"),
        ["csv-report"]
    );
    assert_eq!(suggested("Write a poem about the sea"), Vec::<String>::new());
    assert_eq!(
        suggested("Fix the failing tests of this repository"),
        Vec::<String>::new()
    );
    assert_eq!(suggested("/math-grader now")[0], "math-grader");
    assert_eq!(suggested(""), Vec::<String>::new());
}

#[test]
fn a_trigger_alone_tips_the_balance() {
    let mut cards = vec![card(
        "sales",
        "Plans a quarterly sales forecast from ledgers.",
        &[],
    )];
    let prompt = "Plan the quarterly forecast";
    let without = crate::skill::fitting(&cards, prompt);
    cards[0].triggers.push("quarterly forecast".to_owned());
    assert_eq!(
        (without.len(), crate::skill::fitting(&cards, prompt).len()),
        (0, 1)
    );
}

#[test]
fn words_without_spaces_between_them_are_matched_too() {
    let cards = [card("report-zh", "分析销售数据并生成图表报告", &["销售数据分析"])];
    assert_eq!(
        crate::skill::fitting(&cards, "请分析销售数据并生成报告"),
        ["report-zh"]
    );
}

fn with_skills() -> Bench {
    let mut cards = shipped();
    cards[0].allowed_tools = Some(vec![
        "Read".to_owned(),
        "Bash(python:*)".to_owned(),
        "web_search".to_owned(),
    ]);
    Bench::of(AgentTerms {
        skills: cards,
        ..terms()
    })
}

fn offered(bench: &Bench) -> Vec<String> {
    bench.request().tools.into_iter().map(|tool| tool.name).collect()
}

fn load(bench: &mut Bench, name: &str) {
    bench.calls(&[("skill", json!({ "name": name }))]);
    let kind = ActKind::LoadSkill {
        name: name.to_owned(),
        path: "SKILL.md".to_owned(),
    };
    assert_eq!(bench.acts()[0].kind, kind);
    bench.act(|_| Outcome::File {
        text: Ok("# How".to_owned()),
    });
}

#[test]
fn names_and_descriptions_are_told_and_the_body_comes_on_demand() {
    let mut bench = with_skills();
    match &bench.request().messages[0] {
        Message::System { text } => assert!(text.contains("math-grader: Grades arithmetic")),
        other => panic!("{other:?}"),
    }
    load(&mut bench, "math-grader");
    let answer = bench.answers().remove(0);
    assert!(
        answer.contains("/mnt/skills/math-grader") && answer.ends_with("# How"),
        "{answer}"
    );
}

// F112
#[test]
fn allowed_tools_narrow_while_the_skill_is_followed_and_no_longer() {
    let mut bench = with_skills();
    let all = offered(&bench);
    load(&mut bench, "csv-report");
    assert_eq!(offered(&bench), ["bash", "read_file", "skill", "write_todos"]);
    bench.calls(&[("write_file", json!({"path": "a", "content": ""}))]);
    let answer = bench.answers().remove(0);
    assert!(
        answer.contains("csv-report") && answer.contains("done"),
        "{answer}"
    );
    bench.calls(&[("skill", json!({"done": true}))]);
    assert_eq!(offered(&bench), all);
    load(&mut bench, "csv-report");
    load(&mut bench, "math-grader");
    assert_eq!(offered(&bench), all);
}

#[test]
fn a_skill_that_allows_nothing_known_allows_nothing() {
    let mut cards = shipped();
    cards[0].allowed_tools = Some(Vec::new());
    let mut bench = Bench::of(AgentTerms {
        skills: cards,
        ..terms()
    });
    load(&mut bench, "csv-report");
    assert_eq!(offered(&bench), ["skill", "write_todos"]);
}

#[test]
fn files_of_a_skill_are_named_below_its_folder() {
    let mut bench = with_skills();
    bench.calls(&[
        ("skill", json!({"name": "pdf-tables", "path": "references/a.md"})),
        (
            "skill",
            json!({"name": "pdf-tables", "path": "/mnt/skills/public/pdf-tables/b.md"}),
        ),
        (
            "skill",
            json!({"name": "pdf-tables", "path": "../math-grader/SKILL.md"}),
        ),
        ("skill", json!({"name": "pdf-tables", "path": "/etc/passwd"})),
        ("skill", json!({"name": "nothing"})),
        ("skill", json!({})),
    ]);
    let paths: Vec<String> = bench
        .acts()
        .into_iter()
        .filter_map(|act| match act.kind {
            ActKind::LoadSkill { path, .. } => Some(path),
            _ => None,
        })
        .collect();
    assert_eq!(paths, ["references/a.md", "b.md"]);
    bench.act(|_| Outcome::File {
        text: Err("there is no such file".to_owned()),
    });
    let answers = bench.answers();
    assert!(answers[2].contains("without ..") && answers[3].contains("relative"));
    assert!(answers[4].contains("math-grader"), "{}", answers[4]);
}
