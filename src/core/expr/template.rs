use std::collections::{BTreeMap, BTreeSet};

use cel::IdedExpr;
use serde_json::Value;

use super::analyse::{References, TaskRef, Variables, analyse, parse};
use super::eval::Eval;
use super::scan::{Piece, pieces};
use super::scope::{Output, Scope};
use super::value::{Budget, Val};
use super::{ExprError, MAX_INPUT_BYTES, TemplateError};

/// One expression, parsed and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    source: String,
    tree: IdedExpr,
    references: References,
}

impl Expression {
    /// Parses a field that takes exactly one `${…}`: `if`, `forEach.items`, `forEach.key`, `output`.
    pub fn parse_field(text: &str, variables: Variables) -> Result<Self, TemplateError> {
        match pieces(text).map_err(|error| at("", "", error))?.as_slice() {
            [Piece::Expression(source)] => Self::parse(source, variables, ""),
            _ => Err(at(
                "",
                "",
                ExprError::NotOneExpression {
                    found: text.chars().take(80).collect(),
                },
            )),
        }
    }

    fn parse(source: &str, variables: Variables, pointer: &str) -> Result<Self, TemplateError> {
        let checked = parse(source).and_then(|tree| Ok((analyse(&tree, variables)?, tree)));
        let (references, tree) = checked.map_err(|error| at(pointer, source, error))?;
        Ok(Self {
            source: source.to_owned(),
            tree,
            references,
        })
    }

    /// The text between `${` and `}`.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The tasks that it names.
    pub fn tasks(&self) -> BTreeSet<TaskRef> {
        self.references.tasks()
    }

    /// Its value.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, TemplateError> {
        Evaluation::new(scope).value(self, "")
    }

    /// Its value as a condition (`if`): a boolean.
    pub fn evaluate_guard(&self, scope: &Scope<'_>) -> Result<bool, TemplateError> {
        match self.evaluate(scope)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(self.wrong("a boolean", &other)),
        }
    }

    /// Its value as `forEach.items`: a list.
    pub fn evaluate_items(&self, scope: &Scope<'_>) -> Result<Vec<Value>, TemplateError> {
        match self.evaluate(scope)? {
            Value::Array(items) => Ok(items),
            other => Err(self.wrong("a list", &other)),
        }
    }

    /// Its value as `forEach.key`: a string that is not empty, or an integer, which is printed.
    pub fn evaluate_key(&self, scope: &Scope<'_>) -> Result<String, TemplateError> {
        match self.evaluate(scope)? {
            Value::String(key) if !key.is_empty() => Ok(key),
            Value::Number(key) if key.is_i64() => Ok(key.to_string()),
            other => Err(self.wrong("a non-empty string or an integer", &other)),
        }
    }

    fn wrong(&self, expected: &'static str, found: &Value) -> TemplateError {
        let found = Val::from_json(found).type_name().to_owned();
        at("", &self.source, ExprError::WrongResult { expected, found })
    }
}

/// A string in which expressions may stand.
#[derive(Debug, Clone, PartialEq)]
pub enum TextTemplate {
    /// No expression; `$${` has become `${`.
    Literal(String),
    /// Exactly one expression, whose value keeps its type.
    Single(Box<Expression>),
    /// Text and expressions, whose values become text.
    Mixed(Vec<Part>),
}

/// A part of a mixed string.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Literal(String),
    /// An expression whose value is put here: strings without quotes, everything else as JSON.
    Expression(Box<Expression>),
}

impl TextTemplate {
    /// Parses a string such as a prompt or a goal.
    pub fn parse(text: &str, variables: Variables) -> Result<Self, TemplateError> {
        Self::parse_at(text, variables, "")
    }

