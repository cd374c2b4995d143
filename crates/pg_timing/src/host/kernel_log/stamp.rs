//! Recognizes times before a message.

/// Parses seconds since boot in the kernel's format: `12345.678901`.
///
/// `dmesg --show-delta` adds a difference: `12345.678901 <    0.000012>`.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let text = text.split_whitespace().next()?;
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str, most| (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    (digits(whole, 12) && digits(fraction, 9)).then(|| text.parse().ok())?
}

/// Returns whether this is a difference from the previous line, as `dmesg --reltime` prints it: `+0.000123`.
pub(super) fn is_delta(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|rest| seconds(rest).is_some())
}

/// Returns whether the text contains a time of day, as `dmesg -T` prints it, in any language.
pub(super) fn has_time_of_day(text: &str) -> bool {
    text.len() <= 64
        && text.chars().all(|c| c.is_alphanumeric() || " .,+-:".contains(c))
        && text.split_whitespace().any(|word| is_time_of_day(word) || is_hour_minute(word))
}

fn is_hour_minute(word: &str) -> bool {
    matches!(word.as_bytes(), [a, b, b':', c, d] if [a, b, c, d].iter().all(|b| b.is_ascii_digit()))
}

/// `10:29:43`, with or without a fraction and a zone.
fn is_time_of_day(word: &str) -> bool {
    let Some(([a, b, b':', c, d, b':', e, f], rest)) = word.as_bytes().split_first_chunk::<8>() else { return false };
    [a, b, c, d, e, f].iter().all(|b| b.is_ascii_digit())
        && rest.len() <= 24
        && rest.iter().all(|b| b.is_ascii_alphanumeric() || b".,+-:".contains(b))
}

/// `2026-11-20`
fn is_date(word: &str) -> bool {
    let at = |at: usize| word.as_bytes().get(at).copied().unwrap_or(b' ');
    word.len() == 10 && (0..10).all(|i| if i == 4 || i == 7 { at(i) == b'-' } else { at(i).is_ascii_digit() })
}

/// Returns the wall-clock time at the start of the text, and the text after it:
/// `2026-11-20T10:29:43,123456+00:00`, `2026-11-20 10:29:43`, `Nov 20 10:29:43`, `Fri 2026-11-20 10:29:43`.
pub(super) fn leading(text: &str) -> Option<(&str, &str)> {
    let mut letters = 0;
    for word in text.split_whitespace().take(4) {
        let end = offset_in(text, word) + word.len();
        // Bytes, because a word may not be ASCII.
        let (date, time) = match word.as_bytes().get(10) {
            Some(b'T') => (&word[..10], &word[11..]),
            _ => ("", word),
        };
        if is_date(date) && is_time_of_day(time) || end > word.len() && is_time_of_day(word) {
            return Some(text.split_at(end));
        }
        let day = word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit());
        // A month, or a day of the week.
        let month =
            letters < 2 && word.len() <= 20 && word.chars().count() <= 5 && word.chars().all(char::is_alphabetic);
        if !(is_date(word) || month || day && letters > 0) {
            return None;
        }
        letters += u32::from(month);
    }
    None
}

/// Returns the position of a part within the text.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_since_boot_are_parsed() {
        assert_eq!(seconds("    0.000000"), Some(0.0));
        assert_eq!(seconds("12345.678901 <    0.000012>"), Some(12345.678901));
        for none in ["", "12", "1.", ".5", "-1.5", "1e5.0", "1.5s", "1234567890123.0", "1.0.0", "+0.5"] {
            assert_eq!(seconds(none), None, "{none:?}");
        }
        assert!(is_delta("+0.000123") && !is_delta("0.000123"));
    }

    #[test]
    fn wall_clock_times_are_found() {
        for (stamp, rest) in [
            ("2026-11-20T10:29:43,123456+00:00", " msg"),
            ("2026-11-20T10:29:43.123456789Z", " host kernel: msg"),
            ("2026-11-20 10:29:43.123", " msg"),
            ("Nov 20 10:29:43", " host kernel: msg"),
            ("Nov  2 10:29:43", " host"),
            ("Fri 2026-11-20 10:29:43", " UTC host"),
            ("Fri Nov 20 10:29:43", " 2026"),
            ("März 20 10:29:43", " host"),
        ] {
            assert_eq!(leading(&format!("{stamp}{rest}")), Some((stamp, rest)));
        }
        for none in
            ["", "10:29:43 msg", "tsc: Detected 2900", "2026-11-20", "Nov 20", "é2026-11-20T1:2:3", "20 Nov 1:2:3"]
        {
            assert_eq!(leading(none), None, "{none:?}");
        }
        assert!(has_time_of_day("Fri Nov 20 10:29:43 2026"));
        assert!(has_time_of_day("Nov20 10:29"));
        assert!(!has_time_of_day("Firmware Bug") && !has_time_of_day("00:00:00.1x\u{7}"));
    }
}
