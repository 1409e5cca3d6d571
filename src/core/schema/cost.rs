//! How much work a schema makes of a value, counted before the work is done.
//!
//! The walk follows every keyword that applies a subschema, whether the library would stop earlier or not, so that the
//! count is never below the real one. It decides nothing about validity.

use serde_json::{Map, Value};

/// The longest chain of subschemas within one another, references and values together. The library recurses with it.
const MAX_CHAIN: usize = 256;

/// The number of pairs of subschema and value, or nothing when there are more than `most` or a chain does not end.
pub(super) fn steps(schema: &Value, value: &Value, most: usize) -> Option<usize> {
    let mut walk = Walk {
        top: schema,
        left: most,
    };
    walk.visit(schema, value, MAX_CHAIN)?;
    Some(most - walk.left)
}

struct Walk<'a> {
    top: &'a Value,
    left: usize,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value, value: &Value, chain: usize) -> Option<()> {
        let Value::Object(keywords) = schema else {
            return self.pay(1);
        };
        self.pay(1 + keywords.len())?;
        let chain = chain.checked_sub(1)?;
        keywords
            .iter()
            .try_for_each(|(keyword, subschema)| self.apply(keyword, subschema, value, chain))
    }

    fn pay(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    fn apply(&mut self, keyword: &str, subschema: &'a Value, value: &Value, chain: usize) -> Option<()> {
        match keyword {
            "$ref" => match self.target(subschema) {
                Some(target) => self.visit(target, value, chain),
                None => Some(()),
            },
            "not" | "if" | "then" | "else" => self.visit(subschema, value, chain),
            "allOf" | "anyOf" | "oneOf" => list(subschema)
                .iter()
                .try_for_each(|one| self.visit(one, value, chain)),
            "dependentSchemas" | "dependencies" => named(subschema)
                .flat_map(Map::values)
                .try_for_each(|one| self.visit(one, value, chain)),
            "properties" => self.properties(subschema, value, chain),
            "patternProperties" => named(subschema)
                .flat_map(Map::values)
                .try_for_each(|one| self.each_member(one, value, chain)),
            "additionalProperties" => self.each_member(subschema, value, chain),
            "propertyNames" => named(value)
                .flat_map(Map::keys)
                .try_for_each(|_| self.visit(subschema, &Value::Null, chain)),
            "items" | "prefixItems" if subschema.is_array() => self.each_pair(subschema, value, chain),
            "items" | "additionalItems" | "contains" => list(value)
                .iter()
                .try_for_each(|item| self.visit(subschema, item, chain)),
            "enum" => self.pay(list(subschema).len()),
            "uniqueItems" => self.pay(list(value).len()),
            _ => Some(()),
        }
    }

    fn properties(&mut self, subschemas: &'a Value, value: &Value, chain: usize) -> Option<()> {
        for (name, subschema) in named(subschemas).flatten() {
            self.pay(1)?;
            if let Some(member) = value.get(name) {
                self.visit(subschema, member, chain)?;
            }
        }
        Some(())
    }

    fn each_member(&mut self, subschema: &'a Value, value: &Value, chain: usize) -> Option<()> {
        named(value)
            .flat_map(Map::values)
            .try_for_each(|member| self.visit(subschema, member, chain))
    }

    fn each_pair(&mut self, subschemas: &'a Value, value: &Value, chain: usize) -> Option<()> {
        list(subschemas)
            .iter()
            .zip(list(value))
            .try_for_each(|(subschema, item)| self.visit(subschema, item, chain))
    }

    /// Where a reference leads. One that leads nowhere was refused when the schema was compiled.
    fn target(&self, reference: &Value) -> Option<&'a Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        let top = self.top;
        top.pointer(pointer).or_else(|| top.pointer(&decoded(pointer)))
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn named(value: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    value.as_object().into_iter()
}

/// A pointer as it stands in a fragment, without its percent signs.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