    fn parse_at(text: &str, variables: Variables, pointer: &str) -> Result<Self, TemplateError> {
        let pieces = pieces(text).map_err(|error| at(pointer, "", error))?;
        if let [Piece::Expression(source)] = pieces.as_slice() {
            return Ok(Self::Single(Box::new(Expression::parse(
                source, variables, pointer,
            )?)));
        }
        if let [] | [Piece::Literal(_)] = pieces.as_slice() {
            return Ok(Self::Literal(
                pieces.into_iter().map(Piece::into_literal).collect(),
            ));
        }
        let parts = pieces.into_iter().map(|piece| match piece {
            Piece::Literal(text) => Ok(Part::Literal(text)),
            Piece::Expression(source) => Ok(Part::Expression(Box::new(Expression::parse(
                source, variables, pointer,
            )?))),
        });
        Ok(Self::Mixed(parts.collect::<Result<_, _>>()?))
    }

    /// The tasks that its expressions name.
    pub fn tasks(&self) -> BTreeSet<TaskRef> {
        let mut tasks = Tasks::default();
        self.collect(&mut tasks);
        tasks.into_set()
    }

    /// The text, whatever the type of the values in it.
    pub fn render(&self, scope: &Scope<'_>) -> Result<String, TemplateError> {
        let mut evaluation = Evaluation::new(scope);
        match self {
            Self::Literal(text) => Ok(text.clone()),
            Self::Single(expression) => Ok(as_text(evaluation.value(expression, "")?)),
            Self::Mixed(parts) => evaluation.mixed(parts, ""),
        }
    }

    fn evaluate<'a>(
        &'a self,
        evaluation: &mut Evaluation<'a>,
        pointer: &str,
    ) -> Result<Value, TemplateError> {
        match self {
            Self::Literal(text) => Ok(Value::from(text.as_str())),
            Self::Single(expression) => evaluation.value(expression, pointer),
            Self::Mixed(parts) => evaluation.mixed(parts, pointer).map(Value::from),
        }
    }

    fn collect(&self, tasks: &mut Tasks) {
        match self {
            Self::Literal(_) => {}
            Self::Single(expression) => tasks.add(expression),
            Self::Mixed(parts) => parts.iter().for_each(|part| {
                if let Part::Expression(expression) = part {
                    tasks.add(expression);
                }
            }),
        }
    }
}

/// A JSON value in whose strings expressions may stand.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// A string.
    Text(TextTemplate),
    /// A list.
    List(Vec<Template>),
    /// An object; its keys are as written, with `$${` for `${`.
    Object(BTreeMap<String, Template>),
    /// Null, a boolean or a number.
    Scalar(Value),
}

impl Template {
    /// Parses a value such as a task's `input`.
    pub fn parse(value: &Value, variables: Variables) -> Result<Self, TemplateError> {
        Self::parse_at(value, variables, &mut String::new())
    }

    fn parse_at(value: &Value, variables: Variables, pointer: &mut String) -> Result<Self, TemplateError> {
        match value {
            Value::String(text) => Ok(Self::Text(TextTemplate::parse_at(text, variables, pointer)?)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let parsed = items.map(|(index, item)| {
                    below(pointer, &index.to_string(), |p| {
                        Self::parse_at(item, variables, p)
                    })
                });
                Ok(Self::List(parsed.collect::<Result<_, _>>()?))
            }
            Value::Object(members) => {
                let parsed = members.iter().map(|(key, member)| {
                    let literal = literal_key(key).map_err(|error| at(pointer, "", error))?;
                    Ok((
                        literal,
                        below(pointer, key, |p| Self::parse_at(member, variables, p))?,
                    ))
                });
                Ok(Self::Object(parsed.collect::<Result<_, _>>()?))
            }
            scalar => Ok(Self::Scalar(scalar.clone())),
        }
    }

    /// The tasks that its expressions name.
    pub fn tasks(&self) -> BTreeSet<TaskRef> {
        let mut tasks = Tasks::default();
        self.collect(&mut tasks);
        tasks.into_set()
    }

