//! What the watches have seen, indexed so that an event touches only the Pods that it is about.
//!
//! Whole objects are kept only while they can be worked on; of all others a name is enough.

use crate::models::{Amount, Recorded};
use crate::placement::{is_over, placement};
use agentrun_api::names::labels::CALL;
use agentrun_api::{AgentRun, Model, SandboxPool, Skill, SubTask};
use agentrun_core::agents::delegate;
use agentrun_core::plan::delegates::is_delegate;
use agentrun_protocol::agent::CallPlace;
use agentrun_protocol::work::AttemptId;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A sub-task that a Pod is to work on.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    /// Which attempt.
    pub(crate) id: AttemptId,
    /// The sub-task as it was last seen.
    pub(crate) subtask: Arc<SubTask>,
    /// Its run, unless the watch has not seen it yet.
    pub(crate) run: Option<Arc<AgentRun>>,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
}

impl Name {
    pub(crate) fn of(object: &impl kube::ResourceExt) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        }
    }
}

/// Pods whose streams must look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Touched {
    /// None.
    #[default]
    Nobody,
    /// These, by UID.
    Pods(BTreeSet<String>),
    /// All.
    All,
    /// No stream; models changed.
    Models,
}

/// The objects.
#[derive(Debug, Default)]
pub(crate) struct Board {
    subtasks: HashMap<String, Entry>,
    by_pod: HashMap<String, BTreeSet<String>>,
    by_run: HashMap<String, BTreeSet<String>>,
    /// What live agents have delegated, by the agent's UID and the delegate's name.
    delegates: HashMap<String, BTreeMap<String, Delegate>>,
    runs: HashMap<String, Arc<AgentRun>>,
    skills: HashMap<Name, Arc<Skill>>,
    pools: HashMap<Name, Arc<SandboxPool>>,
    models: HashMap<Name, Arc<Model>>,
    used: Recorded,
}

#[derive(Debug)]
struct Entry {
    name: Name,
    live: Option<Placed>,
    /// It has its outcome.
    is_over: bool,
    /// Who asked for it; nothing for the plan's own.
    asked: Option<Asked>,
}

/// Who asked for a sub-task that is not of the plan.
#[derive(Debug)]
struct Asked {
    run: String,
    /// UID of the agent; nothing for one that was made by hand.
    parent: Option<String>,
}

/// What an agent delegated.
#[derive(Clone, Debug)]
pub(crate) struct Delegate {
    /// Where in the agent's conversation.
    pub(crate) at: Option<CallPlace>,
    /// The sub-task with its outcome, when it has one.
    pub(crate) ended: Option<Arc<SubTask>>,
}

/// The deepest chain of parents that is followed.
const MAX_DEPTH: u32 = 16;

#[derive(Debug)]
struct Placed {
    pod_uid: String,
    id: AttemptId,
    subtask: Arc<SubTask>,
}

impl Board {
    /// Takes a sub-task as it is now.
    pub(crate) fn put_subtask(&mut self, mut subtask: SubTask) -> Touched {
        let Some(uid) = subtask.uid() else {
            return Touched::Nobody;
        };
        let name = Name::of(&subtask);
        self.used.put(&uid, &subtask);
        let ended = subtask
            .status
            .as_ref()
            .is_some_and(|status| status.outcome.is_some());
        if ended {
            self.delegates.remove(&uid);
        }
        let asked = asked(&subtask);
        let mut touched = self.unplace(&uid);
        touched.extend(self.put_delegate(&subtask, asked.as_ref(), ended));
        let place = placement(&subtask).map(|(pod, id)| (pod.to_owned(), id));
        let live = place.map(|(pod_uid, id)| {
            subtask.metadata.managed_fields = None;
            insert(&mut self.by_pod, &pod_uid, &uid);
            insert(&mut self.by_run, &subtask.spec.run_ref.uid, &uid);
            touched.insert(pod_uid.clone());
            Placed {
                pod_uid,
                id,
                subtask: Arc::new(subtask),
            }
        });
        let entry = Entry {
            name,
            live,
            is_over: ended,
            asked,
        };
        self.subtasks.insert(uid, entry);
        pods(touched)
    }

    /// Forgets a sub-task.
    pub(crate) fn remove_subtask(&mut self, uid: &str) -> Touched {
        let mut touched = self.unplace(uid);
        touched.extend(self.forget(uid));
        pods(touched)
    }

    /// Takes a run as it is now.
    pub(crate) fn put_run(&mut self, mut run: AgentRun) -> Touched {
        let Some(uid) = run.uid() else {
            return Touched::Nobody;
        };
        if is_over(&run) {
            return self.remove_run(&uid);
        }
        run.metadata.managed_fields = None;
        self.runs.insert(uid.clone(), Arc::new(run));
        self.pods_of_run(&uid)
    }

