//! Quantities as Kubernetes writes them, and thresholds.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

const PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?$";

/// An amount of memory, storage or processor such as `128Mi`, `1Gi`, `500m` or `2`, kept as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

/// The text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAQuantity {
    text: String,
}

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no quantity: write a number with a suffix, such as 128Mi, 1Gi, 500m or 2",
            self.text
        )
    }
}

impl std::error::Error for NotAQuantity {}

impl Quantity {
    /// The amount in bytes (or whole units), rounded up.
    ///
    /// # Errors
    /// When the text is no quantity or does not fit.
    pub fn bytes(&self) -> Result<u64, NotAQuantity> {
        self.scaled(1)
    }

    /// The amount in thousandths, for processor time: `2` is 2000, `500m` is 500; rounded up.
    ///
    /// # Errors
    /// When the text is no quantity or does not fit.
    pub fn millis(&self) -> Result<u64, NotAQuantity> {
        self.scaled(1000)
    }

    fn scaled(&self, by: u128) -> Result<u64, NotAQuantity> {
        scaled(&self.0, by)
            .and_then(|amount| u64::try_from(amount).ok())
            .ok_or_else(|| NotAQuantity { text: self.0.clone() })
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `text` times `by`, rounded up.
fn scaled(text: &str, by: u128) -> Option<u128> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (digits, decimals) = mantissa(number)?;
    let (mut numerator, mut denominator) = suffix_factor(suffix)?;
    numerator = numerator.checked_mul(by)?;
    denominator = denominator.checked_mul(10_u128.checked_pow(decimals)?)?;
    Some(digits.checked_mul(numerator)?.div_ceil(denominator))
}

/// `12.50` as `(1250, 2)`.
fn mantissa(number: &str) -> Option<(u128, u32)> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    if whole.is_empty() {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, u32::try_from(fraction.len()).ok()?))
}

/// A suffix as a fraction.
fn suffix_factor(suffix: &str) -> Option<(u128, u128)> {
    let power = |base: u128, exponent: u32| Some((base.checked_pow(exponent)?, 1));
    match suffix {
        "" => Some((1, 1)),
        "m" => Some((1, 1000)),
        "k" => power(1000, 1),
        "M" => power(1000, 2),
        "G" => power(1000, 3),
        "T" => power(1000, 4),
        "P" => power(1000, 5),
        "E" => power(1000, 6),
        "Ki" => power(1024, 1),
        "Mi" => power(1024, 2),
        "Gi" => power(1024, 3),
        "Ti" => power(1024, 4),
        "Pi" => power(1024, 5),
        "Ei" => power(1024, 6),
        _ => exponent_factor(suffix),
    }
}

fn exponent_factor(suffix: &str) -> Option<(u128, u128)> {
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

/// As Kubernetes does, a bare number is read as its text: `cpu: 2` is `cpu: "2"`.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 128Mi, 500m or 2")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "maxLength": 32, "pattern": PATTERN})
    }
}

/// A number of things, or a percentage of them such as `2%`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Threshold {
    /// So many.
    Count(i32),
    /// So many of a hundred, written with a percent sign.
    Percent(String),
}

impl Threshold {
    /// How many of `total` it stands for, rounded down; nothing if the text is no percentage from 0% to 100%.
    pub fn of(&self, total: u64) -> Option<u64> {
        match self {
            Self::Count(count) => u64::try_from(*count).ok(),
            Self::Percent(text) => {
                let percent: u64 = text.strip_suffix('%')?.parse().ok()?;
                (percent <= 100).then(|| total.saturating_mul(percent) / 100)
            }
        }
    }
}

impl JsonSchema for Threshold {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Threshold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true, "maxLength": 4, "minimum": 0,
            "pattern": "^(100|[1-9]?[0-9])%$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_count_bytes_and_thousandths() {
        for (text, bytes, millis) in [
            ("128Mi", 134_217_728, 134_217_728_000),
            ("1G", 1_000_000_000, 1_000_000_000_000),
            ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
            ("500m", 1, 500),
            ("2", 2, 2000),
            ("0.25", 1, 250),
            ("1e3", 1000, 1_000_000),
            ("0", 0, 0),
        ] {
            assert_eq!(Quantity::from(text).bytes(), Ok(bytes), "{text}");
            assert_eq!(Quantity::from(text).millis(), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "",
            "Mi",
            "-1",
            "1.",
            ".5",
            "1 Gi",
            "1KB",
            "1e",
            "99999999999999999999Ei",
            "1.2.3",
        ] {
            assert!(Quantity::from(text).bytes().is_err(), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_a_quantity() {
        let two: Quantity = serde_json::from_str("2").unwrap();
        assert_eq!(two, Quantity::from("2"));
    }

    #[test]
    fn thresholds_are_counts_or_percentages_rounded_down() {
        assert_eq!(Threshold::Count(3).of(10), Some(3));
        assert_eq!(Threshold::Percent("2%".into()).of(199), Some(3));
        assert_eq!(Threshold::Percent("101%".into()).of(10), None);
        assert_eq!(Threshold::Percent("2".into()).of(10), None);
        assert_eq!(Threshold::Count(-1).of(10), None);
    }
}
