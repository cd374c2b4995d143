//! Takes numbers and names out of a message. One that may be cut off is not taken.

use std::str::FromStr;

/// What follows these words, whatever blanks are between them: pasting through HTML folds those.
pub(super) fn skip<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    words.split(' ').try_fold(text, |rest, word| rest.trim_start().strip_prefix(word))
}

/// As [`skip`], but goes on from the first place where they are.
pub(super) fn skip_to<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let first = words.split(' ').next().unwrap_or("");
    text.match_indices(first).find_map(|(at, _)| skip(&text[at..], words))
}

/// A whole number and what follows it.
///
/// `None`: there is none. The inner `None`: too big, or the text ends with it, so that there may
/// have been more digits.
pub(super) fn number<T: FromStr>(text: &str) -> Option<(Option<T>, &str)> {
    let text = text.trim_start();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = text.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, rest) = text.split_at(end);
    if !number.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok().filter(|_| !rest.is_empty()), rest))
}

/// The number right after these words, wherever they are.
pub(super) fn number_after<T: FromStr>(text: &str, words: &str) -> Option<T> {
    number(skip_to(text, words)?)?.0
}

/// A number of megahertz with the unit after it.
pub(super) fn mhz(text: &str) -> Option<f64> {
    let (number, _) = text.split_once("MHz")?;
    let number = number.trim();
    // `f64` would also take "inf", "1e9" and a sign
    if number.len() > 32 || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    number.parse().ok().filter(|mhz: &f64| *mhz > 0.0 && mhz.is_finite())
}

/// A hexadecimal number that is the whole token.
pub(super) fn hex(token: &str) -> Option<u64> {
    let digits = token.strip_prefix("0x").unwrap_or(token).trim_end_matches([',', '.']);
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// The names that are met, to tell a cut one by.
const KNOWN: &[&str] = &[
    "tsc",
    "tsc-early",
    "hpet",
    "acpi_pm",
    "kvm-clock",
    "xen",
    "hyperv_clocksource",
    "hyperv_clocksource_tsc_page",
    "hyperv_clocksource_msr",
    "jiffies",
    "refined-jiffies",
    "arch_sys_counter",
    "pit",
    "vmi-timer",
];

/// A clock source's name, in quotes or not, and what follows it.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let (name, rest) = match text.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => text.split_at(text.find(char::is_whitespace).unwrap_or(text.len())),
    };
    let name = name.trim_end_matches(['.', ',', ';', ':']);
    // The kernel's limit is 32. No blanks and no quotes, and nothing that a terminal would obey.
    let plausible = (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b'\'');
    let cut = rest.is_empty() && !KNOWN.contains(&name) && KNOWN.iter().any(|known| known.starts_with(name));
    (plausible && !cut).then(|| (name.to_string(), rest))
}

/// The rest of a line as text to show: nothing that a terminal would obey, and not longer than a sentence.
pub(super) fn text(rest: &str) -> Option<String> {
    let text: String = rest.trim().chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(120).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_any_spacing() {
        assert_eq!(skip("  over   watchdog 'x'", "over watchdog"), Some(" 'x'"));
        assert_eq!(skip("over a watchdog", "over watchdog"), None);
        assert_eq!(skip_to("wd-wd read-back delay only 7ns", "delay only"), Some(" 7ns"));
        assert_eq!(skip_to("delay of delay only 7ns", "delay only"), Some(" 7ns"));
    }

    #[test]
    fn numbers_are_taken_whole_or_not_at_all() {
        assert_eq!(number::<u32>(" 12: x"), Some((Some(12), ": x")));
        assert_eq!(number::<u32>("12"), Some((None, "")), "may be 120");
        assert_eq!(number::<u32>("99999999999 ns"), Some((None, " ns")), "too big");
        assert_eq!(number::<i64>("-5 ns"), Some((Some(-5), " ns")));
        assert_eq!(number::<u64>("-5 ns"), Some((None, " ns")));
        for none in ["", "-", "- 5", "x", "+5 "] {
            assert_eq!(number::<i64>(none), None, "{none:?}");
        }
        assert_eq!(mhz(" 2900.000 MHz processor"), Some(2900.0));
        assert_eq!(mhz("24.00MHz (virt)."), Some(24.0));
        for none in ["2900.000", "inf MHz", "1e9 MHz", "-1 MHz", "0.000 MHz", ". MHz", " MHz", "1.2.3 MHz"] {
            assert_eq!(mhz(none), None, "{none:?}");
        }
        assert_eq!(hex("ffffffffffffffff"), Some(u64::MAX));
        assert_eq!(hex("0x1cd42e4dffb,"), Some(0x1cd_42e4_dffb));
        for none in ["", "10000000000000000", "g", "-1", "+1"] {
            assert_eq!(hex(none), None, "{none:?}");
        }
    }

    #[test]
    fn names() {
        assert_eq!(name("'tsc' as"), Some(("tsc".into(), " as")));
        assert_eq!(name("hpet"), Some(("hpet".into(), "")));
        assert_eq!(name(" tsc."), Some(("tsc".into(), "")));
        assert_eq!(name("sgi_rtc"), Some(("sgi_rtc".into(), "")), "one that is not known");
        for none in ["", "'tsc", "hp", "kvm-", "ts\u{7}c", "tsc\u{1b}[1m", "''", &"x".repeat(65)] {
            assert_eq!(name(none), None, "{none:?}");
        }
    }
}
