//! Runtime ↔ gateway: one HTTP/2 request over TLS, both bodies open, frames in both directions.

use crate::Blob;
use crate::agent::{CallPlace, Delegation, DelegationState, Spent};
use crate::chat::{ModelAnswer, ModelFailure};
use crate::inspection::SkillFound;
use crate::result::AttemptResult;
use crate::version::Version;
use crate::work::{Assignment, AttemptId};
use serde::{Deserialize, Serialize};

/// The one route of the channel.
pub const PATH: &str = "/channel/v1";
/// TLS name of the gateway's certificate, whatever its address is.
pub const TLS_NAME: &str = "agentrun-gateway";
/// Audience of the sandbox's projected token.
pub const AUDIENCE: &str = "agentrun-gateway";
/// A side that has heard nothing for this many milliseconds gives the connection up.
pub const IDLE_MS: u64 = 30_000;
/// A side that has said nothing for this many milliseconds sends a ping.
pub const PING_MS: u64 = 10_000;

/// The longest request of a model in bytes of JSON (8 MiB).
pub const MAX_MODEL_REQUEST: usize = 8 << 20;

/// What a runtime says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ToGateway {
    /// First message. Who speaks is proven by the bearer token, not said here.
    #[serde(rename_all = "camelCase")]
    Hello {
        /// The protocol that the runtime speaks.
        protocol: Version,
        /// Digest of the runtime's image, as it was told.
        runtime_digest: String,
        /// The attempt that runs here, taken from an earlier connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        running: Option<AttemptId>,
    },
    /// The assignment was taken; the work starts.
    Taken(AttemptId),
    /// A line for people who follow; may be lost.
    Progress {
        /// The attempt that it is about.
        #[serde(flatten)]
        id: AttemptId,
        /// Text, at most 4 KiB.
        text: String,
    },
    /// The end of an attempt; repeated after every reconnect until acknowledged.
    Result {
        /// The attempt that ended.
        #[serde(flatten)]
        id: AttemptId,
        /// How.
        result: Box<AttemptResult>,
    },
    /// The executor is lost; evidence, not an outcome. Acknowledged like a result.
    #[serde(rename_all = "camelCase")]
    ExecutorLost {
        /// The attempt that was running.
        #[serde(flatten)]
        id: AttemptId,
        /// The end of stdout so far.
        stdout_tail: String,
        /// Head and end of stderr so far.
        stderr_tail: String,
    },
    /// What the skill mounted here is; repeated until acknowledged. Only the Pod that the Skill's status names is
    /// believed.
    Skill {
        /// UID of the Skill, and its generation as the attempt.
        #[serde(flatten)]
        id: AttemptId,
        /// What was found.
        found: SkillFound,
    },
    /// A piece of a [`crate::chat::ModelRequest`] as JSON, in order; images make it longer than a message. Asked again
    /// after a reconnect, as long as no answer came.
    ModelCall {
        /// The attempt that asks.
        #[serde(flatten)]
        id: AttemptId,
        /// Number of the call, new for every request of the attempt.
        call: u64,
        /// No piece follows.
        last: bool,
        /// The bytes, at most [`crate::frame::MAX_BLOB`]; [`MAX_MODEL_REQUEST`] in all.
        data: Blob,
        /// What the agent had used before.
        spent: Spent,
    },
    /// The answer is not wanted any more.
    ModelCancel {
        /// The attempt that asked.
        #[serde(flatten)]
        id: AttemptId,
        /// Number of the call.
        call: u64,
    },
    /// Asks for the delegates of one turn, or how they are: said again after a reconnect until all have ended. Each is
    /// answered by [`ToRuntime::Delegated`], at once and whenever its state changes.
    Delegate {
        /// The attempt that delegates.
        #[serde(flatten)]
        id: AttemptId,
        /// What it delegates.
        delegations: Vec<Delegation>,
    },
    /// Asks for the content with this digest (of an assignment's file or skill).
    Get {
        /// Lower-case hexadecimal SHA-256.
        sha256: String,
    },
    /// Keeps the connection alive.
    Ping,
}

/// What the gateway says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ToRuntime {
    /// The hello was accepted.
    Welcome {
        /// The protocol that the gateway speaks.
        protocol: Version,
    },
    /// Work for this Pod. Idempotent by attempt; sent again after a reconnect.
    Assign(Box<Assignment>),
    /// A piece of a content that was asked for, in order.
    Chunk {
        /// Digest of the whole content.
        sha256: String,
        /// Offset of this piece in bytes.
        offset: u64,
        /// No piece follows.
        last: bool,
        /// The bytes, at most [`crate::frame::MAX_BLOB`].
        data: Blob,
    },
    /// A content that was asked for cannot be had: it is gone or its digest changed.
    Missing {
        /// Digest of the content.
        sha256: String,
        /// What was found instead.
        message: String,
    },
    /// A piece of the text that a model is writing, for those who follow; what counts is the answer.
    ModelText {
        /// The attempt that asked.
        #[serde(flatten)]
        id: AttemptId,
        /// Number of the call.
        call: u64,
        /// What comes next.
        text: String,
    },
    /// The answer to a model call, or why there is none.
    ModelAnswer {
        /// The attempt that asked.
        #[serde(flatten)]
        id: AttemptId,
        /// Number of the call.
        call: u64,
        /// The answer.
        answer: Result<Box<ModelAnswer>, ModelFailure>,
    },
    /// Where a delegation stands.
    Delegated {
        /// The attempt that delegated.
        #[serde(flatten)]
        id: AttemptId,
        /// Which delegation.
        #[serde(flatten)]
        at: CallPlace,
        /// Its state.
        delegation: DelegationState,
    },
    /// The end of the attempt is stored, or of no interest any more.
    Ack(AttemptId),
    /// End the attempt: SIGTERM, and SIGKILL after the grace.
    #[serde(rename_all = "camelCase")]
    Cancel {
        /// The attempt to end.
        #[serde(flatten)]
        id: AttemptId,
        /// Milliseconds between the two signals.
        grace_ms: u64,
    },
    /// The gateway will not serve this connection.
    Refused {
        /// Why.
        code: Refusal,
        /// One sentence for the log.
        message: String,
    },
    /// Another gateway serves this run: connect there.
    Redirect {
        /// `IP:PORT`.
        address: String,
    },
    /// Answers a ping.
    Pong,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The protocol version is not served: exit, the attempt is `VersionSkew`.
    VersionSkew,
    /// The token is not valid, or its Pod is gone.
    Unauthenticated,
    /// A newer connection of the same Pod took over.
    Superseded,
}
