//! A runtime for one executor: a socket, and blocking reads with a deadline.

use agentrun_protocol::Blob;
use agentrun_protocol::executor::{
    CallId, Ended, Exec, ExpectedMount, ProcessEnd, Stream, ToExecutor, ToRuntime,
};
use agentrun_protocol::frame::{Decoder, MAX_BLOB, encode};
use agentrun_protocol::work::{FileAccess, Limits};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Nothing in these tests takes longer on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// A running executor and the test's end of its connection.
pub(crate) struct Sandbox {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) process: Child,
    pub(crate) landlock_abi: u32,
    connection: UnixStream,
    decoder: Decoder,
    next_id: CallId,
}

/// What a call gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) output_file: Option<Vec<u8>>,
}

impl Outcome {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim().to_owned()
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Outcome {
        let stderr = String::from_utf8_lossy(&self.stderr);
        assert_eq!(self.ended.end, ProcessEnd::Exited { code: 0 }, "{stderr}");
        assert!(self.ended.tree_empty);
        self
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Sandbox {
    /// Starts an executor and greets it.
    pub(crate) fn start() -> Sandbox {
        Sandbox::start_with(&[])
    }

    pub(crate) fn start_with(variables: &[(&str, &str)]) -> Sandbox {
        let mut sandbox = Sandbox::connect(variables);
        sandbox.greet();
        sandbox
    }

    fn greet(&mut self) {
        let mounts = self.mounts();
        self.send(&ToExecutor::Expect {
            mounts,
            landlock_required: false,
            secrets: agentrun_protocol::executor::SecretPlaces::default(),
        });
        match self.receive() {
            ToRuntime::Ready { landlock_abi, .. } => self.landlock_abi = landlock_abi,
            other => panic!("expected Ready, got {other:?}"),
        }
    }

    /// Expects a mount that is not there.
    pub(crate) fn refused() -> (String, Sandbox) {
        let mut sandbox = Sandbox::connect(&[]);
        let mut mounts = sandbox.mounts();
        mounts.push(ExpectedMount {
            path: "/dev/nowhere".into(),
            read_only: true,
        });
        sandbox.send(&ToExecutor::Expect {
            mounts,
            landlock_required: false,
            secrets: agentrun_protocol::executor::SecretPlaces::default(),
        });
        match sandbox.receive() {
            ToRuntime::Refused { message } => (message, sandbox),
            other => panic!("expected Refused, got {other:?}"),
        }
    }

    fn connect(variables: &[(&str, &str)]) -> Sandbox {
        Sandbox::connect_to(|folder, socket| {
            let mut command = command(folder, socket);
            command.envs(variables.iter().copied());
            command
        })
    }

    /// Starts what `executor` says, given the folder with `tmp` and `data` and the socket in it.
    pub(crate) fn start_as(executor: impl FnOnce(&Path, &Path) -> Command) -> Sandbox {
        let mut sandbox = Sandbox::connect_to(executor);
        sandbox.greet();
        sandbox
    }

    fn connect_to(executor: impl FnOnce(&Path, &Path) -> Command) -> Sandbox {
        let folder = tempfile::tempdir().unwrap();
        for name in ["tmp", "shm", "data/uploads", "data/workspace", "data/outputs"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let socket = folder.path().join("executor.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let process = executor(folder.path(), &socket).spawn().unwrap();
        let (connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(DEADLINE)).unwrap();
        Sandbox {
            folder,
            process,
            landlock_abi: 0,
            connection,
            decoder: Decoder::default(),
            next_id: 1,
        }
    }

    /// The machine's own mounts, so that the check has nothing to refuse.
    fn mounts(&self) -> Vec<ExpectedMount> {
        let table = fs::read_to_string(format!("/proc/{}/mountinfo", self.process.id())).unwrap();
        let paths = table.lines().filter_map(|line| line.split(' ').nth(4));
        let unescaped = paths.map(|path| path.replace("\\040", " "));
        unescaped
            .map(|path| ExpectedMount {
                path,
                read_only: false,
            })
            .collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An `Exec` of a program, in the workspace, that may write.
    pub(crate) fn exec(&mut self, argv: &[&str]) -> Exec {
        let id = self.next_id;
        self.next_id += 1;
        Exec {
            id,
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            cwd: self.path("data/workspace").display().to_string(),
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            access: FileAccess::Write,
            tcp: false,
            limits: Limits::COMMAND,
            output_bytes: 16 << 20,
            io_files: false,
        }
    }

    /// The same for a line of shell.
    pub(crate) fn shell(&mut self, script: &str) -> Exec {
        self.exec(&["/bin/sh", "-c", script])
    }

    /// Runs a call with this stdin to its end.
    pub(crate) fn run(&mut self, exec: Exec, stdin: &[u8]) -> Outcome {
        let id = exec.id;
        self.send(&ToExecutor::Exec(Box::new(exec)));
        self.close_stdin(id, stdin);
        self.outcome(id)
    }

    pub(crate) fn close_stdin(&mut self, id: CallId, stdin: &[u8]) {
        let mut pieces: Vec<&[u8]> = stdin.chunks(MAX_BLOB).collect();
        let rest = pieces.pop().unwrap_or_default();
        for piece in pieces {
            self.send(&ToExecutor::Stdin {
                id,
                data: Blob(piece.to_vec()),
                last: false,
            });
        }
        self.send(&ToExecutor::Stdin {
            id,
            data: Blob(rest.to_vec()),
            last: true,
        });
    }

    pub(crate) fn kill(&mut self, id: CallId, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap();
        self.send(&ToExecutor::Kill { id, grace_ms });
    }

    /// Collects what a call says until it ends.
    pub(crate) fn outcome(&mut self, id: CallId) -> Outcome {
        let (mut stdout, mut stderr, mut output_file) = (Vec::new(), Vec::new(), None);
        loop {
            match self.receive() {
                ToRuntime::Output { id: of, stream, data } if of == id => match stream {
                    Stream::Stdout => stdout.extend(data.0),
                    Stream::Stderr => stderr.extend(data.0),
                },
                ToRuntime::OutputFile { id: of, data, .. } if of == id => {
                    output_file.get_or_insert_with(Vec::new).extend(data.0);
                }
                ToRuntime::Ended(ended) if ended.id == id => {
                    return Outcome {
                        ended: *ended,
                        stdout,
                        stderr,
                        output_file,
                    };
                }
                other => panic!("unexpected while call {id} runs: {other:?}"),
            }
        }
    }

    /// The same, but the call is killed when it takes longer than `patience`. Returns whether it was.
    pub(crate) fn outcome_within(&mut self, id: CallId, patience: Duration) -> (Outcome, bool) {
        let (over, ended) = std::sync::mpsc::channel::<()>();
        let mut connection = self.connection.try_clone().unwrap();
        std::thread::scope(|scope| {
            let killer = scope.spawn(move || {
                let late = ended.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
                if late {
                    let grace_ms = 2_000;
                    let kill = encode(&ToExecutor::Kill { id, grace_ms }).unwrap();
                    connection.write_all(&kill).unwrap();
                }
                late
            });
            let outcome = self.outcome(id);
            drop(over);
            (outcome, killer.join().unwrap())
        })
    }

    /// Waits until the call has written this to stdout.
    pub(crate) fn wait_for_output(&mut self, id: CallId, expected: &str) {
        let mut seen = String::new();
        while !seen.contains(expected) {
            match self.receive() {
                ToRuntime::Output { id: of, data, .. } if of == id => {
                    seen += &String::from_utf8_lossy(&data.0);
                }
                other => panic!("waited for {expected:?}, saw {seen:?}, got {other:?}"),
            }
        }
    }

    pub(crate) fn send(&mut self, message: &ToExecutor) {
        self.connection.write_all(&encode(message).unwrap()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> ToRuntime {
        self.try_receive().expect("the executor closed the connection")
    }

    /// `None` when the executor has ended the connection.
    pub(crate) fn try_receive(&mut self) -> Option<ToRuntime> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            if let Some(message) = self.decoder.next().unwrap() {
                return Some(message);
            }
            let count = match self.connection.read(&mut buffer) {
                // With a timeout it is not restarted, for instance after the machine was paused.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                result => result.expect("no message within the deadline"),
            };
            match count {
                0 => return None,
                count => self.decoder.push(&buffer[..count]),
            }
        }
    }

    /// The executor: the child of `unshare`, or what was started itself.
    pub(crate) fn executor_pid(&self) -> Pid {
        let started = self.process.id();
        let executor = if is_root() { children(started)[0] } else { started };
        pid(executor)
    }

    /// Supervisors.
    pub(crate) fn children_of_executor(&self) -> Vec<Pid> {
        children(self.executor_pid().as_raw_nonzero().get().cast_unsigned())
            .into_iter()
            .map(pid)
            .collect()
    }

    /// The most resident memory of the executor and its supervisors so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let mut processes = self.children_of_executor();
        processes.push(self.executor_pid());
        let peaks = processes.into_iter().filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))?
                .trim()
                .strip_suffix(" kB")?;
            line.parse::<u64>().ok()
        });
        peaks.max().unwrap() * 1024
    }

