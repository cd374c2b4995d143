//! Statements without their constants, so that executions of the same statement are counted together.

/// The sign for a constant.
const CONSTANT: &str = "?";
/// Further constants of a list.
const MORE: &str = ", ...";

/// A longer statement is cut: it identifies itself by its beginning.
const MAX_BYTES: usize = 100_000;

/// A longer row of constants is not compared with the row before it, so that the time stays linear.
const MAX_ROW_BYTES: usize = 1000;

/// Returns the statement with `?` instead of constants, one space between words, and without comments. A list of constants
/// becomes `?, ...`, and a list of such rows one row.
pub fn normalized(statement: &str) -> String {
    let statement = beginning(statement, MAX_BYTES);
    let mut text = Text { out: String::with_capacity(statement.len()), space: false };
    let bytes = statement.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &statement[at..];
        at += match bytes[at] {
            b if b.is_ascii_whitespace() => text.blank(1),
            b'-' if rest.starts_with("--") => text.blank(rest.find('\n').unwrap_or(rest.len())),
            b'/' if rest.starts_with("/*") => text.blank(comment_length(rest)),
            b'\'' => text.constant(string_length(rest, false)),
            b'"' => text.word(&rest[..quoted_length(rest, '"')]),
            b'$' => match dollar_tag(rest) {
                Some(tag) => text.constant(rest[tag.len()..].find(tag).map_or(rest.len(), |end| end + 2 * tag.len())),
                None => text.word(&rest[..1 + word_length(&rest[1..])]),
            },
            b'0'..=b'9' => text.constant(number_length(rest)),
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => text.constant(number_length(rest)),
            b if b.is_ascii_alphabetic() || b == b'_' || !b.is_ascii() => {
                let word = &rest[..word_length(rest)];
                let is_prefix = matches!(word, "E" | "e" | "B" | "b" | "X" | "x" | "N" | "n");
                match is_prefix && rest[word.len()..].starts_with('\'') {
                    true => {
                        text.constant(word.len() + string_length(&rest[word.len()..], word.eq_ignore_ascii_case("e")))
                    }
                    false => text.word(word),
                }
            }
            _ => text.sign(rest.chars().next().unwrap_or(' ')),
        };
    }
    let end = text.out.trim_end_matches([';', ' ']).len();
    text.out.truncate(end);
    text.out
}

/// Returns at most `bytes` bytes from the beginning of a text.
pub fn beginning(text: &str, bytes: usize) -> &str {
    match text.len() > bytes {
        true => &text[..(0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)],
        false => text,
    }
}

/// The normalized text so far. Each function returns the length that it has used of the statement.
struct Text {
    out: String,
    /// white space or a comment precedes the next word
    space: bool,
}

impl Text {
    fn blank(&mut self, length: usize) -> usize {
        self.space = true;
        length
    }

    fn push(&mut self, text: &str) {
        if std::mem::take(&mut self.space) && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(text);
    }

    fn word(&mut self, word: &str) -> usize {
        self.push(word);
        word.len()
    }

    fn sign(&mut self, sign: char) -> usize {
        // No space stands before these signs, and none after an opening bracket, so that the layout does not matter.
        if matches!(sign, ',' | ')' | ';' | ']') || self.out.ends_with(['(', '[']) {
            self.space = false;
        }
        self.push(sign.encode_utf8(&mut [0; 4]));
        if sign == ',' {
            self.space = true;
        }
        if sign == ')' {
            self.merge_rows();
        }
        sign.len_utf8()
    }

    fn constant(&mut self, length: usize) -> usize {
        if self.out.ends_with(['(', '[']) {
            self.space = false;
        }
        self.remove_sign();
        // A list of constants: `?, ` or `?, ...` precedes, and it stands directly in brackets.
        let list = self.out.strip_suffix(',').filter(|list| list.ends_with(CONSTANT) || list.ends_with(MORE));
        if let Some(list) = list {
            let before = list.strip_suffix(MORE).unwrap_or(list);
            let in_brackets = before.strip_suffix(CONSTANT).is_some_and(|before| before.ends_with(['(', '[']));
            if in_brackets {
                let end = before.len();
                self.out.truncate(end);
                self.out.push_str(MORE);
                self.space = false;
                return length;
            }
        }
        self.push(CONSTANT);
        length
    }

    /// Removes the sign of a negative constant: an operator, a comma or a bracket stands before it.
    fn remove_sign(&mut self) {
        let Some(before) = self.out.strip_suffix('-') else { return };
        let before = before.trim_end();
        if before.is_empty() || before.ends_with(['=', '<', '>', ',', '(', '[', '+', '*', '/']) {
            let had_space = self.out.ends_with(" -");
            self.out.truncate(before.len());
            self.space = had_space;
        }
    }

