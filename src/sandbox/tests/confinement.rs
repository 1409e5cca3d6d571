//! What a program cannot reach. As root too: Landlock and seccomp ask nobody who they are.

use crate::harness::{Sandbox, is_root};
use agentrun_protocol::work::FileAccess;
use std::fs;

/// Runs a line of shell and gives what it printed.
fn says(sandbox: &mut Sandbox, access: FileAccess, script: &str) -> String {
    let mut exec = sandbox.shell(script);
    exec.access = access;
    exec.cwd = "/".into();
    sandbox.run(exec, b"").text()
}

fn with_landlock() -> Option<Sandbox> {
    let sandbox = Sandbox::start();
    (sandbox.landlock_abi > 0).then_some(sandbox)
}

#[test]
fn writing_is_possible_where_it_is_meant_to_be_and_nowhere_else() {
    let Some(mut sandbox) = with_landlock() else {
        return;
    };
    let outside = sandbox.path("outside");
    fs::create_dir(&outside).unwrap();
    let data = sandbox.path("data");
    let data = data.display();
    let cases = [
        (FileAccess::Write, format!("{data}/workspace/a"), true),
        (FileAccess::Write, format!("{data}/outputs/a"), true),
        (FileAccess::Write, format!("{data}/uploads/a"), false),
        (
            FileAccess::Write,
            sandbox.path("tmp/a").display().to_string(),
            true,
        ),
        (FileAccess::Write, outside.join("a").display().to_string(), false),
        (FileAccess::Write, "/etc/agentrun-test".into(), false),
        (FileAccess::Write, "/dev/agentrun-test".into(), false),
        (FileAccess::Write, "/dev/null".into(), true),
        (FileAccess::Write, "/dev/shm/agentrun-test".into(), true),
        (FileAccess::Read, format!("{data}/workspace/a"), false),
        (FileAccess::None, format!("{data}/workspace/a"), false),
        (FileAccess::None, "$TMPDIR/a".into(), true),
        (
            FileAccess::None,
            sandbox.path("tmp/b").display().to_string(),
            false,
        ),
    ];
    for (access, path, expected) in cases {
        let script = format!("if echo x 2>/dev/null >{path}; then echo true; else echo false; fi");
        assert_eq!(
            says(&mut sandbox, access, &script),
            expected.to_string(),
            "{access:?} {path}"
        );
    }
    let _ = fs::remove_file("/dev/shm/agentrun-test");
}

#[test]
fn a_function_without_files_sees_no_user_data_and_no_other_calls_folder() {
    let Some(mut sandbox) = with_landlock() else {
        return;
    };
    fs::write(sandbox.path("data/uploads/a"), "data").unwrap();
    fs::write(sandbox.path("tmp/other"), "data").unwrap();
    let upload = sandbox.path("data/uploads/a");
    let script = format!("cat {}", upload.display());
    assert_eq!(says(&mut sandbox, FileAccess::None, &script), "");
    assert_eq!(says(&mut sandbox, FileAccess::Read, &script), "data");
    let other = format!("cat {}", sandbox.path("tmp/other").display());
    assert_eq!(says(&mut sandbox, FileAccess::None, &other), "");
    assert_eq!(says(&mut sandbox, FileAccess::Read, &other), "");
}

#[test]
fn without_egress_there_is_no_internet_not_even_loopback() {
    let mut sandbox = Sandbox::start();
    let script = "import socket\nfor kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n    try: print(socket.socket(socket.AF_INET, kind).fileno() > 0)\n    except PermissionError: print('refused')\nsocket.socketpair()";
    for (tcp, expected) in [(false, "refused\nrefused"), (true, "True\nTrue")] {
        let mut exec = sandbox.exec(&["python3", "-c", script]);
        exec.tcp = tcp;
        assert_eq!(sandbox.run(exec, b"").succeeded().text(), expected);
    }
}

#[test]
fn dangerous_system_calls_are_refused() {
    let mut sandbox = Sandbox::start();
    // ptrace(TRACEME), unshare(NEWUSER), prlimit64 of PID 1, io_uring_setup, clone3, clone with NEWUSER
    let calls = [
        (libc::SYS_ptrace, "0,0,0,0", libc::EPERM),
        (libc::SYS_unshare, "0x10000000", libc::EPERM),
        (libc::SYS_prlimit64, "1,0,None,None", libc::EPERM),
        (libc::SYS_io_uring_setup, "1,None", libc::EPERM),
        (libc::SYS_clone3, "None,0", libc::ENOSYS),
        (libc::SYS_clone, "0x10000000,0,0,0,0", libc::EPERM),
        (libc::SYS_personality, "0x40000", libc::EPERM),
        (libc::SYS_socket, "38,5,0", libc::EPERM),
        (libc::SYS_mq_open, "None,0,0,None", libc::EPERM),
        (libc::SYS_personality, "0xffffffff", 0),
        (libc::SYS_prlimit64, "0,7,None,None", 0),
    ];
    for (number, arguments, expected) in calls {
        let script = format!(
            "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nr = libc.syscall({number},{arguments})\nprint(ctypes.get_errno() if r < 0 else 0)"
        );
        let exec = sandbox.exec(&["python3", "-c", &script]);
        assert_eq!(
            sandbox.run(exec, b"").succeeded().text(),
            expected.to_string(),
            "call {number} {arguments}"
        );
    }
}

#[test]
fn no_program_gains_privileges_and_none_is_in_the_executors_session() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; cut -d' ' -f6 /proc/$$/stat | grep -qx $$ && echo leader");
    let text = sandbox.run(exec, b"").succeeded().text();
    assert_eq!(text.replace('\t', " "), "NoNewPrivs: 1\nSeccomp: 2\nleader");
}

#[test]
fn root_keeps_only_capabilities_about_the_owners_of_files() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("sed -n 's/^CapEff:\\t//p;s/^CapBnd:\\t//p' /proc/self/status");
    for set in sandbox.run(exec, b"").succeeded().text().lines() {
        let set = u64::from_str_radix(set, 16).unwrap();
        // CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID; who cannot shrink the bounding set gains nothing by it.
        assert!(!is_root() || set & !0b1_1011 == 0, "{set:x}");
    }
}

#[test]
fn the_executor_and_the_supervisor_cannot_be_looked_into() {
    let Some(mut sandbox) = with_landlock() else {
        return;
    };
    let script = "for pid in 1 $PPID; do cat /proc/$pid/environ 2>/dev/null; readlink /proc/$pid/fd/0 /proc/$pid/exe; done; true";
    assert_eq!(says(&mut sandbox, FileAccess::Write, script), "");
}
