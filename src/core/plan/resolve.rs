//! From a task of the plan to the spec of its sub-task: everything resolved, nothing left to evaluate.

use super::lead;
use agentrun_api::{
    AgentRunSpec, AgentWork, FunctionWork, GoDuration, Json, Quantity, Resources, RunRef, SandboxSpec,
    SkillFunction, SubTaskRole, SubTaskSpec, TaskTemplate,
};
use serde_json::Value;
use std::time::Duration;

/// How long an attempt may run when nothing says otherwise (docs/reference.md).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// How long starting may take when nothing says otherwise (docs/reference.md).
pub const DEFAULT_START_TIMEOUT: Duration = Duration::from_mins(10);

/// What is known of a function when its sub-task is made.
#[derive(Clone, Copy, Debug)]
pub struct PinnedFunction<'a> {
    /// The declaration in `functions.yaml`.
    pub declared: &'a SkillFunction,
    /// Digest of the skill.
    pub digest: &'a str,
}

/// One item of a `forEach`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemId {
    /// Its place in the list.
    pub index: u32,
    /// Its key, where `forEach.key` is given.
    pub key: Option<String>,
}

/// What a task's expressions come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluated {
    /// `input`.
    pub input: Option<Value>,
    /// The prompt of an agent.
    pub prompt: Option<String>,
}

/// The spec of the sub-task of `task`.
pub fn subtask_spec(
    run: &AgentRunSpec,
    run_ref: RunRef,
    task: &TaskTemplate,
    item: Option<&ItemId>,
    evaluated: Evaluated,
    function: Option<PinnedFunction<'_>>,
) -> SubTaskSpec {
    let is_lead = lead::is_lead(run, &task.name);
    let prompted = |work: &AgentWork| AgentWork {
        prompt: evaluated.prompt.clone().unwrap_or_else(|| work.prompt.clone()),
        agent: work.agent.clone(),
    };
    let pin = |work: &FunctionWork| FunctionWork {
        digest: function.map(|function| function.digest.to_owned()),
        ..work.clone()
    };
    SubTaskSpec {
        run_ref,
        parent_ref: None,
        task: task.name.clone(),
        role: if is_lead {
            SubTaskRole::Lead
        } else {
            SubTaskRole::Task
        },
        description: task.description.clone(),
        index: item.and_then(|item| i32::try_from(item.index).ok()),
        key: item.and_then(|item| item.key.clone()),
        function: task.function.as_ref().map(pin),
        command: task.command.clone(),
        agent: task.agent.as_ref().map(prompted),
        history: is_lead.then(|| lead::history(run)),
        input: evaluated.input.map(Json),
        input_from: task.input_from.clone(),
        sandbox: sandbox(run, task, function),
        resources: resources(task, function),
        timeout: Some(timeout(task, function)),
        retry: task.retry.clone(),
        context: task.context.clone(),
        acceptance: task.acceptance.clone(),
        acceptance_policy: task.acceptance_policy,
        approval: task.approval,
        cache: task.cache.clone(),
    }
}

/// Merges per field: task, then function, then run. A pool named by the task replaces the run's own
/// image and resources and the other way round, since the two forms exclude each other.
fn sandbox(
    run: &AgentRunSpec,
    task: &TaskTemplate,
    function: Option<PinnedFunction<'_>>,
) -> Option<SandboxSpec> {
    let mut merged = match (&task.sandbox, &run.sandbox) {
        (None, None) => SandboxSpec::default(),
        (Some(only), None) | (None, Some(only)) => only.clone(),
        (Some(own), Some(base)) => over(own, base),
    };
    let own = task.sandbox.as_ref();
    let own_image = own.and_then(|sandbox| sandbox.image.clone());
    let own_pool = own.is_some_and(|sandbox| sandbox.pool.is_some());
    let function_image = function
        .filter(|_| !own_pool)
        .and_then(|function| function.declared.image.clone());
    merged.image = own_image.or(function_image).or(merged.image);
    (merged != SandboxSpec::default()).then_some(merged)
}

/// Merges per field: what stands in `own` over what stands in `base`.
pub(crate) fn over(own: &SandboxSpec, base: &SandboxSpec) -> SandboxSpec {
    let template_of_base = own.pool.is_none();
    let own_template = own.image.is_some() || own.resources.is_some() || own.runtime_class_name.is_some();
    let from_base = |field: bool| template_of_base && field;
    SandboxSpec {
        pool: own
            .pool
            .clone()
            .or_else(|| base.pool.clone().filter(|_| !own_template)),
        image: own
            .image
            .clone()
            .or_else(|| base.image.clone().filter(|_| from_base(true))),
        resources: own
            .resources
            .clone()
            .or_else(|| base.resources.clone().filter(|_| from_base(true))),
        runtime_class_name: own
            .runtime_class_name
            .clone()
            .or_else(|| base.runtime_class_name.clone().filter(|_| from_base(true))),
        egress: own
            .egress
            .clone()
            .or_else(|| base.egress.clone().filter(|_| from_base(true))),
        env: own.env.clone().or_else(|| base.env.clone()),
        secrets: own.secrets.clone().or_else(|| base.secrets.clone()),
        reuse: own.reuse.or(base.reuse),
        start: own.start.or(base.start),
        keep_on_failure: own
            .keep_on_failure
            .clone()
            .or_else(|| base.keep_on_failure.clone()),
    }
}

