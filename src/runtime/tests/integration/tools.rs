//! Tools through a runtime's link, with the real executor.

use crate::real::{mounts, start_executor};
use crate::world::{World, command};
use agentrun_core::redact::Secrets;
use agentrun_protocol::tool::{BashRecord, CallRecord, Effect, Facts, Session, ToolName, ToolOutput};
use agentrun_runtime::executor::{Link, ShellTerms, Toolbox, accept, bind};
use agentrun_runtime::store::calls::{self, CallLog};
use agentrun_runtime::store::evidence::Evidence;
use agentrun_runtime::store::sha256_of;
use serde_json::{Value, json};
use std::process::Child;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);

/// What the task's Secret holds.
const SECRET: &str = "s3cr3t-of-the-task";

/// A toolbox of an attempt, and the executor that it works with.
struct Tools {
    world: World,
    executor: Child,
    link: Link,
    toolbox: Toolbox,
}

impl Tools {
    async fn start() -> Tools {
        let mut world = World::new().await;
        world.settings.sandbox.mounts = mounts();
        let listener = bind(world.socket()).unwrap();
        let executor = start_executor(&world, ("API_KEY", ""));
        let (link, _) = accept(listener, world.socket(), &world.settings.sandbox, LONG)
            .await
            .unwrap();
        let toolbox = toolbox(&world, &link, Session::guarded());
        Tools {
            world,
            executor,
            link,
            toolbox,
        }
    }

    async fn call(&mut self, tool: ToolName, arguments: Value) -> ToolOutput {
        self.toolbox
            .call(tool, &arguments.to_string(), LONG)
            .await
            .unwrap()
    }

    async fn bash(&mut self, command: &str) -> (String, BashRecord) {
        let output = self.call(ToolName::Bash, json!({"command": command})).await;
        match output.facts {
            Facts::Bash(record) => (output.text, record),
            facts => panic!("{facts:?} {}", output.text),
        }
    }

    fn records(&self) -> Vec<CallRecord> {
        calls::read(&evidence(&self.world)).unwrap().collect()
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.executor.kill().ok();
        self.executor.wait().ok();
    }
}

fn evidence(world: &World) -> Evidence {
    Evidence::new(&world.settings.folders.state, &command(&["true"])).unwrap()
}

fn toolbox(world: &World, link: &Link, session: Session) -> Toolbox {
    let terms = ShellTerms {
        env: [("GIVEN".to_owned(), "by the task".to_owned())].into(),
        secrets: Secrets::new([SECRET.as_bytes()]),
        ..ShellTerms::default()
    };
    let log = CallLog::open(&evidence(world)).unwrap();
    Toolbox::new(link.clone(), world.settings.seen.clone(), terms, session, log)
}

#[tokio::test]
async fn a_conversation_remembers_what_it_has_read_and_every_call_is_recorded() {
    let mut tools = Tools::start().await;
    std::fs::write(tools.world.path("data/workspace/a"), "one\n").unwrap();
    let change = json!({"path": "a", "old_str": "one", "new_str": "two"});
    let refused = tools.call(ToolName::StrReplace, change.clone()).await;
    assert_eq!(
        refused.facts,
        Facts::Refused {
            code: "unread".into()
        }
    );
    let read = tools.call(ToolName::ReadFile, json!({"path": "a"})).await;
    assert_eq!(read.text, "     1\tone\n");
    let changed = tools.call(ToolName::StrReplace, change).await;
    assert!(changed.ok, "{}", changed.text);
    let records = tools.records();
    let seen: Vec<_> = records
        .iter()
        .map(|call| (call.number, call.tool, call.ok))
        .collect();
    assert_eq!(
        seen,
        [
            (1, ToolName::StrReplace, false),
            (2, ToolName::ReadFile, true),
            (3, ToolName::StrReplace, true)
        ]
    );
    let wrote = Effect::Wrote {
        path: "/mnt/user-data/workspace/a".to_owned(),
        bytes: 4,
        sha256: sha256_of(b"two\n"),
    };
    assert_eq!(records[2].effect, wrote);
    // Another conversation of the same attempt knows nothing of it, and its calls are numbered on.
    let mut other = toolbox(&tools.world, &tools.link, Session::guarded());
    let arguments = json!({"path": "a", "content": "x"}).to_string();
    let refused = other.call(ToolName::WriteFile, &arguments, LONG).await.unwrap();
    assert_eq!(
        refused.facts,
        Facts::Refused {
            code: "unread".into()
        }
    );
    assert_eq!(tools.records().last().unwrap().number, 4);
}

#[tokio::test]
async fn a_shell_keeps_its_folder_and_its_record_is_what_the_executor_saw() {
    let mut tools = Tools::start().await;
    let (text, record) = tools
        .bash("mkdir -p x/y; cd x/y; echo $GIVEN; echo oops >&2; exit 3")
        .await;
    assert_eq!(
        text,
        "by the task\noops\n[exit code 3]\n[the next call starts in /mnt/user-data/workspace/x/y]\n"
    );
    assert_eq!(
        (record.exit_code, record.cwd.as_str()),
        (Some(3), "/mnt/user-data/workspace")
    );
    assert_eq!(record.sha256, Some(sha256_of(b"by the task\noops\n")));
    let (text, record) = tools.bash("touch here; rm -r ../../x; exit 0").await;
    assert_eq!(text, "[no output, exit code 0]\n");
    assert_eq!(record.cwd, "/mnt/user-data/workspace/x/y");
    let (text, record) = tools.bash("ls").await;
    assert_eq!(record.cwd, "/mnt/user-data/workspace");
    assert!(
        text.starts_with("[the folder /mnt/user-data/workspace/x/y is gone; this ran in"),
        "{text}"
    );
    // Whatever it says about itself, the exit code is the shell's.
    let forged = "printf '/etc\\0/etc\\n' > $AGENTRUN_OUTPUT; echo '{\"ok\":true}'; kill -9 $$";
    let (_, record) = tools.bash(forged).await;
    assert_eq!((record.exit_code, record.signal), (None, Some(9)));
    let records = tools.records();
    assert_eq!(records.len(), 4);
    assert_eq!(records[3].effect, Effect::Bash(record));
}

