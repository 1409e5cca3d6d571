//! The dependency graph of a plan.
//!
//! Nothing here depends on the order of `spec.tasks`: re-ordering the list is no change for the API
//! server (its list type is `map`), so it must be none for us.

use agentrun_api::{TaskTemplate, When};
use std::collections::{BTreeMap, BTreeSet};

/// One task waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge<'a> {
    /// The task that is waited for.
    pub task: &'a str,
    /// What must become of it.
    pub when: When,
}

/// A fault of the graph, by the task that has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The name stands nowhere in the plan.
    #[error("waits for task {found:?}, which is not in the plan (there are: {known})")]
    Unknown {
        /// Task that has the dependency.
        task: String,
        /// The name that is unknown.
        found: String,
        /// All names of the plan.
        known: String,
    },
    /// Tasks wait for each other in a circle.
    #[error("tasks wait for each other: {path}")]
    Cycle {
        /// First task of the circle.
        task: String,
        /// The circle, `a → b → a`.
        path: String,
    },
}

impl GraphError {
    /// The task to name in the field path.
    pub fn task(&self) -> &str {
        match self {
            Self::Unknown { task, .. } | Self::Cycle { task, .. } => task,
        }
    }
}

/// Tasks by name with what each waits for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Graph<'a> {
    edges: BTreeMap<&'a str, Vec<Edge<'a>>>,
    depth: BTreeMap<&'a str, usize>,
}

impl<'a> Graph<'a> {
    /// Builds the graph from `dependsOn` and from the tasks that expressions read (`references`, by the
    /// name of the reading task). Both mean `when: Succeeded`, unless `dependsOn` says otherwise.
    pub fn build(
        tasks: impl IntoIterator<Item = &'a TaskTemplate>,
        references: &'a BTreeMap<String, BTreeSet<String>>,
    ) -> Result<Self, Vec<GraphError>> {
        let edges: BTreeMap<_, _> = tasks
            .into_iter()
            .map(|task| (task.name.as_str(), edges_of(task, references)))
            .collect();
        let unknown = unknown_targets(&edges);
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let mut graph = Self {
            edges,
            depth: BTreeMap::new(),
        };
        let names: Vec<_> = graph.edges.keys().copied().collect();
        for name in names {
            graph
                .measure(name, &mut Vec::new())
                .map_err(|error| vec![error])?;
        }
        Ok(graph)
    }

    /// What a task waits for, by name.
    pub fn edges(&self, task: &str) -> &[Edge<'a>] {
        self.edges.get(task).map_or(&[], Vec::as_slice)
    }

    /// Tasks in the order in which they may start: by depth, then by name.
    pub fn order(&self) -> Vec<&'a str> {
        let mut names: Vec<_> = self.depth.iter().map(|(name, depth)| (*depth, *name)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Tasks that no other task waits for.
    pub fn leaves(&self) -> Vec<&'a str> {
        let targets: BTreeSet<_> = self.edges.values().flatten().map(|edge| edge.task).collect();
        self.edges
            .keys()
            .copied()
            .filter(|name| !targets.contains(name))
            .collect()
    }

    /// Tasks that wait for `task`, with what they wait for.
    pub fn dependants(&self, task: &str) -> impl Iterator<Item = (&'a str, When)> {
        self.edges.iter().flat_map(move |(name, edges)| {
            edges
                .iter()
                .filter(move |edge| edge.task == task)
                .map(move |edge| (*name, edge.when))
        })
    }

    /// Depth of a task: 0 without dependencies, else one more than its deepest. Visits each once.
    fn measure(&mut self, name: &'a str, path: &mut Vec<&'a str>) -> Result<usize, GraphError> {
        if let Some(depth) = self.depth.get(name) {
            return Ok(*depth);
        }
        if let Some(start) = path.iter().position(|seen| *seen == name) {
            let circle: Vec<_> = path[start..].iter().copied().chain([name]).collect();
            return Err(GraphError::Cycle {
                task: name.to_owned(),
                path: circle.join(" → "),
            });
        }
        path.push(name);
        let mut depth = 0;
        let targets: Vec<_> = self.edges(name).iter().map(|edge| edge.task).collect();
        for target in targets {
            depth = depth.max(1 + self.measure(target, path)?);
        }
        path.pop();
        self.depth.insert(name, depth);
        Ok(depth)
    }
}