    /// Forgets a run.
    pub(crate) fn remove_run(&mut self, uid: &str) -> Touched {
        self.runs.remove(uid);
        self.pods_of_run(uid)
    }

    /// Takes a skill as it is now. Skills change rarely: everybody looks again.
    pub(crate) fn put_skill(&mut self, mut skill: Skill) -> Touched {
        skill.metadata.managed_fields = None;
        self.skills.insert(Name::of(&skill), Arc::new(skill));
        Touched::All
    }

    /// The skill with this UID.
    pub(crate) fn skill_by_uid(&self, uid: &str) -> Option<Arc<Skill>> {
        let known = |skill: &&Arc<Skill>| skill.metadata.uid.as_deref() == Some(uid);
        self.skills.values().find(known).cloned()
    }

    /// The skills of a namespace.
    pub(crate) fn skills_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<Skill>> {
        let its = self
            .skills
            .iter()
            .filter(move |(name, _)| name.namespace == namespace);
        its.map(|(_, skill)| skill)
    }

    /// Forgets a skill.
    pub(crate) fn remove_skill(&mut self, name: &Name) -> Touched {
        self.skills.remove(name);
        Touched::All
    }

    /// Takes a pool as it is now. Pools change rarely, too.
    pub(crate) fn put_pool(&mut self, mut pool: SandboxPool) -> Touched {
        pool.metadata.managed_fields = None;
        self.pools.insert(Name::of(&pool), Arc::new(pool));
        Touched::All
    }

    /// Forgets a pool.
    pub(crate) fn remove_pool(&mut self, name: &Name) -> Touched {
        self.pools.remove(name);
        Touched::All
    }

    /// Takes a model as it is now. Whoever needs one looks when it is needed.
    pub(crate) fn put_model(&mut self, mut model: Model) -> Touched {
        model.metadata.managed_fields = None;
        self.models.insert(Name::of(&model), Arc::new(model));
        Touched::Models
    }

    /// Forgets a model.
    pub(crate) fn remove_model(&mut self, name: &Name) -> Touched {
        self.models.remove(name);
        Touched::Models
    }

    /// Forgets all sub-tasks but these.
    pub(crate) fn retain_subtasks(&mut self, seen: &BTreeSet<String>) -> Touched {
        let gone: Vec<_> = self
            .subtasks
            .keys()
            .filter(|uid| !seen.contains(*uid))
            .cloned()
            .collect();
        let mut touched = BTreeSet::new();
        for uid in gone {
            touched.extend(self.unplace(&uid));
            touched.extend(self.forget(&uid));
        }
        pods(touched)
    }

    /// Forgets all runs but these.
    pub(crate) fn retain_runs(&mut self, seen: &BTreeSet<String>) -> Touched {
        self.runs.retain(|uid, _| seen.contains(uid));
        Touched::All
    }

    /// Forgets all skills but these UIDs.
    pub(crate) fn retain_skills(&mut self, seen: &BTreeSet<String>) -> Touched {
        self.skills
            .retain(|_, skill| skill.uid().is_some_and(|uid| seen.contains(&uid)));
        Touched::All
    }

    /// Forgets all pools but these UIDs.
    pub(crate) fn retain_pools(&mut self, seen: &BTreeSet<String>) -> Touched {
        self.pools
            .retain(|_, pool| pool.uid().is_some_and(|uid| seen.contains(&uid)));
        Touched::All
    }

    /// Forgets all models but these UIDs.
    pub(crate) fn retain_models(&mut self, seen: &BTreeSet<String>) -> Touched {
        self.models
            .retain(|_, model| model.uid().is_some_and(|uid| seen.contains(&uid)));
        Touched::Models
    }

    /// What a Pod is to work on.
    pub(crate) fn work_of(&self, pod_uid: &str) -> Vec<Live> {
        let uids = self.by_pod.get(pod_uid).into_iter().flatten();
        uids.filter_map(|uid| self.live(uid)).collect()
    }

    /// A sub-task with work going on.
    pub(crate) fn live(&self, uid: &str) -> Option<Live> {
        let placed = self.subtasks.get(uid)?.live.as_ref()?;
        let subtask = Arc::clone(&placed.subtask);
        let run = self.runs.get(&subtask.spec.run_ref.uid).cloned();
        Some(Live {
            id: placed.id.clone(),
            subtask,
            run,
        })
    }

    /// What a live agent has delegated, by name.
    pub(crate) fn delegates_of(&self, uid: &str) -> BTreeMap<String, Delegate> {
        self.delegates.get(uid).cloned().unwrap_or_default()
    }

    /// How many sub-tasks of a run are not of its plan, ended ones included.
    pub(crate) fn count_delegates(&self, run_uid: &str) -> usize {
        let asked = self.subtasks.values().filter_map(|entry| entry.asked.as_ref());
        asked.filter(|asked| asked.run == run_uid).count()
    }

