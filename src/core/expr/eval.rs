//! Evaluates the tree of an expression, counting every step.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, MapExpr, SelectExpr, operators,
};
use regex::{Regex, RegexBuilder};

use super::analyse::task_name;
use super::arithmetic::{arithmetic, overflow};
use super::functions;
use super::number;
use super::scope::Scope;
use super::value::Val;
use super::{ExprError, MAX_COST};

/// What a compiled pattern may take in memory, and what compiling one costs.
const MAX_PATTERN_BYTES: usize = 256 * 1024;
const PATTERN_COST: usize = 20_000;
/// Bytes of text that one step copies or compares.
const TEXT_PER_STEP: usize = 16;

pub(super) type Evaluated<T> = Result<T, ExprError>;

/// One evaluation: the variables of its loops and what it has spent.
pub(super) struct Eval<'a> {
    scope: Scope<'a>,
    locals: Vec<(&'a str, Val<'a>)>,
    spent: u64,
    patterns: BTreeMap<String, Regex>,
}

impl<'a> Eval<'a> {
    pub(super) fn new(scope: Scope<'a>) -> Self {
        Self {
            scope,
            locals: Vec::new(),
            spent: 0,
            patterns: BTreeMap::new(),
        }
    }

    /// Evaluates an expression that `analyse` has passed.
    pub(super) fn expr(&mut self, expr: &'a IdedExpr) -> Evaluated<Val<'a>> {
        self.spend(1)?;
        if let Some(task) = task_name(expr)? {
            let found = self.scope.task(task).ok_or_else(|| ExprError::UnknownTask {
                task: task.to_owned(),
            })?;
            return Ok(Val::Task(found));
        }
        match &expr.expr {
            Expr::Literal(literal) => literal_value(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let elements: Vec<_> = list
                    .elements
                    .iter()
                    .map(|element| self.expr(element))
                    .collect::<Result<_, _>>()?;
                Ok(Val::List(elements.into()))
            }
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => Err(failed("this construct cannot be evaluated")),
        }
    }

    pub(super) fn spend(&mut self, steps: usize) -> Evaluated<()> {
        self.spent = self.spent.saturating_add(steps as u64);
        if self.spent > MAX_COST {
            Err(ExprError::TooCostly)
        } else {
            Ok(())
        }
    }

    pub(super) fn spend_text(&mut self, bytes: usize) -> Evaluated<()> {
        self.spend(bytes / TEXT_PER_STEP + 1)
    }

    fn variable(&mut self, name: &str) -> Evaluated<Val<'a>> {
        if let Some((_, local)) = self.locals.iter().rev().find(|(local, _)| *local == name) {
            return Ok(local.clone());
        }
        let item = self.scope.item();
        match (name, item) {
            ("params", _) => Ok(Val::from_json(self.scope.params())),
            ("run", _) => Ok(Val::from_json(self.scope.run())),
            ("item", Some(item)) => Ok(Val::from_json(item.value)),
            ("index", Some(item)) => Ok(Val::Int(i64::from(item.index))),
            _ => Err(failed(format!("the variable {name} has no value here"))),
        }
    }

    fn select(&mut self, select: &'a SelectExpr) -> Evaluated<Val<'a>> {
        let operand = self.expr(&select.operand)?;
        match (operand.member(&select.field), select.test) {
            (found, true) => Ok(Val::Bool(found.is_some())),
            (Some(found), false) => Ok(found),
            (None, false) => Err(no_member(&operand, &select.field)),
        }
    }

    fn map(&mut self, map: &'a MapExpr) -> Evaluated<Val<'a>> {
        let mut members = BTreeMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err(failed("an object has no such entry"));
            };
            let key = self.expr(&entry.key)?;
            let Some(key) = key.as_str() else {
                return Err(failed(format!(
                    "the key of an object must be a string, found {}",
                    key.type_name()
                )));
            };
            self.spend_text(key.len() + 2 * TEXT_PER_STEP)?;
            let value = self.expr(&entry.value)?;
            if members.insert(key.to_owned(), value).is_some() {
                return Err(failed(format!("the key {key:?} stands twice in an object")));
            }
        }
        Ok(Val::Map(Rc::new(members)))
    }

