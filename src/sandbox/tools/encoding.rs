//! Text files: UTF-8 with or without a byte order mark, and UTF-16 with one. What is not decoded whole is
//! never written back.

use std::borrow::Cow;

/// How many first bytes tell whether a file is text (8 KiB).
pub(super) const HEAD: usize = 8 * 1024;

const BOM: char = '\u{feff}';

/// An encoding that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16Le,
    Utf16Be,
}

/// Why bytes are no text; the position is that of the first byte that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotText {
    pub(super) position: usize,
}

impl Encoding {
    /// By the byte order mark alone.
    pub(super) fn of(head: &[u8]) -> Encoding {
        match head {
            [0xef, 0xbb, 0xbf, ..] => Encoding::Utf8WithMark,
            [0xff, 0xfe, ..] => Encoding::Utf16Le,
            [0xfe, 0xff, ..] => Encoding::Utf16Be,
            _ => Encoding::Utf8,
        }
    }

    pub(super) fn is_utf16(self) -> bool {
        matches!(self, Encoding::Utf16Le | Encoding::Utf16Be)
    }

    /// For a note; nothing for plain UTF-8.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Encoding::Utf8 => None,
            Encoding::Utf8WithMark => Some("UTF-8 with a byte order mark"),
            Encoding::Utf16Le => Some("UTF-16, little-endian"),
            Encoding::Utf16Be => Some("UTF-16, big-endian"),
        }
    }

    /// The bytes of a file with this text.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        let units = |to: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(to).collect()
        };
        match self {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf8WithMark => format!("{BOM}{text}").into_bytes(),
            Encoding::Utf16Le => units(u16::to_le_bytes),
            Encoding::Utf16Be => units(u16::to_be_bytes),
        }
    }
}

/// The whole text of a file, without its byte order mark.
pub(super) fn decode(bytes: &[u8]) -> Result<(Encoding, Cow<'_, str>), NotText> {
    let encoding = Encoding::of(bytes);
    let text: Cow<'_, str> = match encoding {
        Encoding::Utf8 => utf8(bytes)?.into(),
        Encoding::Utf8WithMark => utf8(&bytes[3..])?.into(),
        Encoding::Utf16Le => utf16(bytes, u16::from_le_bytes)?.into(),
        Encoding::Utf16Be => utf16(bytes, u16::from_be_bytes)?.into(),
    };
    match text.char_indices().take(HEAD).find(|(_, c)| *c == '\0') {
        Some((position, _)) => Err(NotText { position }),
        None => Ok((encoding, text)),
    }
}

/// Whether a file that begins so may be text: no zero byte, and valid UTF-8 but for a cut last character.
pub(super) fn check_head(head: &[u8]) -> Result<Encoding, NotText> {
    let encoding = Encoding::of(head);
    if encoding.is_utf16() {
        return Ok(encoding);
    }
    if let Some(position) = memchr::memchr(0, head) {
        return Err(NotText { position });
    }
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_some() => Err(NotText {
            position: error.valid_up_to(),
        }),
        _ => Ok(encoding),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, NotText> {
    std::str::from_utf8(bytes).map_err(|error| NotText {
        position: error.valid_up_to(),
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (pairs, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(NotText {
            position: bytes.len() - 1,
        });
    }
    let units = pairs.iter().skip(1).map(|pair| unit(*pair));
    let mut position = 2;
    let mut text = String::with_capacity(bytes.len() / 2);
    for decoded in char::decode_utf16(units) {
        let character = decoded.map_err(|_| NotText { position })?;
        position += character.len_utf16() * 2;
        text.push(character);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Encoding; 4] = [
        Encoding::Utf8,
        Encoding::Utf8WithMark,
        Encoding::Utf16Le,
        Encoding::Utf16Be,
    ];

    const MARKS: [&[u8]; 4] = [&[], &[0xef, 0xbb, 0xbf], &[0xff, 0xfe], &[0xfe, 0xff]];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_encoded_is_decoded_the_same(text in "[^\0\u{feff}]{0,40}") {
            for encoding in ALL {
                let bytes = encoding.encode(&text);
                let (found, decoded) = decode(&bytes).unwrap();
                prop_assert_eq!((found, decoded.as_ref()), (encoding, text.as_str()));
            }
        }

        #[test]
        fn what_is_decoded_is_encoded_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..40), mark in 0..4_usize) {
            let bytes = [MARKS[mark], bytes.as_slice()].concat();
            if let Ok((encoding, text)) = decode(&bytes) {
                prop_assert_eq!(encoding.encode(&text), bytes);
            }
        }
    }

    #[test]
    fn binary_is_told_from_text_by_its_head() {
        assert_eq!(check_head("ab\u{e4}".as_bytes()), Ok(Encoding::Utf8));
        assert_eq!(check_head(b"ab\xc3"), Ok(Encoding::Utf8));
        assert_eq!(check_head(b"a\0b"), Err(NotText { position: 1 }));
        assert_eq!(check_head(b"ab\xe4c"), Err(NotText { position: 2 }));
        assert_eq!(check_head(b"\xff\xfea\0"), Ok(Encoding::Utf16Le));
    }

    #[test]
    fn half_a_character_is_no_text() {
        assert!(decode(b"\xff\xfea").is_err());
        assert!(decode(b"\xff\xfe\x00\xd8").is_err());
        // UTF-32 begins like UTF-16.
        assert!(decode(b"\xff\xfe\0\0a\0\0\0").is_err());
    }
}
