//! Splits a line of a kernel log into its time and its message.

use std::borrow::Cow;

use super::stamp;

/// One line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Line<'a> {
    /// seconds since boot
    pub seconds: Option<f64>,
    /// wall-clock time, as printed
    pub stamp: Option<&'a str>,
    /// the kernel's message
    pub message: &'a str,
}

/// Prefixes are searched in this many bytes, so that long lines stay cheap. No prefix is longer.
const MAX_PREFIX: usize = 200;

/// Returns the line without colors (`dmesg --color=always`).
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    let Some((first, escaped)) = line.split_once('\u{1b}') else { return Cow::Borrowed(line) };
    let mut plain = first.to_string();
    for part in escaped.split('\u{1b}') {
        // ESC [ parameters and a letter
        let rest = part.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match rest {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => plain.push_str(&rest[1..]),
            Some(rest) => plain.push_str(rest),
            None => plain.push_str(part),
        }
    }
    Cow::Owned(plain)
}

/// Removes the prefixes of syslog, journald, `dmesg`, containers and mails.
pub(super) fn split(text: &str) -> Line<'_> {
    let mut line = Line::default();
    let mut rest = peel(text, &mut line);
    if let Some((before, after)) = tagged(rest) {
        // Before `kernel:` there is a host and perhaps a time zone. More words are a sentence.
        let before = peel(before, &mut line);
        if before.split_whitespace().count() <= 2 {
            rest = peel(after, &mut line);
        }
    }
    if line.seconds.is_none() {
        // Other prefixes, from a console or a log shipper.
        let bracketed =
            |(at, _): (usize, _)| in_brackets(&rest[at..]).filter(|(time, _)| stamp::seconds(time).is_some());
        if let Some((time, after)) = start(rest).match_indices('[').find_map(bracketed) {
            line.seconds = stamp::seconds(time);
            rest = peel(after, &mut line);
        }
    }
    line.message = rest;
    line
}

/// Returns the part of the text in which prefixes are searched.
fn start(text: &str) -> &str {
    let end = (0..=MAX_PREFIX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Returns the text before and after syslog's tag for the kernel.
fn tagged(text: &str) -> Option<(&str, &str)> {
    const NAME: &str = "kernel";
    let begin = start(text);
    begin.match_indices(NAME).find_map(|(at, _)| {
        let whole_word = at == 0 || begin[..at].ends_with(char::is_whitespace);
        let after = after_tag(&begin[at + NAME.len()..]).filter(|_| whole_word)?;
        Some((&text[..at], &text[begin.len() - after.len()..]))
    })
}

/// Returns the text after `:` or `[12]:`, or after RFC 5424's ` - - - ` (no process, no id, no data).
fn after_tag(text: &str) -> Option<&str> {
    if let Some(after) = text.strip_prefix(" - - -") {
        return Some(after);
    }
    let numbered = in_brackets(text).filter(|(id, _)| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()));
    let after = numbered.map_or(text, |(_, after)| after).strip_prefix(':')?;
    (after.is_empty() || after.starts_with([' ', '\t'])).then_some(after)
}

/// Removes one prefix after the other, and stores the times among them.
fn peel<'a>(text: &'a str, line: &mut Line<'a>) -> &'a str {
    // Mails quote with `>` and tables with `|`. Some files start with a byte order mark.
    let trim = |text: &'a str| text.trim_start_matches(|c: char| c.is_whitespace() || ">|\u{feff}".contains(c));
    let mut rest = trim(text);
    while let Some(next) = peel_one(rest, line) {
        rest = trim(next);
    }
    rest.trim_end()
}

fn peel_one<'a>(text: &'a str, line: &mut Line<'a>) -> Option<&'a str> {
    match text.as_bytes().first()? {
        b'<' => level(text),
        b'[' => bracket(text, line),
        b'0'..=b'9' => record(text, line).or_else(|| wall_clock(text, line)).or_else(|| version(text)),
        _ => wall_clock(text, line).or_else(|| facility(text)).or_else(|| container(text)),
    }
}

/// `<6>`, the raw form
fn level(text: &str) -> Option<&str> {
    let (level, rest) = text.strip_prefix('<')?.split_once('>')?;
    ((1..=3).contains(&level.len()) && level.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
}

/// Returns the text in the leading brackets, and the text after them.
fn in_brackets(text: &str) -> Option<(&str, &str)> {
    let (inner, _) = start(text.strip_prefix('[')?).split_once(']')?;
    Some((inner.trim(), &text[inner.len() + 2..]))
}

/// A time, the number of a thread or CPU (`CONFIG_PRINTK_CALLER`), or a pod
fn bracket<'a>(text: &'a str, line: &mut Line<'a>) -> Option<&'a str> {
    let (inner, rest) = in_brackets(text)?;
    let caller =
        inner.strip_prefix(['T', 'C']).is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()));
    if let Some(seconds) = stamp::seconds(inner) {
        line.seconds.get_or_insert(seconds);
    } else if stamp::has_time_of_day(inner) {
        line.stamp.get_or_insert(inner);
    } else if !caller && !stamp::is_delta(inner) && !inner.starts_with("pod/") {
        return None;
    }
    Some(rest)
}

