//! Finds numbers and names in a message. A number or a name that may be cut off is ignored.

use std::str::FromStr;

/// Returns the text after these words, with any white space between them, because copying from HTML changes it.
pub(super) fn skip<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    words.split(' ').try_fold(text, |rest, word| rest.trim_start().strip_prefix(word))
}

/// Like [`skip`], but the words can be anywhere in the text.
pub(super) fn skip_to<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let first = words.split(' ').next().unwrap_or("");
    text.match_indices(first).find_map(|(at, _)| skip(&text[at..], words))
}

/// Returns a whole number and the text after it.
///
/// `None` means that there is no number. The inner `None` means that the number is too big, or that it is at the end of
/// the text and may have lost digits.
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

/// Returns the number after these words, which can be anywhere in the text.
pub(super) fn number_after<T: FromStr>(text: &str, words: &str) -> Option<T> {
    number(skip_to(text, words)?)?.0
}

/// Returns a number with the unit MHz.
pub(super) fn mhz(text: &str) -> Option<f64> {
    let (number, _) = text.split_once("MHz")?;
    let number = number.trim();
    // `f64` would also accept "inf", "1e9" and a sign.
    if number.len() > 32 || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    number.parse().ok().filter(|mhz: &f64| *mhz > 0.0 && mhz.is_finite())
}

/// Returns a hexadecimal number, if the whole token is one.
pub(super) fn hex(token: &str) -> Option<u64> {
    let digits = token.strip_prefix("0x").unwrap_or(token).trim_end_matches([',', '.']);
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// Known clock sources. They show whether a name was cut off.
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

/// Returns the name of a clock source, with or without quotes, and the text after it.
pub(super) fn name(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let (name, rest) = match text.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => text.split_at(text.find(char::is_whitespace).unwrap_or(text.len())),
    };
    let name = name.trim_end_matches(['.', ',', ';', ':']);
    // The kernel's limit is 32 bytes. Control characters are not accepted, because the name is printed.
    let plausible = (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b'\'');
    let cut = rest.is_empty() && !KNOWN.contains(&name) && KNOWN.iter().any(|known| known.starts_with(name));
    (plausible && !cut).then(|| (name.to_string(), rest))
}

/// Returns the rest of a line as text to print: without control characters, and at most 120 characters long.
pub(super) fn text(rest: &str) -> Option<String> {
    let text: String = rest.trim().chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(120).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_with_any_spacing() {
        assert_eq!(skip("  over   watchdog 'x'", "over watchdog"), Some(" 'x'"));
        assert_eq!(skip("over a watchdog", "over watchdog"), None);
        assert_eq!(skip_to("wd-wd read-back delay only 7ns", "delay only"), Some(" 7ns"));
        assert_eq!(skip_to("delay of delay only 7ns", "delay only"), Some(" 7ns"));
    }

    #[test]
    fn incomplete_numbers_are_ignored() {
        assert_eq!(number::<u32>(" 12: x"), Some((Some(12), ": x")));
        assert_eq!(number::<u32>("12"), Some((None, "")), "can be the start of 120");
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
    fn incomplete_names_are_ignored() {
        assert_eq!(name("'tsc' as"), Some(("tsc".into(), " as")));
        assert_eq!(name("hpet"), Some(("hpet".into(), "")));
        assert_eq!(name(" tsc."), Some(("tsc".into(), "")));
        assert_eq!(name("sgi_rtc"), Some(("sgi_rtc".into(), "")), "one that is not known");
        for none in ["", "'tsc", "hp", "kvm-", "ts\u{7}c", "tsc\u{1b}[1m", "''", &"x".repeat(65)] {
            assert_eq!(name(none), None, "{none:?}");
        }
    }
}
