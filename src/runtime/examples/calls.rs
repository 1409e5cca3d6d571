//! Drives the runtime's own call path with a real executor and without a cluster: `calls EXECUTOR FOLDER` reads what
//! to measure from stdin, one JSON document a line, and answers each with one line. `e2e/bench/calls` asks and compares.

use agentrun_protocol::environment::SandboxFacts;
use agentrun_protocol::executor::ExpectedMount;
use agentrun_protocol::probe::{Isolation, ProbeTargets};
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::{Assignment, FileAccess, Limits, Warm, Work};
use agentrun_runtime::attempt::{self, AttemptEnd, Context, Control, LastSchemas, Pool};
use agentrun_runtime::channel::Outbox;
use agentrun_runtime::executor;
use agentrun_runtime::settings::{Bounds, Folders, Gateway, SeenFolders, Settings};
use agentrun_runtime::store::skills::Skills;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error>;

/// One thing to measure.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Measure {
    name: String,
    /// A function's file in the skill `bench`, or nothing for a command.
    file: Option<String>,
    #[serde(default)]
    argv: Vec<String>,
    /// Start `argv` without runtime and executor.
    #[serde(default)]
    bare: bool,
    #[serde(default)]
    input: Value,
    /// How many processes may stay.
    warm: Option<u32>,
    #[serde(default)]
    write: bool,
    open_files: Option<u64>,
    calls: u32,
    /// How many at the same time.
    #[serde(default = "one")]
    callers: u32,
}

fn one() -> u32 {
    1
}

