//! Tools over the executor's connection: one call at a time of one conversation, each recorded as evidence.

use super::{Call, CallEvent, Link, Lost};
use crate::settings::SeenFolders;
use crate::store::calls::CallLog;
use crate::task::Task;
use agentrun_core::redact::Secrets;
use agentrun_protocol::executor::{Ended, Exec, ProcessEnd, Stream};
use agentrun_protocol::tool::{
    BashRecord, CallRecord, Effect, Facts, MAX_ARGUMENTS, MAX_OUTPUT, PROGRAM, Seen, Session, ToolName,
    ToolOutput,
};
use agentrun_protocol::work::{FileAccess, Limits};
use agentrun_sandbox::resolve::Roots;
use agentrun_sandbox::tools::bash::{self, GRACE, Recorder, Shell, Whereabouts};
use agentrun_sandbox::tools::refusal;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time limit of everything but a shell; walks end themselves earlier.
const FILE_TOOL_TIME: Duration = Duration::from_mins(1);
/// How long after the SIGKILL the executor may take to say that all is over.
const LAST_WORD: Duration = Duration::from_secs(15);
/// Bytes of a shell's output that are received and hashed (16 MiB).
const SHELL_OUTPUT: u64 = 16 << 20;
/// Bytes of the file in which a shell says where it was.
const MAX_WHEREABOUTS: usize = 16 * 1024;
/// The longest text of an answer (64 KiB) and the longest path; the tools' own bounds are tighter.
const MAX_TEXT: usize = 64 * 1024;
const MAX_PATH: usize = 4096;

/// Bounds of a file tool: it needs little, and no other process.
const FILE_TOOL: Limits = Limits {
    memory_bytes: Some(1 << 30),
    cpu_seconds: Some(120),
    file_bytes: 16 << 20,
    open_files: 256,
    processes: 4,
};

/// What the task gave to its shells.
#[derive(Clone, Debug, Default)]
pub struct ShellTerms {
    /// Variables to set.
    pub env: BTreeMap<String, String>,
    /// Names of variables that the kubelet set in the sandbox container for this task.
    pub inherit_env: Vec<String>,
    /// TCP connections are allowed.
    pub tcp: bool,
    /// What neither answers nor records may show.
    pub secrets: Secrets,
}

/// Why a call has no answer. Everything else, also a tool that crashes, is an answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolFailure {
    /// The executor is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The call was made, but it could not be recorded: what follows would not be evidence.
    #[error("the call could not be recorded")]
    Evidence(#[source] io::Error),
}

/// What the calls of a toolbox have used together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Peak resident memory of the largest process, in bytes.
    pub peak_memory_bytes: u64,
    /// User and system time, in milliseconds.
    pub cpu_ms: u64,
    /// The executor saw no descendant of any call any more.
    pub tree_empty: bool,
}

impl Ran {
    fn add(&mut self, ended: &Ended) {
        self.peak_memory_bytes = self.peak_memory_bytes.max(ended.peak_memory_bytes);
        self.cpu_ms = self.cpu_ms.saturating_add(ended.cpu_ms);
        self.tree_empty &= ended.tree_empty;
    }
}

/// How long a call may take.
struct Bound<S> {
    within: Duration,
    /// Gives the time between the two signals when the call is to be ended before that.
    stopped: S,
}

/// The tools of one conversation, and what it has seen.
#[derive(Debug)]
pub struct Toolbox {
    link: Link,
    seen: SeenFolders,
    terms: ShellTerms,
    session: Session,
    log: CallLog,
    ran: Ran,
}

impl Toolbox {
    /// Tools that work in the folders `seen` of the executor behind `link` and are recorded in `log`. `session` is a
    /// new one, or what [`Toolbox::session`] gave when the conversation was left.
    pub fn new(link: Link, seen: SeenFolders, terms: ShellTerms, session: Session, log: CallLog) -> Toolbox {
        Toolbox {
            link,
            seen,
            terms,
            session,
            log,
            ran: Ran {
                peak_memory_bytes: 0,
                cpu_ms: 0,
                tree_empty: true,
            },
        }
    }

    /// What its calls have used so far.
    pub fn ran(&self) -> Ran {
        self.ran
    }

    /// What the conversation has seen so far.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Runs a tool, for at most `within`. `arguments` is what the model wrote; whatever it is, the answer says what
    /// is wrong with it.
    pub async fn call(
        &mut self,
        tool: ToolName,
        arguments: &str,
        within: Duration,
    ) -> Result<ToolOutput, ToolFailure> {
        self.call_until(tool, arguments, within, std::future::pending())
            .await
    }

