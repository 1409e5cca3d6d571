//! What the living processes of a call use.

use crate::sys::{self, Usage};
use crate::tree;
use rustix::process::Pid;
use std::fs;
use std::time::Duration;

/// Processes that are looked at.
const MOST: usize = 256;
/// Ticks of `/proc/PID/stat` in a second; a constant of the kernel's interface.
const TICKS: u64 = 100;

/// The largest resident size since the last time, and the processor time since the start.
pub(crate) fn since_last_time() -> Usage {
    let mut usage = Usage {
        peak_memory_bytes: 0,
        cpu: sys::usage_of_children().cpu,
    };
    for pid in tree::descendants(MOST).into_iter().map(tree::Process::pid) {
        let of = |name: &str| format!("/proc/{}/{name}", pid_of(pid));
        let status = fs::read_to_string(of("status")).unwrap_or_default();
        usage.peak_memory_bytes = usage.peak_memory_bytes.max(peak(&status).unwrap_or(0));
        let stat = fs::read_to_string(of("stat")).unwrap_or_default();
        usage.cpu += cpu(&stat).unwrap_or_default();
        // From here on the peak is the next request's. Without the right to say so it stays that of all.
        let _ = fs::write(of("clear_refs"), "5");
    }
    usage
}

fn pid_of(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// `VmHWM` of `/proc/PID/status`, in bytes.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// User and system time of a process and of its children that it waited for: fields 14 to 17 of `/proc/PID/stat`,
/// counted behind the name, which may hold anything.
fn cpu(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let numbers = rest.split_ascii_whitespace().skip(11).take(4);
    let ticks = numbers.map(str::parse::<u64>).sum::<Result<u64, _>>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_fake_its_times() {
        let stat = "7 (a) R 1 2) S 1 7 7 0 -1 4194304 100 0 0 0 12 3 5 1 20 0 1 0";
        assert_eq!(cpu(stat), Some(Duration::from_millis(210)));
        assert_eq!(cpu("7"), None);
    }

    #[test]
    fn the_peak_is_in_bytes() {
        assert_eq!(peak("VmPeak:\t  9 kB\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(peak(""), None);
    }
}
