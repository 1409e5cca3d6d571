//! The values of an evaluation: borrowed from the scope where they come from it, shared where they were made.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::number;
use super::scope::{Output, Task};
use super::{ExprError, MAX_RESULT_BYTES};

#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(&'a str),
    Text(Rc<str>),
    JsonList(&'a [Value]),
    List(Rc<Vec<Val<'a>>>),
    JsonMap(&'a Map<String, Value>),
    Map(Rc<BTreeMap<String, Val<'a>>>),
    Task(&'a Task<'a>),
}

impl<'a> Val<'a> {
    pub(super) fn from_json(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Str(text),
            Value::Array(items) => Self::JsonList(items),
            Value::Object(members) => Self::JsonMap(members),
        }
    }

    pub(super) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Rc::from(text.as_ref()))
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Double(_) => "a float",
            Self::Str(_) | Self::Text(_) => "a string",
            Self::JsonList(_) | Self::List(_) => "a list",
            Self::JsonMap(_) | Self::Map(_) | Self::Task(_) => "an object",
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::JsonList(_) | Self::List(_))
    }

    /// The number of elements or members.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Self::JsonList(items) => Some(items.len()),
            Self::List(items) => Some(items.len()),
            Self::JsonMap(members) => Some(members.len()),
            Self::Map(members) => Some(members.len()),
            _ => None,
        }
    }

    pub(super) fn element(&self, index: usize) -> Option<Self> {
        match self {
            Self::JsonList(items) => items.get(index).map(Self::from_json),
            Self::List(items) => items.get(index).cloned(),
            _ => None,
        }
    }

    pub(super) fn member(&self, key: &str) -> Option<Self> {
        match self {
            Self::JsonMap(members) => members.get(key).map(Self::from_json),
            Self::Map(members) => members.get(key).cloned(),
            Self::Task(task) => task_member(task, key),
            _ => None,
        }
    }

    pub(super) fn keys(&self) -> Option<Vec<Self>> {
        match self {
            Self::JsonMap(members) => Some(members.keys().map(|key| Self::Str(key)).collect()),
            Self::Map(members) => Some(members.keys().map(Self::text).collect()),
            _ => None,
        }
    }

    /// The JSON of the value, as long as its text stays within what is left of `budget`.
    pub(super) fn to_json(&self, budget: &mut Budget) -> Result<Value, ExprError> {
        Ok(match self {
            Self::Null => budget.scalar(Value::Null)?,
            Self::Bool(bool) => budget.scalar(Value::Bool(*bool))?,
            Self::Int(int) => budget.scalar(Value::from(*int))?,
            Self::Double(double) => budget.scalar(json_number(*double)?)?,
            Self::Str(text) => budget.string(text)?,
            Self::Text(text) => budget.string(text)?,
            Self::JsonList(items) => {
                budget.take(2 + items.len())?;
                items
                    .iter()
                    .map(|item| budget.copy(item))
                    .collect::<Result<_, _>>()?
            }
            Self::List(items) => {
                budget.take(2 + items.len())?;
                items
                    .iter()
                    .map(|item| item.to_json(budget))
                    .collect::<Result<_, _>>()?
            }
            Self::JsonMap(members) => {
                budget.take(2)?;
                let members = members
                    .iter()
                    .map(|(key, member)| Ok((budget.key(key)?, budget.copy(member)?)));
                Value::Object(members.collect::<Result<_, ExprError>>()?)
            }
            Self::Map(members) => {
                budget.take(2)?;
                let members = members
                    .iter()
                    .map(|(key, member)| Ok((budget.key(key)?, member.to_json(budget)?)));
                Value::Object(members.collect::<Result<_, ExprError>>()?)
            }
            Self::Task(task) => {
                let mut object = Map::new();
                for key in ["output", "outputRef", "outcome", "artifacts"] {
                    if let Some(member) = task_member(task, key) {
                        object.insert(budget.key(key)?, member.to_json(budget)?);
                    }
                }
                Value::Object(object)
            }
        })
    }
}

fn task_member<'a>(task: &'a Task<'a>, key: &str) -> Option<Val<'a>> {
    match key {
        "output" => match &task.result.output {
            Output::Inline(value) => Some(Val::from_json(value)),
            Output::Ref { .. } => None,
            Output::None => Some(Val::Null),
        },
        "outputRef" => Some(Val::from_json(&task.output_ref)),
        "outcome" => Some(task.result.outcome.map_or(Val::Null, Val::Str)),
        "artifacts" => Some(Val::from_json(&task.result.artifacts)),
        _ => None,
    }
}

fn json_number(double: f64) -> Result<Value, ExprError> {
    if let Some(int) = number::exact_int(double) {
        return Ok(Value::from(int));
    }
    Number::from_f64(double).map(Value::Number).ok_or_else(|| {
        ExprError::Evaluation(format!(
            "the result holds {double}, which JSON cannot; check for a division by zero"
        ))
    })
}

/// How many bytes of JSON text may still be made.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Self {
        Self(MAX_RESULT_BYTES)
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ExprError> {
        self.0 = self.0.checked_sub(bytes).ok_or(ExprError::ResultTooLarge)?;
        Ok(())
    }

    fn scalar(&mut self, value: Value) -> Result<Value, ExprError> {
        self.take(match &value {
            Value::Number(number) => number.to_string().len(),
            Value::Bool(false) => 5,
            _ => 4,
        })?;
        Ok(value)
    }

    fn string(&mut self, text: &str) -> Result<Value, ExprError> {
        self.take(2 + text.len())?;
        Ok(Value::from(text))
    }

    fn key(&mut self, key: &str) -> Result<String, ExprError> {
        self.take(4 + key.len())?;
        Ok(key.to_owned())
    }

    fn copy(&mut self, value: &Value) -> Result<Value, ExprError> {
        match value {
            Value::Array(items) => Val::JsonList(items).to_json(self),
            Value::Object(members) => Val::JsonMap(members).to_json(self),
            Value::String(text) => self.string(text),
            scalar => self.scalar(scalar.clone()),
        }
    }
}
