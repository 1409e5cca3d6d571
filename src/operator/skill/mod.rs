//! Reconciles one skill: reads its files, checks the rules, and writes what it found into the status. Files that are a
//! mount are read by a Pod, whose report the gateway writes.

mod inspect;

use crate::error::ReconcileError;
use crate::world::World;
use crate::write;
use agentrun_api::names::conditions as kind;
use agentrun_api::{ReadyReason, Skill, SkillStatus};
use agentrun_core::conditions::{self, Is};
use agentrun_core::skill::{self, ParsedSkill};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long until a ConfigMap is read again: it may be missing, or changed. ConfigMaps are not watched, since a cluster
/// may hold many large ones that are not ours.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What was found.
enum Found {
    Valid(Box<ParsedSkill>),
    Invalid(ReadyReason, String),
    Waits(ReadyReason, String),
}

/// One round for one skill.
pub async fn reconcile(skill: Arc<Skill>, world: Arc<World>) -> Result<Action, ReconcileError> {
    let namespace = skill.namespace().unwrap_or_default();
    let known = world
        .skills
        .get(&namespace, &skill.name_any())
        .filter(|known| known.uid() == skill.uid());
    let skill = known.unwrap_or(skill);
    if skill.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    if let Some(source) = inspect::source(&skill) {
        return inspect::reconcile(&world, &skill, source).await;
    }
    let found = read(&world, &skill, &namespace).await?;
    let waits = matches!(found, Found::Waits(..)) || skill.spec.config_map.is_some();
    let status = status(&world, &skill, found);
    if Some(&status) != skill.status.as_ref() {
        let api: Api<Skill> = Api::namespaced(world.operator.client.clone(), &namespace);
        world.skills.wrote(write::status(&api, &*skill, &status).await?);
    }
    Ok(if waits {
        Action::requeue(LOOK_AGAIN)
    } else {
        Action::await_change()
    })
}

async fn read(world: &World, skill: &Skill, namespace: &str) -> Result<Found, ReconcileError> {
    let files = match &skill.spec.config_map {
        None => inline(skill),
        Some(source) => {
            let api: Api<ConfigMap> = Api::namespaced(world.operator.client.clone(), namespace);
            let Some(map) = api.get_opt(&source.name).await? else {
                let message = format!("ConfigMap {} does not exist", source.name);
                return Ok(Found::Waits(ReadyReason::ConfigMapNotFound, message));
            };
            match from_config_map(skill, &map) {
                Ok(files) => files,
                Err(message) => return Ok(Found::Waits(ReadyReason::Invalid, message)),
            }
        }
    };
    Ok(match skill::parse(&files) {
        Ok(parsed) => Found::Valid(Box::new(parsed)),
        Err(error) => Found::Invalid(ReadyReason::Invalid, error.to_string()),
    })
}

fn inline(skill: &Skill) -> BTreeMap<String, Vec<u8>> {
    let files = skill.spec.inline.iter().flat_map(|inline| &inline.files);
    files
        .map(|file| (file.path.clone(), file.content.clone().into_bytes()))
        .collect()
}

fn from_config_map(skill: &Skill, map: &ConfigMap) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let text = map
        .data
        .iter()
        .flatten()
        .map(|(key, text)| (key.clone(), text.clone().into_bytes()));
    let binary = map
        .binary_data
        .iter()
        .flatten()
        .map(|(key, bytes)| (key.clone(), bytes.0.clone()));
    let all: BTreeMap<String, Vec<u8>> = text.chain(binary).collect();
    let items = skill.spec.config_map.iter().flat_map(|source| &source.items);
    let mut picked = BTreeMap::new();
    for item in items {
        let Some(content) = all.get(&item.key) else {
            return Err(format!("ConfigMap {} has no key {:?}", map.name_any(), item.key));
        };
        picked.insert(item.path.clone(), content.clone());
    }
    Ok(if picked.is_empty() { all } else { picked })
}

fn condition(
    status: &mut SkillStatus,
    is: Is,
    reason: ReadyReason,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) {
    let conditions = &mut status.conditions;
    conditions::set(
        conditions,
        kind::READY,
        is,
        reason.as_str(),
        message,
        generation,
        now,
    );
}

fn status(world: &World, skill: &Skill, found: Found) -> SkillStatus {
    let mut status = skill.status.clone().unwrap_or_default();
    let (generation, now) = (skill.metadata.generation, world.now());
    status.observed_generation = generation;
    let mut ready = |is, reason: ReadyReason, message: &str| {
        condition(&mut status, is, reason, message, generation, now);
    };
    match found {
        Found::Valid(parsed) => {
            ready(Is::True, ReadyReason::Ready, "");
            status.triggers = parsed.frontmatter.trigger_words();
            status.allowed_tools = parsed.frontmatter.tools();
            status.name = Some(parsed.frontmatter.name);
            status.description = Some(parsed.frontmatter.description);
            status.functions = parsed.functions;
            status.digest = Some(parsed.digest);
        }
        Found::Invalid(reason, message) | Found::Waits(reason, message) => ready(Is::False, reason, &message),
    }
    status
}