/// `6,342,10301420,-;`: /dev/kmsg's level, number, microseconds and flags
fn record<'a>(text: &'a str, line: &mut Line<'a>) -> Option<&'a str> {
    let (head, _) = start(text).split_once(';')?;
    let fields: Vec<&str> = head.split(',').collect();
    let [level, number, micros, _, ..] = fields.as_slice() else { return None };
    if ![level, number, micros].iter().all(|field| !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let seconds = micros.parse::<u64>().ok().map(|micros| micros as f64 / 1e6);
    line.seconds = line.seconds.or(seconds);
    Some(&text[head.len() + 1..])
}

/// `1 `, the version in a line of RFC 5424, after its level
fn version(text: &str) -> Option<&str> {
    text.strip_prefix("1 ").filter(|rest| stamp::leading(start(rest)).is_some())
}

fn wall_clock<'a>(text: &'a str, line: &mut Line<'a>) -> Option<&'a str> {
    let (stamp, _) = stamp::leading(start(text))?;
    line.stamp.get_or_insert(stamp);
    Some(&text[stamp.len()..])
}

/// `kern  :warn  : `, from `dmesg --decode`
fn facility(text: &str) -> Option<&str> {
    const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];
    let (facility, rest) = start(text).split_once(':')?;
    let (level, _) = rest.split_once(':')?;
    let known = facility.trim().bytes().all(|b| b.is_ascii_alphanumeric()) && LEVELS.contains(&level.trim());
    known.then(|| &text[facility.len() + level.len() + 2..])
}

