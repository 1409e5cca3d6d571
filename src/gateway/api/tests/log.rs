use super::*;
use jiff::Timestamp;

fn event(key: &str) -> Keyed {
    Keyed {
        key: key.into(),
        at: Timestamp::UNIX_EPOCH,
        event: Event::Gap { reason: key.into() },
    }
}

fn log(keys: &[&str]) -> Log {
    let mut log = Log::default();
    for key in keys {
        assert!(log.add(&event(key)));
    }
    log
}

fn id(log: &Log, place: usize) -> String {
    let wire = log.after(place - 1).unwrap().unwrap();
    let text = String::from_utf8(wire.to_vec()).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("id: "));
    id.unwrap().to_owned()
}

#[test]
fn an_event_is_told_once() {
    let mut log = log(&["a", "b"]);
    assert!(!log.add(&event("a")));
    assert_eq!(log.len(), 2);
}

// F127
#[test]
fn another_gateway_goes_on_where_the_same_events_came_before_in_whatever_order() {
    let (here, there) = (log(&["a", "b", "c"]), log(&["b", "a", "c"]));
    let at = |place| there.start(Some(&id(&here, place)));
    assert_eq!(at(3), Start { place: 3, gap: None });
    assert_eq!(at(2), Start { place: 2, gap: None });
    assert_eq!(at(1).place, 0);
    assert!(at(1).gap.unwrap().contains("another order"));
}

#[test]
fn ids_that_say_nothing_here_give_everything_after_a_gap() {
    let log = log(&["a", "b"]);
    for (last, cause) in [
        ("x", "no id"),
        ("1-zz", "no id"),
        ("1", "no id"),
        ("0-0000000000000000", "not known"),
        ("3-0000000000000000", "not known"),
        ("18446744073709551615-ffffffffffffffff", "not known"),
        ("99999999999999999999-ffffffffffffffff", "no id"),
        ("1-ffffffffffffffff", "another order"),
    ] {
        let start = log.start(Some(last));
        assert_eq!(start.place, 0);
        assert!(
            start.gap.is_some_and(|gap| gap.contains(cause)),
            "{last}: {start:?}"
        );
    }
    assert_eq!(log.start(None), Start { place: 0, gap: None });
}

#[test]
fn the_oldest_events_go_when_there_are_too_many() {
    let mut log = Log::default();
    let first = event("0");
    log.add(&first);
    let old = id(&log, 1);
    for number in 1..=bounds::EVENTS {
        log.add(&event(&number.to_string()));
    }
    assert_eq!(log.len(), bounds::EVENTS + 1);
    assert_eq!(log.after(0), Err(1));
    assert!(log.start(Some(&old)).gap.unwrap().contains("not kept"));
    assert!(!log.add(&first), "it is not told again");
}

// F065
#[test]
fn an_event_is_one_line_of_json() {
    let reason = "a\nb\r\n\ndata: {}\u{2028}".to_owned();
    let wire = wire(
        Some("1-a"),
        &Event::Gap {
            reason: reason.clone(),
        },
    );
    let text = String::from_utf8(wire.to_vec()).unwrap();
    let data = text
        .strip_prefix("id: 1-a\ndata: ")
        .unwrap()
        .strip_suffix("\n\n")
        .unwrap();
    assert!(!data.contains(['\n', '\r']));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(data).unwrap()["reason"],
        reason
    );
}
