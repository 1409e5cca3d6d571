//! The tables of reasons in the reference.

use agentrun_api::names::reasons::{
    AcceptanceMetReason, AdmittedReason, CompleteReason, FailedReason, NetworkIsolatedReason,
    ProgressingReason, ReadyReason, SubTaskReason, VolumeReadyReason,
};
use std::fs;
use std::path::PathBuf;

const HEAD: &str = "| reason | meaning |\n|---|---|\n";

/// Rewrites the tables with `UPDATE_CRDS=1 cargo test -p agentrun-api`, like the definitions.
#[test]
fn the_reference_lists_every_reason_with_its_meaning() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let committed = fs::read_to_string(&path).unwrap();
    let mut expected = committed.clone();
    for (heading, table) in tables() {
        expected = with_table(&expected, heading, &table);
    }
    if std::env::var_os("UPDATE_CRDS").is_some() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(
        committed == expected,
        "docs/reference.md does not list what names/reasons.rs has: run UPDATE_CRDS=1 cargo test -p agentrun-api"
    );
}

fn tables() -> Vec<(&'static str, String)> {
    macro_rules! table {
        ($heading:literal, $reason:ident) => {
            (
                $heading,
                rows(
                    $reason::ALL
                        .iter()
                        .map(|reason| (reason.as_str(), reason.meaning())),
                ),
            )
        };
    }
    vec![
        table!("### Condition `Admitted`", AdmittedReason),
        table!("### Condition `VolumeReady`", VolumeReadyReason),
        table!("### Condition `NetworkIsolated`", NetworkIsolatedReason),
        table!("### Condition `AcceptanceMet`", AcceptanceMetReason),
        table!("### Condition `Progressing`", ProgressingReason),
        table!("### Condition `Complete`", CompleteReason),
        table!("### Condition `Failed`", FailedReason),
        table!(
            "### Condition `Ready` of a Skill, Model, SandboxPool or Thread",
            ReadyReason
        ),
        table!("### Sub-tasks and attempts", SubTaskReason),
    ]
}

fn rows(reasons: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let rows = reasons.map(|(reason, meaning)| format!("| `{reason}` | {meaning} |\n"));
    HEAD.to_owned() + &rows.collect::<String>()
}

/// The page with `table` as the only table below `heading`.
fn with_table(page: &str, heading: &str, table: &str) -> String {
    let (before, rest) = page
        .split_once(&format!("{heading}\n\n"))
        .unwrap_or_else(|| panic!("docs/reference.md has no heading {heading:?}"));
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    format!("{before}{heading}\n\n{table}{}", &rest[end..])
}
