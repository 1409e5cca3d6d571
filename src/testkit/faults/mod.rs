//! A way to the API server that fails on purpose.
//!
//! [`Faults`] is a `tower` layer below a client. Its script is a list of [`Fault`]s: which requests, which of them, and
//! what becomes of them. The first fault that applies to a request is the one that happens; each counts the requests
//! that it matches by itself, so that a script means the same in every run.
//!
//! ```
//! use agentrun_testkit::faults::{Action, Fault, Faults, Matcher, Which};
//! // The process dies right after its third write, and all its watches are a second late.
//! let faults = Faults::new([
//!     Fault::new(Matcher::writes(), Which::Nth(3), Action::Stop),
//!     Fault::new(Matcher::watches(), Which::All, Action::Delay(std::time::Duration::from_secs(1))),
//! ]);
//! # let _ = faults;
//! ```

mod call;
mod layer;
mod watch;

pub use call::{Call, Matcher, Verb};
pub use layer::Faulty;

use http::StatusCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The API server does what it is asked, and the world ends before its answer is read: this request and every
    /// later one of the client hang. [`Faults::stopped`] tells.
    Stop,
    /// The API server does what it is asked, the caller sees a broken connection.
    LoseAnswer,
    /// The API server never sees the request, the caller sees a broken connection.
    Break,
    /// The API server never sees the request, the caller gets this status.
    Answer(StatusCode),
    /// Events of the watch come so much later; their order and distances stay.
    Delay(Duration),
    /// Every event of the watch comes twice.
    Repeat,
    /// The watch breaks after so many events.
    CutAfter(usize),
    /// After `events` events, the watch shows nothing for so long, whatever happens, and then says that its history is
    /// gone (410): what happened meanwhile is found by listing alone.
    Gap {
        /// Events that still come.
        events: usize,
        /// How long nothing comes.
        hidden: Duration,
    },
}

/// Which of the requests that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// This one, from 1.
    Nth(usize),
    /// Every n-th.
    Every(usize),
}

impl Which {
    fn is(self, number: usize) -> bool {
        match self {
            Self::All => true,
            Self::Nth(nth) => number == nth,
            Self::Every(nth) => nth > 0 && number.is_multiple_of(nth),
        }
    }
}

/// One line of the script.
#[derive(Clone, Debug)]
pub struct Fault {
    matcher: Matcher,
    which: Which,
    action: Action,
    seen: usize,
}

impl Fault {
    /// `action` happens to those requests that match.
    pub fn new(matcher: Matcher, which: Which, action: Action) -> Self {
        Self {
            matcher,
            which,
            action,
            seen: 0,
        }
    }
}

/// The layer. Clones share script, counters and record.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    stopped: tokio::sync::watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    script: Vec<Fault>,
    calls: Vec<Call>,
}

impl Faults {
    /// Follows a script.
    pub fn new(script: impl IntoIterator<Item = Fault>) -> Self {
        let state = State {
            script: script.into_iter().collect(),
            calls: Vec::new(),
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            stopped: tokio::sync::watch::Sender::new(false),
        }))
    }

    /// Only keeps record.
    pub fn none() -> Self {
        Self::new([])
    }

    /// Every request until now, in the order in which they were made.
    pub fn calls(&self) -> Vec<Call> {
        self.with(|state| state.calls.clone())
    }

    /// How many requests until now match.
    pub fn count(&self, matcher: &Matcher) -> usize {
        self.with(|state| state.calls.iter().filter(|call| matcher.matches(call)).count())
    }

    /// Returns once [`Action::Stop`] has happened.
    pub async fn stopped(&self) {
        let mut stopped = self.0.stopped.subscribe();
        // The sender lives in `self`: it cannot be closed meanwhile.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Whether [`Action::Stop`] has happened.
    pub fn has_stopped(&self) -> bool {
        *self.0.stopped.borrow()
    }

    fn stop(&self) {
        self.0.stopped.send_replace(true);
    }

    /// Takes a request on record and says what becomes of it.
    fn decide(&self, call: &Call) -> Option<Action> {
        self.with(|state| {
            state.calls.push(call.clone());
            let mut decided = None;
            for fault in &mut state.script {
                if !fault.matcher.matches(call) {
                    continue;
                }
                fault.seen += 1;
                if decided.is_none() && fault.which.is(fault.seen) {
                    decided = Some(fault.action.clone());
                }
            }
            decided
        })
    }

    fn with<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
