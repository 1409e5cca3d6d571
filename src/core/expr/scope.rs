use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

/// What `run` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunFacts<'a> {
    /// The run's name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// Its thread, or its UID if it has none.
    pub thread: &'a str,
}

/// The output of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Output<'a> {
    /// It is in the object.
    Inline(Cow<'a, Value>),
    /// It is a file; an expression over `output` is `OutputNotInline`.
    Ref {
        /// Where, below the user data.
        path: Cow<'a, str>,
        /// Its size.
        bytes: u64,
        /// Its digest, in hex.
        sha256: Cow<'a, str>,
    },
    /// There is none, as for a skipped task: `output` is null.
    None,
}

/// What `tasks.NAME` holds.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskResult<'a> {
    /// `output` and `outputRef`.
    pub output: Output<'a>,
    /// `outcome`, null while the task has none.
    pub outcome: Option<&'a str>,
    /// `artifacts`, a list of `{path, bytes, sha256, mediaType}`.
    pub artifacts: Value,
}

/// The variables of a run; made once per look at it, since it measures what it is given.
#[derive(Debug, Clone)]
pub struct RunScope<'a> {
    params: Sized<Cow<'a, Value>>,
    run: Value,
    tasks: BTreeMap<&'a str, Sized<Task<'a>>>,
}

/// A value and the size of its JSON text.
#[derive(Debug, Clone)]
struct Sized<T> {
    value: T,
    bytes: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Task<'a> {
    pub(super) result: TaskResult<'a>,
    pub(super) output_ref: Value,
    other_bytes: usize,
}

impl<'a> RunScope<'a> {
    /// A scope without tasks; `params` is null if the run has none.
    pub fn new(run: RunFacts<'a>, params: &'a Value) -> Self {
        let RunFacts {
            name,
            namespace,
            uid,
            thread,
        } = run;
        Self {
            params: Sized {
                bytes: json_bytes(params),
                value: Cow::Borrowed(params),
            },
            run: json!({"name": name, "namespace": namespace, "uid": uid, "thread": thread}),
            tasks: BTreeMap::new(),
        }
    }

    /// Adds what is known of a task, replacing what was.
    pub fn insert(&mut self, name: &'a str, result: TaskResult<'a>) {
        let (bytes, output_ref) = match &result.output {
            Output::Inline(output) => (json_bytes(output), Value::Null),
            Output::Ref { path, bytes, sha256 } => {
                (0, json!({"path": path, "bytes": bytes, "sha256": sha256}))
            }
            Output::None => (0, Value::Null),
        };
        let other_bytes = json_bytes(&result.artifacts) + json_bytes(&output_ref);
        self.tasks.insert(
            name,
            Sized {
                bytes,
                value: Task {
                    result,
                    output_ref,
                    other_bytes,
                },
            },
        );
    }

    /// The variables outside of a `forEach`.
    pub fn scope(&'a self) -> Scope<'a> {
        Scope {
            run: self,
            item: None,
        }
    }

    /// The variables of one item of a `forEach`.
    pub fn item(&'a self, item: &'a Value, index: u32) -> Scope<'a> {
        Scope {
            run: self,
            item: Some(Item {
                bytes: json_bytes(item),
                value: item,
                index,
            }),
        }
    }
}

/// The variables that an expression is evaluated over.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    run: &'a RunScope<'a>,
    item: Option<Item<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) value: &'a Value,
    pub(super) index: u32,
    bytes: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn params(&self) -> &'a Value {
        &self.run.params.value
    }

    pub(super) fn run(&self) -> &'a Value {
        &self.run.run
    }

    pub(super) fn item(&self) -> Option<Item<'a>> {
        self.item
    }

    pub(super) fn task(&self, name: &str) -> Option<&'a Task<'a>> {
        self.run.tasks.get(name).map(|task| &task.value)
    }

    /// The JSON text of what an expression reads, in bytes.
    pub(super) fn bytes_read(&self, params: bool, item: bool, tasks: &BTreeMap<String, bool>) -> usize {
        let params = if params { self.run.params.bytes } else { 0 };
        let item = if item {
            self.item.map_or(0, |item| item.bytes)
        } else {
            0
        };
        let tasks = tasks.iter().filter_map(|(name, reads_output)| {
            let task = self.run.tasks.get(name.as_str())?;
            Some(task.value.other_bytes + if *reads_output { task.bytes } else { 0 })
        });
        params + item + tasks.sum::<usize>()
    }
}

fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // A JSON value always prints, and counting cannot fail; were it to, the value would be refused as too large.
        Err(_) => usize::MAX / 8,
    }
}