/// A function's declared memory may only be lowered.
fn resources(task: &TaskTemplate, function: Option<PinnedFunction<'_>>) -> Option<Resources> {
    let Some(function) = function else {
        return task.resources.clone();
    };
    let declared = u64::try_from(function.declared.max_memory_mb).unwrap_or_default();
    let wanted = task
        .resources
        .as_ref()
        .and_then(|resources| resources.memory.clone());
    let lower = wanted.filter(|memory| memory.bytes().is_ok_and(|bytes| bytes < declared << 20));
    Some(Resources {
        memory: Some(lower.unwrap_or_else(|| Quantity(format!("{declared}Mi")))),
        cpu: task
            .resources
            .as_ref()
            .and_then(|resources| resources.cpu.clone()),
    })
}

/// A function's declared time may only be lowered.
fn timeout(task: &TaskTemplate, function: Option<PinnedFunction<'_>>) -> GoDuration {
    let declared = function.map(|function| i64::from(function.declared.timeout_sec));
    match (&task.timeout, declared) {
        (None, None) => GoDuration(format!("{}s", DEFAULT_TIMEOUT.as_secs())),
        (None, Some(seconds)) => GoDuration(format!("{seconds}s")),
        (Some(own), None) => own.clone(),
        (Some(own), Some(seconds)) => {
            let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            if own.parse().is_ok_and(|own| own < limit) {
                own.clone()
            } else {
                GoDuration(format!("{seconds}s"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(memory: i32, seconds: i32, image: Option<&str>) -> SkillFunction {
        SkillFunction {
            max_memory_mb: memory,
            timeout_sec: seconds,
            image: image.map(Into::into),
            ..SkillFunction::default()
        }
    }

    fn resolved(run: SandboxSpec, task: &TaskTemplate, declared: Option<&SkillFunction>) -> SubTaskSpec {
        let run = AgentRunSpec {
            sandbox: Some(run),
            ..AgentRunSpec::default()
        };
        let pinned = declared.map(|declared| PinnedFunction {
            declared,
            digest: "sha256:1",
        });
        subtask_spec(&run, RunRef::default(), task, None, Evaluated::default(), pinned)
    }

    #[test]
    fn a_functions_own_limits_may_only_be_lowered() {
        let declared = function(128, 10, None);
        let more = TaskTemplate {
            timeout: Some("1m".into()),
            resources: Some(Resources {
                memory: Some(Quantity("1Gi".into())),
                cpu: None,
            }),
            ..TaskTemplate::default()
        };
        let spec = resolved(SandboxSpec::default(), &more, Some(&declared));
        assert_eq!(spec.timeout, Some("10s".into()));
        assert_eq!(spec.resources.unwrap().memory, Some(Quantity("128Mi".into())));
        let less = TaskTemplate {
            timeout: Some("4s".into()),
            ..TaskTemplate::default()
        };
        assert_eq!(
            resolved(SandboxSpec::default(), &less, Some(&declared)).timeout,
            Some("4s".into())
        );
    }

    #[test]
    fn the_image_of_a_task_beats_the_functions_and_that_beats_the_runs() {
        let declared = function(128, 10, Some("function"));
        let run = SandboxSpec {
            image: Some("run".into()),
            ..SandboxSpec::default()
        };
        let task = |image: Option<&str>| TaskTemplate {
            sandbox: Some(SandboxSpec {
                image: image.map(Into::into),
                ..SandboxSpec::default()
            }),
            ..TaskTemplate::default()
        };
        let image = |task, declared| {
            resolved(run.clone(), &task, declared)
                .sandbox
                .unwrap()
                .image
                .unwrap()
        };
        assert_eq!(image(task(Some("task")), Some(&declared)), "task");
        assert_eq!(image(task(None), Some(&declared)), "function");
        assert_eq!(image(task(None), None), "run");
    }

    #[test]
    fn a_pool_of_the_task_replaces_the_template_of_the_run_but_not_its_environment() {
        let run = SandboxSpec {
            image: Some("run".into()),
            env: Some(Vec::new()),
            ..SandboxSpec::default()
        };
        let own = SandboxSpec {
            pool: Some("node".into()),
            ..SandboxSpec::default()
        };
        let task = TaskTemplate {
            sandbox: Some(own),
            ..TaskTemplate::default()
        };
        let merged = resolved(run, &task, None).sandbox.unwrap();
        assert_eq!((merged.pool.as_deref(), merged.image), (Some("node"), None));
        assert_eq!(merged.env, Some(Vec::new()));
    }

    #[test]
    fn without_any_word_an_attempt_has_thirty_minutes() {
        let spec = resolved(SandboxSpec::default(), &TaskTemplate::default(), None);
        assert_eq!(spec.timeout.unwrap().parse().unwrap(), DEFAULT_TIMEOUT);
    }
}
