//! What an expression reads, taken from its tree, and whether it is one that we take at all.

use std::collections::{BTreeMap, BTreeSet};

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, MapExpr, SelectExpr, operators,
};

use super::functions;
use super::scan::check_strings;
use super::{ExprError, MAX_COMPREHENSION_DEPTH, MAX_EXPRESSION_CHARS, MAX_TREE_DEPTH};

/// Which variables a place knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variables {
    /// `params`, `tasks` and `run`.
    Run,
    /// Besides, the `item` and `index` of a `forEach` task.
    Item,
}

impl Variables {
    fn names(self) -> &'static str {
        match self {
            Self::Run => "params, tasks and run",
            Self::Item => "params, tasks, run, item and index",
        }
    }
}

const ROOTS: [&str; 5] = ["params", "tasks", "item", "index", "run"];
const TASK_FIELDS: [&str; 4] = ["output", "outputRef", "outcome", "artifacts"];

/// A task that an expression names, and thus depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskRef {
    /// The task's name.
    pub task: String,
    /// Whether the expression touches the task's `output`, which must then be in the object.
    pub reads_output: bool,
}

/// Everything that an expression reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Task name → whether its `output` is read.
    pub(super) tasks: BTreeMap<String, bool>,
    pub(super) params: bool,
    pub(super) item: bool,
}

impl References {
    /// The tasks that are named.
    pub fn tasks(&self) -> BTreeSet<TaskRef> {
        self.tasks
            .iter()
            .map(|(task, reads_output)| TaskRef {
                task: task.clone(),
                reads_output: *reads_output,
            })
            .collect()
    }

    fn task(&mut self, task: &str, reads_output: bool) {
        *self.tasks.entry(task.to_owned()).or_default() |= reads_output;
    }
}

/// The tasks that `expression` (without `${` and `}`) names.
pub fn references(expression: &str, variables: Variables) -> Result<BTreeSet<TaskRef>, ExprError> {
    Ok(analyse(&parse(expression)?, variables)?.tasks())
}

/// Parses the text between `${` and `}`.
pub(super) fn parse(source: &str) -> Result<IdedExpr, ExprError> {
    let chars = source.chars().count();
    if chars > MAX_EXPRESSION_CHARS {
        return Err(ExprError::TooLong { chars });
    }
    if nesting(source) > MAX_TREE_DEPTH {
        return Err(ExprError::TooNested);
    }
    check_strings(source)?;
    cel::parser::Parser::new()
        .parse(source)
        .map_err(|errors| ExprError::Syntax {
            message: errors.errors.first().map_or_else(String::new, |error| {
                let (line, column) = error.pos;
                format!("{} (line {line}, column {column})", error.msg)
            }),
        })
}

/// An upper bound of how deep brackets and unary operators nest: the parser recurses on them before we see a tree.
fn nesting(source: &str) -> usize {
    let (mut open, mut unary, mut deepest) = (0_usize, 0_usize, 0_usize);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b'!' | b'-' => unary += 1,
            _ => unary = 0,
        }
        deepest = deepest.max(open + unary);
    }
    deepest
}

/// Walks the tree of an expression.
pub(super) fn analyse(expr: &IdedExpr, variables: Variables) -> Result<References, ExprError> {
    let mut walk = Walk {
        variables,
        bound: Vec::new(),
        references: References::default(),
    };
    walk.expr(
        expr,
        Depth {
            tree: 0,
            comprehensions: 0,
        },
    )?;
    Ok(walk.references)
}

struct Walk<'e> {
    variables: Variables,
    bound: Vec<&'e str>,
    references: References,
}

#[derive(Clone, Copy)]
struct Depth {
    tree: usize,
    comprehensions: usize,
}

impl Depth {
    fn below(self) -> Result<Self, ExprError> {
        let tree = self.tree + 1;
        if tree > MAX_TREE_DEPTH {
            Err(ExprError::TooNested)
        } else {
            Ok(Self { tree, ..self })
        }
    }

    fn within_comprehension(self) -> Result<Self, ExprError> {
        let comprehensions = self.comprehensions + 1;
        if comprehensions > MAX_COMPREHENSION_DEPTH {
            return Err(ExprError::ComprehensionsTooDeep);
        }
        Ok(Self {
            comprehensions,
            ..self
        })
    }
}

type Walked = Result<(), ExprError>;

