//! A runtime in temporary folders.

use crate::executor::Executor;
use crate::gateway::{Gateway, Peer, TOKEN, soon};
use agentrun_protocol::channel::{ToGateway, ToRuntime};
use agentrun_protocol::environment::SandboxFacts;
use agentrun_protocol::probe::ProbeTargets;
use agentrun_protocol::result::AttemptResult;
use agentrun_protocol::work::{Assignment, AttemptId, FileAccess, Limits, Work};
use agentrun_runtime::serve::{ServeError, serve};
use agentrun_runtime::settings::{self, Bounds, Folders, SeenFolders, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Nobody listens there, and no test gets this port.
const CLOSED: &str = "127.0.0.1:1";

/// Starting an interpreter takes much less, and a test that waits for its end no longer.
pub(crate) const WARM_START: Duration = Duration::from_secs(5);

/// A gateway, and a runtime that is not started yet.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) gateway: Gateway,
    pub(crate) settings: Settings,
}

/// A started runtime.
pub(crate) struct Runtime {
    serving: JoinHandle<Result<u8, ServeError>>,
    shutdown: Option<oneshot::Sender<()>>,
}

impl World {
    pub(crate) async fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in [
            "data/uploads",
            "data/workspace",
            "data/outputs",
            "state",
            "skills",
            "tmp",
        ] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("token"), format!("{TOKEN}\n")).unwrap();
        let gateway = Gateway::start().await;
        let settings = Settings {
            gateway: settings::Gateway {
                address: gateway.address,
                authorities: gateway.authority.clone(),
                token_file: path("token"),
                runtime_digest: "sha256:abc".to_owned(),
            },
            executor_socket: path("executor.sock"),
            folders: Folders {
                user_data: path("data"),
                state: path("state"),
                skills: path("skills"),
                sources: path("sources"),
            },
            seen: SeenFolders {
                user_data: path("data").to_string_lossy().into_owned(),
                skills: path("skills").to_string_lossy().into_owned(),
            },
            sandbox: SandboxFacts {
                volume: "class fast, driver test".to_owned(),
                ..SandboxFacts::default()
            },
            probe: ProbeTargets {
                required: true,
                closed: vec![CLOSED.parse().unwrap()],
                closed_if_there: Vec::new(),
            },
            bounds: Bounds {
                quiet: Duration::from_millis(100),
                exit_grace: Duration::from_millis(100),
                warm_start: WARM_START,
                ..Bounds::default()
            },
        };
        World {
            folder,
            gateway,
            settings,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.settings.executor_socket
    }

    pub(crate) fn start(&self) -> Runtime {
        let (shutdown, told) = oneshot::channel::<()>();
        let told = async { told.await.unwrap_or(()) };
        let serving = tokio::spawn(serve(self.settings.clone(), told));
        Runtime {
            serving,
            shutdown: Some(shutdown),
        }
    }

    /// A runtime with an executor and a connection.
    pub(crate) async fn up(&mut self) -> (Runtime, Executor, Peer) {
        let runtime = self.start();
        let executor = Executor::ready(self.socket()).await;
        let peer = self.gateway.peer().await;
        (runtime, executor, peer)
    }

    /// A file of the first attempt of sub-task `sub-task-uid`.
    pub(crate) fn evidence(&self, name: &str) -> PathBuf {
        self.path("state/runs/run-uid/tasks/sub-task-uid/1").join(name)
    }
}

impl Runtime {
    /// Its exit code.
    pub(crate) async fn exit_code(&mut self) -> u8 {
        let ended = soon("the end of the runtime", &mut self.serving).await.unwrap();
        ended.unwrap_or_else(|error| error.exit_code())
    }

    /// As SIGTERM does.
    pub(crate) fn shut_down(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) fn id() -> AttemptId {
    AttemptId {
        uid: "sub-task-uid".to_owned(),
        attempt: 1,
    }
}

pub(crate) fn assignment(work: Work) -> Assignment {
    let limits = match work {
        Work::Function { .. } => Limits::FUNCTION,
        Work::Command { .. } | Work::Agent(_) => Limits::COMMAND,
    };
    Assignment {
        id: id(),
        subtask: "default/one".to_owned(),
        run_uid: "run-uid".to_owned(),
        task: "one".to_owned(),
        work,
        input: None,
        files: Vec::new(),
        copies: Vec::new(),
        skills: Vec::new(),
        env: BTreeMap::new(),
        inherit_env: Vec::new(),
        tcp: false,
        remaining_ms: 10_000,
        cache: None,
        limits,
        acceptance: Vec::new(),
        notes: Vec::new(),
    }
}

pub(crate) fn function(file: &str) -> Assignment {
    assignment(Work::Function {
        skill: "skill".to_owned(),
        name: "f".to_owned(),
        file: file.to_owned(),
        files: FileAccess::None,
        warm: None,
    })
}

pub(crate) fn command(argv: &[&str]) -> Assignment {
    assignment(Work::Command {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        working_dir: None,
    })
}

impl Peer {
    pub(crate) async fn assign(&mut self, assignment: &Assignment) {
        self.say(ToRuntime::Assign(Box::new(assignment.clone()))).await;
        assert_eq!(self.next().await, ToGateway::Taken(assignment.id.clone()));
    }

    pub(crate) async fn result(&mut self) -> AttemptResult {
        match self.next().await {
            ToGateway::Result { id: found, result } => {
                assert_eq!(found, id());
                *result
            }
            other => panic!("expected a result, found {other:?}"),
        }
    }

    pub(crate) async fn ack(&self) {
        self.say(ToRuntime::Ack(id())).await;
    }
}
