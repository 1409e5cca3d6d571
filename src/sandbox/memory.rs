//! How many processes of this container the kernel has killed because its memory was used up.

use std::fs;

/// Where the kernel counts them: in version 2 of cgroups, and in version 1. The container sees its own.
const COUNTERS: [&str; 2] = [
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
];

/// The count until now; 0 where it cannot be read, so that nothing is ever blamed on memory without evidence.
pub(crate) fn kills() -> u64 {
    COUNTERS
        .iter()
        .find_map(|file| fs::read_to_string(file).ok())
        .and_then(|text| count_in(&text))
        .unwrap_or(0)
}

fn count_in(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill "))
        .and_then(|count| count.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_read_from_both_versions_of_cgroups() {
        let second = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(count_in(second), Some(2));
        let first = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
        assert_eq!(count_in(first), Some(1));
        assert_eq!(count_in("oom_kill_disable 0\nunder_oom 0\n"), None);
    }
}
