//! The first record of a CSV file, by RFC 4180.

use csv_core::{ReadRecordResult, Reader};

/// The longest header that is read (64 KiB).
pub const HEADER_BYTES: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the first bytes of a file have for a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The columns' names, in order.
    Columns(Vec<Vec<u8>>),
    /// There is no record.
    Empty,
    /// A quoted name does not end.
    Unterminated,
    /// The record is longer than what was read.
    TooLong,
}

/// Reads the header from the `head` of a file that goes on behind it unless `whole`.
pub(super) fn header(head: &[u8], whole: bool) -> Header {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let mut reader = Reader::new();
    let (mut bytes, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 2]);
    let (mut read, mut written, mut fields) = (0, 0, 0);
    loop {
        let (result, consumed, output, ended) =
            reader.read_record(&text[read..], &mut bytes[written..], &mut ends[fields..]);
        read += consumed;
        written += output;
        fields += ended;
        match result {
            ReadRecordResult::Record => break,
            ReadRecordResult::End | ReadRecordResult::InputEmpty if !whole => return Header::TooLong,
            ReadRecordResult::End => return Header::Empty,
            // The next call has no input left: that ends the last record.
            ReadRecordResult::InputEmpty => {}
            // Neither can be fuller than the input is long.
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => return Header::TooLong,
        }
    }
    let open = text[..read]
        .iter()
        .fold(false, |open, byte| open != (*byte == b'"'));
    if open {
        return Header::Unterminated;
    }
    let mut start = 0;
    let names = ends[..fields].iter().map(|end| {
        let name = bytes[start..*end].to_vec();
        start = *end;
        name
    });
    Header::Columns(names.collect())
}

/// The fields of a text that is one record.
pub(super) fn fields(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    match header(text, true) {
        Header::Columns(names) => Some(names),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        let Header::Columns(names) = header(text.as_bytes(), true) else {
            panic!("{text:?}")
        };
        names
            .into_iter()
            .map(|name| String::from_utf8(name).unwrap())
            .collect()
    }

    // F126
    #[test]
    fn quoted_commas_line_breaks_and_marks_are_read_as_the_rfc_says() {
        assert_eq!(names("a,b\n1,2\n"), ["a", "b"]);
        assert_eq!(names("\u{feff}a,b\r\n1,2\r\n"), ["a", "b"]);
        assert_eq!(names("\u{feff}\"a\",b"), ["a", "b"]);
        assert_eq!(names("\"a,b\",c\n"), ["a,b", "c"]);
        assert_eq!(
            names("\"a\r\nb\",\"say \"\"hi\"\"\"\r\n"),
            ["a\r\nb", "say \"hi\""]
        );
        assert_eq!(names("only"), ["only"]);
        assert_eq!(names("a,,c"), ["a", "", "c"]);
    }

    #[test]
    fn what_is_no_header_is_none() {
        assert_eq!(header(b"", true), Header::Empty);
        assert_eq!(header(b"\xef\xbb\xbf", true), Header::Empty);
        assert_eq!(header(b"\"a,b\nc", true), Header::Unterminated);
        assert_eq!(header(b"a,b", false), Header::TooLong);
        assert_eq!(header(b"\"a,b\nc", false), Header::TooLong);
    }

    proptest! {
        #[test]
        fn a_header_reads_back_as_it_was_written(columns in prop::collection::vec("[a-z\",\r\n ]{1,8}", 1..8), rest in ".{0,40}") {
            let quoted: Vec<_> = columns.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
            prop_assert_eq!(names(&format!("{}\r\n{rest}", quoted.join(","))), columns);
        }

        #[test]
        fn any_bytes_are_some_header(bytes in prop::collection::vec(any::<u8>(), 0..300), whole: bool) {
            let _any = header(&bytes, whole);
        }
    }
}
