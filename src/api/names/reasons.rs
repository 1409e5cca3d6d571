//! Reasons: one word per condition or end that says why. Each condition has its own list.

use std::{fmt, str::FromStr};

/// An enumeration of reasons whose text is the variant's name, unless another one is given.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $meaning:literal])+ $variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $meaning])+ $variant),+ }

        impl $name {
            /// Every reason, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands in the object.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }

            /// What it means, for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($meaning),+).trim()),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(reason: $name) -> Self {
                reason.as_str().to_owned()
            }
        }

        impl FromStr for $name {
            type Err = UnknownReason;

            fn from_str(text: &str) -> Result<Self, UnknownReason> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|reason| reason.as_str() == text)
                    .ok_or_else(|| UnknownReason(text.to_owned()))
            }
        }
    };
}

/// A reason of another version, or none at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownReason(String);

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no reason of this version", self.0)
    }
}

impl std::error::Error for UnknownReason {}

reasons! {
    /// Reasons of the condition `Admitted`.
    AdmittedReason {
        /// The spec is valid and everything it names is there.
        Valid,
        /// The spec has a mistake. Final: nothing is started.
        Invalid,
        /// A field is used that has no behaviour in this version.
        NotYetSupported,
        /// `userData` differs from what the thread has.
        ThreadMismatch,
        /// There is no such Skill.
        SkillNotFound,
        /// The Skill is there but not ready.
        SkillNotReady,
        /// The Skill declares no such function.
        FunctionNotFound,
        /// There is no such SandboxPool.
        PoolNotFound,
        /// There is no such ConfigMap, or no such key in it.
        ConfigMapNotFound,
        /// There is no such Secret, or no such key in it.
        SecretNotFound,
        /// A run, artifact or claim that `files[]` names is not there.
        FileSourceNotFound,
        /// There is no such Model, or none that serves the role.
        ModelNotFound,
        /// Two Models have the role.
        AmbiguousModel,
    }
}

reasons! {
    /// Reasons of the condition `VolumeReady`.
    VolumeReadyReason {
        /// The claim is bound.
        Bound,
        /// The volume is being made.
        Provisioning,
        /// The volume is made when the first Pod has its node.
        WaitForFirstConsumer,
        /// Mounting a folder of it failed.
        VolumeSetupFailed,
        /// The sandbox's user cannot write to it.
        VolumeNotWritable,
        /// The node that holds it takes no more Pods.
        VolumeNodeUnavailable,
        /// A Pod on a lost node may still write to it.
        VolumeQuarantined,
    }
}

reasons! {
    /// Reasons of the condition `NetworkIsolated`.
    NetworkIsolatedReason {
        /// Everything that must be closed was closed.
        Verified,
        /// No sandbox has probed yet.
        Pending,
        /// Something was open, so no work was done there.
        NotIsolated,
        /// The operator runs without `--require-network-isolation`.
        NotRequired,
    }
}

reasons! {
    /// Reasons of the condition `Progressing`.
    ProgressingReason {
        /// Work is going on.
        Running,
        /// Another run has the thread.
        ThreadBusy,
        /// A quota of the namespace is used up.
        QuotaExceeded,
        /// An object that has to be made exists and belongs to something else.
        NameTaken,
        /// The API server, or an admission plugin, refuses an object that has to be made.
        Refused,
        /// The operator or the gateway is still starting.
        NotReady,
        /// `spec.suspend` holds it.
        Suspended,
        /// It waits for the next attempt.
        BackOff,
        /// No node takes the sandbox.
        Unschedulable,
        /// It waits for an answer or an approval.
        NeedsInput,
        /// It is over.
        Finished,
    }
}

reasons! {
    /// Reasons of the condition `AcceptanceMet`.
    AcceptanceMetReason {
        /// Every criterion holds.
        Holds,
        /// A criterion does not hold.
        DoesNotHold,
        /// No criterion fails, but one could not be decided.
        Unverified,
        /// There is nothing to check, or nothing was delivered.
        NotChecked,
    }
}

reasons! {
    /// Reasons of the condition `Complete`.
    CompleteReason {
        /// Everything that had to end well did.
        Succeeded,
        /// The same, but the run's output is too large for the object.
        OutputTooLarge,
    }
}

reasons! {
    /// Reasons of the condition `Failed`.
    FailedReason {
        /// A task failed and nothing handled it.
        TaskFailed,
        /// A task failed under `failurePolicy: FailFast`.
        RunFailedFast,
        /// The criteria are required and do not all hold.
        AcceptanceNotMet,
        /// `limits.timeout` is over.
        DeadlineExceeded,
        /// `limits.tokens` or `limits.cost` is used up.
        BudgetExceeded,
        /// Nothing could be started within `limits.startTimeout`.
        StartTimeout,
        /// `spec.cancel` was set.
        Cancelled,
        /// The thread was busy under `concurrencyPolicy: Reject`, or an approval was refused.
        Rejected,
        /// A newer run replaced it under `concurrencyPolicy: Replace`.
        Replaced,
        /// The spec has a mistake.
        Invalid,
    }
}

