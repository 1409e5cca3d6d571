//! Resource limits.

use crate::harness::Sandbox;
use agentrun_protocol::executor::ProcessEnd;
use agentrun_protocol::work::{FileAccess, Limits};

#[test]
fn a_file_above_the_limit_cannot_be_written() {
    let mut sandbox = Sandbox::start();
    let mut exec = sandbox.shell("head -c 2000000 /dev/zero > $TMPDIR/file");
    exec.limits = Limits::FUNCTION;
    let outcome = sandbox.run(exec, b"");
    assert_ne!(outcome.ended.end, ProcessEnd::Exited { code: 0 });
}

#[test]
fn only_so_many_files_can_be_open() {
    let mut sandbox = Sandbox::start();
    let script =
        "import os\ntry:\n    while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e.errno)";
    let mut exec = sandbox.exec(&["python3", "-c", script]);
    exec.limits = Limits::FUNCTION;
    assert_eq!(
        sandbox.run(exec, b"").succeeded().text(),
        libc::EMFILE.to_string()
    );
}

#[test]
fn memory_above_the_limit_is_a_memory_error() {
    let mut sandbox = Sandbox::start();
    let script = "try:\n    bytearray(300_000_000)\nexcept MemoryError: print('no memory')";
    let mut exec = sandbox.exec(&["python3", "-c", script]);
    exec.limits.memory_bytes = Some(128 << 20);
    assert_eq!(sandbox.run(exec, b"").succeeded().text(), "no memory");
}

#[test]
fn runtimes_that_reserve_much_address_space_start_under_a_small_limit() {
    let mut sandbox = Sandbox::start();
    let cases: [&[&str]; 2] = [
        &[
            "node",
            "-e",
            "console.log(require('v8').getHeapStatistics().heap_size_limit < 2e8)",
        ],
        &["java", "-version"],
    ];
    for argv in cases {
        let found = std::process::Command::new("sh")
            .args(["-c", &format!("command -v {}", argv[0])])
            .output()
            .unwrap();
        if !found.status.success() {
            continue;
        }
        let mut exec = sandbox.exec(argv);
        exec.access = FileAccess::None;
        exec.cwd = "/".into();
        exec.limits = Limits {
            memory_bytes: Some(128 << 20),
            file_bytes: 1 << 20,
            open_files: 64,
            ..Limits::FUNCTION
        };
        let outcome = sandbox.run(exec, b"").succeeded();
        if argv[0] == "node" {
            assert_eq!(outcome.text(), "true");
        }
    }
}

#[test]
fn cpu_time_above_the_limit_ends_the_program() {
    let mut sandbox = Sandbox::start();
    let mut exec = sandbox.shell("while :; do :; done");
    exec.limits.cpu_seconds = Some(1);
    let outcome = sandbox.run(exec, b"");
    assert_eq!(
        outcome.ended.end,
        ProcessEnd::Signalled {
            signal: libc::SIGXCPU
        }
    );
    // The kernel limits by samples and counts exactly, so that the two differ on a busy machine.
    assert!(outcome.ended.cpu_ms >= 500, "{}", outcome.ended.cpu_ms);
}

#[test]
fn no_core_is_dumped() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("ulimit -c; ulimit -Hc");
    assert_eq!(sandbox.run(exec, b"").succeeded().text(), "0\n0");
}
