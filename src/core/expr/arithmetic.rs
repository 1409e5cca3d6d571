//! `+ - * / %` on numbers: integers overflow as an error, an integer and a float make a float.

use cel::common::ast::operators;

use super::ExprError;
use super::eval::{Evaluated, failed};
use super::number;
use super::value::Val;

pub(super) fn arithmetic<'a>(operator: &str, left: &Val<'a>, right: &Val<'a>) -> Evaluated<Val<'a>> {
    let (a, b) = match (left, right) {
        (Val::Int(a), Val::Int(b)) => return integers(operator, *a, *b).map(Val::Int),
        (Val::Int(a), Val::Double(b)) => (number::to_double(*a), *b),
        (Val::Double(a), Val::Int(b)) => (*a, number::to_double(*b)),
        (Val::Double(a), Val::Double(b)) => (*a, *b),
        _ => {
            let symbol = operator.trim_matches('_');
            let (left, right) = (left.type_name(), right.type_name());
            return Err(failed(format!(
                "{symbol} cannot be applied to {left} and {right}; string() converts numbers"
            )));
        }
    };
    match operator {
        operators::ADD => Ok(Val::Double(a + b)),
        operators::SUBSTRACT => Ok(Val::Double(a - b)),
        operators::MULTIPLY => Ok(Val::Double(a * b)),
        operators::DIVIDE => Ok(Val::Double(a / b)),
        _ => Err(failed("% takes integers")),
    }
}

fn integers(operator: &str, a: i64, b: i64) -> Evaluated<i64> {
    if b == 0 && (operator == operators::DIVIDE || operator == operators::MODULO) {
        return Err(failed("division by zero"));
    }
    match operator {
        operators::ADD => a.checked_add(b),
        operators::SUBSTRACT => a.checked_sub(b),
        operators::MULTIPLY => a.checked_mul(b),
        operators::DIVIDE => a.checked_div(b),
        operators::MODULO => a.checked_rem(b),
        _ => return Err(failed("numbers have no such operator")),
    }
    .ok_or_else(overflow)
}

pub(super) fn overflow() -> ExprError {
    failed("the result does not fit an int64")
}