    /// The same; ends the call too when `stopped` gives the time between the two signals.
    pub async fn call_until(
        &mut self,
        tool: ToolName,
        arguments: &str,
        within: Duration,
        stopped: impl Future<Output = Duration>,
    ) -> Result<ToolOutput, ToolFailure> {
        let began = Instant::now();
        let bound = Bound { within, stopped };
        let output = if arguments.len() > MAX_ARGUMENTS {
            let found = arguments.len();
            let text = format!("the arguments have {found} bytes, at most {MAX_ARGUMENTS} are allowed");
            refusal("arguments", text)
        } else if tool == ToolName::Bash {
            self.shell(arguments, bound).await?
        } else {
            self.file_tool(tool, arguments, bound).await?
        };
        let output = without_secrets(output, &self.terms.secrets);
        self.session.remember(output.seen.iter().cloned());
        let record = CallRecord {
            number: 0,
            tool,
            ok: output.ok,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            effect: Effect::of(&output.facts),
        };
        let log = self.log.clone();
        crate::blocking(move || log.append(record))
            .await
            .map_err(ToolFailure::Evidence)?;
        Ok(output)
    }

    async fn file_tool(
        &mut self,
        tool: ToolName,
        arguments: &str,
        bound: Bound<impl Future<Output = Duration>>,
    ) -> Result<ToolOutput, Lost> {
        let bound = Bound {
            within: bound.within.min(FILE_TOOL_TIME),
            ..bound
        };
        let exec = Exec {
            access: FileAccess::Write,
            limits: FILE_TOOL,
            output_bytes: MAX_OUTPUT as u64,
            ..self.exec(&["tool", tool.as_str(), "--session-on-stdin"])
        };
        let mut stdout = Vec::new();
        let over = run(&self.link, exec, self.stdin(arguments), bound, |stream, data| {
            // The executor was told to send no more than this.
            if stream == Stream::Stdout && stdout.len() + data.len() <= MAX_OUTPUT {
                stdout.extend_from_slice(data);
            }
        })
        .await?;
        self.ran.add(&over.ended);
        if over.timed_out {
            let text = format!("{tool} took longer than it may; ask for less at once, or use bash");
            return Ok(refusal("timeout", text));
        }
        Ok(understand(tool, &stdout, &over.ended))
    }

    async fn shell(
        &mut self,
        arguments: &str,
        bound: Bound<impl Future<Output = Duration>>,
    ) -> Result<ToolOutput, Lost> {
        let shell = match Shell::parse(arguments.as_bytes()) {
            Ok(shell) => shell,
            Err(error) => return Ok(refusal(error.code(), error.to_string())),
        };
        let exec = Exec {
            env: self.terms.env.clone(),
            inherit_env: self.terms.inherit_env.clone(),
            access: FileAccess::Write,
            tcp: self.terms.tcp,
            output_bytes: SHELL_OUTPUT,
            io_files: true,
            ..self.exec(&["shell"])
        };
        let bound = Bound {
            within: bound.within.min(shell.time),
            ..bound
        };
        let mut recorder = Recorder::default();
        // Before it is cut: of a secret that is cut no half is found.
        let mut clean = self.terms.secrets.stream();
        let mut received = 0;
        let over = run(&self.link, exec, self.stdin(arguments), bound, |_, data| {
            received += data.len() as u64;
            recorder.push(&clean.push(data));
        })
        .await?;
        self.ran.add(&over.ended);
        recorder.push(&clean.finish());
        let stdout = &over.ended.stdout;
        let mut end = self.terms.secrets.stream();
        let tail = [end.push(&stdout.tail.0), end.finish()].concat();
        recorder.skip(stdout.total.saturating_sub(received), &tail);
        let roots = Roots::new(&self.seen.user_data, &self.seen.skills);
        let whereabouts = Whereabouts::parse(&over.output_file, &roots);
        let mut record = record_of(&shell, &over);
        record.cwd = whereabouts.start.unwrap_or_default();
        recorder.finish(&mut record);
        let started = record.cwd.clone();
        let wanted = self.session.cwd.take().filter(|wanted| *wanted != started);
        let moved = whereabouts.end.filter(|end| *end != started);
        let output = bash::answer(record, moved.as_deref(), wanted.as_deref());
        self.session.cwd = moved.or(Some(started).filter(|cwd| !cwd.is_empty()));
        Ok(output)
    }

    fn exec(&self, words: &[&str]) -> Exec {
        let folders = ["--user-data", &self.seen.user_data, "--skills", &self.seen.skills];
        let argv = [PROGRAM].iter().chain(words).chain(&folders);
        Exec {
            id: 0,
            argv: argv.map(|word| (*word).to_owned()).collect(),
            cwd: "/".to_owned(),
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            access: FileAccess::None,
            tcp: false,
            limits: Limits::COMMAND,
            output_bytes: 0,
            io_files: false,
        }
    }

    /// The session without what a shell does not need is small either way.
    fn stdin(&self, arguments: &str) -> Vec<u8> {
        // Strings and numbers only: it cannot fail.
        let mut bytes = serde_json::to_vec(&self.session).unwrap_or_default();
        bytes.push(b'\n');
        bytes.extend_from_slice(arguments.as_bytes());
        bytes
    }
}

