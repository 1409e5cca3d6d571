//! What is known about the end of an attempt, within the bounds of the schema.

use crate::text::{head, tail};
use agentrun_api::{Artifact, FileRef, Isolation, Json, Outcome, SubTaskReason, Verdict};
use agentrun_core::acceptance::MAX_DETAIL;
use agentrun_core::text::one_line;
use agentrun_protocol::agent::AgentFacts;
use agentrun_protocol::probe::Isolation as Probed;
use agentrun_protocol::result::{ArtifactRef, AttemptResult, CriterionVerdict, Ending, Timing, Usage};

const MAX_REASON: usize = 128;
const MAX_MESSAGE: usize = 4096;
const MAX_TAIL: usize = 2048;
const MAX_ARTIFACTS: usize = 100;
const MAX_FAMILY: usize = 32;

/// The end of an attempt, or evidence of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// How it ended. Without it the report is evidence: the operator, who sees the Pod, decides.
    pub(crate) outcome: Option<Outcome>,
    /// Why, as one word.
    pub(crate) reason: Option<String>,
    /// Why, as a sentence.
    pub(crate) message: Option<String>,
    /// Exit code of the program.
    pub(crate) exit_code: Option<i32>,
    /// The output, null included.
    pub(crate) output: Option<Json>,
    /// Where the output is.
    pub(crate) output_ref: Option<FileRef>,
    /// End of stdout.
    pub(crate) stdout_tail: Option<String>,
    /// Head and end of stderr.
    pub(crate) stderr_tail: Option<String>,
    /// Delivered files.
    pub(crate) artifacts: Vec<Artifact>,
    /// What the criteria say, as far as the runtime checked them.
    pub(crate) acceptance: Vec<Verdict>,
    /// What the isolation probe found.
    pub(crate) isolation: Option<Isolation>,
    /// No process of the attempt is left.
    pub(crate) process_tree_empty: Option<bool>,
    /// Where the time went.
    pub(crate) timing: Option<Timing>,
    /// What was used.
    pub(crate) usage: Option<Usage>,
    /// How an agent went.
    pub(crate) agent: Option<AgentFacts>,
}

impl Report {
    /// The executor is lost: evidence.
    pub(crate) fn lost(stdout_tail: &str, stderr_tail: &str) -> Self {
        Self {
            stdout_tail: some(tail(stdout_tail, MAX_TAIL)),
            stderr_tail: some(tail(stderr_tail, MAX_TAIL)),
            ..Self::default()
        }
    }

    /// The attempt could not even be assigned.
    pub(crate) fn unassignable(reason: &str, message: &str) -> Self {
        Self {
            outcome: Some(Outcome::Error),
            reason: Some(reason.to_owned()),
            message: some(head(message, MAX_MESSAGE)),
            ..Self::default()
        }
    }

    /// The same end without anything that the API server could refuse; `refusal` is what it said.
    pub(crate) fn bare(&self, refusal: &str) -> Self {
        let success = self.outcome == Some(Outcome::Success);
        let lost = SubTaskReason::OutputNotInline.as_str().to_owned();
        let message = format!("the API server refused to store the result: {refusal}");
        Self {
            outcome: if success {
                Some(Outcome::Error)
            } else {
                self.outcome
            },
            reason: if success { Some(lost) } else { self.reason.clone() },
            message: some(head(&message, MAX_MESSAGE)),
            process_tree_empty: self.process_tree_empty,
            agent: self.agent.clone(),
            ..Self::default()
        }
    }
}

impl From<AttemptResult> for Report {
    fn from(result: AttemptResult) -> Self {
        let artifacts = result.artifacts.into_iter().take(MAX_ARTIFACTS);
        Self {
            outcome: Some(outcome(result.ending)),
            reason: some(head(&result.reason, MAX_REASON)),
            message: some(head(&result.message, MAX_MESSAGE)),
            exit_code: result.exit_code,
            output: result.output.map(Json),
            output_ref: result.output_ref.map(|file| FileRef {
                path: file.path,
                bytes: signed(file.bytes),
                sha256: file.sha256,
            }),
            stdout_tail: some(tail(&result.stdout_tail, MAX_TAIL)),
            stderr_tail: some(tail(&result.stderr_tail, MAX_TAIL)),
            artifacts: artifacts.map(artifact).collect(),
            acceptance: result.acceptance.into_iter().map(verdict).collect(),
            isolation: result.isolation.map(isolation),
            process_tree_empty: Some(result.process_tree_empty),
            timing: Some(result.timing),
            usage: Some(result.usage),
            agent: result.agent,
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::Success => Outcome::Success,
        Ending::Timeout => Outcome::Timeout,
        Ending::ParseError => Outcome::ParseError,
        Ending::Error => Outcome::Error,
        Ending::Cancelled => Outcome::Cancelled,
    }
}

fn isolation(probed: Probed) -> Isolation {
    match probed {
        Probed::Verified => Isolation::Verified,
        Probed::NotIsolated => Isolation::NotIsolated,
        Probed::NotRequired => Isolation::NotRequired,
    }
}

fn verdict(verdict: CriterionVerdict) -> Verdict {
    Verdict {
        criterion: verdict.criterion,
        family: some(head(&verdict.family, MAX_FAMILY)),
        checked: verdict.checked,
        holds: verdict.checked && verdict.holds,
        detail: some(&one_line(&verdict.detail, MAX_DETAIL)),
    }
}

fn artifact(artifact: ArtifactRef) -> Artifact {
    Artifact {
        path: artifact.path,
        bytes: signed(artifact.bytes),
        sha256: artifact.sha256,
        media_type: some(&artifact.media_type),
    }
}