/// What it took.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figure {
    name: String,
    calls: u32,
    /// Of each call, in milliseconds: lowest, median, 95th of a hundred.
    ms: [f64; 3],
    /// Wall time over all calls, in milliseconds.
    ms_per_call: f64,
    /// The most resident memory of this process so far: the runtime's, in bytes.
    runtime_peak: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(binary), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("calls EXECUTOR FOLDER".into());
    };
    let driver = Arc::new(Driver::start(&binary, &folder).await?);
    let mut output = std::io::stdout();
    for line in std::io::stdin().lines() {
        let figure = driver.measure(serde_json::from_str(&line?)?).await?;
        writeln!(output, "{}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

struct Driver {
    context: Arc<Context>,
    executor: Child,
    attempts: AtomicI32,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It ends with our connection; this is for the zombie.
        let _ = self.executor.kill();
        let _ = self.executor.wait();
    }
}

impl Driver {
    async fn start(binary: &Path, folder: &Path) -> Result<Self, Failure> {
        let settings = settings(folder)?;
        for name in [
            "data/uploads",
            "data/workspace",
            "data/outputs",
            "state",
            "skills/bench",
            "tmp",
        ] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        let listener = executor::bind(&settings.executor_socket)?;
        let process = start_executor(binary, folder, &settings.executor_socket)?;
        let bound = settings.bounds.executor;
        let (link, secrets) =
            executor::accept(listener, &settings.executor_socket, &settings.sandbox, bound).await?;
        let (_, isolation) = watch::channel(Some(Isolation::NotRequired));
        Ok(Driver {
            context: Arc::new(Context {
                settings,
                link,
                secrets,
                outbox: Outbox::default(),
                isolation,
                skills: Skills::default(),
                warm: Pool::default(),
                schemas: LastSchemas::default(),
                volume_tested: AtomicBool::new(false),
            }),
            executor: process,
            attempts: AtomicI32::new(0),
        })
    }

    async fn measure(self: &Arc<Self>, measure: Measure) -> Result<Figure, Failure> {
        // The first one pays for what later ones find in caches, or as a waiting process.
        self.call(&measure).await?;
        let begin = Instant::now();
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..measure.callers {
            let (driver, measure) = (Arc::clone(self), measure.clone());
            callers.spawn(async move {
                let mut times = Vec::new();
                for _ in 0..measure.calls / measure.callers {
                    times.push(driver.call(&measure).await.map_err(|error| error.to_string())?);
                }
                Ok::<_, String>(times)
            });
        }
        let mut times = Vec::new();
        while let Some(done) = callers.join_next().await {
            times.extend(done??);
        }
        let all = begin.elapsed();
        times.sort();
        let at = |share: usize| millis(times[(times.len() - 1) * share / 100]);
        Ok(Figure {
            name: measure.name,
            calls: measure.calls,
            ms: [at(0), at(50), at(95)],
            ms_per_call: millis(all) / f64::from(u32::try_from(times.len())?),
            runtime_peak: own_peak()?,
        })
    }

    async fn call(&self, measure: &Measure) -> Result<Duration, Failure> {
        let begin = Instant::now();
        if measure.bare {
            bare(measure)?;
            return Ok(begin.elapsed());
        }
        let assignment = self.assignment(measure)?;
        let (_stop, control) = Control::new();
        match attempt::run(Arc::clone(&self.context), assignment, control).await {
            AttemptEnd::Result(result) if result.ending == Ending::Success => Ok(begin.elapsed()),
            AttemptEnd::Result(result) => Err(told(&measure.name, &result).into()),
            AttemptEnd::ExecutorLost { stderr_tail, .. } => {
                Err(format!("the executor is lost: {stderr_tail}").into())
            }
        }
    }

    fn assignment(&self, measure: &Measure) -> Result<Assignment, Failure> {
        let work = match &measure.file {
            Some(file) => Work::Function {
                skill: "bench".to_owned(),
                name: measure.name.clone(),
                file: file.clone(),
                files: if measure.write {
                    FileAccess::Write
                } else {
                    FileAccess::None
                },
                warm: measure.warm.map(|instances| Warm {
                    instances,
                    max_calls: None,
                }),
            },
            None => Work::Command {
                argv: measure.argv.clone(),
                working_dir: None,
            },
        };
        let mut limits = match work {
            Work::Function { .. } => Limits::FUNCTION,
            Work::Command { .. } | Work::Agent(_) => Limits::COMMAND,
        };
        limits.open_files = measure.open_files.unwrap_or(limits.open_files);
        let env = std::env::var("PATH").map(|path| BTreeMap::from([("PATH", path)]));
        // As on the wire, where what is left out has its default.
        Ok(serde_json::from_value(json!({
            "uid": "task",
            "attempt": self.attempts.fetch_add(1, Ordering::Relaxed) + 1,
            "subtask": "bench/task",
            "runUid": "run",
            "task": "task",
            "work": work,
            "input": {"from": "Inline", "value": measure.input},
            "env": env.unwrap_or_default(),
            "remainingMs": 600_000,
            "limits": limits,
        }))?)
    }
}

/// The same program, forked and executed as anybody does.
fn bare(measure: &Measure) -> Result<(), Failure> {
    let (program, arguments) = measure.argv.split_first().ok_or("argv is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = serde_json::to_vec(&measure.input)?;
    child.stdin.take().ok_or("no stdin")?.write_all(&input)?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", measure.name, output.status).into())
}

fn told(name: &str, result: &AttemptResult) -> String {
    format!(
        "{name}: {}: {}\n{}",
        result.reason, result.message, result.stderr_tail
    )
}

fn settings(folder: &Path) -> Result<Settings, Failure> {
    let seen = |name: &str| folder.join(name).to_string_lossy().into_owned();
    // This machine's own mounts: nothing here is a container's.
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    let paths = table.lines().filter_map(|line| line.split(' ').nth(4));
    let mounts = paths.map(|path| ExpectedMount {
        path: path.to_owned(),
        read_only: false,
    });
    Ok(Settings {
        gateway: Gateway {
            address: "127.0.0.1:1".parse()?,
            authorities: String::new(),
            token_file: PathBuf::new(),
            runtime_digest: String::new(),
        },
        executor_socket: folder.join("executor.sock"),
        folders: Folders {
            user_data: folder.join("data"),
            state: folder.join("state"),
            skills: folder.join("skills"),
            sources: folder.join("sources"),
        },
        seen: SeenFolders {
            user_data: seen("data"),
            skills: seen("skills"),
        },
        sandbox: SandboxFacts {
            mounts: mounts.collect(),
            ..SandboxFacts::default()
        },
        probe: ProbeTargets {
            required: false,
            closed: Vec::new(),
            closed_if_there: Vec::new(),
        },
        bounds: Bounds::default(),
    })
}

fn start_executor(binary: &Path, folder: &Path, socket: &Path) -> std::io::Result<Child> {
    // PID 1 of a namespace of its own, as in a container.
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--ipc"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user"]);
    }
    command.arg(binary).arg("--socket").arg(socket);
    command.arg("--temp").arg(folder.join("tmp"));
    command.arg("--user-data").arg(folder.join("data"));
    command.stdin(Stdio::null()).spawn()
}

fn own_peak() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .ok_or("no VmHWM")?;
    Ok(kib.parse::<u64>()? * 1024)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
