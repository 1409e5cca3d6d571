//! Connections that take nothing.
//!
//! A timer inside an answer's body is only polled while the connection has room, which is just when it is not needed. So
//! the socket notes since when it takes nothing, and a timer beside the connection looks at that.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Since when a socket has taken nothing although there was something for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Arc<Mutex<Option<Instant>>>);

impl Waiting {
    fn begins(&self) {
        self.lock().get_or_insert_with(Instant::now);
    }

    fn ends(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when the socket has taken nothing for `most`, at most a sixth of it later.
    pub(crate) async fn too_long(&self, most: Duration) {
        loop {
            tokio::time::sleep(most / 6).await;
            let since = *self.lock();
            if since.is_some_and(|since| since.elapsed() >= most) {
                return;
            }
        }
    }
}

/// A socket that notes when it takes nothing.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    socket: S,
    waiting: Waiting,
}

impl<S> Watched<S> {
    pub(crate) fn new(socket: S, waiting: Waiting) -> Self {
        Self { socket, waiting }
    }

    fn note<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.waiting.begins();
        } else {
            self.waiting.ends();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing of ours is written here, so a finished flush is no progress.
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    // F131
    #[tokio::test(start_paused = true)]
    async fn a_socket_that_takes_nothing_is_noticed_and_one_that_takes_slowly_is_not() {
        let stall = Duration::from_secs(30);
        let (ours, mut theirs) = tokio::io::duplex(8);
        let waiting = Waiting::default();
        let mut socket = Watched::new(ours, waiting.clone());
        let writer = tokio::spawn(async move { while socket.write_all(&[0; 8]).await.is_ok() {} });
        let reading = async {
            for _ in 0..20 {
                tokio::time::sleep(stall / 2).await;
                theirs.read_exact(&mut [0; 4]).await.unwrap();
            }
        };
        tokio::select! {
            () = waiting.too_long(stall) => panic!("cut off although it takes"),
            () = reading => {}
        }
        tokio::time::timeout(stall * 2, waiting.too_long(stall))
            .await
            .expect("not noticed");
        writer.abort();
    }
}
