//! Durations as Go writes them.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

/// A duration such as `30m`, `1h30m` or `250ms`, kept as the user wrote it.
///
/// Units: `h`, `m`, `s`, `ms`, `us`, `ns`. Not negative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(pub String);

/// The text is no duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADuration {
    text: String,
}

impl fmt::Display for NotADuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no duration: write numbers with units, such as 30m, 1h30m or 250ms",
            self.text
        )
    }
}

impl std::error::Error for NotADuration {}

impl GoDuration {
    /// The duration it stands for.
    ///
    /// # Errors
    /// When the text is no duration or is longer than about 584 years.
    pub fn parse(&self) -> Result<Duration, NotADuration> {
        parse(&self.0).ok_or_else(|| NotADuration { text: self.0.clone() })
    }
}

impl From<&str> for GoDuration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let (part, next) = part(rest)?;
        nanos = nanos.checked_add(part)?;
        rest = next;
    }
    (!text.is_empty()).then(|| Duration::from_nanos(nanos))
}

/// One number with its unit in nanoseconds, and what follows it.
fn part(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = digits(text)?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => digits(after)?,
        None => ("", rest),
    };
    let (unit, rest) = unit(rest)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    Some((whole.checked_add(of_unit(fraction, unit))?, rest))
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn unit(text: &str) -> Option<(u64, &str)> {
    // `ms` stands before `m` and `s`: the longer name wins.
    const UNITS: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    UNITS
        .iter()
        .find_map(|(name, nanos)| text.strip_prefix(name).map(|rest| (*nanos, rest)))
}

/// The fraction `0.DIGITS` of a unit, exact to the nanosecond.
fn of_unit(digits: &str, unit: u64) -> u64 {
    let mut scale = unit;
    let mut sum = 0;
    for digit in digits.bytes() {
        // Units are multiples of powers of ten below them, so truncation only cuts below a nanosecond.
        sum += u64::from(digit - b'0') * scale / 10;
        scale /= 10;
    }
    sum
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 2, "maxLength": 32, "pattern": PATTERN})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<Duration>) {
        assert_eq!(GoDuration::from(text).parse().ok(), expect, "{text}");
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        check("1h30m", Some(Duration::from_mins(90)));
        check("250ms", Some(Duration::from_millis(250)));
        check("1.5s", Some(Duration::from_millis(1500)));
        check("0.001us", Some(Duration::from_nanos(1)));
        check("0s", Some(Duration::ZERO));
        check("2m3s4ms5us6ns", Some(Duration::from_nanos(123_004_005_006)));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "5",
            "-1s",
            "1d",
            "1 h",
            "h",
            "1.s",
            ".5s",
            "999999999h",
            "1h30",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn the_refusal_names_the_text_and_the_form() {
        let refusal = GoDuration::from("1 day").parse().unwrap_err().to_string();
        assert_eq!(
            refusal,
            "`1 day` is no duration: write numbers with units, such as 30m, 1h30m or 250ms"
        );
    }

    #[test]
    fn the_users_text_is_kept() {
        let kept: GoDuration = serde_json::from_str("\"1h30m\"").unwrap();
        assert_eq!(serde_json::to_string(&kept).unwrap(), "\"1h30m\"");
    }
}
