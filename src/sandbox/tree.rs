//! The process tree below this process.
//!
//! Whoever calls this is PID 1 of a pid namespace or a child subreaper: every process that its calls
//! ever start is its descendant, whatever it forks, and becomes its child when its parent ends. So when
//! `waitpid` says that there is no child, there is no descendant: no list of processes can prove that.

use crate::sys;
use rustix::event::poll;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};
use rustix::time::Timespec;
use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

/// How long the end of a tree is waited for; only a process stuck in the kernel takes longer than an instant.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How long processes may take to stop.
const STANDSTILL: Duration = Duration::from_millis(500);
/// Processes that are listed at once.
const SWEEP: usize = 512;
const ROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// What is below.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reaped {
    /// One child ended.
    One(Pid, WaitStatus),
    /// Children exist, none has ended.
    Busy,
    /// No child, and so no descendant, exists.
    Empty,
}

/// Waits for one child without blocking.
pub(crate) fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => return Reaped::One(pid, status),
            Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Reaped::Empty,
            Ok(None) | Err(_) => return Reaped::Busy,
        }
    }
}

/// A living descendant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pid: Pid,
    /// `None` when its leader is outside of our pid namespace.
    group: Option<Pid>,
    stopped: bool,
}

impl Process {
    pub(crate) fn pid(self) -> Pid {
        self.pid
    }
}

/// Living descendants, at most `most`: while a fork bomb grows, a whole list would always be too late.
/// Zombies are left out: they run nothing and take no signal.
pub(crate) fn descendants(most: usize) -> Vec<Process> {
    let mut seen = HashSet::new();
    let mut queue = vec![getpid()];
    let mut found = Vec::new();
    while let Some(pid) = queue.pop() {
        for child in children(pid).into_iter().filter(|child| seen.insert(*child)) {
            queue.push(child);
            found.extend(living(child));
            if found.len() >= most {
                return found;
            }
        }
    }
    found
}

/// Children of all threads of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let threads = fs::read_dir(folder).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| parse_children(&list)).collect()
}

fn parse_children(list: &str) -> Vec<Pid> {
    let numbers = list.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

fn living(pid: Pid) -> Option<Process> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (state, group) = state_and_group(&stat)?;
    (!matches!(state, b'Z' | b'X')).then(|| Process {
        pid,
        group: Pid::from_raw(group),
        stopped: state == b'T',
    })
}

/// State letter and process group. They follow the name, which is in parentheses and may hold anything,
/// also those; in between is the parent.
fn state_and_group(stat: &[u8]) -> Option<(u8, i32)> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let state = *words.next()?.as_bytes().first()?;
    Some((state, words.nth(1)?.parse().ok()?))
}

/// Sends a signal to all living descendants. One that has just ended needs none.
pub(crate) fn signal_all(signal: Signal) {
    for process in descendants(usize::MAX) {
        let _ = kill_process(process.pid, signal);
    }
}

/// Stops all living descendants and waits a little until they stand still. Says whether all do: one that forks without
/// end, or hangs in the kernel, may not.
pub(crate) fn freeze() -> bool {
    let deadline = Instant::now() + STANDSTILL;
    let mut seen_still = 0;
    while Instant::now() < deadline {
        let moving = descendants(SWEEP).into_iter().filter(|process| !process.stopped);
        let moving: Vec<_> = moving.collect();
        if moving.is_empty() {
            seen_still += 1;
            if seen_still == 2 {
                return true;
            }
            continue;
        }
        seen_still = 0;
        for process in moving {
            let _ = kill_process(process.pid, Signal::STOP);
        }
        std::thread::yield_now();
    }
    false
}

/// Kills processes, each together with its group: that is one step, in which no member can fork. The groups
/// are those of the call's own sessions, except for a child that has not made its session yet.
fn kill_with_groups(processes: &[Process]) {
    let own = living(getpid()).and_then(|process| process.group);
    let groups: HashSet<Pid> = processes.iter().filter_map(|process| process.group).collect();
    for group in groups.into_iter().filter(|group| Some(*group) != own) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    for process in processes {
        let _ = kill_process(process.pid, Signal::KILL);
    }
}

/// How the end of a tree went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Felled {
    /// Descendants that were alive, as far as they were listed before they were gone.
    pub(crate) killed: u32,
    /// Whether no descendant is left.
    pub(crate) empty: bool,
}

/// Kills all descendants until none is left, at most for [`PATIENCE`]. Every child that ends goes through `seen`.
///
/// `everyone`: nobody but descendants can get a signal of ours, so that one `kill(-1)` catches even a
/// program that forks faster than a list of its processes can be read.
pub(crate) fn fell(everyone: bool, mut seen: impl FnMut(Pid, WaitStatus)) -> Felled {
    let deadline = Instant::now() + PATIENCE;
    let mut killed = HashSet::new();
    loop {
        let empty = loop {
            match reap() {
                Reaped::One(pid, status) => seen(pid, status),
                Reaped::Busy => break false,
                Reaped::Empty => break true,
            }
        };
        if empty || Instant::now() >= deadline {
            return Felled {
                killed: u32::try_from(killed.len()).unwrap_or(u32::MAX),
                empty,
            };
        }
        if everyone {
            // Who runs slows the list down, by seconds when there are hundreds, and makes it incomplete.
            sys::signal_everyone(Signal::STOP);
        }
        let living = descendants(SWEEP);
        killed.extend(living.iter().map(|process| process.pid));
        if everyone {
            sys::signal_everyone(Signal::KILL);
        }
        kill_with_groups(&living);
        let _ = poll(&mut [], Some(&ROUND));
    }
}

/// Whether a descendant waits in `read` on its stdin.
pub(crate) fn reads_stdin() -> bool {
    descendants(SWEEP).into_iter().any(|process| {
        let call = fs::read_to_string(format!("/proc/{}/syscall", process.pid.as_raw_nonzero()));
        call.is_ok_and(|call| is_read_of_stdin(&call))
    })
}

/// `/proc/PID/syscall`: the number in decimal, then the arguments in hexadecimal.
fn is_read_of_stdin(call: &str) -> bool {
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    number == Some(libc::SYS_read) && words.next() == Some("0x0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_fake_its_state() {
        assert_eq!(state_and_group(b"7 (a) Z 1 2) S 1 7 7 0"), Some((b'S', 7)));
        assert_eq!(state_and_group(b"7 (sleep) Z 1 7 7"), Some((b'Z', 7)));
        assert_eq!(state_and_group(b""), None);
    }

    #[test]
    fn only_a_read_of_descriptor_zero_is_waiting_for_stdin() {
        let read = libc::SYS_read;
        assert!(is_read_of_stdin(&format!("{read} 0x0 0x7ffd 0x1000")));
        assert!(!is_read_of_stdin(&format!("{read} 0x3 0x7ffd 0x1000")));
        assert!(!is_read_of_stdin("running"));
        assert!(!is_read_of_stdin("-1 0x7ffd 0x7ffd"));
    }

    #[test]
    fn a_list_of_children_may_be_empty() {
        assert!(parse_children("").is_empty());
        assert_eq!(parse_children("2 30 ").len(), 2);
    }
}
