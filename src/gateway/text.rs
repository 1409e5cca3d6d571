//! Texts as long as the API's schema takes them, and errors as text.

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors print their source themselves.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The first `most` characters.
pub(crate) fn head(text: &str, most: usize) -> &str {
    text.char_indices()
        .nth(most)
        .map_or(text, |(end, _)| &text[..end])
}

/// The last `most` characters.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    let Some(last) = most.checked_sub(1) else {
        return "";
    };
    text.char_indices()
        .rev()
        .nth(last)
        .map_or(text, |(start, _)| &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_characters_and_never_split_one() {
        assert_eq!(head("äöü", 2), "äö");
        assert_eq!(tail("äöü", 2), "öü");
        assert_eq!((head("ä", 2), tail("ä", 2)), ("ä", "ä"));
        assert_eq!((head("ä", 0), tail("ä", 0)), ("", ""));
    }
}
