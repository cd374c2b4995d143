//! What a single line says, once its quoting is off.

use super::ClockKind;

/// The line without indentation, and without what mails, tickets, psql and docker put around it.
pub(super) fn unquote(line: &str) -> &str {
    let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    // psql marks a value's line breaks by `+` or `↵` at the right, behind the border if it draws one
    let mut line = line.trim_start_matches(blank).trim_end_matches(|c| blank(c) || "+|│↵`*".contains(c));
    loop {
        line = line.trim_start_matches(|c| blank(c) || ">|│#*`".contains(c));
        match line.split_once('|') {
            // `db-1  | text`, as docker compose logs it
            Some((name, rest)) if is_name(name.trim_end()) => line = rest,
            _ => return line,
        }
    }
}

fn is_name(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// `...` and its kin, alone on a line.
pub(super) fn is_elision(body: &str) -> bool {
    let inner = body.trim_matches(['[', ']', '(', ')', '<', '>']);
    inner == "…" || (inner.len() >= 3 && inner.chars().all(|c| c == '.'))
}

/// What follows `mark` in the line, without blanks before it.
pub(super) fn after<'a>(body: &'a str, mark: &str) -> Option<&'a str> {
    body.split_once(mark).map(|(_, rest)| rest.trim_start())
}

/// The digits that `text` begins with and what follows them.
///
/// `None` as well where nothing follows: there the number may have been longer.
pub(super) fn number_and_rest(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| text.split_at(end))
}

/// Its first word without the punctuation of a sentence.
pub(super) fn unit(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("").trim_end_matches(['.', ',', ';', ':', ')', '"', '\''])
}

/// A number with decimals. With a comma too, which some locales print.
pub(super) fn decimal(token: &str) -> Option<f64> {
    let (whole, fraction) = token.split_once(['.', ','])?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("{whole}.{fraction}").parse().ok().filter(|value: &f64| value.is_finite())
}

/// `Testing timing overhead for N seconds.`: begins an output. The inner `None`: a number too big.
pub(super) fn duration(body: &str) -> Option<Option<u64>> {
    let (seconds, rest) = number_and_rest(after(body, "Testing timing overhead for")?)?;
    rest.starts_with(char::is_whitespace).then(|| seconds.parse().ok())
}

/// The loop time, by each of the names that it has had.
pub(super) fn loop_ns(body: &str) -> Option<f64> {
    // "Per loop time" (to 18), "Per timing duration ... loop overhead" (early), "Average loop time" (19)
    let rest = after(body, "including overhead:").or_else(|| after(body, "including loop overhead:"))?;
    let (number, rest) = rest.split_once(char::is_whitespace)?;
    matches!(unit(rest), "ns" | "nsec").then(|| decimal(number))?
}

/// The clock that a heading of 19 names.
///
/// Names are in capitals there; a `Clock source: tsc` is a sentence of somebody's.
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

/// `Time warp: N us`, in ns. The inner `None`: the amount is cut off or too big.
///
/// Versions up to 18 printed `ms` for a while where they had measured microseconds. So did builds
/// between 18 and 19, which had measured nanoseconds (`nanos`: this output is known to count in
/// those). No version has ever measured milliseconds.
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

/// Whether the kernel says something about a clock source here.
pub(super) fn is_kernel_log(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let word = |word: &str| line.match_indices(word).any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric));
    // up to 4.0 without the colon: "Clocksource tsc unstable (delta = ...)"
    let unstable = |(_, rest): (&str, &str)| rest.split_whitespace().nth(1) == Some("unstable");
    word("clocksource:") || word("tsc:") || line.split_once("clocksource ").is_some_and(unstable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_comes_off() {
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
        assert_eq!(unquote("| 31 | 99.7213 | 12 |"), "31 | 99.7213 | 12", "a table's own lines stay");
        assert_eq!(unquote("< us   % of total      count"), "< us   % of total      count");
    }

    #[test]
    fn elisions() {
        for dots in ["...", "....", "…", "[...]", "(…)", "<...>"] {
            assert!(is_elision(dots), "{dots}");
        }
        for other in ["", "..", "[]", "1 ...", ". . ."] {
            assert!(!is_elision(other), "{other}");
        }
    }

    #[test]
    fn numbers_only_when_all_there() {
        assert_eq!(duration("Testing timing overhead for 3 seconds."), Some(Some(3)));
        assert_eq!(duration("$ pg_test_timing; Testing timing overhead for 1 second."), Some(Some(1)));
        assert_eq!(duration("Testing timing overhead for 3"), None, "may be 30");
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
    fn clocks_by_name() {
        assert_eq!(clock("System clock source: clock_gettime (CLOCK_MONOTONIC)"), Some(ClockKind::System));
        assert_eq!(clock("Clock source: RDTSCP"), Some(ClockKind::Rdtscp));
        assert_eq!(clock("Fast clock source: RDTSC"), Some(ClockKind::Rdtsc));
        assert_eq!(clock("Clock source: CNTVCT_EL0"), Some(ClockKind::Other("CNTVCT_EL0".into())));
        for other in ["Clock source: tsc", "Clock source: ", "TSC clock source will be used by default"] {
            assert_eq!(clock(other), None, "{other}");
        }
    }

    #[test]
    fn warps_in_every_unit() {
        let warp = |text: &str| warp_ns(&format!("Time warp: {text}"), false);
        assert_eq!(warp("-34612 microseconds"), Some(Some(-34_612_000)));
        assert_eq!(warp("-5 us"), Some(Some(-5000)));
        assert_eq!(warp("-5 ms"), Some(Some(-5000)), "microseconds by the wrong name");
        assert_eq!(warp_ns("Time warp: -5 ms", true), Some(Some(-5)), "nanoseconds by the wrong name");
        assert_eq!(warp("-5 ns"), Some(Some(-5)));
        for cut in ["", "-5", "-5 m", "-5 micro", "-99999999999999999999 ns", "-9223372036854775807 us"] {
            assert_eq!(warp(cut), Some(None), "{cut}");
        }
        assert_eq!(warp_ns("no warp", false), None);
    }

    #[test]
    fn kernel_lines() {
        assert!(is_kernel_log("[    0.000000] tsc: Detected 2900.000 MHz processor"));
        assert!(is_kernel_log("kernel: clocksource: Switched to clocksource hpet"));
        assert!(is_kernel_log("Clocksource tsc unstable (delta = -62503714 ns)"));
        assert!(!is_kernel_log("Fast clock source: RDTSC: good"));
        assert!(!is_kernel_log("my clocksource is tsc and never was unstable"));
    }
}
