use proptest::prelude::*;

use super::*;
use crate::contract::parse_stdout;

fn capture(pieces: &[&[u8]], head: usize, tail: usize) -> Capture {
    let mut capture = Capture::new(head, tail);
    for piece in pieces {
        capture.push(piece);
    }
    capture
}

#[test]
fn short_text_stays_as_it_is() {
    assert_eq!(tail(b"abc", 100), "abc");
    assert_eq!(head_and_tail("zoë".as_bytes(), 4), "zoë");
    assert_eq!(tail(b"", 0), "");
}

// F057
#[test]
fn the_error_after_five_mebibytes_of_noise_is_kept_with_the_start() {
    let mut capture = Capture::new(1024, 1024);
    capture.push(b"started\n");
    (0..5 * 1024).for_each(|_| capture.push(&[b'.'; 1024]));
    capture.push(b"\nthe error");
    let text = capture.head_and_tail(2048);
    assert!(
        text.starts_with("started\n.") && text.ends_with(".\nthe error") && text.len() <= 2048,
        "{text}"
    );
    let kept = text.chars().filter(|character| *character == '.').count();
    let dropped = capture.total() - 18 - kept as u64;
    assert!(
        text.contains(&format!("\n[… {dropped} bytes left out …]\n")),
        "{text}"
    );
}

// F056
#[test]
fn memory_does_not_grow_with_the_stream() {
    let mut capture = Capture::new(100, 200);
    let piece = vec![0_u8; 1 << 20];
    (0..2048).for_each(|_| capture.push(&piece));
    assert_eq!(capture.total(), 2 << 30);
    assert_eq!(capture.dropped(), (2 << 30) - 300);
    assert!(capture.head.capacity() <= 256 && capture.tail.capacity() <= 512);
    assert_eq!(capture.whole(), None);
}

// F063
#[test]
fn bytes_that_are_no_utf8_become_replacement_characters() {
    assert_eq!(tail(b"a\xffb", 10), "a\u{fffd}b");
    assert_eq!(capture(&[b"\xf0", b"ok"], 1, 10).tail(20), "\u{fffd}ok");
    // A replacement takes three bytes for one: the cap holds all the same.
    assert!(tail(&[0xff; 100], 100).len() <= 100);
}

// F064
#[test]
fn characters_split_between_two_reads_are_whole_again() {
    let text = format!("{{\"text\": \"{}\"}}", "漢字".repeat(34_000));
    for size in [1, 7, 65_536] {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let capture = capture(&pieces, 1000, 300_000);
        let whole = capture.whole().unwrap();
        assert_eq!(parse_stdout(&whole).unwrap().raw, text);
        assert_eq!(capture.tail(300_000), text);
        assert!(!capture.head_and_tail(1000).contains('\u{fffd}'));
    }
}

#[test]
fn the_edges_of_a_gap_are_cut_at_characters() {
    let text = "漢".repeat(1000);
    for head in 90..95 {
        for kept in 90..95 {
            let capture = capture(&[text.as_bytes()], head, kept);
            let shown = capture.head_and_tail(500);
            assert!(!shown.contains('\u{fffd}'), "{shown}");
            assert!(!capture.tail(500).contains('\u{fffd}'));
        }
    }
}

#[test]
fn skipped_bytes_are_counted_and_shown() {
    let mut capture = capture(&[b"begin"], 100, 100);
    capture.skip(0);
    assert_eq!(capture.dropped(), 0);
    capture.skip(1000);
    capture.push(b"end");
    assert_eq!((capture.total(), capture.dropped()), (1008, 1000));
    assert_eq!(
        capture.head_and_tail(200),
        "begin\n[… 1000 bytes left out …]\nend"
    );
}

#[test]
fn a_prefix_ends_at_a_character() {
    assert_eq!(prefix("aä".as_bytes(), 2), b"a");
    assert_eq!(prefix("aä".as_bytes(), 3), "aä".as_bytes());
    assert_eq!(prefix("a😀".as_bytes(), 4), b"a");
    assert_eq!(prefix(b"\x80\x80\x80\x80\x80\x80", 5).len(), 5);
}

proptest! {
    #[test]
    fn the_cap_holds_and_what_is_kept_is_right(
        bytes in prop::collection::vec(any::<u8>(), 0..400), cap in 0_usize..300, cut in 1_usize..50,
        head in 0_usize..200, kept in 0_usize..200,
    ) {
        let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
        let capture = capture(&pieces, head, kept);
        prop_assert_eq!(capture.total(), bytes.len() as u64);
        for text in [tail(&bytes, cap), head_and_tail(&bytes, cap), capture.tail(cap), capture.head_and_tail(cap)] {
            prop_assert!(text.len() <= cap, "{} > {}", text.len(), cap);
        }
        if let Some(whole) = capture.whole() {
            prop_assert_eq!(whole, bytes);
        }
    }

    #[test]
    fn valid_text_never_gets_a_replacement_character(text in "[a-zäß漢😀]{0,200}", cap in 0_usize..300, head in 0_usize..100, kept in 0_usize..100) {
        let capture = capture(&[text.as_bytes()], head, kept);
        for shown in [tail(text.as_bytes(), cap), head_and_tail(text.as_bytes(), cap), capture.tail(cap), capture.head_and_tail(cap)] {
            prop_assert!(!shown.contains('\u{fffd}'), "{}", shown);
        }
        let shown = tail(text.as_bytes(), cap);
        prop_assert!(shown == text || text.ends_with(shown.rsplit("…]\n").next().unwrap_or_default()));
    }
}