impl<'e> Walk<'e> {
    fn expr(&mut self, expr: &'e IdedExpr, depth: Depth) -> Walked {
        let depth = depth.below()?;
        if self.task_access(expr)? {
            return Ok(());
        }
        match &expr.expr {
            Expr::Unspecified => Err(unsupported("an empty expression", "write one between ${ and }")),
            Expr::Ident(name) => self.variable(name),
            Expr::Literal(literal) => check_literal(literal),
            Expr::Select(select) => self.expr(&select.operand, depth),
            Expr::Call(call) => self.call(call, depth),
            Expr::List(list) => list
                .elements
                .iter()
                .try_for_each(|element| self.expr(element, depth)),
            Expr::Map(map) => self.map(map, depth),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, depth),
            Expr::Struct(_) => Err(unsupported(
                "a message of a named type",
                "write an object, {\"key\": value}",
            )),
        }
    }

    fn variable(&mut self, name: &str) -> Walked {
        if name.starts_with('@') || self.bound.contains(&name) {
            return Ok(());
        }
        match (name, self.variables) {
            ("params", _) => self.references.params = true,
            ("run", _) | ("index", Variables::Item) => {}
            ("item", Variables::Item) => self.references.item = true,
            ("tasks", _) => {
                return Err(ExprError::IndexedTasks {
                    found: "tasks alone".to_owned(),
                });
            }
            _ => {
                return Err(ExprError::UnknownVariable {
                    name: name.to_owned(),
                    allowed: self.variables.names(),
                });
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &'e CallExpr, depth: Depth) -> Walked {
        if !functions::exists(&call.func_name, call.target.is_some(), call.args.len()) {
            return Err(ExprError::UnknownFunction {
                name: call.func_name.clone(),
                arguments: call.args.len(),
                allowed: functions::NAMES,
            });
        }
        if let Some(target) = &call.target {
            self.expr(target, depth)?;
        }
        call.args
            .iter()
            .try_for_each(|argument| self.expr(argument, depth))
    }

    fn map(&mut self, map: &'e MapExpr, depth: Depth) -> Walked {
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(unsupported(
                    "a field of a message",
                    "write an object, {\"key\": value}",
                ));
            };
            self.expr(&entry.key, depth)?;
            self.expr(&entry.value, depth)?;
        }
        Ok(())
    }

    fn comprehension(&mut self, comprehension: &'e ComprehensionExpr, depth: Depth) -> Walked {
        let name = comprehension.iter_var.as_str();
        if ROOTS.contains(&name) {
            return Err(ExprError::Shadowed {
                name: name.to_owned(),
            });
        }
        self.expr(&comprehension.iter_range, depth)?;
        self.expr(&comprehension.accu_init, depth)?;
        let depth = depth.within_comprehension()?;
        self.bound.push(name);
        self.expr(&comprehension.loop_cond, depth)?;
        self.expr(&comprehension.loop_step, depth)?;
        self.expr(&comprehension.result, depth)?;
        self.bound.pop();
        Ok(())
    }

    /// Notes `tasks.NAME` and `tasks.NAME.FIELD`; whether `expr` was one of them.
    fn task_access(&mut self, expr: &'e IdedExpr) -> Result<bool, ExprError> {
        if let Some(task) = task_name(expr)? {
            // The whole entry, or a field of it chosen at run time: its output may be looked at.
            self.references.task(task, true);
            return Ok(true);
        }
        let Expr::Select(SelectExpr { operand, field, test }) = &expr.expr else {
            return Ok(false);
        };
        let Some(task) = task_name(operand)? else {
            return Ok(false);
        };
        if !TASK_FIELDS.contains(&field.as_str()) {
            return Err(ExprError::UnknownTaskField {
                task: task.to_owned(),
                field: field.clone(),
            });
        }
        // `has(tasks.NAME.output)` asks whether it is there and does not need it.
        self.references.task(task, field == "output" && !test);
        Ok(true)
    }
}

/// The NAME of `tasks.NAME` or `tasks["NAME"]`; an error for any other index on `tasks`.
pub(super) fn task_name(expr: &IdedExpr) -> Result<Option<&str>, ExprError> {
    match &expr.expr {
        Expr::Select(select) if is_tasks(&select.operand) => Ok(Some(&select.field)),
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [operand, index] if is_tasks(operand) => match &index.expr {
                Expr::Literal(LiteralValue::String(name)) => Ok(Some(name.inner())),
                other => Err(ExprError::IndexedTasks {
                    found: describe(other),
                }),
            },
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn is_tasks(expr: &IdedExpr) -> bool {
    matches!(&expr.expr, Expr::Ident(name) if name == "tasks")
}

fn describe(index: &Expr) -> String {
    match index {
        Expr::Ident(name) => format!("the variable {name}"),
        Expr::Literal(LiteralValue::Int(number)) => format!("the number {}", number.inner()),
        Expr::Select(select) => format!("the value of a field {}", select.field),
        Expr::Call(_) => "a computed name".to_owned(),
        _ => "something else".to_owned(),
    }
}

fn check_literal(literal: &LiteralValue) -> Walked {
    match literal {
        LiteralValue::Bytes(_) => Err(unsupported(
            "a bytes literal",
            "write base64 text, JSON has no bytes",
        )),
        LiteralValue::UInt(_) => Err(unsupported(
            "an unsigned literal such as 1u",
            "write it without the u",
        )),
        _ => Ok(()),
    }
}

fn unsupported(what: &'static str, instead: &'static str) -> ExprError {
    ExprError::Unsupported { what, instead }
}