fn record_of(shell: &Shell, over: &Over) -> BashRecord {
    let mut record = BashRecord {
        command: bash::recorded_command(&shell.command),
        timed_out: over.timed_out,
        duration_ms: over.ended.duration_ms,
        ..BashRecord::default()
    };
    match &over.ended.end {
        ProcessEnd::Exited { code } => record.exit_code = Some(*code),
        ProcessEnd::Signalled { signal } => record.signal = Some(*signal),
        ProcessEnd::NotStarted { message, .. } => record.not_started = Some(message.clone()),
        ProcessEnd::SandboxReset => {
            record.not_started = Some("everything in the sandbox was ended; try again".to_owned());
        }
    }
    record
}

/// The answer on a tool's stdout. It comes from where user code runs: only its form is trusted.
fn understand(tool: ToolName, stdout: &[u8], ended: &Ended) -> ToolOutput {
    let Ok(mut output) = serde_json::from_slice::<ToolOutput>(stdout) else {
        let text = format!(
            "{tool} ended without an answer ({:?}); ask for less at once, or use bash",
            ended.end
        );
        return refusal("crashed", text);
    };
    output.text.truncate(output.text.floor_char_boundary(MAX_TEXT));
    output.seen.truncate(1);
    // As JSON writes it: with each call the session goes through a line that has a bound.
    output
        .seen
        .retain(|Seen { path, .. }| serde_json::Value::from(path.as_str()).to_string().len() <= MAX_PATH);
    output
}

/// An answer as it may be told to a model and written down. Names of files and contents of images are data and stay.
fn without_secrets(mut output: ToolOutput, secrets: &Secrets) -> ToolOutput {
    output.text = secrets.blot(&output.text);
    if let Facts::Bash(record) = &mut output.facts {
        let texts = [&mut record.command, &mut record.head, &mut record.tail];
        for text in texts.into_iter().chain(&mut record.not_started) {
            *text = secrets.blot(text);
        }
    }
    output
}

/// A call that is over.
struct Over {
    ended: Box<Ended>,
    output_file: Vec<u8>,
    timed_out: bool,
}

async fn run(
    link: &Link,
    exec: Exec,
    stdin: Vec<u8>,
    bound: Bound<impl Future<Output = Duration>>,
    mut take: impl FnMut(Stream, &[u8]),
) -> Result<Over, Lost> {
    let mut call = link.call(exec).await?;
    let to = call.stdin();
    let _feeder = Task::spawn(async move { to.write_all(&stdin).await });
    let mut stopped = std::pin::pin!(bound.stopped);
    let mut deadline = Instant::now() + bound.within;
    let (mut is_ending, mut timed_out) = (false, false);
    let mut output_file = Vec::new();
    loop {
        tokio::select! {
            event = call.next() => match event? {
                CallEvent::Output(stream, data) => take(stream, &data),
                CallEvent::OutputFile { data, .. } => {
                    let room = MAX_WHEREABOUTS - output_file.len();
                    output_file.extend_from_slice(&data[..data.len().min(room)]);
                }
                // Only what is kept between calls rests.
                CallEvent::Rested { .. } => {}
                CallEvent::Ended(ended) => return Ok(Over { ended, output_file, timed_out }),
            },
            () = sleep_until(deadline) => {
                if is_ending {
                    tracing::error!("the executor does not say that a tool is over");
                    return Err(Lost);
                }
                deadline = end(&call, GRACE).await?;
                (is_ending, timed_out) = (true, true);
            }
            grace = &mut stopped, if !is_ending => {
                deadline = end(&call, grace).await?;
                is_ending = true;
            }
        }
    }
}

/// Ends a call; gives when the executor must have said that it is over.
async fn end(call: &Call, grace: Duration) -> Result<Instant, Lost> {
    call.kill(grace).await?;
    Ok(Instant::now() + grace + LAST_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_protocol::tool::{Facts, MAX_SEEN};

    #[test]
    fn a_session_goes_through_a_line_whatever_the_files_are_called() {
        let mut session = Session::guarded();
        for number in 0..MAX_SEEN {
            let answer = ToolOutput {
                ok: true,
                text: String::new(),
                facts: Facts::Found {
                    shown: 0,
                    total: 0,
                    more: false,
                    paths: Vec::new(),
                },
                seen: vec![Seen {
                    path: format!("/mnt/user-data/workspace/{}{number}", "\u{1}".repeat(4_000)),
                    bytes: 1,
                    modified_ns: 1,
                    sha256: Some("0".repeat(64)),
                }],
            };
            let stdout = serde_json::to_vec(&answer).unwrap();
            let ended = Ended::without_work(1, ProcessEnd::Exited { code: 0 }, 0);
            session.remember(understand(ToolName::ReadFile, &stdout, &ended).seen);
        }
        let line = serde_json::to_vec(&session).unwrap();
        assert!(line.len() < 2 << 20, "{} bytes", line.len());
    }
}
