use super::{
    MAX_COMPREHENSION_DEPTH, MAX_COST, MAX_EXPRESSION_CHARS, MAX_INPUT_BYTES, MAX_RESULT_BYTES,
    MAX_TREE_DEPTH,
};

/// Where in a template which expression failed, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{error}", prefix(pointer), quoted(expression))]
pub struct TemplateError {
    /// JSON pointer (RFC 6901) to the string within the template; empty for the template itself.
    pub pointer: String,
    /// The text between `${` and `}`; empty if the fault lies outside of an expression.
    pub expression: String,
    /// What is wrong; part of this error's text.
    pub error: ExprError,
}

fn prefix(pointer: &str) -> String {
    if pointer.is_empty() {
        String::new()
    } else {
        format!("{pointer}: ")
    }
}

fn quoted(expression: &str) -> String {
    if expression.is_empty() {
        String::new()
    } else {
        format!("${{{expression}}}: ")
    }
}

/// What is wrong with an expression, what is allowed and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExprError {
    /// `${` without its closing brace.
    #[error("the expression that starts at byte {at} has no closing brace; write $${{ for a literal ${{")]
    Unclosed {
        /// Where its `${` stands in the string.
        at: usize,
    },
    /// More characters than [`MAX_EXPRESSION_CHARS`].
    #[error(
        "the expression has {chars} characters, allowed are {MAX_EXPRESSION_CHARS}; move work into a function"
    )]
    TooLong {
        /// Its length.
        chars: usize,
    },
    /// The text is no CEL.
    #[error("not a valid expression: {message}")]
    Syntax {
        /// The parser's first message, with its line and column.
        message: String,
    },
    /// A field that takes exactly one expression holds something else.
    #[error("this field takes exactly one expression, as in ${{params.items}}, found {found:?}")]
    NotOneExpression {
        /// What the field holds, cut to 80 characters.
        found: String,
    },
    /// An expression in the key of an object.
    #[error("expressions are allowed in values, not in the key {key:?}")]
    ExpressionInKey {
        /// The key.
        key: String,
    },
    /// A variable that does not exist here.
    #[error("unknown variable {name:?}; allowed here are {allowed}")]
    UnknownVariable {
        /// What was found.
        name: String,
        /// The variables that this place knows, joined by commas.
        allowed: &'static str,
    },
    /// `tasks` used in another way than `tasks.NAME` or `tasks["NAME"]`.
    #[error("tasks must be followed by the name of a task, as tasks.NAME or tasks[\"NAME\"], found {found}")]
    IndexedTasks {
        /// The index, or what `tasks` was used as.
        found: String,
    },
    /// A field that no task has.
    #[error("tasks.{task} has no field {field:?}; it has output, outputRef, outcome and artifacts")]
    UnknownTaskField {
        /// The task.
        task: String,
        /// What was asked for.
        field: String,
    },
    /// A task that is not in the plan.
    #[error("there is no task {task:?} in this run")]
    UnknownTask {
        /// The name found.
        task: String,
    },
    /// A function or operator that we do not offer, or that takes another number of arguments.
    #[error("no function {name} with {arguments} argument(s); the functions are {allowed}")]
    UnknownFunction {
        /// Its name.
        name: String,
        /// How many arguments it was given, without its receiver.
        arguments: usize,
        /// Every function there is.
        allowed: &'static str,
    },
    /// A part of CEL that has no meaning for JSON.
    #[error("{what} cannot be used here; {instead}")]
    Unsupported {
        /// The construct.
        what: &'static str,
        /// What to write instead.
        instead: &'static str,
    },
    /// The name of a loop variable hides one of ours.
    #[error("the loop variable {name:?} hides the variable of that name; choose another name")]
    Shadowed {
        /// The loop variable.
        name: String,
    },
    /// Comprehensions nested deeper than [`MAX_COMPREHENSION_DEPTH`].
    #[error(
        "map, filter, all and exists may be nested {MAX_COMPREHENSION_DEPTH} deep; move work into a function"
    )]
    ComprehensionsTooDeep,
    /// An expression nested deeper than [`MAX_TREE_DEPTH`].
    #[error("the expression is nested deeper than {MAX_TREE_DEPTH} levels; move work into a function")]
    TooNested,
    /// The expression reads more than [`MAX_INPUT_BYTES`].
    #[error(
        "the expression reads {bytes} bytes of JSON, allowed are {MAX_INPUT_BYTES}; use inputFrom for big inputs"
    )]
    InputTooLarge {
        /// The JSON text of all variables it reads.
        bytes: usize,
    },
    /// The result is larger than [`MAX_RESULT_BYTES`].
    #[error("the result has more than {MAX_RESULT_BYTES} bytes of JSON; use inputFrom for big inputs")]
    ResultTooLarge,
    /// Evaluation took more than [`MAX_COST`] steps.
    #[error("evaluation takes more than {MAX_COST} steps; move work into a function")]
    TooCostly,
    /// The output of a task is a file and not in the object; [`super::Output::Ref`].
    #[error("the output of task {task:?} is kept as a file; use inputFrom, or tasks.{task}.outputRef")]
    OutputNotInline {
        /// The task.
        task: String,
    },
    /// An operation did not fit its values.
    #[error("{0}")]
    Evaluation(String),
    /// The result is none that this field takes.
    #[error("the result must be {expected}, found {found}")]
    WrongResult {
        /// What the field takes.
        expected: &'static str,
        /// The type found.
        found: String,
    },
}

impl ExprError {
    /// Whether `&&`, `||`, `exists` and `all` may go on after it, as CEL has it for errors of values.
    pub(super) fn is_absorbed(&self) -> bool {
        matches!(self, Self::Evaluation(_))
    }
}
