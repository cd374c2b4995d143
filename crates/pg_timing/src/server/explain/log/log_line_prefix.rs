//! Reads log_line_prefix: which process wrote a line of a text log.
//!
//! The prefix can have any form, and several numbers. Within one entry, `%p` is the same in all lines, and `%l` increases by
//! one. So a plan and its context show which number is the process. Without a context, it matters to no nested plan.

#[cfg(test)]
mod tests;

use memchr::memmem;

/// Where the prefix has the process. The lines of a log show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessPlace(Known);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Known {
    /// No entry with a context was read.
    #[default]
    Nothing,
    At(Place),
    /// No number or several numbers can be the process.
    Uncertain,
}

/// The place of a number in a prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// after the opening bracket with this number
    Bracket(usize),
    /// the word with this number between spaces, and the number in it
    Word { word: usize, number: usize },
}

/// A number that can be a process.
#[derive(Clone, Copy, Debug)]
struct Number<'a> {
    place: Place,
    digits: &'a str,
    /// `3` in `[3-1]`: pgBadger recommended `[%l-1]` for a long time
    is_before_one: bool,
}

impl ProcessPlace {
    /// Returns the session identifier (`%c`) or the process in a line's prefix, if it is certain enough.
    pub fn process<'a>(&self, line: &'a str) -> Option<&'a str> {
        let prefix = before_message(line)?;
        if let Some(decisive) = session(prefix).or_else(|| named(prefix)) {
            return Some(decisive);
        }
        match self.0 {
            Known::At(place) => numbers(prefix).find(|number| number.place == place).map(|number| number.digits),
            Known::Nothing => only(numbers(prefix)).map(|number| number.digits),
            Known::Uncertain => None,
        }
    }

    /// Returns whether a line with a context can belong to the entry with this first line. Both lines then show where the process is.
    pub fn is_same(&mut self, first: &str, context: &str) -> bool {
        let (Some(first), Some(context)) = (before_message(first), before_message(context)) else { return true };
        for decisive in [session, named] {
            match (decisive(first), decisive(context)) {
                (None, None) => {}
                (first, context) => return first == context,
            }
        }
        let in_context = |place| numbers(context).find(|number| number.place == place).map(|number| number.digits);
        if let Known::At(place) = self.0
            && let Some(process) = numbers(first).find(|number| number.place == place)
        {
            return in_context(place) == Some(process.digits);
        }
        let is_next = |number: &Number| {
            let [before, after] =
                [Some(number.digits), in_context(number.place)].map(|digits| digits?.parse::<u64>().ok());
            before.zip(after).is_some_and(|(before, after)| after == before + 1)
        };
        let is_equal = |number: &Number| in_context(number.place) == Some(number.digits);
        if !numbers(first).all(|number| is_equal(&number) || is_next(&number)) {
            return false;
        }
        let process = only(numbers(first).filter(is_equal));
        self.0 = process.map_or(Known::Uncertain, |number| Known::At(number.place));
        true
    }
}

/// The names in a prefix have at most 63 bytes each. A limit keeps the time for each entry short.
const MAX_PREFIX_BYTES: usize = 1000;

/// Returns what the server wrote before the severity and the message.
fn before_message(line: &str) -> Option<&str> {
    let start = &line.as_bytes()[..line.len().min(MAX_PREFIX_BYTES)];
    let end = memmem::find(start, b":  ").or_else(|| memmem::find(start, b"duration: "))?;
    Some(&line[..end])
}

/// Returns the number that is the process, if only one can be. Most prefixes have `[%p]`, and other numbers are parts of names.
fn only<'a>(numbers: impl Iterator<Item = Number<'a>>) -> Option<Number<'a>> {
    let likelihood = |number: &Number| match number.place {
        Place::Word { .. } => 0,
        Place::Bracket(_) if number.is_before_one => 1,
        Place::Bracket(_) => 2,
    };
    let (mut most, mut process) = (None, None);
    for number in numbers {
        let own = Some(likelihood(&number));
        if own > most {
            (most, process) = (own, Some(number));
        } else if own == most {
            process = None;
        }
    }
    process
}

/// Returns the session identifier `%c`: when the session began, and its process, in hexadecimal digits.
fn session(prefix: &str) -> Option<&str> {
    /// seconds since 1970, until the year 2106
    const TIME_DIGITS: usize = 8;
    let bytes = prefix.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    let is_hexadecimal = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
    memchr::memchr_iter(b'.', bytes).find_map(|dot| {
        let begin = dot.checked_sub(TIME_DIGITS)?;
        let end = dot + 1 + bytes[dot + 1..].iter().take_while(|byte| is_part(byte)).count();
        let is_session = is_hexadecimal(&bytes[begin..dot])
            && is_hexadecimal(&bytes[dot + 1..end])
            && !bytes[..begin].last().is_some_and(is_part);
        is_session.then(|| &prefix[begin..end])
    })
}

