//! The events of one run, once for all readers.

use super::derive::Keyed;
use super::event::Event;
use crate::api::bounds;
use agentrun_core::digest::sha256_hex;
use bytes::Bytes;
use std::collections::{HashSet, VecDeque};

/// An event as it goes over the wire.
#[derive(Clone, Debug)]
struct Entry {
    wire: Bytes,
    /// The sum of the keys up to here: the same for the same events in any order.
    mark: u64,
}

/// Where a reader begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// How many events it has had.
    pub(crate) place: usize,
    /// Why it may have missed some, or sees some again.
    pub(crate) gap: Option<&'static str>,
}

/// The events so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// Events that were there before `entries`.
    dropped: usize,
    bytes: usize,
    told: HashSet<u64>,
    mark: u64,
}

impl Log {
    /// Adds an event, unless it is there.
    pub(crate) fn add(&mut self, event: &Keyed) -> bool {
        let key = hash(&event.key);
        if !self.told.insert(key) {
            return false;
        }
        self.mark = self.mark.wrapping_add(key);
        let id = format!("{}-{:016x}", self.len() + 1, self.mark);
        let wire = wire(Some(&id), &event.event);
        self.bytes += wire.len();
        let mark = self.mark;
        self.entries.push_back(Entry { wire, mark });
        while self.entries.len() > bounds::EVENTS || self.bytes > bounds::EVENT_BYTES {
            let Some(oldest) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= oldest.wire.len();
            self.dropped += 1;
        }
        true
    }

    /// How many events there were.
    pub(crate) fn len(&self) -> usize {
        self.dropped + self.entries.len()
    }

    /// Where a reader begins that has seen `last`.
    pub(crate) fn start(&self, last: Option<&str>) -> Start {
        let again = |gap| Start { place: 0, gap };
        let Some(last) = last else {
            return again(None);
        };
        let Some((place, mark)) = parse(last) else {
            return again(Some("Last-Event-ID is no id of this stream"));
        };
        if place == 0 || place > self.len() {
            return again(Some("the events up to Last-Event-ID are not known here"));
        }
        let Some(entry) = place
            .checked_sub(self.dropped + 1)
            .and_then(|index| self.entries.get(index))
        else {
            return again(Some("the events after Last-Event-ID are not kept any more"));
        };
        if entry.mark != mark {
            return again(Some("this gateway has seen the events in another order"));
        }
        Start { place, gap: None }
    }

    /// The event after `place` events, or the place from which events are kept.
    pub(crate) fn after(&self, place: usize) -> Result<Option<Bytes>, usize> {
        let index = place.checked_sub(self.dropped).ok_or(self.dropped)?;
        Ok(self.entries.get(index).map(|entry| entry.wire.clone()))
    }
}

/// An event in the format of server-sent events. JSON has no line breaks outside its escapes.
pub(crate) fn wire(id: Option<&str>, event: &Event) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_default();
    let text = match id {
        Some(id) => format!("id: {id}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    };
    Bytes::from(text)
}

fn parse(id: &str) -> Option<(usize, u64)> {
    let (place, mark) = id.split_once('-')?;
    let mark = (mark.len() == 16).then(|| u64::from_str_radix(mark, 16).ok())??;
    Some((place.parse().ok()?, mark))
}

/// Not the standard library's hash: that one may differ between two versions of the gateway.
fn hash(key: &str) -> u64 {
    u64::from_str_radix(&sha256_hex(key.as_bytes())[..16], 16).unwrap_or_default()
}

#[cfg(test)]
#[path = "../tests/log.rs"]
mod tests;
