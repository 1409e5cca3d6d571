//! The CEL rules of the schemas. The API server enforces them, and the unit tests run the same texts.
//!
//! Rules about a field that may be taken away stand at its parent: a rule at the field itself would not run
//! then. A field without a type (`input`) cannot be named in a rule, and reserved words are escaped
//! (`self.__function__`).
//!
//! One gap is known, and no rule can close it: objects without declared fields (`params`) compare as equal when the
//! one has as many members as the other and those with the same name are equal. So a changed value is refused,
//! and a renamed member is not.

use kube::core::{Reason, Rule};

/// Fields of an AgentRun that only a new AgentRun can change.
const RUN_FIELDS: [&str; 16] = [
    "goal",
    "lead",
    "tasks",
    "params",
    "files",
    "output",
    "userData",
    "sandbox",
    "limits",
    "delegation",
    "models",
    "approval",
    "failurePolicy",
    "acceptance",
    "acceptancePolicy",
    "resumeFrom",
];

/// Fields of a SubTask with a type, so that a rule can name them.
const SUB_TASK_FIELDS: [&str; 21] = [
    "runRef",
    "parentRef",
    "task",
    "role",
    "description",
    "index",
    "key",
    "function",
    "command",
    "agent",
    "history",
    "inputFrom",
    "sandbox",
    "resources",
    "timeout",
    "retry",
    "context",
    "acceptance",
    "acceptancePolicy",
    "approval",
    "cache",
];

/// Fields of a Thread that are its identity.
const THREAD_FIELDS: [&str; 4] = ["user", "thread", "claim", "existingClaim"];

/// Rules of `AgentRun.spec`.
pub(crate) fn agent_run() -> Vec<Rule> {
    let mut rules = vec![
        rule(
            "has(self.goal) || (has(self.tasks) && size(self.tasks) > 0)",
            "give spec.goal, spec.tasks or both: there is nothing to do",
        ),
        rule(
            "!has(self.lead) || has(self.goal)",
            "spec.lead works on spec.goal: give a goal, or leave lead out",
        ),
        rule(
            "!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",
            "spec.cancel stays true once it is: create a new AgentRun to run again",
        )
        .field_path(".cancel")
        .reason(Reason::FieldValueForbidden),
    ];
    rules.extend(RUN_FIELDS.map(|field| immutable(field, "create a new AgentRun")));
    rules
}

/// Rules of `SubTask.spec`.
pub(crate) fn sub_task() -> Vec<Rule> {
    let mut rules = one_work();
    rules.extend(
        SUB_TASK_FIELDS.map(|field| immutable(field, "change the AgentRun, or create a new SubTask")),
    );
    // `input` has no type, so only the whole can be compared.
    rules.push(
        rule(
            "self == oldSelf",
            "spec is immutable, input included: change the AgentRun, or create a new SubTask",
        )
        .reason(Reason::FieldValueForbidden),
    );
    rules
}

/// The rule at the root of a SubTask. One at `status` would be passed by `status: null`.
pub(crate) fn outcome_is_final() -> Rule {
    let text = "!has(oldSelf.status) || !has(oldSelf.status.outcome) || \
         (has(self.status) && has(self.status.outcome) && self.status.outcome == oldSelf.status.outcome)";
    rule(
        text,
        "status.outcome is final: it can neither change nor be removed",
    )
    .field_path(".status.outcome")
    .reason(Reason::FieldValueForbidden)
}

/// The rule at the root of an AgentRun.
pub(crate) fn phase_is_final() -> Rule {
    let text = "!has(oldSelf.status) || !has(oldSelf.status.phase) || \
         !(oldSelf.status.phase in ['Succeeded', 'Failed', 'Cancelled']) || \
         (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)";
    rule(text, "status.phase is final once it is Succeeded, Failed or Cancelled: it can neither change nor be removed")
        .field_path(".status.phase")
        .reason(Reason::FieldValueForbidden)
}

/// Rules of one of `AgentRun.spec.tasks`.
pub(crate) fn task_template() -> Vec<Rule> {
    let mut rules = one_work();
    rules.push(rule(
        "!has(self.__function__) || !has(self.__function__.digest)",
        "function.digest is written by the operator when the run pins its skills: leave it out",
    ));
    rules.push(rule(
        "!has(self.cache) || has(self.__function__)",
        "only the results of functions are cached: leave cache out, or make the task a function",
    ));
    rules
}

