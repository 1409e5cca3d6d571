//! Types of conditions.

/// Whether the spec is valid and everything it names is there.
pub const ADMITTED: &str = "Admitted";
/// Whether the user-data volume can be used.
pub const VOLUME_READY: &str = "VolumeReady";
/// Whether sandboxes reach nothing but what they may.
pub const NETWORK_ISOLATED: &str = "NetworkIsolated";
/// Whether work is going on, or why not.
pub const PROGRESSING: &str = "Progressing";
/// What the acceptance criteria say.
pub const ACCEPTANCE_MET: &str = "AcceptanceMet";
/// The run ended well. At the end exactly one of this and [`FAILED`] is True.
pub const COMPLETE: &str = "Complete";
/// The run ended badly or was cancelled.
pub const FAILED: &str = "Failed";
/// Whether a Skill, Model, SandboxPool or Thread can be used.
pub const READY: &str = "Ready";