    fn call(&mut self, call: &'a CallExpr) -> Evaluated<Val<'a>> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                if self.condition(condition)? {
                    self.expr(then)
                } else {
                    self.expr(otherwise)
                }
            }
            (operators::LOGICAL_AND, [left, right]) => self.short_circuit(left, right, false),
            (operators::LOGICAL_OR, [left, right]) => self.short_circuit(left, right, true),
            (operators::NOT_STRICTLY_FALSE, [operand]) => match self.expr(operand) {
                Ok(Val::Bool(bool)) => Ok(Val::Bool(bool)),
                Ok(_) => Ok(Val::Bool(true)),
                Err(error) if error.is_absorbed() => Ok(Val::Bool(true)),
                Err(error) => Err(error),
            },
            (operators::LOGICAL_NOT, [operand]) => Ok(Val::Bool(!self.condition(operand)?)),
            (operators::NEGATE, [operand]) => match self.expr(operand)? {
                Val::Int(int) => int.checked_neg().map(Val::Int).ok_or_else(overflow),
                Val::Double(double) => Ok(Val::Double(-double)),
                other => Err(failed(format!("- takes a number, found {}", other.type_name()))),
            },
            (operators::ADD, [left, right]) => self.add(left, right),
            (operator, [left, right]) if functions::is_operator(operator) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                self.binary(operator, &left, &right)
            }
            (name, arguments) => {
                let arguments: Vec<_> = call
                    .target
                    .as_deref()
                    .into_iter()
                    .chain(arguments)
                    .map(|e| self.expr(e))
                    .collect::<Result<_, _>>()?;
                functions::call(self, name, &arguments)
            }
        }
    }

    fn condition(&mut self, expr: &'a IdedExpr) -> Evaluated<bool> {
        match self.expr(expr)? {
            Val::Bool(bool) => Ok(bool),
            other => Err(failed(format!(
                "a condition must be a boolean, found {}",
                other.type_name()
            ))),
        }
    }

    /// `&&` and `||`: the side that decides wins over an error of the other, as in CEL.
    fn short_circuit(
        &mut self,
        left: &'a IdedExpr,
        right: &'a IdedExpr,
        decides: bool,
    ) -> Evaluated<Val<'a>> {
        let left = match self.condition(left) {
            Ok(left) if left == decides => return Ok(Val::Bool(decides)),
            Err(error) if !error.is_absorbed() => return Err(error),
            left => left,
        };
        match (self.condition(right), left) {
            (Ok(right), _) if right == decides => Ok(Val::Bool(decides)),
            (Err(error), _) if !error.is_absorbed() => Err(error),
            (_, Err(error)) | (Err(error), Ok(_)) => Err(error),
            (Ok(right), Ok(_)) => Ok(Val::Bool(right)),
        }
    }

    fn binary(&mut self, operator: &str, left: &Val<'a>, right: &Val<'a>) -> Evaluated<Val<'a>> {
        match operator {
            operators::EQUALS => Ok(Val::Bool(self.equal(left, right)?)),
            operators::NOT_EQUALS => Ok(Val::Bool(!self.equal(left, right)?)),
            operators::LESS => Ok(Val::Bool(self.compare(left, right)? == Some(Ordering::Less))),
            operators::LESS_EQUALS => Ok(Val::Bool(matches!(
                self.compare(left, right)?,
                Some(Ordering::Less | Ordering::Equal)
            ))),
            operators::GREATER => Ok(Val::Bool(self.compare(left, right)? == Some(Ordering::Greater))),
            operators::GREATER_EQUALS => Ok(Val::Bool(matches!(
                self.compare(left, right)?,
                Some(Ordering::Greater | Ordering::Equal)
            ))),
            operators::INDEX => index(left, right),
            operators::IN => Ok(Val::Bool(self.contains(right, left)?)),
            _ => arithmetic(operator, left, right),
        }
    }

    /// `+` also joins strings and lists. The accumulator of `map` and `filter` is extended in place: copying it for
    /// every element would make them quadratic.
    fn add(&mut self, left: &'a IdedExpr, right: &'a IdedExpr) -> Evaluated<Val<'a>> {
        let (mut left, right) = match &left.expr {
            Expr::Ident(name) if name.starts_with('@') => {
                let right = self.expr(right)?;
                (self.take_accumulator(name)?, right)
            }
            _ => (self.expr(left)?, self.expr(right)?),
        };
        if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
            self.spend_text(a.len() + b.len())?;
            return Ok(Val::text([a, b].concat()));
        }
        if !(left.is_list() && right.is_list()) {
            return arithmetic(operators::ADD, &left, &right);
        }
        let mut added = self.elements(&right)?;
        if let Val::List(list) = &mut left
            && let Some(list) = Rc::get_mut(list)
        {
            list.append(&mut added);
            return Ok(left);
        }
        let mut elements = self.elements(&left)?;
        elements.append(&mut added);
        Ok(Val::List(elements.into()))
    }

    fn take_accumulator(&mut self, name: &str) -> Evaluated<Val<'a>> {
        let local = self.locals.iter_mut().rev().find(|(local, _)| *local == name);
        local
            .map(|(_, value)| std::mem::replace(value, Val::Null))
            .ok_or_else(|| failed("a loop has no accumulator"))
    }

    /// The elements of a list.
    pub(super) fn elements(&mut self, list: &Val<'a>) -> Evaluated<Vec<Val<'a>>> {
        let length = list.len().unwrap_or_default();
        self.spend(length)?;
        Ok((0..length).filter_map(|index| list.element(index)).collect())
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Evaluated<Val<'a>> {
        let range = self.expr(&comprehension.iter_range)?;
        let elements = match range.keys() {
            Some(keys) => {
                self.spend(keys.len())?;
                keys
            }
            None if range.is_list() => self.elements(&range)?,
            None => {
                return Err(failed(format!(
                    "map, filter, all and exists take a list or an object, found {}",
                    range.type_name()
                )));
            }
        };
        let base = self.locals.len();
        let accumulator = self.expr(&comprehension.accu_init)?;
        self.locals.push((&comprehension.accu_var, accumulator));
        self.locals.push((&comprehension.iter_var, Val::Null));
        let result = self.iterate(comprehension, elements, base);
        self.locals.truncate(base);
        result
    }

    fn iterate(
        &mut self,
        comprehension: &'a ComprehensionExpr,
        elements: Vec<Val<'a>>,
        base: usize,
    ) -> Evaluated<Val<'a>> {
        let mut failure = None;
        for element in elements {
            if !self.condition(&comprehension.loop_cond)? {
                break;
            }
            self.locals[base + 1].1 = element;
            match self.expr(&comprehension.loop_step) {
                Ok(accumulator) => self.locals[base].1 = accumulator,
                // `exists` and `all` go on: a later element may decide.
                Err(error) if error.is_absorbed() && is_predicate(&comprehension.loop_step) => {
                    failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match failure {
            Some(error) if self.condition(&comprehension.loop_cond)? => Err(error),
            _ => self.expr(&comprehension.result),
        }
    }

    /// Whether `pattern` (RE2 syntax, linear time) is found in `text`.
    pub(super) fn matches(&mut self, text: &str, pattern: &str) -> Evaluated<bool> {
        if let Some(compiled) = self.patterns.get(pattern).cloned() {
            self.spend(text.len())?;
            return Ok(compiled.is_match(text));
        }
        self.spend(PATTERN_COST + text.len())?;
        let compiled = RegexBuilder::new(pattern)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|_| {
                failed(format!(
                    "{pattern:?} is no valid regular expression, or too large a one"
                ))
            })?;
        let found = compiled.is_match(text);
        self.patterns.insert(pattern.to_owned(), compiled);
        Ok(found)
    }
}

/// Whether a loop step is that of `exists` or `all`: `@result || …` or `@result && …`.
fn is_predicate(step: &IdedExpr) -> bool {
    let Expr::Call(call) = &step.expr else {
        return false;
    };
    let decides = [operators::LOGICAL_OR, operators::LOGICAL_AND].contains(&call.func_name.as_str());
    let first = call.args.first().map(|first| &first.expr);
    decides && matches!(first, Some(Expr::Ident(name)) if name.starts_with('@'))
}

fn literal_value(literal: &LiteralValue) -> Evaluated<Val<'_>> {
    Ok(match literal {
        LiteralValue::Null => Val::Null,
        LiteralValue::Boolean(bool) => Val::Bool(*bool.inner()),
        LiteralValue::Int(int) => Val::Int(*int.inner()),
        LiteralValue::Double(double) => Val::Double(*double.inner()),
        LiteralValue::String(text) => Val::Str(text.inner()),
        LiteralValue::Bytes(_) | LiteralValue::UInt(_) => return Err(failed("JSON has no such literal")),
    })
}

