//! Which written numbers an API server keeps. It holds integers as int64 and everything else as float64, and prints a
//! float without a fraction as an integer (seen: `1.0` becomes `1`, `1e2` becomes `100`, `-0.0` becomes `0`).

/// Whether the JSON number `written` denotes the same value, in the same kind, after a round trip.
pub(crate) fn is_stored_exactly(written: &str) -> bool {
    if written.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return written != "-0" && written.parse::<i64>().is_ok();
    }
    let Ok(float) = written.parse::<f64>() else {
        return false;
    };
    if !float.is_finite() || float.fract() == 0.0 {
        return false;
    }
    // `{:e}` prints the shortest decimal that parses to this float, as an API server does.
    let printed = format!("{float:e}");
    matches!((normal_form(written), normal_form(&printed)), (Some(a), Some(b)) if a == b)
}

/// Sign, significant digits without zeros at either end, and the power of ten of the last of them.
fn normal_form(written: &str) -> Option<(bool, String, i64)> {
    let (negative, unsigned) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    let exponent = exponent
        .checked_sub(i64::try_from(fraction.len()).ok()?)?
        .checked_add(dropped)?;
    Some((negative, significant.trim_start_matches('0').to_owned(), exponent))
}
