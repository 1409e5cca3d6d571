//! An executor that does what a test tells it to.

use crate::gateway::soon;
use agentrun_protocol::Blob;
use agentrun_protocol::executor::{
    CallId, Ended, Exec, ProcessEnd, Stream, StreamEnd, ToExecutor, ToRuntime,
};
use agentrun_protocol::frame::encode;
use agentrun_runtime::frames::FrameReader;
use std::path::Path;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub(crate) struct Executor {
    reader: FrameReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Executor {
    /// Connects as soon as there is a socket, and takes the expectation.
    pub(crate) async fn connect(socket: &Path) -> Executor {
        let stream = soon("the executor's socket", async {
            loop {
                match UnixStream::connect(socket).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        });
        let (reader, writer) = stream.await.into_split();
        let mut executor = Executor {
            reader: FrameReader::new(reader),
            writer,
        };
        assert!(matches!(executor.next().await, Some(ToExecutor::Expect { .. })));
        executor
    }

    /// Connects and is ready.
    pub(crate) async fn ready(socket: &Path) -> Executor {
        let mut executor = Executor::connect(socket).await;
        executor
            .say(ToRuntime::Ready {
                landlock_abi: 6,
                secrets: Vec::new(),
            })
            .await;
        executor
    }

    /// The next message; what asks for an empty `/tmp` is answered.
    pub(crate) async fn next(&mut self) -> Option<ToExecutor> {
        loop {
            let message = soon("a message for the executor", self.reader.next());
            match message.await.unwrap() {
                Some(ToExecutor::Clear) => self.say(ToRuntime::Cleared { clean: true }).await,
                message => return message,
            }
        }
    }

    /// The next program, with all of its stdin.
    pub(crate) async fn exec(&mut self) -> (Exec, Vec<u8>) {
        let Some(ToExecutor::Exec(exec)) = self.next().await else {
            panic!("expected a program")
        };
        let mut stdin = Vec::new();
        loop {
            let Some(ToExecutor::Stdin { data, last, .. }) = self.next().await else {
                panic!("expected stdin")
            };
            stdin.extend(data.0);
            if last {
                return (*exec, stdin);
            }
        }
    }

    /// The next kill: its grace in milliseconds.
    pub(crate) async fn kill(&mut self) -> u64 {
        let Some(ToExecutor::Kill { grace_ms, .. }) = self.next().await else {
            panic!("expected a kill")
        };
        grace_ms
    }

    pub(crate) async fn say(&mut self, message: ToRuntime) {
        self.writer.write_all(&encode(&message).unwrap()).await.unwrap();
    }

    pub(crate) async fn output(&mut self, id: CallId, stream: Stream, data: &[u8]) {
        for piece in data.chunks(64 * 1024) {
            let data = Blob(piece.to_vec());
            self.say(ToRuntime::Output { id, stream, data }).await;
        }
    }

    pub(crate) async fn output_file(&mut self, id: CallId, data: &[u8]) {
        let total = data.len() as u64;
        let data = Blob(data.to_vec());
        self.say(ToRuntime::OutputFile {
            id,
            data,
            last: true,
            total,
        })
        .await;
    }

    /// Ends a call whose whole output was sent.
    pub(crate) async fn end(&mut self, id: CallId, end: ProcessEnd) {
        self.end_because(id, end, false).await;
    }

    /// Ends a call; `stopped` where the executor was told to stop.
    pub(crate) async fn end_because(&mut self, id: CallId, end: ProcessEnd, stopped: bool) {
        let ended = Ended {
            id,
            end,
            duration_ms: 7,
            peak_memory_bytes: 4096,
            cpu_ms: 3,
            stdout: StreamEnd::default(),
            stderr: StreamEnd::default(),
            killed_descendants: 0,
            tree_empty: true,
            too_many_processes: false,
            killed_for_memory: false,
            stopped,
            blocked_on_stdin: false,
        };
        self.say(ToRuntime::Ended(Box::new(ended))).await;
    }

    /// Runs one function call to its end: `stdout`, then exit code 0.
    pub(crate) async fn answer(&mut self, stdout: &[u8]) -> Vec<u8> {
        let (exec, stdin) = self.exec().await;
        self.output(exec.id, Stream::Stdout, stdout).await;
        self.end(exec.id, ProcessEnd::Exited { code: 0 }).await;
        stdin
    }
}
