//! Statements without their constants, so that executions of the same statement are counted together.

use crate::server::explain::{Token, TokenKind, Tokens};

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
    let mut tokens = Tokens::of(statement).peekable();
    let mut end = 0;
    while let Some(token) = tokens.next() {
        if token.start < end {
            // a part of a number, or the string after its prefix
            end = end.max(token.end());
            continue;
        }
        text.space |= token.start > end;
        end = token.end();
        let rest = &statement[token.start..];
        match token.kind {
            TokenKind::Text => text.constant(),
            TokenKind::Word | TokenKind::Symbol if number_length(rest) > 0 => {
                end = token.start + number_length(rest);
                text.constant();
            }
            TokenKind::Word if has_prefixed_string(token, tokens.peek()) => {
                end = tokens.peek().map_or(end, Token::end);
                text.constant();
            }
            TokenKind::Symbol => text.sign(token.text),
            TokenKind::Word | TokenKind::QuotedName => text.push(token.text),
        }
    }
    let end = text.out.trim_end_matches([';', ' ']).len();
    text.out.truncate(end);
    text.out
}

/// Returns whether a word is the prefix of the string after it, as in `B'01'`.
fn has_prefixed_string(word: Token, next: Option<&Token>) -> bool {
    ["B", "X", "N"].iter().any(|prefix| word.is(prefix))
        && next.is_some_and(|next| next.kind == TokenKind::Text && next.start == word.end())
}

/// Returns at most `bytes` bytes from the beginning of a text.
pub fn beginning(text: &str, bytes: usize) -> &str {
    match text.len() > bytes {
        true => &text[..(0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)],
        false => text,
    }
}

/// The normalized text so far.
struct Text {
    out: String,
    /// white space or a comment precedes the next word
    space: bool,
}

impl Text {
    fn push(&mut self, text: &str) {
        if std::mem::take(&mut self.space) && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(text);
    }

    fn sign(&mut self, sign: &str) {
        // No space stands before these signs, and none after an opening bracket, so that the layout does not matter.
        if matches!(sign, "," | ")" | ";" | "]") || self.out.ends_with(['(', '[']) {
            self.space = false;
        }
        self.push(sign);
        if sign == "," {
            self.space = true;
        }
        if sign == ")" {
            self.merge_rows();
        }
    }

    fn constant(&mut self) {
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
                return;
            }
        }
        self.push(CONSTANT);
    }

    /// Removes the sign of a negative constant, as in `= -1`. After a word, a minus can be an operator.
    fn remove_sign(&mut self) {
        let Some(before) = self.out.strip_suffix('-').map(str::trim_end) else { return };
        if before.ends_with([',', '(', '[', '=', '<', '>', '+', '*', '/', '-']) {
            self.space = !before.ends_with(['(', '[']);
            self.out.truncate(before.len());
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

/// Returns the length of the number at the beginning of a text: `1`, `.5`, `1.5e-3`, `0xff` or `1_000`. It is 0 if there is
/// none.
fn number_length(text: &str) -> usize {
    let digits = text.strip_prefix('.').unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    let mut previous = ' ';
    let mut is_inside = |c: char| {
        let exponent = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E') && !text.starts_with("0x");
        previous = c;
        c.is_ascii_alphanumeric() || c == '_' || c == '.' || exponent
    };
    text.find(|c: char| !is_inside(c)).unwrap_or(text.len())
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
    fn a_sign_is_a_part_of_its_constant() {
        for (statement, expected) in [
            ("select a, -1, (-3), a[-1], f(- 2)", "select a, ?, (?), a[?], f(?)"),
            ("a = -1 and b <-2 and d = 2 - -1", "a = ? and b < ? and d = ? - ?"),
            // An operator between two values, or a sign that only the grammar shows.
            ("a -1, f(x) - 1, 1 - 1, a between -1 and 5", "a -?, f(x) - ?, ? - ?, a between -? and ?"),
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
