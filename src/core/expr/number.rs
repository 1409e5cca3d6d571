//! Conversions between the two kinds of number, each saying what it loses.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // every cast here is bounded or meant to round

use std::cmp::Ordering;

/// 2^63, the first float beyond int64.
const BEYOND_INT64: f64 = 9_223_372_036_854_775_808.0;
/// 2^53: floats hold every integer up to it.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The nearest float.
pub(super) fn to_double(int: i64) -> f64 {
    int as f64
}

/// `double` without its fraction, if that is an int64.
pub(super) fn to_int(double: f64) -> Option<i64> {
    (-BEYOND_INT64..BEYOND_INT64)
        .contains(&double)
        .then_some(double as i64)
}

/// The integer that `double` is, as long as floats hold it exactly.
pub(super) fn exact_int(double: f64) -> Option<i64> {
    (double.fract() == 0.0 && double.abs() <= EXACT).then_some(double as i64)
}

/// Compares exactly, unlike a comparison of two floats. `None` for NaN.
pub(super) fn compare(int: i64, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    let Some(whole) = to_int(double) else {
        return Some(if double > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    };
    Some(
        int.cmp(&whole)
            .then_with(|| 0.0_f64.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal)),
    )
}