    /// Removes the last row of constants if the row before it is equal, as in `values (1, 2), (3, 4)`.
    fn merge_rows(&mut self) {
        let near = self.out.len().saturating_sub(MAX_ROW_BYTES);
        let Some(open) = memchr::memrchr(b'(', &self.out.as_bytes()[near..]).map(|at| near + at) else { return };
        let row = &self.out[open..];
        let is_constant = row.contains(CONSTANT) && row.bytes().all(|b| b"()?,. ".contains(&b));
        let before = self.out[..open].strip_suffix(", ");
        if is_constant && before.is_some_and(|before| before.ends_with(row)) {
            self.out.truncate(open - ", ".len());
        }
    }
}

/// Returns the length of a comment. Comments can be nested.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" if depth == 1 => return at + 2,
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of a string constant. `escapes`: a backslash escapes the next character.
fn string_length(text: &str, escapes: bool) -> usize {
    if !escapes {
        return quoted_length(text, '\'');
    }
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => _ = characters.next(),
            '\'' if characters.next_if(|(_, next)| *next == '\'').is_none() => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a text in quotation marks. A doubled mark is a part of it.
fn quoted_length(text: &str, mark: char) -> usize {
    let mut at = 1;
    while let Some(next) = text[at..].find(mark) {
        at += next + 1;
        if !text[at..].starts_with(mark) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Returns the opening tag of a dollar-quoted constant: `$$` or `$tag$`.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')?;
    let name = &text[1..=end];
    let is_name =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| &text[..end + 2])
}

/// Returns the length of a word. To the server, each character beyond ASCII is a letter.
fn word_length(text: &str) -> usize {
    text.find(|c: char| c.is_ascii() && !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(text.len())
}

/// Returns the length of a number: `1`, `1.5e-3`, `0xff` or `1_000`.
fn number_length(text: &str) -> usize {
    let mut previous = ' ';
    text.find(|c: char| {
        let exponent = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E') && !text.starts_with("0x");
        previous = c;
        !(c.is_ascii_alphanumeric() || c == '_' || c == '.' || exponent)
    })
    .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constants_become_question_marks() {
        for (statement, expected) in [
            ("SELECT abalance FROM t WHERE aid = 42;", "SELECT abalance FROM t WHERE aid = ?"),
            ("select  'it''s', E'a\\'b',\n\t$$x$$, $a$ $$ $a$, 1.5e-3, .5, 0xff", "select ?, ?, ?, ?, ?, ?, ?"),
            ("select a -- one\n, /* two /* three */ */ b", "select a, b"),
            ("update t set a = a + -7 where b = - 7 and c = d - 7", "update t set a = a + ? where b = ? and c = d - ?"),
            (
                "select * from t where a in (1,2, 3) and b = any ('{1}')",
                "select * from t where a in (?, ...) and b = any (?)",
            ),
            ("insert into t values (1, 'a'), (2, 'b'),(3,'c')", "insert into t values (?, ...)"),
            ("insert into t values (1, a), (2, a)", "insert into t values (?, a), (?, a)"),
            ("select $1, \"a 1\", t1.c2 from t1", "select $1, \"a 1\", t1.c2 from t1"),
            ("select array[1,2], f( 1 , x )", "select array[?, ...], f(?, x)"),
            ("select 'never ends", "select ?"),
            ("select \u{2026} from \u{201c}a\u{201d}", "select \u{2026} from \u{201c}a\u{201d}"),
            ("", ""),
        ] {
            assert_eq!(normalized(statement), expected);
        }
    }

    #[test]
    fn a_beginning_has_whole_characters() {
        assert_eq!([1, 2, 3, 9].map(|bytes| beginning("a\u{e4}b", bytes)), ["a", "a", "a\u{e4}", "a\u{e4}b"]);
    }

    proptest! {
        #[test]
        fn any_text_is_normalized_once(text in "[a-z1'\"$/*, ()\\[\\]=;.\n\u{e4}\u{2026}-]{0,60}") {
            let once = normalized(&text);
            prop_assert!(once.len() <= 3 * text.len() + 8);
        }

        #[test]
        fn the_values_of_constants_do_not_matter(a in any::<u32>(), b in "[a-z']{0,9}") {
            let text = b.replace('\'', "''");
            let statement = format!("select {a}, '{text}' from t where x > -{a}");
            prop_assert_eq!(normalized(&statement), "select ?, ? from t where x > ?");
        }
    }
}
