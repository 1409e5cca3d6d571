//! Media types by content.

/// Bytes of a file's beginning that are looked at.
pub const HEAD: usize = 512;

const UNKNOWN: &str = "application/octet-stream";

/// Magic numbers: offset, bytes, type. The first that matches counts.
const MAGIC: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftyp", "video/mp4"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS", "application/ogg"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "application/x-xz"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (257, b"ustar", "application/x-tar"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"\x7fELF", "application/x-executable"),
];

/// Office formats are zip files; text has no magic. Their names say more, once the content agrees.
const ZIP_NAMES: &[(&str, &str)] = &[
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
];
const TEXT_NAMES: &[(&str, &str)] = &[
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("svg", "image/svg+xml"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("css", "text/css"),
    ("js", "text/javascript"),
];

/// The media type of a file called `name` that begins with `head`.
pub fn media_type(name: &str, head: &[u8]) -> &'static str {
    let extension = name
        .rsplit_once('.')
        .map_or(String::new(), |(_, end)| end.to_ascii_lowercase());
    let named = |names: &[(&str, &'static str)]| {
        names
            .iter()
            .find(|(known, _)| *known == extension)
            .map(|(_, media)| *media)
    };
    let magic = |&&(offset, bytes, _): &&(usize, &[u8], &str)| {
        head.get(offset..).is_some_and(|rest| rest.starts_with(bytes))
    };
    match MAGIC.iter().find(magic) {
        Some((_, _, "application/zip")) => named(ZIP_NAMES).unwrap_or("application/zip"),
        Some((_, _, media)) => media,
        None if is_text(head) => named(TEXT_NAMES).unwrap_or("text/plain"),
        None => UNKNOWN,
    }
}

/// UTF-8 without control characters; the last character may be cut.
fn is_text(head: &[u8]) -> bool {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !head.is_empty() && !text.contains(|c: char| c.is_control() && !"\t\n\r\x0c\x1b".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_before_the_name() {
        assert_eq!(media_type("a.txt", b"\x89PNG\r\n\x1a\n...."), "image/png");
        assert_eq!(media_type("a.json", b"\0\x01"), UNKNOWN);
        assert_eq!(media_type("a.html", b"%PDF-1.7"), "application/pdf");
    }

    #[test]
    fn names_tell_text_and_zip_formats_apart() {
        assert_eq!(media_type("a.json", b"{}"), "application/json");
        assert_eq!(media_type("A.CSV", "a,b\nä".as_bytes()), "text/csv");
        assert_eq!(media_type("noname", b"hello\n"), "text/plain");
        assert_eq!(media_type("a.csv", &"ä".as_bytes()[..1]), "text/csv");
        assert!(media_type("a.xlsx", b"PK\x03\x04").ends_with("sheet"));
        assert_eq!(media_type("a.csv", b""), UNKNOWN);
    }
}