/// Returns the number after `pid=`, `PID:` or `pid `.
fn named(prefix: &str) -> Option<&str> {
    const NAME: &[u8] = b"pid";
    let bytes = prefix.as_bytes();
    let is_name = |at: &usize| {
        bytes[*at..].get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
            && !at.checked_sub(1).is_some_and(|at| is_word(bytes[at]))
    };
    let at = memchr::memchr2_iter(b'p', b'P', bytes).find(is_name)?;
    let rest = &prefix[at + NAME.len()..];
    let digits = rest.trim_start_matches([' ', '=', ':', '[']);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    (length > 0 && digits.len() < rest.len()).then(|| &digits[..length])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Digits of the largest process number.
const MAX_DIGITS: usize = 7;

/// Returns the numbers that can be a process. Not the parts of times, addresses (`%h`), ports (`%r`), virtual transactions
/// (`%v`) and names. Not `00000` (`%e`), 0 (`%x`) and 1, which is never a session's process.
fn numbers(prefix: &str) -> impl Iterator<Item = Number<'_>> {
    let bytes = prefix.as_bytes();
    // the number of this number in its word
    let (mut at, mut number) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let begin = at + bytes[at..].iter().position(u8::is_ascii_digit)?;
            let end = begin + bytes[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_first = bytes[at..begin].contains(&b' ');
            let is_whole = ![begin.checked_sub(1), Some(end)]
                .into_iter()
                .any(|at| at.and_then(|at| bytes.get(at)).is_some_and(|byte| is_word(*byte)));
            number = if is_first { 0 } else { number } + usize::from(is_whole);
            at = end;
            if is_whole && can_be_process(bytes, begin, end) {
                let before = &bytes[..begin];
                let place = match before.ends_with(b"[") {
                    true => Place::Bracket(brackets(before)),
                    false => Place::Word { word: memchr::memchr_iter(b' ', before).count(), number },
                };
                let is_before_one = bytes[end..].starts_with(b"-1]");
                return Some(Number { place, digits: &prefix[begin..end], is_before_one });
            }
        }
    })
}

/// Returns how many brackets begin in a text. Only some sessions have `[local]` and `[unknown]`.
fn brackets(bytes: &[u8]) -> usize {
    let is_name = |at: usize| [&b"[local]"[..], b"[unknown]"].iter().any(|name| bytes[at..].starts_with(name));
    memchr::memchr_iter(b'[', bytes).filter(|at| !is_name(*at)).count()
}

/// Returns whether a number between two places can be a process.
fn can_be_process(bytes: &[u8], begin: usize, end: usize) -> bool {
    let before = |distance: usize| begin.checked_sub(distance).map(|at| bytes[at]);
    let after = |distance: usize| bytes.get(end + distance).copied();
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    let is_part = match before(1) {
        Some(b'.' | b':' | b'/') => is_digit(before(2)),
        // a time zone, a negative number, and the second part of a name or of a date
        Some(b'+') => true,
        Some(b'-') => !is_digit(before(2)) || is_date(bytes, begin, end),
        // a port
        Some(b'(') => before(2).is_some_and(is_word),
        _ => false,
    };
    let is_followed = match after(0) {
        Some(b'.' | b':' | b'/') => is_digit(after(1)),
        Some(b'-') => is_date(bytes, begin, end),
        _ => false,
    };
    end - begin <= MAX_DIGITS && bytes[begin] != b'0' && bytes[begin..end] != *b"1" && !is_part && !is_followed
}

/// Returns whether a number is a part of a date like `2026-11-25`.
fn is_date(bytes: &[u8], begin: usize, end: usize) -> bool {
    const PATTERN: &[u8] = b"0000-00-00";
    /// where the year, the month and the day begin and end
    const PARTS: [(usize, usize); 3] = [(0, 4), (5, 7), (8, 10)];
    PARTS.iter().filter(|part| part.1 - part.0 == end - begin).any(|part| {
        let date = begin.checked_sub(part.0).and_then(|at| bytes.get(at..at + PATTERN.len()));
        date.is_some_and(|date| {
            PATTERN.iter().zip(date).all(|(expected, byte)| match expected {
                b'0' => byte.is_ascii_digit(),
                other => other == byte,
            })
        })
    })
}