fn edges_of<'a>(task: &'a TaskTemplate, references: &'a BTreeMap<String, BTreeSet<String>>) -> Vec<Edge<'a>> {
    let mut edges: BTreeMap<&str, When> = BTreeMap::new();
    for name in references.get(&task.name).into_iter().flatten() {
        edges.insert(name, When::Succeeded);
    }
    for dependency in &task.depends_on {
        edges.insert(&dependency.task, dependency.when.unwrap_or(When::Succeeded));
    }
    edges
        .into_iter()
        .map(|(task, when)| Edge { task, when })
        .collect()
}

fn unknown_targets(edges: &BTreeMap<&str, Vec<Edge<'_>>>) -> Vec<GraphError> {
    let known = || edges.keys().copied().collect::<Vec<_>>().join(", ");
    edges
        .iter()
        .flat_map(|(task, targets)| targets.iter().map(move |edge| (*task, edge.task)))
        .filter(|(_, target)| !edges.contains_key(target))
        .map(|(task, found)| GraphError::Unknown {
            task: task.into(),
            found: found.into(),
            known: known(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentrun_api::Dependency;

    fn task(name: &str, depends_on: &[&str]) -> TaskTemplate {
        let depends_on = depends_on
            .iter()
            .map(|task| Dependency {
                task: (*task).into(),
                when: None,
            })
            .collect();
        TaskTemplate {
            name: name.into(),
            depends_on,
            ..TaskTemplate::default()
        }
    }

    #[test]
    fn a_cycle_is_named_with_its_path() {
        let tasks = [task("a", &["b"]), task("b", &["c"]), task("c", &["b"])];
        let errors = Graph::build(&tasks, &BTreeMap::new()).unwrap_err();
        assert_eq!(errors[0].to_string(), "tasks wait for each other: b → c → b");
    }

    #[test]
    fn an_unknown_dependency_is_named_with_what_there_is() {
        let tasks = [task("a", &["x"]), task("b", &[])];
        let errors = Graph::build(&tasks, &BTreeMap::new()).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "waits for task \"x\", which is not in the plan (there are: a, b)"
        );
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        let forth = [task("a", &[]), task("z", &["a"]), task("b", &["z"])];
        let back: Vec<_> = forth.iter().rev().cloned().collect();
        let none = BTreeMap::new();
        let (one, two) = (
            Graph::build(&forth, &none).unwrap(),
            Graph::build(&back, &none).unwrap(),
        );
        assert_eq!(one.order(), two.order());
        assert_eq!(one.order(), ["a", "z", "b"]);
        assert_eq!(one.leaves(), ["b"]);
    }

    #[test]
    fn an_expression_adds_the_dependency_and_depends_on_overrules_its_condition() {
        let tasks = [
            task("a", &[]),
            TaskTemplate {
                depends_on: vec![Dependency {
                    task: "a".into(),
                    when: Some(When::Finished),
                }],
                ..task("b", &[])
            },
            task("c", &[]),
        ];
        let references = BTreeMap::from([
            ("b".to_owned(), BTreeSet::from(["a".to_owned()])),
            ("c".to_owned(), BTreeSet::from(["a".to_owned()])),
        ]);
        let graph = Graph::build(&tasks, &references).unwrap();
        assert_eq!(
            graph.edges("b"),
            [Edge {
                task: "a",
                when: When::Finished
            }]
        );
        assert_eq!(
            graph.edges("c"),
            [Edge {
                task: "a",
                when: When::Succeeded
            }]
        );
    }

    #[test]
    fn a_plan_of_two_hundred_layers_of_pairs_is_measured_in_linear_time() {
        let mut tasks = vec![task("l0-a", &[]), task("l0-b", &[])];
        for layer in 1..100 {
            let below = [format!("l{}-a", layer - 1), format!("l{}-b", layer - 1)];
            let below: Vec<_> = below.iter().map(String::as_str).collect();
            tasks.push(task(&format!("l{layer}-a"), &below));
            tasks.push(task(&format!("l{layer}-b"), &below));
        }
        assert_eq!(Graph::build(&tasks, &BTreeMap::new()).unwrap().order().len(), 200);
    }
}
