//! What a sandbox is: the layers task > function > agent type > run > pool, merged field by field.
//!
//! `pool` stands for a whole sandbox: below a layer that names one, only that pool's image, resources, runtime class
//! and egress count, while `env`, `secrets` and the rest still come from lower layers. Lists are taken whole from the
//! highest layer that has one; an empty list means nothing, not "everything".

use super::secrets::{self, SecretError};
use agentrun_api::{
    EgressRule, EnvVar, GoDuration, Landlock, NotAQuantity, Quantity, Resources, SandboxSpec,
    SandboxTemplate, SecretUse,
};
use std::time::Duration;

/// CPU limit where nothing names one.
const DEFAULT_CPU_MILLIS: u64 = 2000;
/// Memory limit where nothing names one.
const DEFAULT_MEMORY: u64 = 2 << 30;

/// Everything that may say something about one sub-task's sandbox, highest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers<'a> {
    /// `resources` of the task itself, above its `sandbox.resources`.
    pub resources: Option<&'a Resources>,
    /// `sandbox` of the task.
    pub task: Option<&'a SandboxSpec>,
    /// What the function declares.
    pub function: Option<FunctionNeeds<'a>>,
    /// `sandbox` of the agent type.
    pub agent: Option<&'a SandboxSpec>,
    /// `sandbox` of the run.
    pub run: Option<&'a SandboxSpec>,
    /// Template of the pool that [`pool_name`] names.
    pub pool: Option<&'a SandboxTemplate>,
    /// `--default-image`.
    pub default_image: &'a str,
}

/// What a skill's function declares about its sandbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionNeeds<'a> {
    /// Image that it needs.
    pub image: Option<&'a str>,
    /// Memory that it may use, in bytes: the sandbox gets no less unless the task itself says so.
    pub memory_bytes: u64,
}

/// A sandbox, resolved: every field has its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSandbox {
    /// Image of the untrusted container.
    pub image: String,
    /// CPU limit in thousandths of a processor.
    pub cpu_millis: u64,
    /// Memory limit in bytes.
    pub memory_bytes: u64,
    /// RuntimeClass of the Pod.
    pub runtime_class: Option<String>,
    /// `hostUsers` of the Pod; the API server's default when unset.
    pub host_users: Option<bool>,
    /// What user code may reach besides the gateway.
    pub egress: Vec<EgressRule>,
    /// Variables of the work; they travel over the channel.
    pub env: Vec<EnvVar>,
    /// Secrets of the work.
    pub secrets: Vec<SecretUse>,
    /// Work is refused where the kernel has no Landlock.
    pub landlock_required: bool,
    /// How long the sandbox of a failed attempt is kept.
    pub keep_on_failure: Duration,
}

/// The layers make no sandbox.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A quantity is none.
    #[error("resources.{field}: {reason}")]
    Resources {
        /// `cpu` or `memory`.
        field: &'static str,
        /// What was found, and what is allowed.
        reason: String,
    },
    /// The duration is none.
    #[error("keepOnFailure: {0}")]
    KeepOnFailure(String),
    /// A Secret cannot be mounted where it was asked for.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// The pool that the layers name; the highest one wins.
pub fn pool_name<'a>(layers: &Layers<'a>) -> Option<&'a str> {
    layers.specs().find_map(|spec| spec.pool.as_deref())
}

/// Merges the layers.
pub fn resolve(layers: &Layers<'_>) -> Result<ResolvedSandbox, TemplateError> {
    let secrets = layers
        .specs()
        .find_map(|spec| spec.secrets.clone())
        .unwrap_or_default();
    secrets::check(&secrets)?;
    let pool = layers.pool;
    let keep = layers
        .specs()
        .find_map(|spec| spec.keep_on_failure.as_ref())
        .map(GoDuration::parse)
        .transpose();
    Ok(ResolvedSandbox {
        image: image(layers),
        cpu_millis: cpu_millis(layers)?,
        memory_bytes: memory_bytes(layers)?,
        runtime_class: layers
            .shapes()
            .find_map(|spec| spec.runtime_class_name.clone())
            .or_else(|| pool?.runtime_class_name.clone()),
        host_users: pool.and_then(|pool| pool.host_users),
        egress: layers
            .shapes()
            .find_map(|spec| spec.egress.clone())
            .or_else(|| Some(pool?.egress.clone()))
            .unwrap_or_default(),
        env: layers
            .specs()
            .find_map(|spec| spec.env.clone())
            .or_else(|| Some(pool?.env.clone()))
            .unwrap_or_default(),
        secrets,
        landlock_required: landlock(pool) == Landlock::Required,
        keep_on_failure: keep
            .map_err(|error| TemplateError::KeepOnFailure(error.to_string()))?
            .unwrap_or_default(),
    })
}