    /// How deep a sub-task is, by the chain of those who asked: 0 for the plan's own. `None` where one is not known.
    pub(crate) fn depth(&self, uid: &str) -> Option<u32> {
        let (mut depth, mut at) = (0, uid);
        while let Some(asked) = &self.subtasks.get(at)?.asked {
            depth += 1;
            match &asked.parent {
                Some(parent) if depth < MAX_DEPTH => at = parent,
                _ => break,
            }
        }
        Some(depth)
    }

    /// The name of a sub-task, live or not.
    pub(crate) fn name_of(&self, uid: &str) -> Option<Name> {
        self.subtasks.get(uid).map(|entry| entry.name.clone())
    }

    /// A run that is not over.
    pub(crate) fn run(&self, uid: &str) -> Option<Arc<AgentRun>> {
        self.runs.get(uid).cloned()
    }

    /// What the sub-tasks of a run have used, as their statuses say.
    pub(crate) fn used_by(&self, run: &str) -> HashMap<String, Amount> {
        self.used.of_run(run)
    }

    /// A skill.
    pub(crate) fn skill(&self, name: &Name) -> Option<Arc<Skill>> {
        self.skills.get(name).cloned()
    }

    /// A pool.
    pub(crate) fn pool(&self, name: &Name) -> Option<Arc<SandboxPool>> {
        self.pools.get(name).cloned()
    }

    /// The models of a namespace.
    pub(crate) fn models_of(&self, namespace: &str) -> Vec<Arc<Model>> {
        let here = self.models.iter().filter(|(name, _)| name.namespace == namespace);
        here.map(|(_, model)| Arc::clone(model)).collect()
    }

    /// The models of all namespaces.
    pub(crate) fn models(&self) -> Vec<Arc<Model>> {
        self.models.values().cloned().collect()
    }

    /// Keeps a delegate with its agent, as long as that is not over. Gives the agent's Pod, which waits for it.
    fn put_delegate(&mut self, subtask: &SubTask, asked: Option<&Asked>, is_over: bool) -> Option<String> {
        let parent = asked?.parent.as_ref()?;
        let known = self.subtasks.get(parent);
        if known.is_some_and(|parent| parent.is_over) {
            return None;
        }
        let pod = known.and_then(|parent| Some(parent.live.as_ref()?.pod_uid.clone()));
        let ended = is_over.then(|| {
            let mut ended = subtask.clone();
            ended.metadata.managed_fields = None;
            Arc::new(ended)
        });
        let at = subtask
            .annotations()
            .get(CALL)
            .and_then(|text| delegate::read(text));
        let delegates = self.delegates.entry(parent.clone()).or_default();
        delegates.insert(subtask.name_any(), Delegate { at, ended });
        pod
    }

    /// Forgets a sub-task that is gone. Gives the Pod of the agent that had delegated it.
    fn forget(&mut self, uid: &str) -> Option<String> {
        self.used.remove(uid);
        self.delegates.remove(uid);
        let entry = self.subtasks.remove(uid)?;
        let parent = entry.asked?.parent?;
        if let Some(delegates) = self.delegates.get_mut(&parent) {
            delegates.remove(&entry.name.name);
            if delegates.is_empty() {
                self.delegates.remove(&parent);
            }
        }
        let live = self.subtasks.get(&parent)?.live.as_ref()?;
        Some(live.pod_uid.clone())
    }

    fn unplace(&mut self, uid: &str) -> BTreeSet<String> {
        let placed = self.subtasks.get_mut(uid).and_then(|entry| entry.live.take());
        let Some(placed) = placed else {
            return BTreeSet::new();
        };
        remove(&mut self.by_pod, &placed.pod_uid, uid);
        remove(&mut self.by_run, &placed.subtask.spec.run_ref.uid, uid);
        BTreeSet::from([placed.pod_uid])
    }

    fn pods_of_run(&self, run_uid: &str) -> Touched {
        let uids = self.by_run.get(run_uid).into_iter().flatten();
        let placed = uids.filter_map(|uid| self.subtasks.get(uid)?.live.as_ref());
        pods(placed.map(|placed| placed.pod_uid.clone()).collect())
    }
}

fn asked(subtask: &SubTask) -> Option<Asked> {
    is_delegate(subtask).then(|| Asked {
        run: subtask.spec.run_ref.uid.clone(),
        parent: subtask.spec.parent_ref.as_ref().map(|parent| parent.uid.clone()),
    })
}

fn pods(pods: BTreeSet<String>) -> Touched {
    if pods.is_empty() {
        Touched::Nobody
    } else {
        Touched::Pods(pods)
    }
}

fn insert(index: &mut HashMap<String, BTreeSet<String>>, key: &str, uid: &str) {
    index.entry(key.to_owned()).or_default().insert(uid.to_owned());
}

fn remove(index: &mut HashMap<String, BTreeSet<String>>, key: &str, uid: &str) {
    if let Some(uids) = index.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
