//! Texts of strangers, fit for a conversation.

/// `text` without control characters that no model needs, and that would make JSON of it six times as long.
pub(crate) fn clean(text: &str) -> String {
    let fit = |character: char| match character {
        '\n' | '\t' => character,
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    };
    text.replace("\r\n", "\n").chars().map(fit).collect()
}

/// At most about `most` bytes of `text`: two thirds from its begin, the rest from its end.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    let left_out = tail - head;
    format!(
        "{}\n[… {left_out} bytes left out …]\n{}",
        &text[..head],
        &text[tail..]
    )
}

/// Names as a list for a sentence.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}
