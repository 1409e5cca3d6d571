//! Runs one test: makes its namespace, catches its panic, reports, and takes the namespace away.

use super::world::{Cluster, World};
use futures::FutureExt as _;
use libtest_mimic::{Failed, Trial};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::RwLock;

/// Whether a test shares the cluster with others while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Beside others.
    Together,
    /// With no other test, since it disturbs the control plane.
    Alone,
}

impl Mode {
    /// The most that one test may take, whatever it waits for. What has the cluster for itself also loads it most.
    fn bound(self) -> Duration {
        match self {
            Mode::Together => Duration::from_mins(4),
            Mode::Alone => Duration::from_mins(10),
        }
    }
}

type Body = fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The cluster while tests run: many readers, or one that disturbs it.
static CLUSTER_USE: RwLock<()> = RwLock::const_new(());

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("threads for the tests"))
}

fn cluster() -> Result<&'static Cluster, Failed> {
    static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
    let found = CLUSTER.get_or_init(|| runtime().block_on(Cluster::find()));
    found.as_ref().map_err(Failed::from)
}

/// A test of the harness.
pub fn trial(mode: Mode, module: &str, test: &str, body: Body) -> Trial {
    let name = format!("{module}::{test}");
    let short = test.to_owned();
    Trial::test(name, move || {
        let cluster = cluster()?;
        match mode {
            Mode::Together => runtime().block_on(async {
                let _shared = CLUSTER_USE.read().await;
                run(cluster, &short, mode.bound(), body).await
            }),
            Mode::Alone => runtime().block_on(async {
                let _alone = CLUSTER_USE.write().await;
                run(cluster, &short, mode.bound(), body).await
            }),
        }
    })
}

async fn run(cluster: &Cluster, name: &str, bound: Duration, body: Body) -> Result<(), Failed> {
    let world = World::create(cluster, name).await?;
    let bounded = tokio::time::timeout(bound, body(world.clone()));
    let ended = AssertUnwindSafe(bounded).catch_unwind().await;
    let failure = match ended {
        Ok(Ok(())) => None,
        Ok(Err(_)) => Some(format!("the test did not end within {bound:?}")),
        Err(panic) => Some(text_of(panic.as_ref())),
    };
    let report = match failure {
        // Said twice: who reads only the end of a long log finds it there.
        Some(failure) => Some(format!("{failure}\n{}\n{name}: {failure}", world.dump().await)),
        None => None,
    };
    let gone = world.remove().await;
    match (report, gone) {
        (Some(report), _) => Err(report.into()),
        (None, Err(why)) => Err(format!("{why}\n{}", world.dump().await).into()),
        (None, Ok(())) => Ok(()),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "a panic without text".to_owned())
}