impl<'a> Layers<'a> {
    /// The layers that are a `SandboxSpec`, highest first.
    fn specs(&self) -> impl Iterator<Item = &'a SandboxSpec> + use<'a> {
        [self.task, self.agent, self.run].into_iter().flatten()
    }

    /// Those whose image, resources, runtime class and egress count: down to the one that names the pool.
    fn shapes(&self) -> impl Iterator<Item = &'a SandboxSpec> + use<'a> {
        let names_pool = |spec: &&SandboxSpec| spec.pool.is_some();
        let counted = self
            .specs()
            .position(|spec| names_pool(&spec))
            .map_or(usize::MAX, |last| last + 1);
        self.specs().take(counted)
    }

    /// The task names a pool: what its function declares lies below that choice.
    fn task_names_pool(&self) -> bool {
        self.task.is_some_and(|task| task.pool.is_some())
    }
}

fn image(layers: &Layers<'_>) -> String {
    let of_task = layers.task.and_then(|task| task.image.clone());
    let of_function = || {
        layers
            .function
            .filter(|_| !layers.task_names_pool())?
            .image
            .map(str::to_owned)
    };
    let of_layers = || layers.shapes().find_map(|spec| spec.image.clone());
    of_task
        .or_else(of_function)
        .or_else(of_layers)
        .or_else(|| layers.pool?.image.clone())
        .unwrap_or_else(|| layers.default_image.to_owned())
}

fn cpu_millis(layers: &Layers<'_>) -> Result<u64, TemplateError> {
    let found = task_quantity(layers, |resources| resources.cpu.as_ref())
        .or_else(|| lower_quantity(layers, |resources| resources.cpu.as_ref()));
    read("cpu", found, DEFAULT_CPU_MILLIS, Quantity::millis)
}

fn memory_bytes(layers: &Layers<'_>) -> Result<u64, TemplateError> {
    if let Some(own) = task_quantity(layers, |resources| resources.memory.as_ref()) {
        return read("memory", Some(own), DEFAULT_MEMORY, Quantity::bytes);
    }
    let lower = lower_quantity(layers, |resources| resources.memory.as_ref());
    let needed = layers.function.map_or(0, |function| function.memory_bytes);
    Ok(read("memory", lower, DEFAULT_MEMORY, Quantity::bytes)?.max(needed))
}

type Pick = fn(&Resources) -> Option<&Quantity>;

fn task_quantity<'a>(layers: &Layers<'a>, pick: Pick) -> Option<&'a Quantity> {
    layers
        .resources
        .and_then(pick)
        .or_else(|| layers.task?.resources.as_ref().and_then(pick))
}

fn lower_quantity<'a>(layers: &Layers<'a>, pick: Pick) -> Option<&'a Quantity> {
    let of_layers = layers
        .shapes()
        .find_map(|spec| spec.resources.as_ref().and_then(pick));
    of_layers.or_else(|| layers.pool?.resources.as_ref().and_then(pick))
}

fn read(
    field: &'static str,
    found: Option<&Quantity>,
    default: u64,
    parse: fn(&Quantity) -> Result<u64, NotAQuantity>,
) -> Result<u64, TemplateError> {
    let Some(quantity) = found else { return Ok(default) };
    match parse(quantity) {
        Ok(0) => Err(TemplateError::Resources {
            field,
            reason: "0 leaves nothing to run with".to_owned(),
        }),
        Ok(amount) => Ok(amount),
        Err(error) => Err(TemplateError::Resources {
            field,
            reason: error.to_string(),
        }),
    }
}

fn landlock(pool: Option<&SandboxTemplate>) -> Landlock {
    let isolation = pool.and_then(|pool| pool.isolation.as_ref());
    isolation
        .and_then(|isolation| isolation.landlock)
        .unwrap_or(Landlock::Required)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
