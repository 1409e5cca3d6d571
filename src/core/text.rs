//! Texts of strangers, fit for a status.

/// `text`, or the beginning of it: at most `most` characters, and what was cut off shows as `…`.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => cut_off(text, most),
    }
}

/// `text` in one line of at most `most` characters: control characters are escaped, and what was cut off shows as `…`.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for character in text.chars() {
        let shown: String = if character.is_control() {
            character.escape_default().collect()
        } else {
            character.into()
        };
        length += shown.chars().count();
        if length > most {
            return cut_off(&line, most);
        }
        line.push_str(&shown);
    }
    line
}

fn cut_off(text: &str, most: usize) -> String {
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain((most > 0).then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_control_characters_and_never_more_than_asked_for() {
        assert_eq!(one_line("a\nb\u{1b}[0m", 40), "a\\nb\\u{1b}[0m");
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöüx", 3), "äö…");
        assert_eq!(one_line("ab\n", 3), "ab…");
        assert_eq!(one_line("a", 0), "");
    }

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüx", 3), "äö…");
        assert_eq!((cut("", 0), cut("a", 0)), (String::new(), String::new()));
    }
}
