//! Text out of byte streams, capped in bytes and cut at characters, with a marker that says what was left out.
//!
//! Invalid UTF-8 becomes the replacement character. Every result has at most as many bytes as asked for.

use std::collections::VecDeque;

/// Below this cap there is no room for a marker.
const MIN_FOR_MARKER: usize = 64;
/// Which part of the cap the head gets when head and tail are kept: a third, since errors stand at the end.
const HEAD_SHARE: usize = 3;

/// The end of `bytes`, as at most `cap` bytes of text.
pub fn tail(bytes: &[u8], cap: usize) -> String {
    Ends {
        head: &[],
        gap: 0,
        tail: bytes,
    }
    .text(cap, 0)
}

/// The start and the end of `bytes`, as at most `cap` bytes of text.
pub fn head_and_tail(bytes: &[u8], cap: usize) -> String {
    Ends {
        head: &[],
        gap: 0,
        tail: bytes,
    }
    .text(cap, cap / HEAD_SHARE)
}

/// The longest start of `bytes` that has at most `max` bytes and does not end within a character.
pub(super) fn prefix(bytes: &[u8], max: usize) -> &[u8] {
    if bytes.len() <= max {
        return bytes;
    }
    let back = (0..4)
        .take_while(|back| *back <= max && is_continuation(bytes[max - back]))
        .count();
    let inside_character = back < 4 && back <= max;
    &bytes[..if inside_character { max - back } else { max }]
}

/// The head and the tail of a stream of any length, in memory that does not grow with it.
#[derive(Debug, Clone)]
pub struct Capture {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
}

impl Capture {
    /// Keeps the first `head_cap` and the last `tail_cap` bytes.
    pub fn new(head_cap: usize, tail_cap: usize) -> Self {
        Self {
            head: Vec::new(),
            head_cap,
            tail: VecDeque::new(),
            tail_cap,
            total: 0,
        }
    }

    /// Takes the next bytes, however they are cut.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.head_cap - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Counts bytes that were written but are not here, such as those that a sender left out.
    pub fn skip(&mut self, bytes: u64) {
        if bytes > 0 {
            self.total = self.total.saturating_add(bytes);
            self.head_cap = self.head.len();
            self.tail.clear();
        }
    }

    /// All bytes that were written.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The bytes in between that are not kept.
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Everything that was written, if it is all here.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.dropped() == 0).then(|| self.head.iter().chain(&self.tail).copied().collect())
    }

    /// The end of the stream, as at most `cap` bytes of text.
    pub fn tail(&self, cap: usize) -> String {
        self.text(cap, 0)
    }

    /// The start and the end of the stream, as at most `cap` bytes of text.
    pub fn head_and_tail(&self, cap: usize) -> String {
        self.text(cap, cap / HEAD_SHARE)
    }

    fn text(&self, cap: usize, head: usize) -> String {
        let mut kept: Vec<u8> = self.tail.iter().copied().collect();
        let gap = self.dropped();
        if gap > 0 {
            return Ends {
                head: &self.head,
                gap,
                tail: &kept,
            }
            .text(cap, head);
        }
        kept.splice(..0, self.head.iter().copied());
        Ends {
            head: &[],
            gap: 0,
            tail: &kept,
        }
        .text(cap, head)
    }
}

/// What is known of a stream: `gap` bytes between head and tail are not.
struct Ends<'a> {
    head: &'a [u8],
    gap: u64,
    tail: &'a [u8],
}

impl Ends<'_> {
    /// At most `cap` bytes of text, of which about `head_room` for the head.
    fn text(&self, cap: usize, head_room: usize) -> String {
        if self.gap == 0
            && let Some(all) = whole(self.tail, cap)
        {
            return all;
        }
        let total = (self.head.len() + self.tail.len()) as u64 + self.gap;
        let longest = marker(total).len();
        let room = if cap < MIN_FOR_MARKER { cap } else { cap - longest };
        let head = match (head_room, self.gap) {
            (0, _) => Piece::default(),
            (_, 0) => first(self.tail, head_room.min(room), Cut::Here),
            _ => first(self.head, head_room.min(room), Cut::End),
        };
        let rest = if self.gap == 0 {
            &self.tail[head.bytes..]
        } else {
            self.tail
        };
        let tail = last(
            rest,
            room - head.text.len(),
            if self.gap == 0 { Cut::Here } else { Cut::Start },
        );
        if cap < MIN_FOR_MARKER {
            return head.text + &tail.text;
        }
        let dropped = total - (head.bytes + tail.bytes) as u64;
        format!("{}{}{}", head.text, marker(dropped), tail.text)
    }
}

fn marker(dropped: u64) -> String {
    format!("\n[… {dropped} bytes left out …]\n")
}

/// All of `bytes` as text, if that fits.
fn whole(bytes: &[u8], cap: usize) -> Option<String> {
    if bytes.len() > cap {
        return None;
    }
    Some(String::from_utf8_lossy(bytes).into_owned()).filter(|text| text.len() <= cap)
}

/// A text and how many bytes of its source it stands for.
#[derive(Default)]
struct Piece {
    text: String,
    bytes: usize,
}

/// Where the stream was cut before we saw it: a broken character there is not the writer's fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Here,
    Start,
    End,
}

/// The first characters of `bytes` that fit in `room`.
fn first(bytes: &[u8], room: usize, cut: Cut) -> Piece {
    let bytes = if cut == Cut::End {
        without_broken_end(bytes)
    } else {
        bytes
    };
    let mut piece = Piece::default();
    for (character, length) in characters(prefix(bytes, room)) {
        if piece.text.len() + character.len_utf8() > room {
            break;
        }
        piece.text.push(character);
        piece.bytes += length;
    }
    piece
}

/// The last characters of `bytes` that fit in `room`.
fn last(bytes: &[u8], room: usize, cut: Cut) -> Piece {
    let far = bytes.len().saturating_sub(room);
    let start = if far > 0 || cut == Cut::Start {
        far + broken_start(&bytes[far..])
    } else {
        0
    };
    let mut kept: VecDeque<(char, usize)> = VecDeque::new();
    let mut length = 0;
    for (character, bytes) in characters(&bytes[start..]) {
        length += character.len_utf8();
        kept.push_back((character, bytes));
        while length > room {
            length -= kept
                .pop_front()
                .map_or(length, |(character, _)| character.len_utf8());
        }
    }
    Piece {
        bytes: kept.iter().map(|(_, bytes)| bytes).sum(),
        text: kept.into_iter().map(|(character, _)| character).collect(),
    }
}

/// Every character with the number of bytes it comes from; what is no UTF-8 becomes the replacement character.
fn characters(bytes: &[u8]) -> impl Iterator<Item = (char, usize)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let broken =
            (!chunk.invalid().is_empty()).then_some((char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
        chunk
            .valid()
            .chars()
            .map(|character| (character, character.len_utf8()))
            .chain(broken)
    })
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// How many bytes at the start are the rest of a character that began before.
fn broken_start(bytes: &[u8]) -> usize {
    let inside = bytes
        .iter()
        .take(4)
        .take_while(|byte| is_continuation(**byte))
        .count();
    if inside < 4 { inside } else { 0 }
}

fn without_broken_end(bytes: &[u8]) -> &[u8] {
    match bytes.utf8_chunks().last() {
        // Three bytes at most can be the start of a character.
        Some(chunk) if str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none()) => {
            &bytes[..bytes.len() - chunk.invalid().len()]
        }
        _ => bytes,
    }
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
