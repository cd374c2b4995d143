//! Outputs with damage as from copying and pasting, and other texts.

use super::*;
use proptest::prelude::*;

#[test]
fn cuts_are_noticed() {
    let without = |text: &str, from: &str| text[..text.find(from).unwrap()].to_string();
    for text in [
        without(PG15, "     2 "),
        without(PG15, "Histogram"),
        PG15.replace("    16      0.00003         13\n", ""),
        PG19.replace("                  3       0.0000     0.0000          0\n", ""),
        PG15.replace("     2      2.54226     989251\n", "...\n"),
        PG15.replace("     2      2.54226     989251\n", "     2      2.54226\n"),
        PG15.replace("     2      2.54226     989251\n", "     2      2.54226     98...\n"),
        PG15.replace("     2      2.54226     989251\n", "     2      2.54226     99999999999999999999\n"),
        without(PG19, "\nObserved"),
        without(PG19, "Fast clock"),
        without(PG19, "TSC frequency source"),
        without(PG19, "TSC clock source"),
        without(PG19, "...\n"),
        PG19.replacen("...\n", "...\n...\n", 1),
    ] {
        assert!(one(&text).cut_off, "{text}");
    }
    let arm = without(PG19, "\nClock source");
    assert!(!one(&arm).cut_off, "where there is no second clock that is all");
    assert!(!one(arm.trim_end()).cut_off, "a last newline that a shell took is not missed");
    assert_eq!(one(PG15.trim_end()), one(PG15));
}

#[test]
fn other_texts_are_refused() {
    for (text, error) in [
        ("", ParseError::Empty),
        (" \r\n\t\u{feff}", ParseError::Empty),
        ("a\0b", ParseError::NotText),
        ("\u{1}\u{2}\u{3}abc", ParseError::NotText),
        ("\u{fffd}\u{fffd}\u{fffd}PK\u{3}", ParseError::NotText),
        ("[ 7823.105771] clocksource: Switched to clocksource hpet\n", ParseError::KernelLog),
        ("tsc: Detected 2900.000 MHz processor", ParseError::KernelLog),
        ("Testing timing overhead for 3 seconds.\n", ParseError::NothingFound),
        ("TSC frequency in use: 2993629 kHz\n", ParseError::NothingFound),
        ("Timing-Overhead wird 3 Sekunden lang getestet.\n     1     96.40465   80435604\n", ParseError::NothingFound),
        ("It may say `Detected clock going backwards in time.` and `Time warp: N us`.", ParseError::NothingFound),
        ("Dear all, the clock is fine.", ParseError::NothingFound),
    ] {
        assert_eq!(parse(text), Err(error), "{text:?}");
        let said = error.to_string();
        assert!(said.starts_with(char::is_lowercase) && !said.ends_with('.') && !said.contains('\n'), "{said}");
    }
    assert_eq!(parse(&format!("{PG15}\0")), Err(ParseError::NotText));
}

/// Returns whether every value of `part` is also in `whole`.
fn is_prefix(part: &Output, whole: &Output) -> bool {
    fn contained<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
        part.is_none() || part == whole
    }
    let clocks = part.clocks.len() <= whole.clocks.len()
        && part.clocks.iter().zip(&whole.clocks).all(|(part, whole)| {
            part.kind == whole.kind
                && contained(&part.loop_ns, &whole.loop_ns)
                // The first 9.2 printed the longest durations first.
                && (whole.bins.starts_with(&part.bins) || whole.bins.ends_with(&part.bins))
                && whole.observed.starts_with(&part.observed)
        });
    let none = TscLines::default();
    let (tsc, all_tsc) = (part.tsc.as_ref().unwrap_or(&none), whole.tsc.as_ref().unwrap_or(&none));
    clocks
        && contained(&part.duration_s, &whole.duration_s)
        && contained(&part.warp_ns, &whole.warp_ns)
        && part.went_back <= whole.went_back
        && contained(&tsc.source, &all_tsc.source)
        && contained(&tsc.in_use_khz, &all_tsc.in_use_khz)
        && contained(&tsc.calibrated_khz, &all_tsc.calibrated_khz)
        && contained(&tsc.used_by_default, &all_tsc.used_by_default)
        && tsc.not_converged <= all_tsc.not_converged
        && tsc.not_usable <= all_tsc.not_usable
}

