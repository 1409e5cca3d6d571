//! What work writes costs the two binaries no memory.

use crate::real::Real;
use crate::world::command;
use agentrun_protocol::result::Ending;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Set in the copy of this test that runs alone, so that its memory is its own.
const ALONE: &str = "AGENTRUN_TEST_ALONE";
/// The most that either may hold more than before: both are built for debugging, and this process is gateway and test
/// besides.
const MOST: u64 = 8 << 20;

static OVER: AtomicBool = AtomicBool::new(false);
static EXECUTOR: AtomicU64 = AtomicU64::new(0);

/// The most resident memory of a process so far, in bytes.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// This process's descendants that are executors or supervisors.
fn executors() -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut queue = vec![std::process::id()];
    while let Some(process) = queue.pop() {
        let threads = fs::read_dir(format!("/proc/{process}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        queue.extend(lists.flat_map(|list| {
            let numbers = list
                .split_ascii_whitespace()
                .map(|word| word.parse::<u32>().unwrap());
            numbers.collect::<Vec<_>>()
        }));
        // The kernel cuts names, and a supervisor is started by way of /proc/self/exe.
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        if ["agentrun-sandbo", "exe"].contains(&name.trim()) {
            found.insert(process);
        }
    }
    found
}

// F056
#[tokio::test]
async fn a_gibibyte_of_output_costs_neither_runtime_nor_executor_memory() {
    if std::env::var_os(ALONE).is_none() {
        let name = "memory::a_gibibyte_of_output_costs_neither_runtime_nor_executor_memory";
        let alone = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ALONE, "1")
            .status();
        assert!(alone.unwrap().success());
        return;
    }
    let watcher = std::thread::spawn(|| {
        while !OVER.load(Ordering::Relaxed) {
            let peak = executors().into_iter().filter_map(peak).max().unwrap_or_default();
            EXECUTOR.fetch_max(peak, Ordering::Relaxed);
            std::thread::park_timeout(Duration::from_millis(5));
        }
    });
    let mut real = Real::start().await;
    real.next(command(&["true"])).await;
    let before = peak(std::process::id()).unwrap();
    let executor_before = executors().into_iter().filter_map(peak).max().unwrap();
    let script = "head -c 536870912 /dev/zero & head -c 536870912 /dev/zero >&2; wait; exit 3";
    let mut assignment = command(&["sh", "-c", script]);
    assignment.remaining_ms = 120_000;
    let result = real.next(assignment).await;
    OVER.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    assert_eq!(
        (result.ending, result.exit_code),
        (Ending::Error, Some(3)),
        "{result:?}"
    );
    let runtime = peak(std::process::id()).unwrap() - before;
    let executor = EXECUTOR.load(Ordering::Relaxed) - executor_before;
    println!("bytes, and how many more: runtime {before}, {runtime}; executor {executor_before}, {executor}");
    assert!(runtime < MOST, "the runtime held {runtime} bytes more");
    assert!(executor < MOST, "the executor held {executor} bytes more");
}