fn one_work() -> Vec<Rule> {
    vec![rule(
        "[has(self.__function__), has(self.command), has(self.agent)].exists_one(given, given)",
        "give exactly one of function, command and agent",
    )]
}

/// A sandbox as a user writes it. The merged one of a SubTask may have both.
pub(crate) fn written_sandbox() -> Vec<Rule> {
    vec![rule(
        "!has(self.pool) || !(has(self.image) || has(self.resources) || has(self.runtimeClassName) || \
         has(self.egress))",
        "give either pool, or any of image, resources, runtimeClassName and egress: a pool has its own",
    )]
}

/// Rules of `secrets[]`.
pub(crate) fn secret_use() -> Vec<Rule> {
    vec![rule(
        "has(self.mountPath) || (has(self.items) && self.items.all(item, has(item.env)))",
        "give mountPath, or env for every one of items",
    )]
}

/// Rules of `secrets[].items[]`.
pub(crate) fn secret_item() -> Vec<Rule> {
    vec![rule(
        "has(self.path) != has(self.env)",
        "give exactly one of path and env",
    )]
}

/// Rules of `inputFrom`.
pub(crate) fn input_from() -> Vec<Rule> {
    vec![rule(
        "has(self.path) != has(self.task)",
        "give exactly one of path and task",
    )]
}

/// Rules of `forEach`.
pub(crate) fn for_each() -> Vec<Rule> {
    vec![rule(
        "has(self.items) != has(self.itemsFrom)",
        "give exactly one of items and itemsFrom",
    )]
}

/// Rules of `files[]`.
pub(crate) fn file_source() -> Vec<Rule> {
    vec![rule(
        "[has(self.content), has(self.configMapKeyRef), has(self.from), has(self.claim)].exists_one(given, given)",
        "give exactly one of content, configMapKeyRef, from and claim",
    )]
}

/// Rules of `userData`.
pub(crate) fn user_data() -> Vec<Rule> {
    vec![
        rule(
            "!has(self.existingClaim) || !(has(self.size) || has(self.storageClassName) || has(self.accessModes))",
            "existingClaim is used as it is: leave out size, storageClassName and accessModes",
        ),
        rule(
            "!has(self.existingClaim) || !has(self.onRelease) || self.onRelease != 'Delete'",
            "existingClaim is never deleted: leave onRelease out, or make it Retain",
        ),
        rule(
            "!has(self.concurrencyPolicy) || has(self.thread)",
            "concurrencyPolicy is about runs of one thread: give thread, or leave it out",
        ),
    ]
}

/// Rules of `Thread.spec`.
pub(crate) fn thread() -> Vec<Rule> {
    let mut rules = vec![
        rule(
            "!has(self.existingClaim) || !has(self.claim)",
            "give at most one of claim and existingClaim",
        ),
        rule(
            "!has(self.existingClaim) || !has(self.onRelease) || self.onRelease != 'Delete'",
            "existingClaim is never deleted: leave onRelease out, or make it Retain",
        ),
    ];
    rules.extend(THREAD_FIELDS.map(|field| immutable(field, "use another thread")));
    rules
}

/// Rules of `Skill.spec`.
pub(crate) fn skill() -> Vec<Rule> {
    vec![rule(
        "[has(self.configMap), has(self.inline), has(self.image), has(self.claim)].exists_one(given, given)",
        "give exactly one of configMap, inline, image and claim",
    )]
}

/// Rules of `Model.spec.headers[]`.
pub(crate) fn header() -> Vec<Rule> {
    vec![rule(
        "has(self.value) != has(self.secretRef)",
        "give exactly one of value and secretRef",
    )]
}

fn rule(text: &str, message: &str) -> Rule {
    Rule::new(text).message(message)
}

/// A field that may neither come, go nor change; the rule stands at its parent.
fn immutable(field: &str, remedy: &str) -> Rule {
    let name = escaped(field);
    Rule::new(format!(
        "has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
    ))
    .message(format!("spec.{field} is immutable: {remedy}").as_str())
    .field_path(format!(".{field}"))
    .reason(Reason::FieldValueForbidden)
}

/// Kubernetes escapes what CEL reserves.
fn escaped(field: &str) -> String {
    match field {
        "function" | "if" => format!("__{field}__"),
        _ => field.to_owned(),
    }
}