reasons! {
    /// Reasons of the condition `Ready` of a Skill, Model, SandboxPool or Thread.
    ReadyReason {
        /// It can be used.
        Ready,
        /// It has a mistake.
        Invalid,
        /// It is being looked at or made.
        Pending,
        /// The ConfigMap it names is not there.
        ConfigMapNotFound,
        /// The Secret it names is not there.
        SecretNotFound,
        /// The image it names cannot be pulled.
        ImagePullFailed,
        /// The claim it names is not there.
        ClaimNotFound,
        /// The endpoint refused the key.
        AuthFailed,
        /// The endpoint does not answer.
        Unreachable,
        /// The model does not call tools.
        NoTools,
    }
}

reasons! {
    /// Why a sub-task or an attempt of it ended as it did.
    SubTaskReason {
        /// It did its work.
        Completed,
        /// An earlier result with the same key was taken.
        Cached,
        /// The program ended with another exit code than 0.
        ExitCode,
        /// The program was killed and neither kernel nor kubelet recorded why.
        Signal9,
        /// It used more memory than its limit.
        OOMKilled,
        /// The kubelet evicted the Pod.
        Evicted,
        /// The scheduler preempted the Pod.
        Preempted,
        /// The executor is gone and nothing says why.
        ExecutorLost,
        /// The runtime container is gone.
        RuntimeLost,
        /// The Pod is gone.
        PodLost,
        /// The node is gone or does not answer.
        NodeLost,
        /// The runtime's version is not served any more.
        VersionSkew,
        /// The sandbox was cleared because of another call.
        SandboxReset,
        /// It could not be started within `limits.startTimeout`.
        StartTimeout,
        /// Its time is up.
        DeadlineExceeded,
        /// It was cancelled.
        Cancelled,
        /// Another task failed under `failurePolicy: FailFast`.
        RunFailedFast,
        /// An approval was refused.
        Rejected,
        /// Something it needs is not in its image.
        MissingDependency,
        /// A task it waits for ended otherwise.
        DependencyFailed,
        /// Its `if` is false.
        ConditionFalse,
        /// The delegation quota is used up.
        QuotaExceeded,
        /// More items failed than `maxFailures`.
        TooManyFailures,
        /// An expression asks for an output that is a file.
        OutputNotInline,
        /// An expression of the task has no value (a missing key, a wrong type, too large a result).
        ExpressionFailed,
        /// An input file is not what it was at admission.
        InputChanged,
        /// Its sandbox reached something that must be closed.
        NetworkNotIsolated,
        /// Its image cannot be pulled.
        ImagePullFailed,
        /// Its image's name is invalid.
        InvalidImageName,
        /// Mounting a folder of the volume failed.
        VolumeSetupFailed,
        /// The sandbox's user cannot write to the volume.
        VolumeNotWritable,
        /// A module the program imports is not there.
        ModuleNotFound,
        /// The interpreter the file needs is not there.
        InterpreterNotFound,
        /// It opened more files than it may.
        TooManyOpenFiles,
        /// It wrote a larger file than it may.
        FileTooLarge,
        /// It waited for input that never comes.
        BlockedOnStdin,
        /// It wrote no output.
        NoOutput,
        /// It wrote more than one JSON document.
        TrailingOutput,
        /// Its input does not fit the function's `input_schema`.
        InvalidInput,
        /// What it wrote is no JSON document, or does not fit the function's `output_schema`.
        InvalidOutput,
        /// It wrote more than is kept.
        OutputTooLarge,
        /// It was refused access to a file.
        PermissionDenied,
        /// The volume or the scratch space is full.
        NoSpaceLeft,
        /// It had more processes at once than it may.
        TooManyProcesses,
        /// Its program could not be started.
        StartFailed,
        /// No Model serves the agent's role, or more than one.
        NoModel,
        /// The model's endpoint does not take the key, or the key cannot be read.
        ModelAuthFailed,
        /// The model's endpoint does not answer, or has taken no request for as long as we ask.
        ModelUnavailable,
        /// The model's endpoint refuses the request.
        ModelRefused,
        /// What the model says is of no use.
        ModelBadAnswer,
        /// The agent's conversation is longer than its model reads, and could not be shortened.
        ContextTooLong,
        /// The run's tokens or money were used up before there was an answer.
        BudgetExceeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_back_from_its_word() {
        for reason in SubTaskReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
    }

    #[test]
    fn a_word_of_another_version_is_named() {
        let unknown = "Nova".parse::<SubTaskReason>().unwrap_err();
        assert_eq!(unknown.to_string(), "`Nova` is no reason of this version");
    }
}
