//! A cluster to test on: the user's own, or a control plane that `e2e/cluster` starts. Every test gets a namespace.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test's helper says what is wrong by panicking"
)]

use agentrun_api::{AgentRun, SubTask, Thread};
use k8s_openapi::api::core::v1::{Event, Namespace as NamespaceObject, PersistentVolumeClaim, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::NamespaceResourceScope;
use kube::{Client, Config, Resource, ResourceExt as _};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;

/// Where the control plane of these tests keeps its state, unless this variable says otherwise.
pub const STATE: &str = "AGENTRUN_TEST_CLUSTER_STATE";
const DEFAULT_STATE: &str = "/run/agentrun-sweep";
/// The port of its API server, unless this variable says otherwise.
pub const PORT: &str = "AGENTRUN_TEST_CLUSTER_PORT";
const DEFAULT_PORT: &str = "16843";

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(200);

/// How clients of the test cluster are configured. The first caller starts the control plane, which takes 5 s and
/// stays up for the next time, and applies our definitions; with `KUBECONFIG` set, that cluster is used as it is.
/// Nobody else's operator may work there.
pub async fn config() -> Config {
    static CONFIG: OnceCell<Config> = OnceCell::const_new();
    CONFIG
        .get_or_init(|| async {
            let path = match std::env::var_os("KUBECONFIG") {
                Some(path) => PathBuf::from(path),
                None => started(),
            };
            let config = read(&path).await;
            apply_definitions(&client_of(&config)).await;
            config
        })
        .await
        .clone()
}

async fn read(path: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(path)
        .unwrap_or_else(|error| panic!("the kubeconfig {} cannot be read: {error}", path.display()));
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap_or_else(|error| panic!("the kubeconfig {} is of no use: {error}", path.display()))
}

/// Starts the control plane, or finds that it is up.
fn started() -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/cluster/cluster");
    let state = std::env::var(STATE).unwrap_or_else(|_| DEFAULT_STATE.to_owned());
    let port = std::env::var(PORT).unwrap_or_else(|_| DEFAULT_PORT.to_owned());
    let up = Command::new(&tool)
        .args(["up", "--control-plane"])
        .env("CLUSTER_STATE", &state)
        .env("CLUSTER_PORT", &port)
        .output();
    let said = match up {
        Ok(output) if output.status.success() => return Path::new(&state).join("kubeconfig"),
        Ok(output) => format!(
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => error.to_string(),
    };
    panic!(
        "these tests need an API server: set KUBECONFIG to a cluster without AgentRun, or run them as root after \
         `e2e/cluster/cluster build`. `{} up --control-plane` said:\n{said}",
        tool.display()
    );
}

fn client_of(config: &Config) -> Client {
    Client::try_from(config.clone()).expect("a client of the test cluster")
}

async fn apply_definitions(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let names: Vec<_> = agentrun_api::crds()
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect();
    for definition in agentrun_api::crds() {
        let params = PatchParams::apply("agentrun-testkit").force();
        api.patch(&definition.name_any(), &params, &Patch::Apply(&definition))
            .await
            .unwrap_or_else(|error| panic!("definition {}: {error}", definition.name_any()));
    }
    let established = async || {
        for name in &names {
            let definition = api.get(name).await.ok()?;
            let conditions = definition.status?.conditions?;
            conditions
                .iter()
                .find(|condition| condition.type_ == "Established" && condition.status == "True")?;
        }
        Some(())
    };
    assert!(
        poll(Duration::from_secs(30), established).await.is_some(),
        "the definitions are not served after 30 s"
    );
}

/// Looks again and again until there is an answer or the time is over.
async fn poll<T>(deadline: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let looking = async {
        let mut ticks = tokio::time::interval(LOOK);
        loop {
            ticks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(deadline, looking).await.ok()
}

/// A namespace of one test's own.
#[derive(Clone)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// A client without faults.
    pub client: Client,
    /// How to build others.
    pub config: Config,
}

impl Namespace {
    /// Makes one; `prefix` is for people.
    pub async fn new(prefix: &str) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let config = config().await;
        let client = client_of(&config);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{:x}-{number}", since.as_millis());
        let object = NamespaceObject {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            ..NamespaceObject::default()
        };
        Api::all(client.clone())
            .create(&PostParams::default(), &object)
            .await
            .unwrap_or_else(|error| panic!("namespace {name}: {error}"));
        Self { name, client, config }
    }

    /// Objects of one kind here.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Makes an object.
    pub async fn create<K>(&self, object: &K) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        self.api()
            .create(&PostParams::default(), object)
            .await
            .unwrap_or_else(|error| panic!("{} {}: {error}", K::kind(&()), object.name_any()))
    }

    /// All objects of one kind here.
    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let list = self.api::<K>().list(&ListParams::default()).await;
        list.unwrap_or_else(|error| panic!("list of {}: {error}", K::plural(&())))
            .items
    }

    /// Looks until there is an answer. When the time is over, panics with everything that is in the namespace.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        deadline: Duration,
        look: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        match poll(deadline, look).await {
            Some(found) => found,
            None => panic!(
                "{what}: not within {deadline:?} in {}\n{}",
                self.name,
                self.dump().await
            ),
        }
    }

    /// Everything that matters here, as YAML.
    pub async fn dump(&self) -> String {
        let mut text = String::new();
        self.dump_kind::<AgentRun>(&mut text).await;
        self.dump_kind::<SubTask>(&mut text).await;
        self.dump_kind::<Thread>(&mut text).await;
        self.dump_kind::<Pod>(&mut text).await;
        self.dump_kind::<PersistentVolumeClaim>(&mut text).await;
        for event in self.list::<Event>().await {
            let (reason, message) = (
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            );
            let about = event.involved_object.name.unwrap_or_default();
            let _ = writeln!(text, "event {about}: {reason}: {message}");
        }
        text
    }

    async fn dump_kind<K>(&self, text: &mut String)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        for mut object in self.list::<K>().await {
            object.meta_mut().managed_fields = None;
            let mut value = serde_json::to_value(&object).unwrap_or_default();
            // What a Pod's spec says is the same in all of them.
            if K::kind(&()) == "Pod" {
                value["spec"] = serde_json::json!({"nodeName": value["spec"]["nodeName"]});
            }
            let yaml = serde_yaml::to_string(&value).unwrap_or_default();
            let _ = write!(text, "--- {}\n{yaml}", K::kind(&()));
        }
    }

    /// Asks for its deletion, and does not wait: a control plane for tests has better things to do.
    pub async fn give_back(&self) {
        let api: Api<NamespaceObject> = Api::all(self.client.clone());
        let _ = api.delete(&self.name, &DeleteParams::background()).await;
    }
}
