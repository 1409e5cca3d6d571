//! The functions of expressions, besides CEL's operators and its macros `has`, `map`, `filter`, `all`, `exists` and
//! `exists_one`.

use std::cmp::Ordering;

use cel::common::ast::operators;

use super::ExprError;
use super::eval::{Eval, Evaluated};
use super::number;
use super::value::Val;

/// For messages: what there is.
pub(super) const NAMES: &str = "size, contains, startsWith, endsWith, matches, string, int, double, min, max, \
    lowerAscii, upperAscii, trim, split, join, replace, has, map, filter, all, exists and exists_one";

const OPERATORS: [&str; 18] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::IN,
];

/// Whether there is such a function, as a method or not, with this many arguments besides its receiver.
#[allow(clippy::match_same_arms)] // one arm a shape of call
pub(super) fn exists(name: &str, method: bool, arguments: usize) -> bool {
    match (name, method, arguments) {
        ("size" | "string" | "int" | "double", false, 1) => true,
        ("contains" | "startsWith" | "endsWith" | "matches" | "split" | "join", true, 1) => true,
        ("size" | "lowerAscii" | "upperAscii" | "trim" | "join", true, 0) => true,
        ("replace", true, 2) | ("matches", false, 2) => true,
        ("min" | "max", false, count) => count > 0,
        (operators::NOT_STRICTLY_FALSE, false, 1) => true,
        (operator, false, _) => is_operator(operator),
        _ => false,
    }
}

/// Whether CEL writes `name` as an operator.
pub(super) fn is_operator(name: &str) -> bool {
    OPERATORS.contains(&name)
}

/// Calls a function whose receiver, if it has one, is the first of `arguments`.
pub(super) fn call<'a>(eval: &mut Eval<'a>, name: &str, arguments: &[Val<'a>]) -> Evaluated<Val<'a>> {
    let text = arguments
        .iter()
        .filter_map(Val::as_str)
        .map(str::len)
        .sum::<usize>();
    eval.spend_text(text)?;
    match (name, arguments) {
        ("size", [value]) => size(value),
        ("string", [value]) => string(value),
        ("int", [value]) => int(value),
        ("double", [value]) => double(value),
        ("min", values) => extreme(eval, values, Ordering::Less),
        ("max", values) => extreme(eval, values, Ordering::Greater),
        ("contains", [list, value]) if list.is_list() => Ok(Val::Bool(eval.list_contains(list, value)?)),
        ("join", [list]) if list.is_list() => join(eval, list, ""),
        ("join", [list, separator]) if list.is_list() => {
            join(eval, list, separator.as_str().unwrap_or_default())
        }
        _ => text_function(eval, name, arguments),
    }
}

fn text_function<'a>(eval: &mut Eval<'a>, name: &str, arguments: &[Val<'a>]) -> Evaluated<Val<'a>> {
    let texts: Option<Vec<&str>> = arguments.iter().map(Val::as_str).collect();
    let Some(texts) = texts else {
        let found: Vec<_> = arguments.iter().map(Val::type_name).collect();
        return Err(ExprError::Evaluation(format!(
            "{name} takes strings, found {}",
            found.join(" and ")
        )));
    };
    match (name, texts.as_slice()) {
        ("contains", [text, part]) => Ok(Val::Bool(text.contains(part))),
        ("startsWith", [text, part]) => Ok(Val::Bool(text.starts_with(part))),
        ("endsWith", [text, part]) => Ok(Val::Bool(text.ends_with(part))),
        ("matches", [text, pattern]) => Ok(Val::Bool(eval.matches(text, pattern)?)),
        ("lowerAscii", [text]) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", [text]) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", [text]) => Ok(Val::text(text.trim())),
        ("split", [text, separator]) => {
            let pieces = text.matches(separator).count() + 1;
            eval.spend(pieces.saturating_mul(3))?;
            Ok(Val::List(
                text.split(separator).map(Val::text).collect::<Vec<_>>().into(),
            ))
        }
        ("replace", [text, from, to]) => {
            let length = text
                .len()
                .saturating_add(text.matches(from).count().saturating_mul(to.len()));
            eval.spend_text(length)?;
            Ok(Val::text(text.replace(from, to)))
        }
        _ => Err(ExprError::Evaluation(format!(
            "{name} cannot be applied to strings"
        ))),
    }
}

fn size<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    let length = match value.as_str() {
        Some(text) => text.chars().count(),
        None => value
            .len()
            .ok_or_else(|| wrong("size", "a string, a list or an object", value))?,
    };
    Ok(Val::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn string<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    match value {
        Val::Str(_) | Val::Text(_) => Ok(value.clone()),
        Val::Bool(bool) => Ok(Val::text(bool.to_string())),
        Val::Int(int) => Ok(Val::text(int.to_string())),
        Val::Double(double) => Ok(Val::text(double.to_string())),
        _ => Err(wrong("string", "a string, a number or a boolean", value)),
    }
}

fn int<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    let converted = match (value, value.as_str()) {
        (Val::Int(int), _) => Some(*int),
        (Val::Double(double), _) => number::to_int(*double),
        (_, Some(text)) => text.parse().ok(),
        _ => return Err(wrong("int", "a number or a string", value)),
    };
    converted.map(Val::Int).ok_or_else(|| {
        ExprError::Evaluation(format!(
            "int cannot convert this {} to an int64",
            value.type_name()
        ))
    })
}

fn double<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    match (value, value.as_str()) {
        (Val::Int(int), _) => Ok(Val::Double(number::to_double(*int))),
        (Val::Double(double), _) => Ok(Val::Double(*double)),
        (_, Some(text)) => text
            .parse()
            .map(Val::Double)
            .map_err(|_| ExprError::Evaluation("double takes a string that is a number".to_owned())),
        _ => Err(wrong("double", "a number or a string", value)),
    }
}

/// The least or greatest of the arguments, or of the list that is the only one.
fn extreme<'a>(eval: &mut Eval<'a>, values: &[Val<'a>], keep: Ordering) -> Evaluated<Val<'a>> {
    let values = match values {
        [list] if list.is_list() => eval.elements(list)?,
        values => values.to_vec(),
    };
    eval.spend(values.len())?;
    let mut values = values.into_iter();
    let Some(mut best) = values.next() else {
        return Err(ExprError::Evaluation("min and max of an empty list".to_owned()));
    };
    for value in values {
        if eval.compare(&value, &best)? == Some(keep) {
            best = value;
        }
    }
    Ok(best)
}

fn join<'a>(eval: &mut Eval<'a>, list: &Val<'a>, separator: &str) -> Evaluated<Val<'a>> {
    let mut joined = String::new();
    for (index, element) in eval.elements(list)?.iter().enumerate() {
        let Some(text) = element.as_str() else {
            return Err(wrong("join", "a list of strings", element));
        };
        eval.spend_text(text.len() + separator.len())?;
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    Ok(Val::text(joined))
}

fn wrong(function: &str, takes: &str, found: &Val<'_>) -> ExprError {
    ExprError::Evaluation(format!("{function} takes {takes}, found {}", found.type_name()))
}
