//! The environment of the `runtime` container: set by the operator, parsed once in the runtime's `main`.

use crate::executor::{ExpectedMount, SecretPlaces};
use serde::{Deserialize, Serialize};

/// `IP:PORT` of the gateway's channel.
pub const GATEWAY: &str = "AGENTRUN_GATEWAY";
/// PEM of the authority that signs the gateway's certificate (two during a rotation).
pub const GATEWAY_CA: &str = "AGENTRUN_GATEWAY_CA";
/// JSON of [`crate::probe::ProbeTargets`].
pub const PROBE: &str = "AGENTRUN_PROBE";
/// JSON of [`SandboxFacts`].
pub const SANDBOX: &str = "AGENTRUN_SANDBOX";
/// Digest of the runtime image, for the hello.
pub const RUNTIME_DIGEST: &str = "AGENTRUN_RUNTIME_DIGEST";
/// File with the projected token; read again on every connect.
pub const TOKEN_FILE: &str = "/var/run/secrets/agentrun/token";
/// The thread's `state` folder as the runtime container sees it.
pub const STATE: &str = "/mnt/state";
/// Where the runtime writes skills that came over the channel, `SKILLS/NAME/…`; the `sandbox` container
/// sees each read-only at `/mnt/skills/NAME`.
pub const SKILLS: &str = "/run/agentrun-skills";

/// Where the runtime finds the claims that files are copied from.
pub const SOURCES: &str = "/mnt/sources";

/// What the runtime must know of the container beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxFacts {
    /// Mounts that the executor must find.
    pub mounts: Vec<ExpectedMount>,
    /// Refuse work where the kernel has no Landlock.
    pub landlock_required: bool,
    /// Where the values of its Secrets are.
    pub secrets: SecretPlaces,
    /// Name of the image, as it was asked for.
    pub image: String,
    /// Kind of volume and driver, named when it cannot be written.
    pub volume: String,
}
