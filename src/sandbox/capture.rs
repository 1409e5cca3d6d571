//! Counts a stream, decides what of it is sent, and keeps the end of the rest.

use agentrun_protocol::Blob;
use agentrun_protocol::executor::StreamEnd;
use std::collections::VecDeque;

/// Bytes beyond the limit that are kept.
pub(crate) const TAIL: usize = 64 * 1024;

/// One stream of one call. Memory is bounded by [`TAIL`].
#[derive(Debug)]
pub(crate) struct Capture {
    limit: u64,
    total: u64,
    tail: VecDeque<u8>,
}

impl Capture {
    /// Sends the first `limit` bytes.
    pub(crate) fn new(limit: u64) -> Capture {
        Capture {
            limit,
            total: 0,
            tail: VecDeque::new(),
        }
    }

    /// Takes the next bytes and gives back those of them to send.
    pub(crate) fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = usize::try_from(self.limit.saturating_sub(self.total)).unwrap_or(usize::MAX);
        self.total += bytes.len() as u64;
        let (send, keep) = bytes.split_at(room.min(bytes.len()));
        let keep = &keep[keep.len().saturating_sub(TAIL)..];
        let surplus = (self.tail.len() + keep.len()).saturating_sub(TAIL);
        self.tail.drain(..surplus);
        self.tail.extend(keep);
        send
    }

    /// The totals.
    pub(crate) fn end(self) -> StreamEnd {
        StreamEnd {
            total: self.total,
            tail: Blob(self.tail.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // A file of failed cases beside the crates would count as a crate.
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sent_and_tail_are_the_start_and_the_end_of_the_stream(
            limit in 0_u64..100_000,
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9_000), 0..20),
        ) {
            let mut capture = Capture::new(limit);
            let sent: Vec<u8> = pieces.iter().flat_map(|piece| capture.take(piece)).copied().collect();
            let end = capture.end();
            let all = pieces.concat();
            let cut = all.len().min(usize::try_from(limit).unwrap());
            prop_assert_eq!(end.total, all.len() as u64);
            prop_assert_eq!(&sent[..], &all[..cut]);
            let beyond = &all[cut..];
            prop_assert_eq!(&end.tail.0[..], &beyond[beyond.len().saturating_sub(TAIL)..]);
        }
    }
}
