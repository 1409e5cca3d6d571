//! One end of a connection that carries frames, never blocking.

use agentrun_protocol::frame::{Decoder, FrameError, encode};
use rustix::event::{PollFd, PollFlags};
use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes waiting to be sent above which nothing more should be queued that can wait.
pub(crate) const BUSY: usize = 1 << 20;

const CHUNK: usize = 64 * 1024;

/// A connection with its buffers.
#[derive(Debug)]
pub(crate) struct Peer {
    socket: UnixStream,
    decoder: Decoder,
    unsent: Vec<u8>,
    sent: usize,
    open: bool,
}

impl Peer {
    /// Takes over a connected socket.
    pub(crate) fn new(socket: UnixStream) -> io::Result<Peer> {
        socket.set_nonblocking(true)?;
        Ok(Peer {
            socket,
            decoder: Decoder::default(),
            unsent: Vec::new(),
            sent: 0,
            open: true,
        })
    }

    /// Whether the other side may still say something.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Bytes that wait to be sent.
    pub(crate) fn backlog(&self) -> usize {
        self.unsent.len() - self.sent
    }

    /// What to wait for: room to send if something waits, and input if `listen`.
    pub(crate) fn interest(&self, listen: bool) -> PollFd<'_> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, listen && self.open);
        flags.set(PollFlags::OUT, self.backlog() > 0);
        PollFd::new(&self.socket, flags)
    }

    /// Reads once; afterwards [`Peer::next`] may have messages. An end or error of the connection makes
    /// it closed, since nothing else can be done about either.
    pub(crate) fn receive(&mut self) {
        let mut buffer = vec![0; CHUNK];
        match self.socket.read(&mut buffer) {
            Ok(0) => self.open = false,
            Ok(count) => self.decoder.push(&buffer[..count]),
            Err(error) if is_transient(&error) => {}
            Err(_) => self.open = false,
        }
    }

    /// The next whole message.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        self.decoder.next()
    }

    /// Queues a message and sends what the socket takes at once.
    pub(crate) fn send<M: Serialize>(&mut self, message: &M) -> Result<(), FrameError> {
        let frame = encode(message)?;
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
        self.unsent.extend_from_slice(&frame);
        self.flush();
        Ok(())
    }

    /// Sends what the socket takes without blocking.
    pub(crate) fn flush(&mut self) {
        while self.backlog() > 0 {
            match self.socket.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_transient(&error) => break,
                Err(_) => {
                    self.open = false;
                    self.sent = self.unsent.len();
                }
            }
        }
        if self.sent >= BUSY {
            self.unsent.drain(..self.sent);
            self.sent = 0;
        }
        if self.sent == self.unsent.len() {
            self.unsent = Vec::new();
            self.sent = 0;
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
