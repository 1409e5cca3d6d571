//! Every bound of the public API.

use std::time::Duration;

/// Connections at the same time; further ones wait to be accepted. Every reader of a stream holds one.
pub(crate) const CONNECTIONS: usize = 8192;
/// Requests that are worked on at the same time, streams that are open not counted.
pub(crate) const REQUESTS: usize = 512;
/// Function calls at the same time: each waits for the end of its run.
pub(crate) const CALLS: usize = 256;
/// Open streams of one namespace, so that no tenant takes all connections.
pub(crate) const STREAMS: usize = 2048;
/// Headers of a request.
pub(crate) const HEADERS: usize = 100;
/// All bytes of a request's head, and what waits to be written to one connection.
pub(crate) const BUFFER: usize = 32 * 1024;
/// What the kernel keeps for one connection that takes nothing (it doubles the figure); left alone it may be 4 MiB.
pub(crate) const SEND_BUFFER: usize = 128 * 1024;
/// A request's head must be there in this time; a connection that is idle for this long is closed, too.
pub(crate) const HEAD: Duration = Duration::from_secs(20);
/// A request's body must be there in this time.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// Most bytes of a task's body: the API server itself takes objects of about 1.5 MB.
pub(crate) const BODY: usize = 1024 * 1024;
/// Most bytes of a function's input, as of `spec.tasks[].input`.
pub(crate) const INPUT: usize = 64 * 1024;
/// A connection that takes no byte for this long is closed.
pub(crate) const STALL: Duration = Duration::from_secs(30);
/// A stream that has nothing to say says that it lives, below the idle limits of proxies (60 s are usual).
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream ends after this time, so that its reader proves again that it may read; it goes on with `Last-Event-ID`.
pub(crate) const STREAM_LIFE: Duration = Duration::from_hours(1);
/// Shortest and longest pause in milliseconds after which a reader is told to come back.
pub(crate) const RETRY_MS: (u64, u64) = (1_000, 5_000);
/// Events of one run that are kept for readers, and all their bytes. Of older ones a late reader gets a gap.
pub(crate) const EVENTS: usize = 65_536;
pub(crate) const EVENT_BYTES: usize = 32 * 1024 * 1024;
/// How long a review of a token, and an answer on what its user may do, are kept.
pub(crate) const REVIEW_AGE: Duration = Duration::from_secs(10);
/// How many of them are kept.
pub(crate) const REVIEWS_KEPT: usize = 4096;
/// Longest value of `Idempotency-Key`.
pub(crate) const IDEMPOTENCY_KEY: usize = 255;
/// Tasks of one page, unless the caller says otherwise, and at most.
pub(crate) const PAGE: (u32, u32) = (50, 200);
/// Sub-tasks that one task is shown with.
pub(crate) const SUBTASKS: usize = 1_000;
/// Sub-tasks per request to the API server.
pub(crate) const SUBTASK_PAGE: u32 = 500;
/// Lists of sub-tasks that are read at the same time: one may have 10,000 of them.
pub(crate) const SUBTASK_LISTS: usize = 8;
/// How long a function call may take with everything around it: by default, and at most.
pub(crate) const CALL: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(10));
/// What a call gets beyond its limit for its end to be told.
pub(crate) const CALL_GRACE: Duration = Duration::from_secs(10);
/// Seconds that the run of a function call stays after its end.
pub(crate) const CALL_TTL: i32 = 60;
/// Seconds that the run of a chat completion stays after its end, for what it delivered.
pub(crate) const CHAT_TTL: i32 = 3_600;
/// How long the last events of a run that is over are looked for.
pub(crate) const CLOSING: Duration = Duration::from_mins(1);