/// `db-1  | `, from docker compose
fn container(text: &str) -> Option<&str> {
    let (name, _) = start(text).split_once('|')?;
    let name_only = name.trim().bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    name_only.then(|| &text[name.len() + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, seconds, stamp
    const LINES: &[(&str, Option<f64>, Option<&str>)] = &[
        ("[    0.000000] tsc: x", Some(0.0), None),
        ("[12345.678901] tsc: x", Some(12345.678901), None),
        ("tsc: x", None, None),
        ("[Fri Nov 20 10:29:43 2026] tsc: x", None, Some("Fri Nov 20 10:29:43 2026")),
        ("[Fr Nov 20 10:29:43 2026] tsc: x", None, Some("Fr Nov 20 10:29:43 2026")),
        ("2026-11-20T10:29:43,123456+00:00 tsc: x", None, Some("2026-11-20T10:29:43,123456+00:00")),
        ("[Nov20 10:29] tsc: x", None, Some("Nov20 10:29")),
        ("[  +0.000003] tsc: x", None, None),
        ("[    1.500000 <    0.000012>] tsc: x", Some(1.5), None),
        ("kern  :warn  : [    1.5] tsc: x", Some(1.5), None),
        ("kern  :info  : tsc: x", None, None),
        ("<6>[    1.5] tsc: x", Some(1.5), None),
        ("<6>tsc: x", None, None),
        ("<6>[69848.656985][T25549] tsc: x", Some(69848.656985), None),
        ("[    1.5][    T0] tsc: x", Some(1.5), None),
        ("[    1.5] [T1] tsc: x", Some(1.5), None),
        ("[    1.5] [   C11] tsc: x", Some(1.5), None),
        ("Nov 20 10:29:43 host kernel: [    1.500000] tsc: x", Some(1.5), Some("Nov 20 10:29:43")),
        ("Nov  2 10:29:43 db-1.example kernel: tsc: x", None, Some("Nov  2 10:29:43")),
        ("Nov 20 10:29:43.123456 host kernel: tsc: x", None, Some("Nov 20 10:29:43.123456")),
        ("2026-11-20T10:29:43+0100 host kernel: tsc: x", None, Some("2026-11-20T10:29:43+0100")),
        (
            "2026-11-20T10:29:43.123456+01:00 host kernel: [ 1.5] tsc: x",
            Some(1.5),
            Some("2026-11-20T10:29:43.123456+01:00"),
        ),
        ("Fri 2026-11-20 10:29:43 UTC host kernel: tsc: x", None, Some("Fri 2026-11-20 10:29:43")),
        ("[ 7823.104882] host kernel: tsc: x", Some(7823.104882), None),
        ("1795170583.123456 host kernel: tsc: x", None, None),
        ("host kernel: tsc: x", None, None),
        ("kernel: [    1.5] tsc: x", Some(1.5), None),
        ("6,342,10301420,-;tsc: x", Some(10.30142), None),
        ("6,342,10301420,-,caller=T1;tsc: x", Some(10.30142), None),
        ("6,1,99999999999999999999,-;tsc: x", None, None),
        ("\u{1b}[32m[    1.500000] \u{1b}[0m\u{1b}[33mtsc: \u{1b}[0mx", Some(1.5), None),
        ("[    1.5] tsc: x\r", Some(1.5), None),
        ("\u{feff}> > [    1.5] tsc: x  ", Some(1.5), None),
        ("vm-1  | [    1.5] tsc: x", Some(1.5), None),
        ("2026-11-20T10:29:43.123456789Z [    1.5] tsc: x", Some(1.5), Some("2026-11-20T10:29:43.123456789Z")),
        ("[pod/db-0/log] [    1.5] tsc: x", Some(1.5), None),
        ("[kernel] : [    1.5] tsc: x", Some(1.5), None),
        ("Nov 20 10:29:43 host kernel[12]: [    1.5] tsc: x", Some(1.5), Some("Nov 20 10:29:43")),
        (
            "<6>1 2026-11-20T10:29:43.123Z host kernel - - - [    1.5] tsc: x",
            Some(1.5),
            Some("2026-11-20T10:29:43.123Z"),
        ),
        ("1 2026-11-20T10:29:43Z host kernel - - - tsc: x", None, Some("2026-11-20T10:29:43Z")),
    ];

    #[test]
    fn every_prefix_is_removed() {
        for (text, seconds, stamp) in LINES {
            let plain = plain(text);
            assert_eq!(split(&plain), Line { seconds: *seconds, stamp: *stamp, message: "tsc: x" }, "{text:?}");
        }
    }

    #[test]
    fn messages_that_look_like_prefixes_are_kept() {
        for message in [
            "[Firmware Bug]: TSC ADJUST: CPU0: -23 force to 0",
            "'hpet' wd_now: eb454b8a wd_last: ea528dea mask: ffffffff",
            "Linux version 6.18.5 (gcc) #1 SMP Fri Nov 20 10:29:43 UTC 2026",
            "CPU0  12 < CPU1 34 (cycles)",
            "it was the kernel: tsc: Detected 2900.000 MHz processor",
            "host app[77]: tsc: x",
        ] {
            assert_eq!(split(message), Line { message, ..Line::default() });
            let stamped = format!("[    0.000000] {message}");
            assert_eq!(split(&stamped), Line { seconds: Some(0.0), message, ..Line::default() });
        }
        for empty in ["", "[    1.5]", "kernel:", "\u{1b}[0m", "<6>", "[", "\u{1b}"] {
            assert_eq!(split(&plain(empty)).message.trim_matches('['), "", "{empty:?}");
        }
    }
}