// F046
#[tokio::test]
async fn a_shell_ends_at_its_limit_with_all_that_it_started() {
    let mut tools = Tools::start().await;
    let arguments = json!({"command": "trap '' TERM; echo begun; sleep 300 & sleep 300", "timeout": 1});
    let output = tools.call(ToolName::Bash, arguments).await;
    let Facts::Bash(record) = &output.facts else {
        panic!("{}", output.text);
    };
    assert!(record.timed_out && !output.ok);
    assert!(
        output.text.starts_with("begun\n[ended at its time limit after "),
        "{}",
        output.text
    );
    assert!(record.duration_ms < 30_000);
}

#[tokio::test]
async fn a_shell_ends_when_it_is_told_to_and_leaves_nothing_behind() {
    let mut tools = Tools::start().await;
    let begun = tools.world.path("data/workspace/begun");
    let arguments = json!({"command": "touch begun; sleep 300 & sleep 300"}).to_string();
    let told = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // A busy machine takes its time to let a shell die.
        LONG
    };
    let call = tools.toolbox.call_until(ToolName::Bash, &arguments, LONG, told);
    let output = call.await.unwrap();
    let Facts::Bash(record) = &output.facts else {
        panic!("{}", output.text);
    };
    assert_eq!((record.signal, record.timed_out), (Some(15), false));
    assert!(tools.toolbox.ran().tree_empty);
    assert!(tools.toolbox.ran().peak_memory_bytes > 0);
}

// F056, F057
#[tokio::test]
async fn a_flood_is_counted_and_both_its_ends_are_kept() {
    let mut tools = Tools::start().await;
    let (text, record) = tools
        .bash("echo first; head -c 40000000 /dev/zero | tr '\\0' x; echo; echo last")
        .await;
    assert_eq!(record.output_bytes, 6 + 40_000_000 + 1 + 5);
    assert_eq!(record.sha256, None);
    assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast\n"));
    assert!(text.len() < 20_000);
}

#[tokio::test]
async fn hostile_arguments_are_answers() {
    let mut tools = Tools::start().await;
    let deep = "[".repeat(10_000);
    let wide = "x".repeat(3 << 20);
    let smuggled = "{\"path\":\"a\"}\n{\"guard\":false}";
    for arguments in [
        "",
        "null",
        "{\"path\":\"a\",\"path\":\"b\"}",
        smuggled,
        deep.as_str(),
        wide.as_str(),
    ] {
        for tool in [ToolName::ReadFile, ToolName::Bash] {
            let output = tools.toolbox.call(tool, arguments, LONG).await.unwrap();
            assert_eq!(
                output.facts,
                Facts::Refused {
                    code: "arguments".into()
                },
                "{}",
                output.text
            );
        }
    }
}

#[tokio::test]
async fn a_lost_executor_is_no_answer() {
    let mut tools = Tools::start().await;
    tools.executor.kill().unwrap();
    let arguments = json!({"command": "sleep 300"}).to_string();
    let failure = tools
        .toolbox
        .call(ToolName::Bash, &arguments, LONG)
        .await
        .unwrap_err();
    assert_eq!(failure.to_string(), "the executor's connection ended");
}

#[tokio::test]
async fn neither_an_answer_nor_a_record_shows_a_secret() {
    let mut tools = Tools::start().await;
    let half = SECRET.split_at(9);
    let command = format!("printf %s%s {} {}; : {SECRET}", half.0, half.1);
    let (text, _) = tools.bash(&command).await;
    assert!(text.contains("***"), "{text}");
    std::fs::write(tools.world.path("data/workspace/key"), SECRET).unwrap();
    let read = tools.call(ToolName::ReadFile, json!({"path": "key"})).await;
    assert_eq!(read.text, "     1\t***\n");
    let records = serde_json::to_string(&tools.records()).unwrap();
    assert!(!text.contains(SECRET) && !records.contains(SECRET), "{records}");
}

#[tokio::test]
async fn no_half_of_a_secret_shows_where_an_answer_is_cut() {
    let mut tools = Tools::start().await;
    let check = |text: &str| assert!(!text.contains("s3cr3t") && !text.contains("task"), "{text}");
    let fill = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' x");
    // At the end of the head and at the begin of the tail.
    let command = format!("{}; printf {SECRET}; {}", fill(8_182), fill(8_184));
    let (text, record) = tools.bash(&command).await;
    for text in [&text, &record.head, &record.tail] {
        check(text);
    }
    for before in [490, 1_990] {
        let line = format!("needle{}{SECRET}{}", "x".repeat(before - 6), "x".repeat(9_000));
        std::fs::write(tools.world.path("data/workspace/lines"), line).unwrap();
        let read = tools.call(ToolName::ReadFile, json!({"path": "lines"})).await;
        check(&read.text);
        let found = tools
            .call(ToolName::Grep, json!({"path": "lines", "pattern": "needle"}))
            .await;
        check(&found.text);
    }
}
