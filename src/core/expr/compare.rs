//! Equality, order and membership.

use std::cmp::Ordering;

use super::eval::{Eval, Evaluated, failed};
use super::number;
use super::value::Val;

impl<'a> Eval<'a> {
    pub(super) fn list_contains(&mut self, list: &Val<'a>, value: &Val<'a>) -> Evaluated<bool> {
        for index in 0..list.len().unwrap_or_default() {
            let Some(element) = list.element(index) else { break };
            if self.equal(&element, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn contains(&mut self, container: &Val<'a>, value: &Val<'a>) -> Evaluated<bool> {
        if container.is_list() {
            return self.list_contains(container, value);
        }
        match (container.len(), value.as_str()) {
            (Some(_), Some(key)) => Ok(container.member(key).is_some()),
            (Some(_), None) => Ok(false),
            (None, _) => Err(failed(format!(
                "in takes a list or an object, found {}",
                container.type_name()
            ))),
        }
    }

    /// Equality over all types, as in CEL: values of different types are unequal, numbers compare by value.
    pub(super) fn equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Evaluated<bool> {
        self.spend(1)?;
        if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
            self.spend_text(a.len().min(b.len()))?;
            return Ok(a == b);
        }
        match (left, right) {
            (Val::Null, Val::Null) => return Ok(true),
            (Val::Bool(a), Val::Bool(b)) => return Ok(a == b),
            (Val::Int(a), Val::Int(b)) => return Ok(a == b),
            #[allow(clippy::float_cmp)] // CEL's `==` on floats is this
            (Val::Double(a), Val::Double(b)) => return Ok(a == b),
            (Val::Int(int), Val::Double(double)) | (Val::Double(double), Val::Int(int)) => {
                return Ok(number::compare(*int, *double) == Some(Ordering::Equal));
            }
            _ => {}
        }
        let (Some(length), true) = (left.len(), left.len() == right.len()) else {
            return Ok(false);
        };
        match (left.keys(), right.keys()) {
            (Some(keys), Some(_)) => {
                self.spend(length)?;
                for key in &keys {
                    let key = key.as_str().unwrap_or_default();
                    let (Some(a), Some(b)) = (left.member(key), right.member(key)) else {
                        return Ok(false);
                    };
                    if !self.equal(&a, &b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (None, None) => {
                for index in 0..length {
                    let (Some(a), Some(b)) = (left.element(index), right.element(index)) else {
                        return Ok(false);
                    };
                    if !self.equal(&a, &b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The order of two numbers, strings or booleans; `None` if one is NaN.
    pub(super) fn compare(&mut self, left: &Val<'a>, right: &Val<'a>) -> Evaluated<Option<Ordering>> {
        if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
            self.spend_text(a.len().min(b.len()))?;
            return Ok(Some(a.cmp(b)));
        }
        match (left, right) {
            (Val::Bool(a), Val::Bool(b)) => Ok(Some(a.cmp(b))),
            (Val::Int(a), Val::Int(b)) => Ok(Some(a.cmp(b))),
            (Val::Double(a), Val::Double(b)) => Ok(a.partial_cmp(b)),
            (Val::Int(int), Val::Double(double)) => Ok(number::compare(*int, *double)),
            (Val::Double(double), Val::Int(int)) => Ok(number::compare(*int, *double).map(Ordering::reverse)),
            _ => Err(failed(format!(
                "cannot compare {} and {}",
                left.type_name(),
                right.type_name()
            ))),
        }
    }
}
