//! Parses a single line, without its quoting.

use super::ClockKind;

/// Returns the line without indentation, and without the marks of mails, tickets, psql and docker.
pub(super) fn unquote(line: &str) -> &str {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    // psql marks line breaks in a value by `+` or `↵` at the right.
    let mut line = line.trim_start_matches(blank).trim_end_matches(|c| blank(c) || "+|│↵`*".contains(c));
    loop {
        line = line.trim_start_matches(|c| blank(c) || ">|│#*`".contains(c));
        match line.split_once('|') {
            // `db-1  | text` comes from docker compose.
            Some((name, rest)) if is_name(name.trim_end()) => line = rest,
            _ => return line,
        }
    }
}

fn is_name(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Returns whether the line is only `...` or a similar mark.
pub(super) fn is_elision(body: &str) -> bool {
    let inner = body.trim_matches(['[', ']', '(', ')', '<', '>']);
    inner == "…" || (inner.len() >= 3 && inner.chars().all(|c| c == '.'))
}

/// Returns the text after `mark`, without leading white space.
pub(super) fn after<'a>(body: &'a str, mark: &str) -> Option<&'a str> {
    body.split_once(mark).map(|(_, rest)| rest.trim_start())
}

/// Returns the leading digits and the text after them.
///
/// The result is also `None` if no text follows, because the number may have lost digits.
pub(super) fn number_and_rest(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| text.split_at(end))
}

/// Returns the first word, without punctuation.
pub(super) fn unit(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("").trim_end_matches(['.', ',', ';', ':', ')', '"', '\''])
}

