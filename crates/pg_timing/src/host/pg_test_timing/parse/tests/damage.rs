//! Outputs with damage as from copying and pasting, and other texts.

use super::*;
use crate::report::Severity;
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
        ("", NOTHING_FOUND),
        ("a\0b", NOT_TEXT),
        ("[ 7823.105771] clocksource: Switched to clocksource hpet\n", KERNEL_LOG),
        ("tsc: Detected 2900.000 MHz processor", KERNEL_LOG),
        ("Testing timing overhead for 3 seconds.\n", NOTHING_FOUND),
        ("TSC frequency in use: 2993629 kHz\n", NOTHING_FOUND),
        ("Timing-Overhead wird 3 Sekunden lang getestet.\n     1     96.40465   80435604\n", NOTHING_FOUND),
        ("It may say `Detected clock going backwards in time.` and `Time warp: N us`.", NOTHING_FOUND),
        ("Dear all, the clock is fine.", NOTHING_FOUND),
    ] {
        assert_eq!(parse(text), Err(error), "{text:?}");
        let said = error.to_string();
        assert!(said.starts_with(char::is_lowercase) && !said.ends_with('.') && !said.contains('\n'), "{said}");
    }
    assert_eq!(parse(&format!("{PG15}\0")), Err(NOT_TEXT));
}

/// Returns the severity of the verdict of the worst output in a text.
fn severity(text: &str) -> Option<Severity> {
    let outputs = parse(text).ok()?;
    let judged = |output: &Output| {
        let mut report = crate::host::pg_test_timing::report::report(output);
        crate::host::check::judge(&mut report);
        report.verdict.severity
    };
    outputs.iter().map(judged).max()
}

/// Debug builds are slow, so they cut at fewer places.
const STEP: usize = if cfg!(debug_assertions) { 41 } else { 1 };

/// What is missing could be the problem.
#[test]
fn a_cut_output_is_never_good() {
    let (mut good, mut cuts) = (0, 0);
    for (name, text) in ALL.iter().filter(|(name, text)| *name != "ticket.txt" && severity(text) == Some(Severity::Ok))
    {
        good += 1;
        let whole = parse(text).unwrap();
        for at in (0..text.len()).filter(|at| at % STEP == 0) {
            let part = &text[..at];
            cuts += 1;
            for cut in [part.to_string(), format!("{part}...")] {
                assert!(
                    severity(&cut) != Some(Severity::Ok) || parse(&cut).unwrap() == whole || is_rounding(&cut, &whole),
                    "{name} cut at {at}"
                );
            }
        }
    }
    assert!(good >= 5 && cuts > 300, "{good} {cuts}");
}

/// Returns whether the readings that the cut output lacks are fewer than the rounding of its shares.
fn is_rounding(cut: &str, whole: &[Output]) -> bool {
    let reads = |output: &Output| output.clocks.iter().flat_map(counts).sum::<u64>() as f64;
    let parts = parse(cut).unwrap();
    parts.iter().zip(whole).all(|(part, whole)| {
        // Only x86 has further clocks.
        part.clocks.len() == 1 && part.tsc.is_none() && part.clocks[0] == whole.clocks[0]
            || part.clocks.len() == whole.clocks.len()
                && reads(part) / reads(whole) > 1.0 - 1e-5
                && part.tsc == whole.tsc
    })
}

#[test]
fn line_breaks_can_be_missing() {
    for (name, text) in ALL.iter().filter(|(name, _)| *name != "ticket.txt") {
        let flat = parse(&text.replace(['\n', '\r'], " ")).unwrap();
        assert_eq!(
            flat,
            parse(text).unwrap().into_iter().map(|output| Output { position: 0, ..output }).collect::<Vec<_>>(),
            "{name}"
        );
        assert_eq!(severity(&text.replace('\n', " ")), severity(text), "{name}");
    }
}

#[test]
fn contradictory_figures_are_not_an_output() {
    let text = I7_ACPI_PM.replace("1155682", "115568").replace("2990371", "299037");
    assert_eq!(severity(&text), Some(Severity::Unknown));
    assert_eq!(severity("Per loop time including overhead: 35.96 nsec"), Some(Severity::Unknown), "nothing else");
    let grouped = I7_ACPI_PM.replace("722.92", "1,722.92").replace("2990371", "2,990,371");
    assert_eq!(one(&grouped).clocks[0].loop_ns, Some(1722.92));
    assert_eq!(counts(&one(&grouped).clocks[0]), counts(&one(I7_ACPI_PM).clocks[0]));
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
