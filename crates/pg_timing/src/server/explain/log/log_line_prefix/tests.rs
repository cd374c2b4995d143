use super::*;

/// Returns the process in a plan's first line, after its context was read.
fn learned<'a>(first: &'a str, context: &str) -> Option<&'a str> {
    let mut place = ProcessPlace::default();
    assert!(place.is_same(first, context), "{first} {context}");
    place.process(first)
}

const TIME: &str = "2026-11-25 07:40:27.191 UTC";

#[test]
fn the_prefix_shows_the_process() {
    for (prefix, expected) in [
        ("2026-11-25 00:50:26 UTC [12978]: user=,client=[local] ", Some("12978")),
        ("2026-11-25 00:50:26 UTC:10.0.0.1(51234):u@d:[12978]:", Some("12978")),
        ("2026-11-25 00:50:26 UTC [12978]: [3-1] ", Some("12978")),
        ("[3-1] pid=12978,user=u ", Some("12978")),
        ("PID 12978 [3] ", Some("12978")),
        ("2026-11-25 00:50:26 UTC-6b0630d2.32b2-", Some("6b0630d2.32b2")),
        ("[3] 6b0630d2.32b2 [7] ", Some("6b0630d2.32b2")),
        ("2026-11-25 00:50:26.123 UTC 10.0.0.1 pid= ", None),
        // Without brackets, and with numbers that are no process.
        ("2026-11-25 00:50:26.123 +10 12978 00000 3/7 0 u@d 10.0.0.1(51234) api-7 -4711 ", Some("12978")),
        ("1764063627.191 12978 -8123456789012345678 ", Some("12978")),
        ("2026-11-25 00:50:26 UTC [00000] [12978] ", Some("12978")),
        ("2026-11-25 00:50:26 UTC [12978-1] u@d ", Some("12978")),
        ("[12978] worker 5 ", Some("12978")),
        // Several numbers can be the process.
        ("2026-11-25 00:50:26 UTC [3] [12978] ", None),
        ("12978 3 ", None),
        ("", None),
    ] {
        for rest in ["LOG:  duration: 1.000 ms  plan:", "CONTEXT:  SQL statement \"x [7]\"", "ERROR:  x [7]"] {
            assert_eq!(ProcessPlace::default().process(&format!("{prefix}{rest}")), expected, "{prefix}");
        }
    }
    assert_eq!(ProcessPlace::default().process("\t[7]"), None);
}

#[test]
fn the_number_that_is_the_same_within_an_entry_is_the_process() {
    for (prefix, next, expected) in [
        ("[3] [12978] ", "[4] [12978] ", Some("12978")),
        ("[12978] [3] ", "[12978] [4] ", Some("12978")),
        ("12978 [3] ", "12978 [4] ", Some("12978")),
        ("[12978-1] ", "[12978-2] ", Some("12978")),
        ("[12978-3] ", "[12978-4] ", Some("12978")),
        ("3 12978 ", "4 12978 ", Some("12978")),
        ("l=9,p=12978,u=5 ", "l=10,p=12978,u=5 ", None),
        ("l=9,p=12978 ", "l=10,p=12978 ", Some("12978")),
        // Only the number of the line, and two numbers that can be the process.
        ("[3] ", "[4] ", None),
        ("[731] [12978] ", "[731] [12978] ", None),
    ] {
        let [first, context] = [(prefix, "LOG:  duration: 1.000 ms  plan:"), (next, "CONTEXT:  x")]
            .map(|(prefix, rest)| format!("{TIME} {prefix}{rest}"));
        assert_eq!(learned(&first, &context), expected, "{prefix}");
    }
}

#[test]
fn other_entries_have_the_process_at_the_same_place() {
    let line = |prefix: &str, rest: &str| format!("{TIME} {prefix} {rest}");
    let mut place = ProcessPlace::default();
    assert!(place.is_same(&line("[3] [7] [00000]", "LOG:  x"), &line("[4] [7] [00000]", "CONTEXT:  x")));
    for (prefix, process) in [("[8] [9] [42601]", "9"), ("[8] [12978] [42P01]", "12978")] {
        assert_eq!(place.process(&line(prefix, "ERROR:  x")), Some(process), "{prefix}");
    }
    assert!(!place.is_same(&line("[3] [7] [00000]", "LOG:  x"), &line("[4] [8] [00000]", "CONTEXT:  x")));
    let mut place = ProcessPlace::default();
    assert!(place.is_same(&line("[00000] 3 9", "LOG:  x"), &line("[00000] 4 9", "CONTEXT:  x")));
    assert_eq!(place.process(&line("[XX000] 5 6", "ERROR:  x")), Some("6"));
}

#[test]
fn a_context_of_another_process_is_not_that_of_the_entry() {
    let mut place = ProcessPlace::default();
    for (first, context) in [("[7] LOG:  x", "[9] CONTEXT:  x"), ("pid=7 LOG:  x", "pid=8 CONTEXT:  x")] {
        assert!(!place.is_same(first, context), "{first}");
    }
    assert_eq!(place, ProcessPlace::default());
    // If only a number that increases was found, the next entry can show more.
    assert!(place.is_same("[7] LOG:  x", "[8] CONTEXT:  x"));
    assert_eq!(place.process("[7] LOG:  x"), None);
    assert!(place.is_same("[9] LOG:  x", "[9] CONTEXT:  x"));
    assert!(!place.is_same("[7] LOG:  x", "[8] CONTEXT:  x"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(first in "[a-z0-9 :.\\[\\]/()+=-]{0,40}(LOG:  )?.*", context in ".*:  ", prefix in ".*") {
        let mut place = ProcessPlace::default();
        place.is_same(&first, &context);
        place.is_same(&(prefix.clone() + &first), &first);
        for line in [first, context, prefix] {
            let process = place.process(&line);
            proptest::prop_assert!(process.is_none_or(|process| line.contains(process) && !process.is_empty()));
        }
    }
}
