//! Keeps the values of Secrets out of what is written down.

use std::collections::BTreeSet;
use std::sync::Arc;

/// What stands in place of a secret.
pub const BLOT: &[u8] = b"***";
/// Shorter values are not looked for: blotting them out would garble a text without hiding anything.
pub const MIN_LENGTH: usize = 6;

/// Values to blot out: each as it is, as a JSON string writes it, and line by line. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Arc<Needles>);

/// What is looked for. User code writes what is searched, and a certificate alone has hundreds of lines: what a byte
/// costs must not grow with their number.
#[derive(Debug, Default)]
struct Needles {
    sorted: Vec<Vec<u8>>,
    /// For each of `sorted`, which other one is the longest that it begins with.
    shorter: Vec<Option<usize>>,
    /// Bytes that a secret begins with.
    begins: BTreeSet<u8>,
}

impl Secrets {
    /// Of these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut needles: Vec<Vec<u8>> = Vec::new();
        for value in values {
            let value = value.trim_ascii();
            needles.push(value.to_vec());
            needles.extend(
                value
                    .split(|byte| *byte == b'\n')
                    .map(|line| line.trim_ascii().to_vec()),
            );
            if let Ok(text) = str::from_utf8(value) {
                let quoted = serde_json::Value::from(text).to_string();
                needles.push(quoted[1..quoted.len() - 1].into());
            }
        }
        needles.retain(|needle| needle.len() >= MIN_LENGTH);
        Self(Arc::new(Needles::new(needles)))
    }

    /// There is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.sorted.is_empty()
    }

    /// `text` without secrets. A secret that `text` ends within, or that is cut by an ellipsis, is hidden too, as far as
    /// it shows at least [`MIN_LENGTH`] bytes.
    pub fn blot(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        let parts: Vec<String> = text.split('…').map(|part| self.blot_part(part)).collect();
        parts.join("…")
    }

    fn blot_part(&self, text: &str) -> String {
        let mut stream = self.stream();
        let mut clean = stream.push(text.as_bytes());
        clean.extend(stream.finish());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// A filter for a stream that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream {
            secrets: self.clone(),
            held: Vec::new(),
            covered: 0,
        }
    }
}

impl Needles {
    fn new(mut sorted: Vec<Vec<u8>>) -> Self {
        sorted.sort_unstable();
        sorted.dedup();
        let mut needles = Needles {
            begins: sorted.iter().map(|needle| needle[0]).collect(),
            shorter: Vec::with_capacity(sorted.len()),
            sorted,
        };
        for number in 0..needles.sorted.len() {
            let shorter = needles.begin_of(&needles.sorted[number], number);
            needles.shorter.push(shorter);
        }
        needles
    }

    /// The longest of the first `count` that `bytes` begins with. All that lies between one and `bytes` begins with it,
    /// too: so does the last that is no greater than `bytes`.
    fn begin_of(&self, bytes: &[u8], count: usize) -> Option<usize> {
        let mut number = count.checked_sub(1)?;
        while !bytes.starts_with(&self.sorted[number]) {
            number = self.shorter[number]?;
        }
        Some(number)
    }

    /// What stands at the start of `bytes`.
    fn look(&self, bytes: &[u8]) -> Sight {
        let count = self.sorted.partition_point(|needle| needle.as_slice() <= bytes);
        // Those that begin with `bytes` come right after it.
        let next = self.sorted.get(count);
        Sight {
            whole: self
                .begin_of(bytes, count)
                .map(|number| self.sorted[number].len()),
            may_begin: next.is_some_and(|needle| needle.starts_with(bytes)),
        }
    }
}

/// What stands at some place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sight {
    /// The length of the longest secret that stands there.
    whole: Option<usize>,
    /// A secret may begin there and go on behind the end.
    may_begin: bool,
}

/// A stream in pieces, without secrets.
#[derive(Debug)]
pub struct Stream {
    secrets: Secrets,
    /// What may be the begin of a secret.
    held: Vec<u8>,
    /// Bytes at its start that belong to secrets already blotted out: the next one may begin within the one before.
    covered: usize,
}