fn index<'a>(container: &Val<'a>, key: &Val<'a>) -> Evaluated<Val<'a>> {
    if let Some(key) = key.as_str() {
        return container.member(key).ok_or_else(|| no_member(container, key));
    }
    let (true, Some(place)) = (container.is_list(), as_index(key)) else {
        return Err(failed(format!(
            "{} cannot be indexed with {}",
            container.type_name(),
            key.type_name()
        )));
    };
    let length = container.len().unwrap_or_default();
    let found = usize::try_from(place)
        .ok()
        .and_then(|place| container.element(place));
    found.ok_or_else(|| {
        failed(format!(
            "the list has {length} elements, there is no element {place} (they count from 0)"
        ))
    })
}

fn as_index(key: &Val<'_>) -> Option<i64> {
    match key {
        Val::Int(int) => Some(*int),
        Val::Double(double) => number::exact_int(*double),
        _ => None,
    }
}

fn no_member(container: &Val<'_>, key: &str) -> ExprError {
    let known: Vec<String> = container
        .keys()
        .unwrap_or_default()
        .iter()
        .take(10)
        .filter_map(|key| key.as_str().map(|key| format!("{key:?}")))
        .collect();
    match container.type_name() {
        "an object" => failed(format!(
            "there is no field {key:?}; the object has {}",
            known.join(", ")
        )),
        other => failed(format!("{other} has no field {key:?}")),
    }
}

pub(super) fn failed(message: impl Into<String>) -> ExprError {
    ExprError::Evaluation(message.into())
}