/// Longer texts (in bytes) are cut in fewer places, to save time.
const LONG: usize = 2000;

/// Debug builds are slow, so they cut at every fourth byte, with another offset in each line. `make fuzz` and
/// `make check-world` cut at every byte.
const STEP: usize = if cfg!(debug_assertions) { 4 } else { 1 };

/// Asserts that a text that is cut anywhere has no other values than the whole text. `end` is appended to the cut text.
fn assert_every_cut_is_a_prefix(name: &str, text: &str, end: &str) {
    let whole = parse(text).unwrap();
    let mut line_start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let cuts = line_start + 1..=line_start + line.len();
        line_start += line.len();
        // Many rows of a long text are similar.
        if text.len() > LONG && number % 29 != 0 && !line.contains(char::is_alphabetic) {
            continue;
        }
        for at in cuts.filter(|at| text.is_char_boundary(*at) && at % STEP == number % STEP) {
            let Ok(part) = parse(&format!("{}{end}", &text[..at])) else { continue };
            assert!(part.len() <= whole.len(), "{name} cut at {at}");
            let last = part.len() - 1;
            assert_eq!(part[..last], whole[..last], "{name} cut at {at}");
            assert!(is_prefix(&part[last], &whole[last]), "{name} cut at {at}: {:?}", part[last]);
        }
    }
}

#[test]
fn every_cut_is_a_prefix() {
    for (name, text) in ALL {
        assert_every_cut_is_a_prefix(name, text, "");
        if text.len() <= LONG {
            assert_every_cut_is_a_prefix(name, text, "...");
            assert_every_cut_is_a_prefix(name, text, "\n...\n");
            let folded: String = text.lines().map(|line| fold(line) + "\n").collect();
            assert_every_cut_is_a_prefix(name, &folded, "");
        }
    }
}

/// Replaces several spaces by one, as HTML shows them.
fn fold(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A change to a text.
#[derive(Debug, Clone)]
enum Change {
    Delete,
    Twice,
    Insert(String),
}

fn change() -> impl Strategy<Value = (bool, prop::sample::Index, Change)> {
    let what = prop_oneof![
        Just(Change::Delete),
        Just(Change::Twice),
        prop_oneof![
            any::<String>(),
            "[-+.,:0-9 %|>n]{1,6}",
            Just("...".into()),
            Just("18446744073709551615".into()),
            any::<prop::sample::Index>().prop_map(|at| at.get(&PG19.lines().collect::<Vec<_>>()).to_string()),
        ]
        .prop_map(Change::Insert),
    ];
    (any::<bool>(), any::<prop::sample::Index>(), what)
}

/// Changes one character, or one line.
fn apply(text: &str, (lines, at, change): &(bool, prop::sample::Index, Change)) -> String {
    let mut parts: Vec<&str> = match lines {
        true => text.split_inclusive('\n').collect(),
        false => text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect(),
    };
    if parts.is_empty() {
        return String::new();
    }
    let at = at.index(parts.len());
    match change {
        Change::Delete => drop(parts.remove(at)),
        Change::Twice => parts.insert(at, parts[at]),
        Change::Insert(new) => parts.insert(at, new),
    }
    parts.concat()
}

proptest! {
    #[test]
    fn any_text_causes_no_panic(text in any::<String>(), marks in prop::collection::vec(0usize..12, 0..12)) {
        const MARKS: [&str; 12] = [
            "Testing timing overhead for ", " seconds.\n", "Time warp: -", " us\n", "including overhead: ", " ns\n",
            "Histogram of timing durations:\n", "\n1 0.5 ", "\n...\n", "Observed timing durations up to ", "kHz", "0",
        ];
        let _ = parse(&text);
        let text: String = marks.iter().flat_map(|mark| [MARKS[*mark], &text]).collect();
        if let Ok(outputs) = parse(&text) {
            assert_valid(&outputs);
        }
    }

    #[test]
    fn damaged_outputs_cause_no_panic(which in 0..ALL.len(), changes in prop::collection::vec(change(), 1..8)) {
        let text = changes.iter().fold(ALL[which].1.to_string(), |text, change| apply(&text, change));
        if let Ok(outputs) = parse(&text) {
            assert_valid(&outputs);
        }
    }
}
