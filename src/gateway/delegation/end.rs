//! From a delegate with its outcome to what its agent is told; pure.

use agentrun_api::{Artifact, Outcome, StopReason, SubTask, SubTaskReason, Verdict};
use agentrun_protocol::agent::{self, DelegateEnd};
use agentrun_protocol::result::{ArtifactRef, CriterionVerdict};
use agentrun_protocol::work::FileRef;
use kube::ResourceExt as _;

/// How a delegate ended.
pub(super) fn end_of(delegate: &SubTask) -> DelegateEnd {
    let status = delegate.status.clone().unwrap_or_default();
    DelegateEnd {
        name: delegate.name_any(),
        outcome: status.outcome.unwrap_or(Outcome::Error).to_string(),
        reason: status.reason.unwrap_or_default(),
        message: status.message.unwrap_or_default(),
        stop_reason: status.stop_reason.map(stop_reason),
        output: status.output.map(|output| output.0),
        output_ref: status.output_ref.map(|file| FileRef {
            path: file.path,
            bytes: unsigned(file.bytes),
            sha256: file.sha256,
        }),
        artifacts: status.artifacts.into_iter().map(artifact).collect(),
        acceptance: status.acceptance.into_iter().map(verdict).collect(),
    }
}

/// How a delegate ended whose object is gone: somebody took it away.
pub(super) fn gone(name: &str) -> DelegateEnd {
    DelegateEnd {
        name: name.to_owned(),
        outcome: Outcome::Cancelled.to_string(),
        reason: SubTaskReason::Cancelled.to_string(),
        message: "its SubTask was deleted".to_owned(),
        stop_reason: None,
        output: None,
        output_ref: None,
        artifacts: Vec::new(),
        acceptance: Vec::new(),
    }
}

fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or_default()
}

fn stop_reason(reason: StopReason) -> agent::StopReason {
    match reason {
        StopReason::TokenCapped => agent::StopReason::TokenCapped,
        StopReason::TurnCapped => agent::StopReason::TurnCapped,
        StopReason::LoopCapped => agent::StopReason::LoopCapped,
    }
}

fn artifact(artifact: Artifact) -> ArtifactRef {
    ArtifactRef {
        path: artifact.path,
        bytes: unsigned(artifact.bytes),
        sha256: artifact.sha256,
        media_type: artifact
            .media_type
            .unwrap_or_else(|| "application/octet-stream".to_owned()),
    }
}

fn verdict(verdict: Verdict) -> CriterionVerdict {
    CriterionVerdict {
        criterion: verdict.criterion,
        family: verdict.family.unwrap_or_default(),
        checked: verdict.checked,
        holds: verdict.holds,
        detail: verdict.detail.unwrap_or_default(),
    }
}