impl Stream {
    /// Takes a piece and gives what can be written down.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.go(false)
    }

    /// Gives the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        self.go(true)
    }

    fn go(&mut self, is_end: bool) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.held);
        if self.secrets.is_empty() {
            return bytes;
        }
        let mut clean = Vec::with_capacity(bytes.len());
        for (position, byte) in bytes.iter().enumerate() {
            let rest = &bytes[position..];
            if self.secrets.0.begins.contains(byte) {
                let sight = self.secrets.0.look(rest);
                if sight.may_begin && !is_end {
                    self.held = rest.to_vec();
                    break;
                }
                let cut = (sight.may_begin && rest.len() >= MIN_LENGTH).then_some(rest.len());
                if let Some(length) = sight.whole.max(cut) {
                    if self.covered == 0 {
                        clean.extend_from_slice(BLOT);
                    }
                    self.covered = self.covered.max(length);
                }
            }
            if self.covered == 0 {
                clean.push(*byte);
            }
            self.covered = self.covered.saturating_sub(1);
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets::new(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn a_secret_is_blotted_out_wherever_it_stands() {
        let secrets = secrets(&["s3cr3t-value"]);
        assert_eq!(secrets.blot("s3cr3t-value, s3cr3t-value"), "***, ***");
        assert_eq!(secrets.blot("s3cr3t-valu and more"), "s3cr3t-valu and more");
    }

    #[test]
    fn the_longer_of_two_that_begin_alike_is_found() {
        assert_eq!(secrets(&["abcdef", "abcdefghi"]).blot("abcdefghi."), "***.");
    }

    #[test]
    fn a_secret_shows_neither_in_json_nor_line_by_line() {
        let secrets = secrets(&["first \"line\"\nsecond line"]);
        assert_eq!(
            secrets.blot(r#"{"a":"first \"line\"\nsecond line"}"#),
            r#"{"a":"***"}"#
        );
        assert_eq!(secrets.blot("key: second line."), "key: ***.");
    }

    #[test]
    fn a_text_that_ends_within_a_secret_does_not_show_its_begin() {
        let secrets = secrets(&["s3cr3t-value"]);
        assert_eq!(secrets.blot("it is s3cr3t-va"), "it is ***");
        assert_eq!(secrets.blot("it begins \"s3cr3t-va…\""), "it begins \"***…\"");
    }

    #[test]
    fn a_text_costs_no_more_for_many_secrets_than_for_few() {
        let line = |value: usize, line: usize| {
            let word = value * 1_000 + line;
            format!("{:016x}{word:048x}\n", word.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        // As many as the executor tells, each a key with its certificates.
        let values: Vec<String> = (0..48)
            .map(|value| (0..250).map(|number| line(value, number)).collect())
            .collect();
        let secrets = Secrets::new(values.iter().map(String::as_bytes));
        let mut text = "0123456789abcdef".repeat(32 * 1024);
        text.push_str(&"\u{2026}".repeat(32 * 1024));
        text.push_str(&values[47]);
        let began = std::time::Instant::now();
        let clean = secrets.blot(&text);
        assert!(clean.ends_with("***\n"), "{}", &clean[clean.len() - 40..]);
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(20), "took {took:?}");
    }

    #[test]
    fn values_that_are_too_short_are_not_looked_for() {
        assert!(secrets(&["", "a", "12345"]).is_empty());
        assert_eq!(secrets(&["1234"]).blot("1234"), "1234");
    }

    #[test]
    fn of_two_that_overlap_neither_shows() {
        let secrets = secrets(&["secret-one-two", "one-two-three", "three-four"]);
        assert_eq!(secrets.blot("<secret-one-two-three-four>"), "<***>");
        assert_eq!(secrets.blot("<secret-one-two-thr>"), "<***-thr>");
        assert_eq!(secrets.blot("<secret-one-two-thr"), "<***");
        assert_eq!(secrets.blot("secret-one-twosecret-one-two"), "******");
    }

    /// Every place where a secret stands, or begins and is cut, as from and to; those that overlap as one.
    fn covered(text: &str, values: &[&str]) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for from in 0..text.len() {
            let rest = &text[from..];
            let whole = values
                .iter()
                .filter(|value| rest.starts_with(**value))
                .map(|value| value.len());
            let cut = values
                .iter()
                .filter(|value| rest.len() >= MIN_LENGTH && value.starts_with(rest));
            let Some(length) = whole.chain(cut.map(|_| rest.len())).max() else {
                continue;
            };
            match found.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(from + length),
                _ => found.push((from, from + length)),
            }
        }
        found
    }

    proptest! {
        #[test]
        fn what_is_blotted_out_is_what_any_secret_covers(text in "[ab]{0,40}") {
            let values = ["aababb", "abbabaa", "aababbaa", "bababa"];
            let mut expected = text.clone();
            for (from, to) in covered(&text, &values).into_iter().rev() {
                expected.replace_range(from..to, "***");
            }
            prop_assert_eq!(secrets(&values).blot(&text), expected);
        }

        #[test]
        fn secrets_are_seen_where_they_stand_and_where_they_may_begin(
            values in proptest::collection::vec("[ab]{6,9}", 0..12),
            text in "[ab]{1,12}",
        ) {
            let secrets = Secrets::new(values.iter().map(String::as_bytes));
            let standing = values.iter().filter(|value| text.starts_with(value.as_str()));
            let longer = |value: &String| value.len() > text.len() && value.starts_with(&text);
            let expected = Sight {
                whole: standing.map(String::len).max(),
                may_begin: values.iter().any(longer),
            };
            prop_assert_eq!(secrets.0.look(text.as_bytes()), expected);
        }

        #[test]
        fn pieces_do_not_matter(text in "[ab]{0,60}", cut in 0usize..60, again in 0usize..60) {
            let secrets = secrets(&["aababb", "abbabaa", "aababbaa"]);
            let whole = secrets.blot(&text);
            let (one, two) = (cut.min(again).min(text.len()), cut.max(again).min(text.len()));
            let mut stream = secrets.stream();
            let mut clean = Vec::new();
            for piece in [&text[..one], &text[one..two], &text[two..]] {
                clean.extend(stream.push(piece.as_bytes()));
            }
            clean.extend(stream.finish());
            prop_assert_eq!(String::from_utf8(clean).unwrap(), whole.clone());
            prop_assert!(!whole.contains("aababb") && !whole.contains("abbabaa"), "{}", whole);
        }
    }
}