    /// Its value. Cost and size of the result are bounded over the whole template.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, TemplateError> {
        self.evaluate_at(&mut Evaluation::new(scope), &mut String::new())
    }

    fn evaluate_at<'a>(
        &'a self,
        evaluation: &mut Evaluation<'a>,
        pointer: &mut String,
    ) -> Result<Value, TemplateError> {
        match self {
            Self::Text(text) => text.evaluate(evaluation, pointer),
            Self::List(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| {
                        below(pointer, &index.to_string(), |p| item.evaluate_at(evaluation, p))
                    })
                    .collect()
            }
            Self::Object(members) => {
                let members = members.iter().map(|(key, member)| {
                    Ok((
                        key.clone(),
                        below(pointer, key, |p| member.evaluate_at(evaluation, p))?,
                    ))
                });
                Ok(Value::Object(members.collect::<Result<_, _>>()?))
            }
            Self::Scalar(value) => Ok(value.clone()),
        }
    }

    fn collect(&self, tasks: &mut Tasks) {
        match self {
            Self::Text(text) => text.collect(tasks),
            Self::List(items) => items.iter().for_each(|item| item.collect(tasks)),
            Self::Object(members) => members.values().for_each(|member| member.collect(tasks)),
            Self::Scalar(_) => {}
        }
    }
}

impl Piece<'_> {
    fn into_literal(self) -> String {
        match self {
            Self::Literal(text) => text,
            Self::Expression(source) => source.to_owned(),
        }
    }
}

/// The tasks of several expressions, each once.
#[derive(Default)]
struct Tasks(BTreeMap<String, bool>);

impl Tasks {
    fn add(&mut self, expression: &Expression) {
        for (task, reads_output) in &expression.references.tasks {
            *self.0.entry(task.clone()).or_default() |= reads_output;
        }
    }

    fn into_set(self) -> BTreeSet<TaskRef> {
        self.0
            .into_iter()
            .map(|(task, reads_output)| TaskRef { task, reads_output })
            .collect()
    }
}

/// The evaluation of one template, with what is left of its bounds.
struct Evaluation<'a> {
    scope: Scope<'a>,
    eval: Eval<'a>,
    budget: Budget,
}

impl<'a> Evaluation<'a> {
    fn new(scope: &Scope<'a>) -> Self {
        Self {
            scope: *scope,
            eval: Eval::new(*scope),
            budget: Budget::new(),
        }
    }

    fn value(&mut self, expression: &'a Expression, pointer: &str) -> Result<Value, TemplateError> {
        let evaluated = self
            .checked(expression)
            .and_then(|value| value.to_json(&mut self.budget));
        evaluated.map_err(|error| at(pointer, &expression.source, error))
    }

    fn checked(&mut self, expression: &'a Expression) -> Result<Val<'a>, ExprError> {
        let References { tasks, params, item } = &expression.references;
        for (name, reads_output) in tasks {
            let task = self
                .scope
                .task(name)
                .ok_or_else(|| ExprError::UnknownTask { task: name.clone() })?;
            if *reads_output && matches!(task.result.output, Output::Ref { .. }) {
                return Err(ExprError::OutputNotInline { task: name.clone() });
            }
        }
        let bytes = self.scope.bytes_read(*params, *item, tasks);
        if bytes > MAX_INPUT_BYTES {
            return Err(ExprError::InputTooLarge { bytes });
        }
        self.eval.expr(&expression.tree)
    }

    fn mixed(&mut self, parts: &'a [Part], pointer: &str) -> Result<String, TemplateError> {
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Expression(expression) => text.push_str(&as_text(self.value(expression, pointer)?)),
            }
        }
        Ok(text)
    }
}

fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn at(pointer: &str, expression: &str, error: ExprError) -> TemplateError {
    TemplateError {
        pointer: pointer.to_owned(),
        expression: expression.to_owned(),
        error,
    }
}

/// Runs `work` with the pointer of a child; JSON pointers write `~` as `~0` and `/` as `~1`.
fn below<T>(pointer: &mut String, token: &str, work: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
    let done = work(pointer);
    pointer.truncate(length);
    done
}

fn literal_key(key: &str) -> Result<String, ExprError> {
    let pieces = pieces(key)?;
    if pieces.iter().any(|piece| matches!(piece, Piece::Expression(_))) {
        return Err(ExprError::ExpressionInKey { key: key.to_owned() });
    }
    Ok(pieces.into_iter().map(Piece::into_literal).collect())
}
