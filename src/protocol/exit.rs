//! Exit codes of the `runtime` container that mean something to the operator. User code never runs
//! in that container, so these codes cannot be forged.

/// The work is over and its result was acknowledged.
pub const DONE: u8 = 0;
/// The environment of the container is incomplete: an installation fault.
pub const MISCONFIGURED: u8 = 64;
/// The executor's connection ended while work was running. The operator looks at the `sandbox`
/// container for the cause (out of memory, evicted) and writes the outcome.
pub const EXECUTOR_LOST: u8 = 70;
/// The gateway does not serve this runtime's protocol version.
pub const VERSION_SKEW: u8 = 71;
/// The gateway refused who we are: the Pod's time is over.
pub const REFUSED: u8 = 72;
/// The executor did not connect, or refused the container's mounts.
pub const EXECUTOR_REFUSED: u8 = 73;
