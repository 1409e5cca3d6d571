//! Server-sent events, as far as model endpoints use them: bytes in, the data of whole events out; pure.

/// The longest event in bytes. A whole answer may come in one.
pub(super) const MAX_EVENT: usize = 2 << 20;

/// An event is longer than [`MAX_EVENT`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {MAX_EVENT} bytes")]
pub(super) struct TooLong;

/// Collects bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// What is not a whole line yet.
    line: Vec<u8>,
    /// The data of the event so far.
    data: String,
    has_data: bool,
    after_cr: bool,
}

impl Events {
    /// Takes bytes, wherever they are cut, and gives back the data of the events that are whole now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut whole = Vec::new();
        for &byte in bytes {
            let follows_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    whole.extend(self.end_line());
                }
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err(TooLong);
            }
        }
        Ok(whole)
    }

    /// The event that the end of the stream completes: some endpoints forget the last empty line.
    pub(super) fn finish(&mut self) -> Option<String> {
        let ended = self.end_line();
        ended.or_else(|| self.take())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            return self.take();
        }
        // Comments, `event:`, `id:` and `retry:` say nothing here.
        if let Some(data) = line.strip_prefix("data:") {
            if self.has_data {
                self.data.push('\n');
            }
            self.has_data = true;
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
        None
    }

    fn take(&mut self) -> Option<String> {
        let had = std::mem::take(&mut self.has_data);
        let data = std::mem::take(&mut self.data);
        had.then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": keep-alive\n\ndata: {\"a\":\"ü\"}\n\nevent: x\r\nid: 1\r\ndata:one\r\ndata: two\r\n\r\ndata: [DONE]";

    #[test]
    fn a_stream_cut_at_every_byte_is_put_together_again() {
        for size in 1..STREAM.len() {
            let mut events = Events::default();
            let pieces = STREAM.as_bytes().chunks(size);
            let mut seen: Vec<String> = pieces.flat_map(|piece| events.push(piece).unwrap()).collect();
            seen.extend(events.finish());
            assert_eq!(seen, ["{\"a\":\"ü\"}", "one\ntwo", "[DONE]"], "pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        events.push(b"data: ").unwrap();
        let block = vec![b'x'; 1 << 20];
        assert!((0..3).any(|_| events.push(&block).is_err()));
    }
}
