//! Labels, annotations, finalizers and field managers.

/// UID of the run an object belongs to.
pub const RUN_UID: &str = "agentrun.dev/run-uid";
/// UID of the SubTask an object belongs to.
pub const SUBTASK_UID: &str = "agentrun.dev/subtask-uid";
/// UID of the SubTask a cold Pod was made for.
pub const MADE_FOR: &str = "agentrun.dev/made-for";
/// UID of the Skill a Pod reads.
pub const SKILL_UID: &str = "agentrun.dev/skill-uid";
/// Annotation: name of the Skill a Pod reads.
pub const SKILL: &str = "agentrun.dev/skill";
/// UID of the claim a Pod is on.
pub const CLAIM: &str = "agentrun.dev/claim";
/// Hash of the egress set a Pod lives under.
pub const EGRESS: &str = "agentrun.dev/egress";
/// UID of the SandboxPool an object was made by.
pub const POOL_UID: &str = "agentrun.dev/pool-uid";
/// Who manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`] on everything that AgentRun makes.
pub const MANAGED_BY_VALUE: &str = "agentrun";

/// Annotation: until when files of a Thread or run are wanted, as an RFC 3339 time.
pub const FILES_WANTED_UNTIL: &str = "agentrun.dev/files-wanted-until";

/// Finalizer of a SubTask: it holds a sandbox and user data.
pub const LEASE: &str = "agentrun.dev/lease";
/// Finalizer of a Thread: its data is in use.
pub const IN_USE: &str = "agentrun.dev/in-use";
/// Finalizer of a SandboxPool: its slots exist.
pub const SLOTS: &str = "agentrun.dev/slots";

/// Field manager of the operator.
pub const OPERATOR: &str = "agentrun-operator";
/// Field manager of the gateway.
pub const GATEWAY: &str = "agentrun-gateway";

/// Annotation on an AgentRun that was made over the public API: who asked for it.
pub const REQUESTED_BY: &str = "agentrun.dev/requested-by";
/// Annotation on an AgentRun that was made over the public API: digest of the request, by which a repeat is known.
pub const REQUEST_DIGEST: &str = "agentrun.dev/request-digest";
/// Annotation on a SubTask that was decided when it was made: JSON of outcome, reason and message. No Pod is
/// made for it.
pub const DECIDED: &str = "agentrun.dev/decided";
/// Annotation on a SubTask that its run stops: `REASON TIME` (`Cancelled`, `RunFailedFast` or
/// `DeadlineExceeded`, RFC 3339).
pub const STOP: &str = "agentrun.dev/stop";
/// Annotation on a SubTask that an agent asked for: `TURN-CALL`, the place in the agent's conversation.
pub const CALL: &str = "agentrun.dev/call";
/// Annotation on the same: the file below `state` that holds the conversation it sees, as JSON. Written by the gateway
/// alone.
pub const SNAPSHOT: &str = "agentrun.dev/snapshot";
/// Annotation on a Pod: the number of the attempt that it was made for.
pub const ATTEMPT: &str = "agentrun.dev/attempt";
