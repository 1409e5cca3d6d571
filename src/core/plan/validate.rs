//! Mistakes in a spec that the API server's schema cannot see. Each names its field, what was found and
//! what is allowed; a spec with one never becomes valid, since specs are immutable.

use super::acceptance::mistakes as run_criteria;
use super::agents;
use super::parsed::Expressions;
use super::unsupported;
use crate::acceptance::{self, MAX_CRITERIA, MAX_CRITERION};
use agentrun_api::{
    AgentRunSpec, EgressRule, FileSource, GoDuration, Quantity, Resources, SandboxSpec, TaskTemplate,
};
use std::fmt;
use std::time::Duration;

/// The longest duration that a field takes: thirty days.
pub const MAX_DURATION: Duration = Duration::from_hours(720);

/// A mistake, by its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, `spec.tasks[NAME].timeout`.
    pub field: String,
    /// What was found, what is allowed, what to do.
    pub message: String,
}

impl FieldError {
    /// A mistake of this field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// What a spec is good for.
#[derive(Clone, Debug, PartialEq)]
pub enum Validated {
    /// It can run.
    Valid(Box<Expressions>),
    /// It uses fields that this version has no behaviour for.
    NotYetSupported(Vec<FieldError>),
    /// It is wrong.
    Invalid(Vec<FieldError>),
}

/// Checks a run's spec.
pub fn validate(spec: &AgentRunSpec) -> Validated {
    let mut errors = Vec::new();
    check_run(spec, &mut errors);
    for task in &spec.tasks {
        check_task(task, &mut errors);
        check_cache(spec, task, &mut errors);
    }
    let expressions = match Expressions::parse(spec) {
        Ok(expressions) => expressions,
        Err(more) => {
            errors.extend(more);
            return Validated::Invalid(errors);
        }
    };
    if let Err(more) = expressions.graph(spec) {
        errors.extend(more);
    }
    if !errors.is_empty() {
        return Validated::Invalid(errors);
    }
    let unsupported = unsupported::find(spec);
    if !unsupported.is_empty() {
        return Validated::NotYetSupported(unsupported);
    }
    Validated::Valid(Box::new(expressions))
}

fn check_run(spec: &AgentRunSpec, errors: &mut Vec<FieldError>) {
    if spec.goal.is_none() && spec.tasks.is_empty() {
        errors.push(FieldError::new(
            "spec",
            "has neither goal nor tasks: give one of them",
        ));
    }
    let mut names: Vec<_> = spec.tasks.iter().map(|task| task.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        errors.push(FieldError::new(
            "spec.tasks",
            format!("two tasks are called {:?}: names are unique", pair[0]),
        ));
    }
    criteria("spec.acceptance", &spec.acceptance, errors);
    run_criteria(spec, errors);
    agents::mistakes(spec, errors);
    if let Some(limits) = &spec.limits {
        duration("spec.limits.timeout", limits.timeout.as_ref(), errors);
        duration("spec.limits.startTimeout", limits.start_timeout.as_ref(), errors);
    }
    if let Some(size) = spec.user_data.as_ref().and_then(|data| data.claim.size.as_ref()) {
        quantity(
            "spec.userData.size",
            size,
            |size| size.bytes().is_ok_and(|bytes| bytes > 0),
            errors,
        );
    }
    if let Some(sandbox) = &spec.sandbox {
        check_sandbox("spec.sandbox", sandbox, errors);
    }
    for file in &spec.files {
        check_file(file, errors);
    }
}

fn check_file(file: &FileSource, errors: &mut Vec<FieldError>) {
    let field = format!("spec.files[{}]", file.path);
    let parts_fit = file.path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !parts_fit || file.path.contains('\0') {
        errors.push(FieldError::new(
            &field,
            "the path must be relative to uploads, without empty parts, . and ..",
        ));
    }
    if let Some(from) = file
        .from
        .as_ref()
        .filter(|from| !from.path.starts_with("outputs/"))
    {
        errors.push(FieldError::new(
            format!("{field}.from.path"),
            format!(
                "found {:?}, runs give what they delivered: outputs/...",
                from.path
            ),
        ));
    }
    let sources = [
        file.content.is_some(),
        file.config_map_key_ref.is_some(),
        file.from.is_some(),
        file.claim.is_some(),
    ];
    if sources.into_iter().filter(|set| *set).count() != 1 {
        errors.push(FieldError::new(
            field,
            "needs exactly one of content, configMapKeyRef, from and claim",
        ));
    }
}

/// Free text is a criterion too, but one that begins like a checked one must be one.
fn criteria(field: &str, criteria: &[String], errors: &mut Vec<FieldError>) {
    if criteria.len() > MAX_CRITERIA {
        let found = criteria.len();
        errors.push(FieldError::new(
            field,
            format!("has {found} criteria, at most {MAX_CRITERIA} are allowed"),
        ));
    }
    for criterion in criteria {
        if criterion.chars().count() > MAX_CRITERION {
            errors.push(FieldError::new(
                field,
                format!("a criterion is longer than {MAX_CRITERION} characters"),
            ));
        } else if let Err(error) = acceptance::parse(criterion) {
            errors.push(FieldError::new(field, format!("{criterion:?} {error}")));
        }
    }
}

fn check_task(task: &TaskTemplate, errors: &mut Vec<FieldError>) {
    let field = |name: &str| format!("spec.tasks[{}]{name}", task.name);
    if task.work().is_none() {
        errors.push(FieldError::new(
            field(""),
            "needs exactly one of function, command and agent",
        ));
    }
    if task
        .command
        .as_ref()
        .is_some_and(|command| command.argv.first().is_none_or(String::is_empty))
    {
        errors.push(FieldError::new(
            field(".command.argv"),
            "is empty: name a program",
        ));
    }
    if task.input.is_some() && task.input_from.is_some() {
        errors.push(FieldError::new(
            field(".inputFrom"),
            "input is given too: keep one of them",
        ));
    }
    if task
        .input_from
        .as_ref()
        .is_some_and(|from| from.path.is_some() == from.task.is_some())
    {
        errors.push(FieldError::new(
            field(".inputFrom"),
            "needs exactly one of path and task",
        ));
    }
    criteria(&field(".acceptance"), &task.acceptance, errors);
    for (index, dependency) in task.depends_on.iter().enumerate() {
        if task.depends_on[..index]
            .iter()
            .any(|other| other.task == dependency.task)
        {
            errors.push(FieldError::new(
                field(".dependsOn"),
                format!("names {:?} twice", dependency.task),
            ));
        }
    }
    if task
        .for_each
        .as_ref()
        .is_some_and(|each| each.items.is_some() == each.items_from.is_some())
    {
        errors.push(FieldError::new(
            field(".forEach"),
            "needs exactly one of items and itemsFrom",
        ));
    }
    duration(&field(".timeout"), task.timeout.as_ref(), errors);
    duration(
        &field(".retry.backoff"),
        task.retry.as_ref().and_then(|retry| retry.backoff.as_ref()),
        errors,
    );
    if let Some(resources) = &task.resources {
        check_resources(&field(".resources"), resources, errors);
    }
    if let Some(sandbox) = &task.sandbox {
        check_sandbox(&field(".sandbox"), sandbox, errors);
    }
}

/// What a Secret holds does not enter the key of a cached result, and must not be told from one.
fn check_cache(spec: &AgentRunSpec, task: &TaskTemplate, errors: &mut Vec<FieldError>) {
    let Some(cache) = &task.cache else { return };
    let field = format!("spec.tasks[{}].cache", task.name);
    let secrets = |sandbox: &Option<SandboxSpec>| {
        let sandbox = sandbox.as_ref()?;
        sandbox.secrets.clone()
    };
    if secrets(&task.sandbox)
        .or_else(|| secrets(&spec.sandbox))
        .is_some_and(|secrets| !secrets.is_empty())
    {
        let message = "the task reads Secrets, whose values are in no key: leave cache out, or give the task `secrets: []`";
        errors.push(FieldError::new(&field, message));
    }
    if !task.acceptance.is_empty() {
        let message =
            "the task has acceptance criteria, which are about what the work leaves behind: keep one of them";
        errors.push(FieldError::new(&field, message));
    }
    for path in &cache.reads {
        if path.split('/').any(|part| part == "..") {
            let message = format!("{path:?} has a part `..`: name the file by its own path");
            errors.push(FieldError::new(format!("{field}.reads"), message));
        }
    }
}

pub(super) fn check_sandbox(field: &str, sandbox: &SandboxSpec, errors: &mut Vec<FieldError>) {
    let own = sandbox.image.is_some() || sandbox.resources.is_some() || sandbox.runtime_class_name.is_some();
    if sandbox.pool.is_some() && (own || sandbox.egress.is_some()) {
        let message =
            "pool stands beside image, resources, runtimeClassName or egress: give the pool or these";
        errors.push(FieldError::new(field, message));
    }
    duration(
        &format!("{field}.keepOnFailure"),
        sandbox.keep_on_failure.as_ref(),
        errors,
    );
    if let Some(resources) = &sandbox.resources {
        check_resources(&format!("{field}.resources"), resources, errors);
    }
    for rule in sandbox.egress.iter().flatten() {
        check_egress(&format!("{field}.egress[{}]", rule.name), rule, errors);
    }
    for name in sandbox.env.iter().flatten().map(|env| env.name.as_str()) {
        if name.starts_with("AGENTRUN_") || name.starts_with("KUBERNETES_") {
            errors.push(FieldError::new(
                format!("{field}.env[{name}]"),
                "names of the platform are reserved",
            ));
        }
    }
}

fn check_egress(field: &str, rule: &EgressRule, errors: &mut Vec<FieldError>) {
    let Some((address, bits)) = rule.cidr.split_once('/') else {
        errors.push(FieldError::new(
            field,
            format!("{:?} is no CIDR such as 192.0.2.0/24", rule.cidr),
        ));
        return;
    };
    let fits = match (address.parse::<std::net::IpAddr>(), bits.parse::<u8>()) {
        (Ok(address), Ok(bits)) => bits <= if address.is_ipv4() { 32 } else { 128 },
        _ => false,
    };
    if !fits {
        errors.push(FieldError::new(
            field,
            format!("{:?} is no CIDR such as 192.0.2.0/24", rule.cidr),
        ));
    }
}

fn check_resources(field: &str, resources: &Resources, errors: &mut Vec<FieldError>) {
    if let Some(memory) = &resources.memory {
        let fits = |memory: &Quantity| memory.bytes().is_ok_and(|bytes| bytes >= 16 << 20);
        quantity(&format!("{field}.memory"), memory, fits, errors);
    }
    if let Some(cpu) = &resources.cpu {
        quantity(
            &format!("{field}.cpu"),
            cpu,
            |cpu| cpu.millis().is_ok_and(|millis| millis >= 1),
            errors,
        );
    }
}

fn quantity(field: &str, found: &Quantity, fits: impl Fn(&Quantity) -> bool, errors: &mut Vec<FieldError>) {
    if !fits(found) {
        let allowed = "a quantity such as 500m or 2 (cpu), or 256Mi (memory, at least 16Mi)";
        errors.push(FieldError::new(
            field,
            format!("found {:?}, allowed is {allowed}", found.0),
        ));
    }
}

pub(super) fn duration(field: &str, found: Option<&GoDuration>, errors: &mut Vec<FieldError>) {
    let Some(found) = found else { return };
    match found.parse() {
        Ok(duration) if !duration.is_zero() && duration <= MAX_DURATION => {}
        Ok(_) => errors.push(FieldError::new(
            field,
            format!("found {:?}, allowed is more than 0 and at most 720h", found.0),
        )),
        Err(error) => errors.push(FieldError::new(field, error.to_string())),
    }
}
