//! Input and output.

use crate::harness::Sandbox;
use agentrun_protocol::Blob;
use agentrun_protocol::executor::{ProcessEnd, ToExecutor, ToRuntime};
use std::time::Duration;

// F054
#[test]
fn stdin_ends_after_its_last_piece() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.exec(&["cat"]);
    assert_eq!(sandbox.run(exec, b"{\"a\":1}").succeeded().stdout, b"{\"a\":1}");
}

// F055
#[test]
fn two_mebibytes_of_input_arrive_whole() {
    let mut sandbox = Sandbox::start();
    let input: Vec<u8> = (0..2 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
    let exec = sandbox.exec(&["cat"]);
    assert!(sandbox.run(exec, &input).succeeded().stdout == input);
}

#[test]
fn a_program_that_never_reads_its_input_holds_up_nobody() {
    let mut sandbox = Sandbox::start();
    let deaf = sandbox.exec(&["sleep", "1000"]);
    let id = deaf.id;
    sandbox.send(&ToExecutor::Exec(Box::new(deaf)));
    sandbox.close_stdin(id, &vec![0; 20 << 20]);
    let exec = sandbox.exec(&["true"]);
    sandbox.run(exec, b"").succeeded();
    sandbox.kill(id, Duration::ZERO);
    assert_eq!(sandbox.outcome(id).ended.end, ProcessEnd::Signalled { signal: 9 });
}

#[test]
fn a_program_that_ends_early_ignores_the_rest_of_its_input() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("head -c 1");
    assert_eq!(sandbox.run(exec, &vec![b'x'; 3 << 20]).succeeded().stdout, b"x");
}

#[test]
fn who_waits_for_an_open_stdin_is_told_so() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("echo ready; cat");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    sandbox.wait_until_blocked("cat");
    sandbox.kill(id, Duration::ZERO);
    assert!(sandbox.outcome(id).ended.blocked_on_stdin);
}

// F056
#[test]
fn two_hundred_megabytes_of_output_are_counted_and_cost_no_memory() {
    let mut sandbox = Sandbox::start();
    let mut exec = sandbox.shell("head -c 200000000 /dev/zero; printf the-end");
    exec.output_bytes = 1 << 20;
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.close_stdin(id, b"");
    let outcome = sandbox.outcome(id);
    assert_eq!(outcome.ended.end, ProcessEnd::Exited { code: 0 });
    assert_eq!(outcome.stdout.len(), 1 << 20);
    assert_eq!(outcome.ended.stdout.total, 200_000_007);
    assert_eq!(outcome.ended.stdout.tail.0.len(), 64 * 1024);
    assert!(outcome.ended.stdout.tail.0.ends_with(b"the-end"));
    let peak = sandbox.peak_memory();
    assert!(peak < 12 << 20, "the executor used {peak} bytes");
}

#[test]
fn a_runtime_that_does_not_listen_stops_the_writer_and_can_still_kill_it() {
    let mut sandbox = Sandbox::start();
    let mut exec = sandbox.exec(&["yes"]);
    exec.output_bytes = u64::MAX;
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_until_blocked("yes");
    let peak = sandbox.peak_memory();
    assert!(peak < 12 << 20, "the executor used {peak} bytes");
    sandbox.kill(id, Duration::ZERO);
    assert_eq!(sandbox.outcome(id).ended.end, ProcessEnd::Signalled { signal: 9 });
}

#[test]
fn input_and_output_files_hold_the_same_as_the_streams() {
    let mut sandbox = Sandbox::start();
    let mut exec = sandbox.shell("cat; cat $AGENTRUN_INPUT; printf result > $AGENTRUN_OUTPUT");
    exec.io_files = true;
    let outcome = sandbox.run(exec, b"input").succeeded();
    assert_eq!(outcome.stdout, b"inputinput");
    assert_eq!(outcome.output_file.as_deref(), Some(&b"result"[..]));
}

#[test]
fn an_output_file_that_is_missing_or_a_link_counts_as_not_written() {
    let mut sandbox = Sandbox::start();
    for script in [
        "true",
        "ln -s /etc/passwd $AGENTRUN_OUTPUT",
        "mkfifo $AGENTRUN_OUTPUT",
    ] {
        let mut exec = sandbox.shell(script);
        exec.io_files = true;
        assert_eq!(sandbox.run(exec, b"").succeeded().output_file, None, "{script}");
    }
}

#[test]
fn an_output_file_is_not_looked_for_where_the_folder_was_exchanged_for_a_link() {
    let mut sandbox = Sandbox::start();
    std::fs::write(sandbox.path("data/uploads/output.json"), "of somebody else").unwrap();
    let uploads = sandbox.path("data/uploads");
    let script = format!("mv $TMPDIR $TMPDIR.old; ln -s {} $TMPDIR", uploads.display());
    let mut exec = sandbox.shell(&script);
    exec.io_files = true;
    assert_eq!(sandbox.run(exec, b"").succeeded().output_file, None);
    assert!(uploads.join("output.json").exists());
}

#[test]
fn a_call_that_waits_for_its_input_file_can_be_ended() {
    let mut sandbox = Sandbox::start();
    let mut exec = sandbox.exec(&["true"]);
    exec.io_files = true;
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.kill(id, Duration::ZERO);
    assert_eq!(
        sandbox.outcome(id).ended.end,
        ProcessEnd::Signalled { signal: 15 }
    );
}

/// Serves lines, leaves a file and a folder each time, and says how many files it found.
const SERVER: &str = "import os, sys
print('ready', flush=True)
for line in sys.stdin:
    folder = os.environ['TMPDIR']
    found = len(os.listdir(folder))
    os.makedirs(folder + '/a/b')
    open(folder + '/a/b/c', 'w').write(line)
    block = bytearray(int(line) << 20)
    del block
    print(found, flush=True)";

#[test]
fn a_program_rests_between_requests_without_its_files_and_with_its_own_peak() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.exec(&["python3", "-c", SERVER]);
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    let mut peaks = Vec::new();
    for line in ["64\n", "1\n"] {
        sandbox.send(&ToExecutor::Stdin {
            id,
            data: Blob(line.into()),
            last: false,
        });
        sandbox.wait_for_output(id, "0\n");
        sandbox.send(&ToExecutor::Rest { id });
        let ToRuntime::Rested {
            peak_memory_bytes, ..
        } = sandbox.receive()
        else {
            panic!("expected Rested");
        };
        peaks.push(peak_memory_bytes >> 20);
    }
    assert!(peaks[0] >= 64 && peaks[1] < 64, "{peaks:?}");
    sandbox.close_stdin(id, b"");
    sandbox.outcome(id).succeeded();
}

#[test]
fn what_was_written_before_the_rest_comes_before_its_answer() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("printf ready; read x; head -c 60000 /dev/zero; echo; cat");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    sandbox.send(&ToExecutor::Stdin {
        id,
        data: Blob(b"go\n".to_vec()),
        last: false,
    });
    sandbox.wait_until_blocked("cat");
    sandbox.send(&ToExecutor::Rest { id });
    let mut bytes = 0;
    loop {
        match sandbox.receive() {
            ToRuntime::Output { data, .. } => bytes += data.0.len(),
            ToRuntime::Rested { .. } => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(bytes, 60_001);
    sandbox.close_stdin(id, b"");
    sandbox.outcome(id).succeeded();
}
