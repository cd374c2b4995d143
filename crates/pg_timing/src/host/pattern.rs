//! Finds known messages in a text. A pattern is the message as its program prints it, with holes for what varies.
//!
//! | hole | what it matches |
//! |---|---|
//! | `{name}` | text without white space; or, if a character follows the hole, everything up to that character |
//! | `{#name}` | a whole number, with or without a sign |
//! | `{.name}` | a number with decimals |
//! | `{*name}` | the rest of the line |
//!
//! A space in a pattern matches any white space, also none, because copying from web pages and mails changes it.

/// The text in the holes of a pattern.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Vec<(&'static str, String)>);

/// No name of the kernel or of PostgreSQL is longer. The limit also keeps a search linear.
const MAX_NAME: usize = 64;

impl Fields {
    /// Returns the text in a hole. A number at the end of a line is missing, because it may have lost digits.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, text)| text.as_str())
    }

    /// Returns the number in a hole, or `None` if it is missing or too big.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// Returns the hexadecimal number in a hole, with or without `0x`.
    pub fn hex(&self, name: &str) -> Option<u64> {
        let text = self.text(name)?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        (!digits.starts_with('+')).then(|| u64::from_str_radix(digits, 16).ok())?
    }
}

/// Returns the first match of a pattern in a text: the position of its first byte, its fields, and the text after it. A pattern
/// begins with a literal.
pub fn find<'a>(pattern: &'static str, text: &'a str) -> Option<(usize, Fields, &'a str)> {
    let first = &pattern[..pattern.find([' ', '{']).unwrap_or(pattern.len())];
    text.match_indices(first).find_map(|(start, _)| {
        let (fields, rest) = at_start(pattern, &text[start..])?;
        Some((start, fields, rest))
    })
}

/// Returns the fields and the rest of a text that begins with a pattern.
pub fn at_start<'a>(mut pattern: &'static str, mut text: &'a str) -> Option<(Fields, &'a str)> {
    let mut fields = Fields::default();
    while let Some(next) = pattern.chars().next() {
        if next == ' ' {
            (pattern, text) = (&pattern[1..], text.trim_start());
        } else if next == '{' {
            let (hole, after) = pattern[1..].split_once('}')?;
            let (value, rest) = fill(hole, after, text)?;
            let is_number = hole.starts_with(['#', '.']);
            // A number at the end may have lost digits.
            if !(is_number && rest.is_empty()) {
                fields.0.push((hole.trim_start_matches(['#', '.', '*']), value.to_string()));
            }
            (pattern, text) = (after, rest);
        } else {
            let literal = &pattern[..pattern.find([' ', '{']).unwrap_or(pattern.len())];
            (pattern, text) = (&pattern[literal.len()..], text.strip_prefix(literal)?);
        }
    }
    Some((fields, text))
}

/// Returns the text in a hole at the start of the text, and the text after it.
fn fill<'a>(hole: &str, after: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let end = match hole.as_bytes().first()? {
        b'*' => return Some((text.trim(), "")),
        b'#' => number_length(text, false)?,
        b'.' => number_length(text, true)?,
        _ => name_length(after, text)?,
    };
    Some(text.split_at(end))
}

fn number_length(text: &str, decimals: bool) -> Option<usize> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_part = |c: char| c.is_ascii_digit() || decimals && c == '.';
    let rest = digits.trim_start_matches(is_part);
    digits.starts_with(|c: char| c.is_ascii_digit()).then_some(text.len() - rest.len())
}

/// A name ends before the literal that follows the hole, or at white space without the punctuation before it.
fn name_length(after: &str, text: &str) -> Option<usize> {
    let literal = &after[..after.find([' ', '{']).unwrap_or(after.len())];
    let quoted = literal.starts_with(['\'', '"']);
    let window = text.char_indices().nth(MAX_NAME).map_or(text, |(end, _)| &text[..end]);
    // JSON and HTML may follow.
    let is_end = |c: char| c.is_whitespace() || "\"<>{}".contains(c);
    let length = match literal {
        "" => text.split(is_end).next()?.trim_end_matches(['.', ',', ';', ':', '"']).len(),
        _ => window.find(literal)?,
    };
    let is_name = |c: char| c.is_ascii_graphic() && c != '\'' || quoted && c == ' ';
    ((1..=MAX_NAME).contains(&length) && text[..length].chars().all(is_name)).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pattern: &'static str, text: &str) -> Option<Vec<(&'static str, String)>> {
        find(pattern, text).map(|(_, fields, _)| fields.0)
    }

    #[test]
    fn holes_take_what_varies() {
        let two = |a: (&'static str, &str), b: (&'static str, &str)| Some(vec![(a.0, a.1.into()), (b.0, b.1.into())]);
        let cpu = "on CPU{#cpu}: Marking clocksource '{source}' as";
        assert_eq!(
            fields(cpu, "x on  CPU2:Marking clocksource 'tsc-early'\tas y"),
            two(("cpu", "2"), ("source", "tsc-early"))
        );
        assert_eq!(
            fields("wd-{name}-wd took {#ns}ns", "wd-tsc-early-wd took -5ns"),
            two(("name", "tsc-early"), ("ns", "-5"))
        );
        assert_eq!(
            fields("\"{name}\" at {.mhz} MHz", "\"ARM MPCore\" at 24.00MHz"),
            two(("name", "ARM MPCore"), ("mhz", "24.00"))
        );
        assert_eq!(fields("due to {*why}", "due to a b "), Some(vec![("why", "a b".into())]));
        assert_eq!(fields("to clocksource {name}", "to clocksource hpet."), Some(vec![("name", "hpet".into())]));
    }

    #[test]
    fn damaged_values_are_missing() {
        assert_eq!(fields("delta = {#ns} ns", "delta = -625"), None);
        assert_eq!(fields("quality {#q}", "quality 90"), Some(vec![]), "may be 900");
        assert_eq!(fields("clocksource {name}", "clocksource "), None);
        assert_eq!(fields("clocksource {name}", "clocksource \u{1}x"), None);
        assert_eq!(fields("'{name}' is", &format!("'{}' is", "x".repeat(65))), None);
        let (_, found, _) = find("at {#n} of {mask}", "at 99999999999999999999 of 0xff").unwrap();
        assert_eq!((found.number::<u64>("n"), found.hex("mask")), (None, Some(255)));
    }
}
