//! Keeps the values of Secrets out of what is written down.

use std::collections::BTreeSet;

/// What stands in place of a secret.
pub const BLOT: &[u8] = b"***";
/// Shorter values are not looked for: blotting them out would garble a text without hiding anything.
pub const MIN_LENGTH: usize = 6;

/// Values to blot out: each as it is, as a JSON string writes it, and line by line.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Longest first, so that of two values that begin alike the longer one is found.
    needles: Vec<Vec<u8>>,
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
        needles.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        needles.dedup();
        let begins = needles.iter().map(|needle| needle[0]).collect();
        Self { needles, begins }
    }

    /// There is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
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

    /// The longest secret that stands at the start of `bytes`.
    fn at(&self, bytes: &[u8]) -> Option<usize> {
        let needle = self.needles.iter().find(|needle| bytes.starts_with(needle))?;
        Some(needle.len())
    }

    /// Whether a secret may begin at the start of `bytes` and go on behind its end.
    fn may_begin(&self, bytes: &[u8]) -> bool {
        self.needles
            .iter()
            .any(|needle| needle.len() > bytes.len() && needle.starts_with(bytes))
    }
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
            if self.secrets.begins.contains(byte) {
                let may_go_on = self.secrets.may_begin(rest);
                if may_go_on && !is_end {
                    self.held = rest.to_vec();
                    break;
                }
                let cut = (may_go_on && rest.len() >= MIN_LENGTH).then_some(rest.len());
                if let Some(length) = self.secrets.at(rest).max(cut) {
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
