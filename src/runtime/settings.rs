//! What a runtime is told when it starts. Parsed once, in `main`; everything else takes it as arguments.

use crate::inspect::Inspection;
use agentrun_protocol::environment::{self, SandboxFacts};
use agentrun_protocol::executor;
use agentrun_protocol::inspection;
use agentrun_protocol::probe::ProbeTargets;
use agentrun_sandbox::resolve::{Area, Roots};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// All that a runtime needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the gateway is.
    pub gateway: Gateway,
    /// Where the executor connects.
    pub executor_socket: PathBuf,
    /// The runtime's own view of the user's folders.
    pub folders: Folders,
    /// The same folders as the executor sees them.
    pub seen: SeenFolders,
    /// The container beside this one.
    pub sandbox: SandboxFacts,
    /// What the isolation probe tries to reach.
    pub probe: ProbeTargets,
    /// Waiting times.
    pub bounds: Bounds,
}

/// How the gateway is found and how the two know each other.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Address of the channel.
    pub address: SocketAddr,
    /// PEM of the authorities that may have signed its certificate.
    pub authorities: String,
    /// File with the bearer token, read again on every connect.
    pub token_file: PathBuf,
    /// Digest of this runtime's image, for the hello.
    pub runtime_digest: String,
}

/// Folders as the runtime sees them.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Holds `uploads`, which the runtime alone writes, and `workspace` and `outputs`, which it reads.
    pub user_data: PathBuf,
    /// `state`: evidence, logs, results.
    pub state: PathBuf,
    /// Skills that came over the channel.
    pub skills: PathBuf,
    /// Holds one folder for each claim that files are copied from.
    pub sources: PathBuf,
}

impl Folders {
    /// Where uploads go.
    pub fn uploads(&self) -> PathBuf {
        self.roots().folder(&Area::Uploads)
    }

    /// Opens what user code can change, and never what is outside of it.
    pub fn roots(&self) -> Roots {
        Roots::new(&self.user_data, &self.skills)
    }
}

/// Folders as user code sees them.
#[derive(Clone, Debug)]
pub struct SeenFolders {
    /// Holds `uploads`, `workspace` and `outputs`.
    pub user_data: String,
    /// Holds one folder for each skill.
    pub skills: String,
}

/// How long the runtime waits for others.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// For the executor to connect and to answer.
    pub executor: Duration,
    /// For a warm process to say that it can take calls.
    pub warm_start: Duration,
    /// For the network to become isolated.
    pub isolation: Duration,
    /// Silence on stdout after which a whole document counts as complete.
    pub quiet: Duration,
    /// Between a complete document and the kill of a function that does not exit.
    pub exit_grace: Duration,
    /// Between SIGTERM and SIGKILL at the deadline.
    pub timeout_grace: Duration,
    /// For the looks at what the work left: artifacts, criteria and the cache.
    pub collect: Duration,
    /// For the acknowledgement of the last message before the runtime exits.
    pub farewell: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            executor: EXECUTOR,
            warm_start: Duration::from_secs(20),
            isolation: Duration::from_secs(10),
            quiet: Duration::from_secs(2),
            exit_grace: FUNCTION_EXIT_GRACE,
            timeout_grace: Duration::from_secs(2),
            collect: COLLECT_TIME,
            farewell: Duration::from_secs(2),
        }
    }
}

/// How long the executor is waited for: its container starts when its image is pulled. The Pod's deadline and
/// the operator's `startTimeout` usually come first.
const EXECUTOR: Duration = Duration::from_mins(15);

/// How long all that follows the work may take before its result is stored. It is more than the bounds of artifacts and
/// criteria together, which a look at every step keeps: what is still not over then hangs in the volume.
const COLLECT_TIME: Duration = Duration::from_mins(1);

/// How long a function may go on after its complete document.
pub const FUNCTION_EXIT_GRACE: Duration = Duration::from_secs(5);

impl Default for Folders {
    fn default() -> Self {
        Folders {
            user_data: PathBuf::from(USER_DATA),
            state: PathBuf::from(environment::STATE),
            skills: PathBuf::from(environment::SKILLS),
            sources: PathBuf::from(environment::SOURCES),
        }
    }
}

