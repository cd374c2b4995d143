//! The text before a message: times, the names of a host and of a file, marks of mails and containers.

/// The times before a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// seconds since boot
    pub seconds: Option<f64>,
    /// wall-clock time, as printed
    pub stamp: Option<String>,
    /// the position at which the kernel's text begins
    pub begin: usize,
}

/// A line of another text has more words before a message that it quotes. A log has the names of a file and a host, and
/// a time zone.
const MAX_WORDS: usize = 2;

/// No frame is longer. The limit keeps long lines cheap.
const MAX_BYTES: usize = 300;

/// Returns the frame in the text before a message, or `None` if the line is not the kernel's.
pub fn of(before: &str) -> Option<Frame> {
    let is_kernel = |word: &str| word.split(['[', ':']).next() == Some("kernel");
    let is_program = |word: &str| word.ends_with("]:") && word.contains('[') && !word.starts_with('[');
    if before.len() > MAX_BYTES || before.split_whitespace().any(|word| is_program(word) && !is_kernel(word)) {
        return None;
    }
    let (mut seconds, mut begin) = (None, 0);
    for (at, _) in before.match_indices('[') {
        let inner = before[at + 1..].split(']').next().unwrap_or("");
        if is_time_or_caller(inner) && before.len() > at + 1 + inner.len() {
            seconds = seconds_since_boot(inner).or(seconds);
            begin = at + inner.len() + 2;
        }
    }
    if let Some((time, end)) = kmsg_time(before) {
        (seconds, begin) = (Some(time), end);
    }
    let stamp = stamp(before);
    begin = begin.max(stamp.map_or(0, |(_, end)| end));
    let mut words = 0;
    for word in before[begin..].split_whitespace() {
        let is_syslog = stamp.is_some_and(|(_, end)| end == begin) && words > 0;
        if is_kernel(word) {
            begin = word.as_ptr().addr() - before.as_ptr().addr() + word.len();
            break;
        } else if word.ends_with(':') && is_syslog {
            return None;
        }
        words += usize::from(!word.ends_with(':') && word.contains(char::is_alphabetic));
    }
    let is_mark = |c: char| c.is_whitespace() || ":>|-\u{feff}".contains(c);
    begin = before.len() - before[begin..].trim_start_matches(is_mark).len();
    let stamp = stamp.map(|(stamp, _)| stamp.to_string());
    (words <= MAX_WORDS).then_some(Frame { seconds, stamp, begin })
}

/// Returns whether brackets contain a time, a difference of times, or a thread or CPU: `[T1]`, `[C11]`, `[+0.000123]`.
fn is_time_or_caller(inner: &str) -> bool {
    let inner = inner.trim();
    let caller = inner.strip_prefix(['T', 'C']).is_some_and(|id| id.parse::<u32>().is_ok());
    caller || seconds_since_boot(inner.trim_start_matches('+')).is_some()
}

/// Returns seconds since boot: `12345.678901`, also with a difference (`dmesg --show-delta`).
fn seconds_since_boot(inner: &str) -> Option<f64> {
    let text = inner.split_whitespace().next()?;
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str, most| (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    (digits(whole, 12) && digits(fraction, 9)).then(|| text.parse().ok())?
}

/// Returns the time of /dev/kmsg's form `6,342,10301420,-;` in seconds, and the position after it.
fn kmsg_time(before: &str) -> Option<(f64, usize)> {
    let (record, _) = before.split_once(';')?;
    let mut fields = record.split(',');
    fields.next()?.parse::<u32>().ok()?;
    Some((fields.nth(1)?.parse::<u64>().ok()? as f64 / 1e6, record.len() + 1))
}

/// Returns the wall-clock time as printed in any language, and the position after it: a word with `10:29`, and the short
/// words of a date before it.
fn stamp(prefix: &str) -> Option<(&str, usize)> {
    let bytes = prefix.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    // `12:` before a year is the number of a line.
    let is_time = |at: &usize| {
        let digits = [0, 1, 3, 4].iter().all(|nth| is_digit(at + nth));
        digits && bytes[at + 2] == b':' && !is_digit(at + 5) && !(*at > 0 && is_digit(at - 1))
    };
    let time = (0..bytes.len()).find(is_time)?;
    let is_edge = |c: char| c.is_whitespace() || "[](){}\":>|".contains(c);
    let word_start = |end: usize| {
        prefix[..end].char_indices().rev().find(|(_, c)| is_edge(*c)).map_or(0, |(at, c)| at + c.len_utf8())
    };
    let mut start = word_start(time);
    // `2026-11-20T10:29` has its date.
    let has_date = start < time;
    loop {
        let end = prefix[..start].trim_end().len();
        let word = &prefix[word_start(end)..end];
        // `Fri`, `2026-11-20`, `Nov`, `déc.`, `12月`
        let is_date = word.contains(char::is_alphanumeric)
            && word.chars().count() <= 5 + 5 * usize::from(word.contains('-'))
            && word.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '-');
        if has_date || !is_date {
            break;
        }
        start = end - word.len();
    }
    let is_bracketed = prefix[..start].ends_with('[');
    let is_end = |c: char| if is_bracketed { c == ']' } else { c != ':' && is_edge(c) };
    let end = prefix[time..].find(is_end).map_or(prefix.len(), |at| time + at);
    let after = end + usize::from(is_bracketed && end < prefix.len());
    Some((prefix[start..end].trim_end_matches(':'), after))
}