/// Parses a number with decimals. The decimal separator can be a comma, as in some locales.
pub(super) fn decimal(token: &str) -> Option<f64> {
    let (whole, fraction) = token.split_once(['.', ','])?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("{whole}.{fraction}").parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses `Testing timing overhead for N seconds.`, which starts an output. The inner `None` means that the number is
/// too big.
pub(super) fn duration(body: &str) -> Option<Option<u64>> {
    let (seconds, rest) = number_and_rest(after(body, "Testing timing overhead for")?)?;
    rest.starts_with(char::is_whitespace).then(|| seconds.parse().ok())
}

/// Returns the loop time. Its name depends on the version.
pub(super) fn loop_ns(body: &str) -> Option<f64> {
    // "Per loop time" (to 18), "Per timing duration ... loop overhead" (early), "Average loop time" (19)
    let rest = after(body, "including overhead:").or_else(|| after(body, "including loop overhead:"))?;
    let (number, rest) = rest.split_once(char::is_whitespace)?;
    matches!(unit(rest), "ns" | "nsec").then(|| decimal(number))?
}

/// Returns the clock in a heading of PostgreSQL 19. Its names are in capitals, so `Clock source: tsc` is not a heading.
pub(super) fn clock(body: &str) -> Option<ClockKind> {
    if body.contains("System clock source:") {
        return Some(ClockKind::System);
    }
    let name = after(body, "Fast clock source:").or_else(|| after(body, "Clock source:"))?.trim_end();
    let capitals = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    match name {
        "RDTSCP" => Some(ClockKind::Rdtscp),
        "RDTSC" => Some(ClockKind::Rdtsc),
        _ if name.starts_with("clock_gettime") => Some(ClockKind::System),
        _ => (!name.is_empty() && name.chars().all(capitals)).then(|| ClockKind::Other(name.into())),
    }
}

/// Parses `Time warp: N us` and returns ns. The inner `None` means that the amount is cut off or too big.
///
/// Some versions up to 18 printed `ms` for microseconds. Builds between 18 and 19 printed `ms` for nanoseconds; `nanos`
/// means that this output counts in nanoseconds. No version ever measured milliseconds.
pub(super) fn warp_ns(body: &str, nanos: bool) -> Option<Option<i64>> {
    let amount = |rest: &str| {
        let (number, rest) = rest.split_once(char::is_whitespace)?;
        let factor = match unit(rest) {
            "ns" | "nsec" => 1,
            "ms" if nanos => 1,
            "us" | "usec" | "microseconds" | "ms" => 1000,
            _ => return None,
        };
        number.parse::<i64>().ok()?.checked_mul(factor)
    };
    after(body, "Time warp:").map(amount)
}

/// Returns whether this is a line about a clock source in a kernel log.
pub(super) fn is_kernel_log(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let word = |word: &str| line.match_indices(word).any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric));
    // Up to 4.0 there is no colon: "Clocksource tsc unstable (delta = ...)".
    let unstable = |(_, rest): (&str, &str)| rest.split_whitespace().nth(1) == Some("unstable");
    word("clocksource:") || word("tsc:") || line.split_once("clocksource ").is_some_and(unstable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_removed() {
        for quoted in [
            "  text",
            "> > text",
            ">> | text",
            "│ text   ↵│",
            "| text   +",
            " text   +",
            "text+",
            "db_1  | text",
            "pg-1.example | | text |",
            "\u{feff}# text `",
            "\u{a0}* text\r\n",
        ] {
            assert_eq!(unquote(quoted), "text", "{quoted:?}");
        }
        assert_eq!(unquote("| 31 | 99.7213 | 12 |"), "31 | 99.7213 | 12", "the lines within a table are kept");
        assert_eq!(unquote("< us   % of total      count"), "< us   % of total      count");
    }

    #[test]
    fn elisions_are_recognized() {
        for dots in ["...", "....", "…", "[...]", "(…)", "<...>"] {
            assert!(is_elision(dots), "{dots}");
        }
        for other in ["", "..", "[]", "1 ...", ". . ."] {
            assert!(!is_elision(other), "{other}");
        }
    }

    #[test]
    fn incomplete_numbers_are_ignored() {
        assert_eq!(duration("Testing timing overhead for 3 seconds."), Some(Some(3)));
        assert_eq!(duration("$ pg_test_timing; Testing timing overhead for 1 second."), Some(Some(1)));
        assert_eq!(duration("Testing timing overhead for 3"), None, "can be the start of 30");
        assert_eq!(duration("Testing timing overhead for 3..."), None);
        assert_eq!(duration("Testing timing overhead for 99999999999999999999 seconds."), Some(None));
        assert_eq!(loop_ns("Per loop time including overhead: 35.96 nsec"), Some(35.96));
        assert_eq!(loop_ns("Per timing duration including loop overhead: 97.75 ns"), Some(97.75));
        assert_eq!(loop_ns("it says Average loop time including overhead: 28,01 ns, which is fine"), Some(28.01));
        for cut in ["35.96", "35.96 n", "35.9", "35. ns", "x ns", "-nan ns", "1e9 ns", "inf ns", "3.5 s"] {
            assert_eq!(loop_ns(&format!("Per loop time including overhead: {cut}")), None, "{cut}");
        }
        assert_eq!(decimal(&format!("{}.5", "9".repeat(400))), None, "too big");
    }

    #[test]
    fn clocks_are_recognized_by_their_headings() {
        assert_eq!(clock("System clock source: clock_gettime (CLOCK_MONOTONIC)"), Some(ClockKind::System));
        assert_eq!(clock("Clock source: RDTSCP"), Some(ClockKind::Rdtscp));
        assert_eq!(clock("Fast clock source: RDTSC"), Some(ClockKind::Rdtsc));
        assert_eq!(clock("Clock source: CNTVCT_EL0"), Some(ClockKind::Other("CNTVCT_EL0".into())));
        for other in ["Clock source: tsc", "Clock source: ", "TSC clock source will be used by default"] {
            assert_eq!(clock(other), None, "{other}");
        }
    }

    #[test]
    fn warps_are_parsed_in_every_unit() {
        let warp = |text: &str| warp_ns(&format!("Time warp: {text}"), false);
        assert_eq!(warp("-34612 microseconds"), Some(Some(-34_612_000)));
        assert_eq!(warp("-5 us"), Some(Some(-5000)));
        assert_eq!(warp("-5 ms"), Some(Some(-5000)), "microseconds with the wrong unit");
        assert_eq!(warp_ns("Time warp: -5 ms", true), Some(Some(-5)), "nanoseconds with the wrong unit");
        assert_eq!(warp("-5 ns"), Some(Some(-5)));
        for cut in ["", "-5", "-5 m", "-5 micro", "-99999999999999999999 ns", "-9223372036854775807 us"] {
            assert_eq!(warp(cut), Some(None), "{cut}");
        }
        assert_eq!(warp_ns("no warp", false), None);
    }

    #[test]
    fn lines_of_a_kernel_log_are_recognized() {
        assert!(is_kernel_log("[    0.000000] tsc: Detected 2900.000 MHz processor"));
        assert!(is_kernel_log("kernel: clocksource: Switched to clocksource hpet"));
        assert!(is_kernel_log("Clocksource tsc unstable (delta = -62503714 ns)"));
        assert!(!is_kernel_log("Fast clock source: RDTSC: good"));
        assert!(!is_kernel_log("my clocksource is tsc and never was unstable"));
    }
}
