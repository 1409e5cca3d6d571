//! Bounds of one call, from what a function declares and a sub-task asks for; pure.

use agentrun_api::{Resources, SkillFunction};
use agentrun_protocol::work::Limits;

/// Bytes of one MB as functions declare them.
const MB: u64 = 1 << 20;

/// Bounds of a command: memory is left to the container's cgroup, since an address-space limit breaks programs that
/// reserve much and use little (Node, Java, Go).
pub(crate) fn command_limits() -> Limits {
    Limits::COMMAND
}

/// Bounds of a function: its own declaration, which `resources.memory` may only lower.
pub(crate) fn function_limits(function: &SkillFunction, resources: Option<&Resources>) -> Limits {
    let declared = count(function.max_memory_mb).saturating_mul(MB);
    let asked = resources
        .and_then(|resources| resources.memory.as_ref())
        .and_then(|memory| memory.bytes().ok());
    let mut limits = Limits::FUNCTION;
    limits.memory_bytes = Some(asked.map_or(declared, |asked| asked.min(declared)));
    if let Some(mb) = function.max_file_mb {
        limits.file_bytes = limits.file_bytes.max(count(mb).saturating_mul(MB));
    }
    if let Some(files) = function.max_open_files {
        limits.open_files = limits.open_files.max(count(files));
    }
    limits
}

fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> SkillFunction {
        SkillFunction {
            max_memory_mb: 64,
            ..SkillFunction::default()
        }
    }

    fn memory(text: &str) -> Resources {
        Resources {
            memory: Some(text.into()),
            ..Resources::default()
        }
    }

    #[test]
    fn a_sub_task_may_only_lower_the_memory_of_a_function() {
        let bytes = |resources: Option<&Resources>| function_limits(&declared(), resources).memory_bytes;
        assert_eq!(bytes(None), Some(64 * MB));
        assert_eq!(bytes(Some(&memory("32Mi"))), Some(32 * MB));
        assert_eq!(bytes(Some(&memory("1Gi"))), Some(64 * MB));
    }

    #[test]
    fn declarations_raise_files_and_descriptors_above_the_defaults() {
        let function = SkillFunction {
            max_file_mb: Some(5),
            max_open_files: Some(16),
            ..declared()
        };
        let limits = function_limits(&function, None);
        assert_eq!(limits.file_bytes, 5 * MB);
        assert_eq!(limits.open_files, Limits::FUNCTION.open_files);
    }
}
