//! Whether an agent gets on.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Calls that are remembered.
const WINDOW: usize = 64;
/// So often the same call gave the same answer: the agent is told.
const TOLD: usize = 3;
/// So often: it is stopped.
const STOPPED: usize = 5;
/// So many turns in a row brought nothing new: the agent is told.
const IDLE_TOLD: u32 = 4;
/// So many: it is stopped.
const IDLE_STOPPED: u32 = 8;

/// What the last calls were and what came of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guard {
    recent: VecDeque<(u64, u64)>,
    idle: u32,
}

/// What a turn says about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// It is told so.
    Told(&'static str),
    Stopped,
}

/// One call of a turn.
pub(crate) struct Seen<'a> {
    /// See [`print`].
    pub(crate) call: u64,
    pub(crate) answer: &'a str,
    /// It was not made at all.
    pub(crate) refused: bool,
}

impl Guard {
    /// Takes a turn's calls.
    pub(crate) fn observe<'a>(&mut self, calls: impl IntoIterator<Item = Seen<'a>>) -> Verdict {
        let mut fresh = false;
        let mut turn: Vec<(u64, u64)> = Vec::new();
        for seen in calls {
            let pair = (seen.call, hash(seen.answer));
            fresh |= !seen.refused && !self.recent.contains(&pair);
            // The same call twice in one turn is a waste, and no loop.
            if !turn.contains(&pair) {
                turn.push(pair);
            }
        }
        self.idle = if fresh { 0 } else { self.idle + 1 };
        self.recent.extend(&turn);
        let surplus = self.recent.len().saturating_sub(WINDOW);
        self.recent.drain(..surplus);
        let often = |pair: &(u64, u64)| self.recent.iter().filter(|other| *other == pair).count();
        let most = turn.iter().map(often).max().unwrap_or(0);
        match (most, self.idle) {
            (STOPPED.., _) | (_, IDLE_STOPPED..) => Verdict::Stopped,
            (TOLD, _) => Verdict::Told(
                "The same call has given the same answer three times. Do not repeat it: change what you ask for, take \
                 another way, or answer with what you have.",
            ),
            (_, IDLE_TOLD) => Verdict::Told(
                "Your last turns brought nothing new. Read what the tools answered, take another way, or answer with \
                 what you have.",
            ),
            _ => Verdict::Fine,
        }
    }
}

/// The same for calls that mean the same.
pub(crate) fn print(name: &str, arguments: &str) -> u64 {
    hash(&(name, arguments))
}

fn hash(what: &(impl Hash + ?Sized)) -> u64 {
    // Without a random seed: equal entries make equal agents.
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
