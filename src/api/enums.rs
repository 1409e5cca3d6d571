//! The enumerations. All are CamelCase, and no value is a YAML 1.1 boolean.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An enumeration without data whose wire text is the variant's name.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(inline)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text that stands in the object.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// How a sub-task ended.
    Outcome {
        /// It delivered what its contract asks for.
        Success,
        /// Its time was up.
        Timeout,
        /// It ended well but its output is not what the contract asks for.
        ParseError,
        /// It failed, or the platform could not run it.
        Error,
        /// Someone or something stopped it on purpose.
        Cancelled,
        /// It was never started, on purpose.
        Skipped,
    }
}

words! {
    /// Where a run stands.
    RunPhase {
        /// Nothing has started.
        Pending,
        /// Work is going on.
        Running,
        /// It waits for an answer or an approval of yours.
        NeedsInput,
        /// `spec.suspend` holds it.
        Suspended,
        /// It ended well.
        Succeeded,
        /// It ended badly.
        Failed,
        /// It was cancelled.
        Cancelled,
    }
}

words! {
    /// Where a sub-task stands.
    SubTaskPhase {
        /// It waits to be placed or approved, or for its next attempt.
        Pending,
        /// An attempt is going on.
        Running,
        /// It has its outcome.
        Finished,
    }
}

words! {
    /// What a sub-task is to its run.
    SubTaskRole {
        /// One of the run's `tasks`, or one item of a `forEach`.
        Task,
        /// The lead agent.
        Lead,
        /// Work that an agent delegated.
        Delegate,
    }
}

words! {
    /// Which end of another task is waited for.
    When {
        /// Success, and accepted if that is required.
        Succeeded,
        /// Any end.
        Finished,
        /// Error, Timeout, ParseError, Cancelled, or not accepted.
        Failed,
    }
}

words! {
    /// What a failed task means for the others.
    FailurePolicy {
        /// What does not depend on it goes on.
        Continue,
        /// The others are cancelled.
        FailFast,
    }
}

words! {
    /// With whom a sandbox may be shared over time.
    Reuse {
        /// One sub-task, then it goes.
        Never,
        /// Sub-tasks of the same run.
        SameRun,
        /// Runs of the same thread.
        SameThread,
    }
}

words! {
    /// When a sandbox is started.
    Start {
        /// When its work may start.
        Lazy,
        /// With the run.
        Eager,
    }
}

words! {
    /// What becomes of the user data at the end.
    OnRelease {
        /// The volume goes once the last holder has left.
        Delete,
        /// The volume stays.
        Retain,
    }
}

words! {
    /// What a run does on a thread that is busy.
    ConcurrencyPolicy {
        /// It waits its turn.
        Queue,
        /// It fails at once.
        Reject,
        /// It cancels the one that is running.
        Replace,
    }
}

words! {
    /// What a criterion that does not hold means.
    AcceptancePolicy {
        /// It is reported.
        Report,
        /// It is required: dependants wait, and the attempt may be repeated.
        Require,
    }
}

words! {
    /// What follows an end that the platform caused.
    OnDisruption {
        /// Another attempt, up to three times.
        Restart,
        /// An error.
        Fail,
    }
}

words! {
    /// An end that is worth another attempt.
    RetryOutcome {
        /// Outcome `Error`.
        Error,
        /// Outcome `Timeout`.
        Timeout,
        /// Outcome `ParseError`.
        ParseError,
        /// Success that is not accepted although `acceptancePolicy` is `Require`.
        AcceptanceNotMet,
    }
}

words! {
    /// What a delegated agent sees of its parent's conversation.
    ContextMode {
        /// Only its own prompt.
        Isolated,
        /// Besides, an immutable copy of the conversation at dispatch time.
        Snapshot,
    }
}

words! {
    /// How a `forEach` collects its outputs.
    Collect {
        /// As a list in item order.
        List,
        /// As a JSON Lines file.
        File,
    }
}

words! {
    /// Why an agent stopped before it was done.
    StopReason {
        /// Its tokens were used up.
        TokenCapped,
        /// Its turns were used up.
        TurnCapped,
        /// It repeated itself without progress.
        LoopCapped,
    }
}

words! {
    /// Whether a lead goes on with the thread's conversation.
    History {
        /// It goes on.
        Continue,
        /// It starts anew.
        Fresh,
    }
}

words! {
    /// Whether work waits for an approval.
    Approval {
        /// It stays `Pending` until someone approves.
        Required,
    }
}

words! {
    /// What a run asks of a person.
    PendingKind {
        /// An agent asked something.
        Question,
        /// Something waits for a yes or no.
        Approval,
    }
}

words! {
    /// What was found about a sandbox's network before any user code ran.
    Isolation {
        /// Everything that must be closed was closed.
        Verified,
        /// Something was open.
        NotIsolated,
        /// The operator runs without `--require-network-isolation`.
        NotRequired,
    }
}

words! {
    /// Transport protocol of an egress rule.
    Protocol {
        /// TCP.
        TCP,
        /// UDP.
        UDP,
    }
}

words! {
    /// How a volume may be mounted, as in a PersistentVolumeClaim.
    AccessMode {
        /// By Pods of one node.
        ReadWriteOnce,
        /// By Pods of many nodes.
        ReadWriteMany,
        /// By one Pod.
        ReadWriteOncePod,
    }
}

words! {
    /// What happens on a node whose kernel has no Landlock.
    Landlock {
        /// The work is refused.
        Required,
        /// The work runs with what there is.
        BestEffort,
    }
}

words! {
    /// Which files a function touches.
    FunctionFiles {
        /// None but its temporary folder.
        None,
        /// It reads user data.
        Read,
        /// It writes user data.
        Write,
    }
}

impl Default for SubTaskRole {
    /// A unit of a fixed plan.
    fn default() -> Self {
        Self::Task
    }
}