    /// Waits until a program of this name, below the executor, sleeps in a read or write.
    pub(crate) fn wait_until_blocked(&self, name: &str) {
        eventually(name, || {
            let mut queue = vec![self.executor_pid().as_raw_nonzero().get().cast_unsigned()];
            while let Some(process) = queue.pop() {
                queue.extend(children(process));
                let comm = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
                let call = fs::read_to_string(format!("/proc/{process}/syscall")).unwrap_or_default();
                let blocked = call
                    .split(' ')
                    .next()
                    .is_some_and(|number| matches!(number, "0" | "1" | "63" | "64"));
                if comm.trim() == name && blocked {
                    return true;
                }
            }
            false
        });
    }

    /// Ends the connection, as a runtime that dies does, and waits for the executor's end.
    pub(crate) fn disconnect(self) -> std::process::ExitStatus {
        let Sandbox {
            mut process,
            connection,
            folder: _folder,
            ..
        } = self;
        drop(connection);
        process.wait().unwrap()
    }
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed()).unwrap()
}

fn children(process: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    list.split_ascii_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

fn command(folder: &Path, socket: &Path) -> Command {
    let binary = env!("CARGO_BIN_EXE_agentrun-sandbox");
    let mut command = if is_root() {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", binary]);
        command
    } else {
        Command::new(binary)
    };
    command.arg("--socket").arg(socket);
    command.arg("--temp").arg(folder.join("tmp"));
    command.arg("--shm").arg(folder.join("shm"));
    command.arg("--user-data").arg(folder.join("data"));
    command.stdin(Stdio::null());
    command
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come true");
        std::thread::yield_now();
    }
}

/// Living processes of the machine whose command line contains this.
pub(crate) fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(word))
        .count()
}
