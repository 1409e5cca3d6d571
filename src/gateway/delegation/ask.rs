//! Makes the SubTasks of delegations, each once.

use crate::board::{Delegate, Live, Name};
use crate::bounds;
use crate::gateway::Gateway;
use crate::placement::{is_stopped, placement};
use crate::text::chain;
use agentrun_api::names::labels;
use agentrun_api::{AgentRun, SubTask, SubTaskSpec};
use agentrun_core::agents::caps::Caps;
use agentrun_core::agents::delegate::{self, Refusal};
use agentrun_protocol::agent::{CallPlace, Delegation};
use agentrun_protocol::work::AttemptId;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// What became of one delegation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has its SubTask, of this name.
    Made(String),
    /// There will be none.
    Refused(String),
    /// It cannot be decided or made now: another try may go through.
    Later,
}

/// Everything that is the same for all delegations of an agent.
struct Asker<'a> {
    gateway: &'a Gateway,
    live: &'a Live,
    run: &'a AgentRun,
    depth: u32,
    there: BTreeMap<String, Delegate>,
}

/// Sees to it that each delegation has its SubTask, or a reason why not. `known` are places that this agent has asked
/// for before, made or under way.
pub(crate) async fn ask(
    gateway: &Gateway,
    pod_uid: &str,
    id: &AttemptId,
    known: &BTreeSet<CallPlace>,
    asked: &[Delegation],
) -> Vec<(CallPlace, Answer)> {
    let later = || asked.iter().map(|ask| (ask.at, Answer::Later)).collect();
    let (live, depth, there) = {
        let board = gateway.board();
        let live = board.live(&id.uid).filter(|live| live.id == *id);
        (live, board.depth(&id.uid), board.delegates_of(&id.uid))
    };
    let Some((live, depth)) = live.zip(depth) else {
        return later();
    };
    let here = placement(&live.subtask).is_some_and(|(pod, _)| pod == pod_uid);
    let Some(run) = live.run.clone().filter(|_| here) else {
        return later();
    };
    // Its end is on its way: nothing is made for it any more.
    if is_stopped(&live.subtask, Some(&run)) {
        return later();
    }
    let places: BTreeSet<_> = asked.iter().map(|ask| ask.at).collect();
    let made = there.values().filter_map(|delegate| delegate.at);
    let taken: BTreeSet<_> = made.chain(known.iter().copied()).collect();
    let per_turn = Caps::of(&run.spec).per_turn;
    let surplus = delegate::surplus(&taken, &places, per_turn);
    let agent = Asker {
        gateway,
        live: &live,
        run: &run,
        depth,
        there,
    };
    let mut answers = Vec::with_capacity(asked.len());
    for ask in asked {
        let answer = if surplus.contains(&ask.at) {
            Answer::Refused(Refusal::Surplus { max: per_turn }.to_string())
        } else {
            agent.one(ask).await
        };
        answers.push((ask.at, answer));
    }
    answers
}

impl Asker<'_> {
    async fn one(&self, ask: &Delegation) -> Answer {
        let parent = &self.live.subtask;
        let name = delegate::name(parent, ask);
        let spec = match delegate::subtask_spec(&self.run.spec, parent, self.depth, ask) {
            Ok(spec) => spec,
            Err(refusal) => return Answer::Refused(refusal.to_string()),
        };
        let is_there = self.there.contains_key(&name);
        let count = self.gateway.board().count_delegates(&spec.run_ref.uid);
        if !is_there && count >= bounds::DELEGATES {
            let message =
                format!("the run has asked for {count} sub-tasks already: finish with what is there");
            return Answer::Refused(message);
        }
        let object = self.object(&name, spec, ask);
        let namespace = parent.namespace().unwrap_or_default();
        match self.gateway.objects.create_subtask(&namespace, &object).await {
            Ok(()) => {
                tracing::info!(parent = parent.name_any(), delegate = name, "delegated");
                Answer::Made(name)
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                self.is_ours(&object, ask).await
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 413 | 422) => {
                tracing::warn!(
                    message = status.message,
                    "a delegate is refused by the API server"
                );
                Answer::Refused(format!("the API server refuses the sub-task: {}", status.message))
            }
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "a delegate could not be made, trying again"
                );
                Answer::Later
            }
        }
    }

    /// Whether what is there was made for the same delegation.
    async fn is_ours(&self, wanted: &SubTask, ask: &Delegation) -> Answer {
        let name = Name::of(wanted);
        let Ok(Some(there)) = self.gateway.objects.subtask(&name).await else {
            return Answer::Later;
        };
        let (found, wanted) = (&there.spec, &wanted.spec);
        if found.parent_ref != wanted.parent_ref || found.run_ref != wanted.run_ref {
            return Answer::Refused(format!(
                "a SubTask {} exists and belongs to something else",
                name.name
            ));
        }
        let prompt = |spec: &SubTaskSpec| spec.agent.as_ref().map(|work| work.prompt.clone());
        match prompt(found) == prompt(wanted) {
            true => Answer::Made(name.name),
            false => Answer::Refused(Refusal::Changed { at: ask.at }.to_string()),
        }
    }

    fn object(&self, name: &str, spec: SubTaskSpec, ask: &Delegation) -> SubTask {
        let mut subtask = SubTask::new(name, spec);
        let metadata = &mut subtask.metadata;
        metadata.namespace = self.live.subtask.namespace();
        metadata.finalizers = Some(vec![labels::LEASE.to_owned()]);
        let run_uid = self.run.uid().unwrap_or_default();
        metadata.labels = Some(BTreeMap::from([
            (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
            (labels::RUN_UID.to_owned(), run_uid.clone()),
        ]));
        let mut annotations = BTreeMap::from([(labels::CALL.to_owned(), delegate::written(ask.at))]);
        if let Some(file) = &ask.snapshot {
            annotations.insert(labels::SNAPSHOT.to_owned(), json!(file).to_string());
        }
        metadata.annotations = Some(annotations);
        metadata.owner_references = Some(vec![OwnerReference {
            api_version: AgentRun::api_version(&()).into_owned(),
            kind: AgentRun::kind(&()).into_owned(),
            name: self.run.name_any(),
            uid: run_uid,
            controller: Some(true),
            block_owner_deletion: Some(false),
        }]);
        subtask
    }
}
