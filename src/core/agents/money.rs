//! Amounts of money as objects write them: decimals with at most six digits behind the point.

/// Millionths of a unit.
const UNIT: u64 = 1_000_000;

/// Millionths of the currency, from a decimal such as `1.50`. Nothing where the text is none, or too large.
pub fn parse(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let micros: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(UNIT)?.checked_add(micros)
}

/// The decimal, without zeros at its end.
pub fn written(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / UNIT, micros % UNIT);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
