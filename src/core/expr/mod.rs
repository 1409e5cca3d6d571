//! The `${…}` expressions of a manifest: CEL over `params`, `tasks`, `item`, `index` and `run`.
//!
//! The `cel` crate parses; evaluation is ours. The crate's interpreter has no cost limit, copies every value it
//! passes by and panics on some valid programs, and an expression is written by someone whom the operator must
//! outlive. Here every step is counted against [`MAX_COST`] and nothing panics.
//!
//! Two things are looser than in CEL, because JSON has one kind of number: integers and floats mix in arithmetic (the
//! result is a float), and a float result without a fraction is written as an integer, as the API server would do.

mod analyse;
mod arithmetic;
mod compare;
mod error;
mod eval;
mod functions;
mod number;
mod scan;
mod scope;
mod template;
mod value;

pub use analyse::{References, TaskRef, Variables, references};
pub use error::{ExprError, TemplateError};
pub use scan::is_single_expression;
pub use scope::{Output, RunFacts, RunScope, Scope, TaskResult};
pub use template::{Expression, Part, Template, TextTemplate};

/// The longest expression, in characters between `${` and `}`.
pub const MAX_EXPRESSION_CHARS: usize = 1024;

/// How deep comprehensions (`map`, `filter`, `all`, `exists`, `exists_one`) may be nested; chaining is not nesting.
pub const MAX_COMPREHENSION_DEPTH: usize = 2;

/// How deep the tree of an expression may be, so that a walk over it fits every stack.
pub const MAX_TREE_DEPTH: usize = 64;

/// The JSON text of all variables that one expression reads, in bytes.
pub const MAX_INPUT_BYTES: usize = 256 * 1024;

/// The JSON text that one template may evaluate to, in bytes.
pub const MAX_RESULT_BYTES: usize = 256 * 1024;

/// The steps that evaluating one template may take: a step is a node of an expression, an element copied or
/// compared, or 16 bytes of text; a piece of text or an entry that is made takes three. Measured in a release
/// build: 0.1 s and 40 MiB at most.
pub const MAX_COST: u64 = 1_000_000;

#[cfg(test)]
mod tests;
