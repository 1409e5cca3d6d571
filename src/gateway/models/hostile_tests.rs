//! Streams as no endpoint should send them: nothing panics, and what is read does not depend on how the network cuts it.

use super::fault::Fault;
use super::reader::{Reader, Reply};
use super::sse::Events;
use proptest::prelude::*;
use std::collections::BTreeSet;

const SEEDS: [&str; 4] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>hm</think>Grüß\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" dich\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{\\\"p\"}}]}}]}\r\n\r\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\r\n\r\n",
    ": hello\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x <tool_call>{\\\"name\\\": \\\"ls\\\", \\\"arguments\\\": {}}</tool_call>\"}}]}\n\ndata: [DONE]\n\n",
    "event: error\ndata: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n",
];
/// What mutations put in.
const WORDS: [&str; 14] = [
    "data:",
    "\n\n",
    "\r",
    "[DONE]",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "null",
    "[]",
    "{}",
    "-1",
    "\"index\":",
    "1e999",
];

fn read(stream: &[u8], cuts: &[usize]) -> Result<Reply, Fault> {
    let (mut events, mut reader) = (Events::default(), Reader::default());
    let mut rest = stream;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let size = cuts.next().map_or(1, |cut| cut % 17 + 1).min(rest.len());
        let (piece, more) = rest.split_at(size);
        for event in events
            .push(piece)
            .map_err(|error| Fault::bad_answer(error.to_string()))?
        {
            reader.event(&event)?;
        }
        rest = more;
    }
    if let Some(event) = events.finish() {
        reader.event(&event)?;
    }
    reader.finish(true, &BTreeSet::from(["a"]))
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), 0..WORDS.len() + 3, any::<u8>());
    (0..SEEDS.len(), prop::collection::vec(change, 0..8)).prop_map(|(seed, changes)| {
        let mut stream = SEEDS[seed].as_bytes().to_vec();
        for (place, what, byte) in changes {
            let place = place.index(stream.len() + 1);
            match WORDS.get(what) {
                Some(word) => {
                    stream.splice(place..place, word.bytes());
                }
                None if place < stream.len() && what == WORDS.len() => stream[place] = byte,
                None if what == WORDS.len() + 1 => stream.truncate(place),
                None => {
                    let end = stream.len().min(place + usize::from(byte));
                    stream.drain(place..end);
                }
            }
        }
        stream
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_read_alike_however_it_is_cut(
        stream in mutated(),
        cuts in prop::collection::vec(0_usize..64, 1..6),
    ) {
        let whole = read(&stream, &[16]);
        prop_assert_eq!(&whole, &read(&stream, &cuts));
        if let Ok(reply) = whole {
            let ids: BTreeSet<_> = reply.tool_calls.iter().map(|call| call.id.as_str()).collect();
            prop_assert_eq!(ids.len(), reply.tool_calls.len());
            prop_assert!(!ids.contains("a") && !ids.contains(""));
        }
    }
}
