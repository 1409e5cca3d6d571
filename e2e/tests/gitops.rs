//! What GitOps tools see: an applied manifest is what was written.

use crate::framework::World;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Examples of every shape. The runs among them are deleted before they end.
const EXAMPLES: &[&str] = &[
    "pools.yaml",
    "skills/math-grader.yaml",
    "data/class-7.yaml",
    "math-grader.yaml",
    "hello.yaml",
];

// F113
pub async fn an_applied_example_shows_no_difference(world: World) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples");
    for example in EXAMPLES {
        let text = std::fs::read_to_string(folder.join(example)).expect("an example");
        let text = text.replace(
            "namespace: agentrun-demo",
            &format!("namespace: {}", world.namespace),
        );
        for verb in [
            &["apply"][..],
            &["apply"],
            &["apply", "--server-side", "--force-conflicts"],
            &["diff"],
        ] {
            let (fits, said) = kubectl(verb, &text).await;
            assert!(fits, "kubectl {verb:?} of {example}:\n{said}");
        }
    }
}

async fn kubectl(verb: &[&str], text: &str) -> (bool, String) {
    let mut child = Command::new("kubectl")
        .args(verb)
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl on the path");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(text.as_bytes()).await.expect("it reads");
    drop(stdin);
    let ended = child.wait_with_output().await.expect("it ends");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    (ended.status.success(), said)
}