impl Default for SeenFolders {
    fn default() -> Self {
        SeenFolders {
            user_data: USER_DATA.to_owned(),
            skills: "/mnt/skills".to_owned(),
        }
    }
}

/// The user data's virtual root.
pub const USER_DATA: &str = "/mnt/user-data";

/// The environment does not say what it must.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A variable is missing.
    #[error("{0} is not set; the operator sets it in every sandbox Pod")]
    Missing(&'static str),
    /// A variable cannot be read.
    #[error("{name} is not valid, expected {expected}")]
    Invalid {
        /// Which variable.
        name: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// A variable holds JSON of another shape.
    #[error("{name} is not valid JSON of its kind")]
    Json {
        /// Which variable.
        name: &'static str,
        /// What the parser said.
        source: serde_json::Error,
    },
}

impl Settings {
    /// Reads the environment through `variable`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Settings {
            gateway: Gateway::from_environment(&variable)?,
            executor_socket: PathBuf::from(executor::SOCKET),
            folders: Folders::default(),
            seen: SeenFolders::default(),
            sandbox: json(environment::SANDBOX, &variable)?,
            probe: json(environment::PROBE, &variable)?,
            bounds: Bounds::default(),
        })
    }
}

impl Gateway {
    fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let required = |name: &'static str| variable(name).ok_or(SettingsError::Missing(name));
        let address = required(environment::GATEWAY)?;
        let address = address.parse().map_err(|_| SettingsError::Invalid {
            name: environment::GATEWAY,
            expected: "IP:PORT",
        })?;
        Ok(Gateway {
            address,
            authorities: required(environment::GATEWAY_CA)?,
            token_file: PathBuf::from(environment::TOKEN_FILE),
            runtime_digest: variable(environment::RUNTIME_DIGEST).unwrap_or_default(),
        })
    }
}

impl Inspection {
    /// Reads the environment of a Pod that reads a skill through `variable`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let gateway = Gateway::from_environment(&variable)?;
        let id = variable(inspection::VARIABLE).ok_or(SettingsError::Missing(inspection::VARIABLE))?;
        let id = serde_json::from_str(&id).map_err(|source| SettingsError::Json {
            name: inspection::VARIABLE,
            source,
        })?;
        Ok(Inspection {
            gateway,
            id,
            folder: PathBuf::from(inspection::FOLDER),
        })
    }
}

fn json<T: Default + serde::de::DeserializeOwned>(
    name: &'static str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<T, SettingsError> {
    let Some(text) = variable(name) else {
        return Ok(T::default());
    };
    serde_json::from_str(&text).map_err(|source| SettingsError::Json { name, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(set: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_environment(|name| {
            set.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = parse(&[(environment::GATEWAY, "10.0.0.1:8443")]).unwrap_err();
        assert!(
            error.to_string().starts_with("AGENTRUN_GATEWAY_CA is not set"),
            "{error}"
        );
    }

    #[test]
    fn a_host_name_is_no_gateway_address_since_sandboxes_have_no_dns() {
        let error = parse(&[
            (environment::GATEWAY, "gateway:8443"),
            (environment::GATEWAY_CA, "x"),
        ])
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "AGENTRUN_GATEWAY is not valid, expected IP:PORT"
        );
    }

    #[test]
    fn probe_and_sandbox_are_json() {
        let settings = parse(&[
            (environment::GATEWAY, "10.0.0.1:8443"),
            (environment::GATEWAY_CA, "PEM"),
            (
                environment::PROBE,
                r#"{"required":true,"closed":["10.96.0.1:443"]}"#,
            ),
            (
                environment::SANDBOX,
                r#"{"landlockRequired":true,"volume":"nfs"}"#,
            ),
        ])
        .unwrap();
        assert!(settings.probe.required);
        assert_eq!(settings.sandbox.volume, "nfs");
        let error = parse(&[
            (environment::GATEWAY, "10.0.0.1:8443"),
            (environment::GATEWAY_CA, "PEM"),
            (environment::PROBE, "yes"),
        ]);
        assert!(matches!(error, Err(SettingsError::Json { .. })));
    }
}
