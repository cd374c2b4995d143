//! Splits SQL into tokens and statements, as the server's scanner does:
//! <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>
//!
//! Strings are read as with `standard_conforming_strings = on`. If that is off, a statement can be split at a wrong place.
//! Then the server reports a syntax error: each part is sent as one statement, and the server refuses two in one.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// a keyword, a name or a parameter like `$1`
    Word,
    Number,
    /// a name in double quotes
    QuotedName,
    Text,
    /// any other character
    Symbol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// bytes before the token
    pub start: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether this is the keyword.
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    /// Returns the number of a parameter like `$1`.
    pub fn parameter(&self) -> Option<usize> {
        let number = self.text.strip_prefix('$').filter(|_| self.kind == Kind::Word)?;
        Some(number.parse().unwrap_or(usize::MAX))
    }

    /// Returns the name that the token stands for: the server folds names without quotes.
    pub fn name(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_ascii_lowercase()),
            Kind::QuotedName => {
                let inner = self.text[1..].strip_suffix('"').unwrap_or(&self.text[1..]);
                Some(inner.replace("\"\"", "\""))
            }
            _ => None,
        }
    }
}

/// The tokens of a text, without white space and comments.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn of(text: &'a str) -> Tokens<'a> {
        Tokens { text, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.at += blank_length(&self.text[self.at..]);
        let rest = &self.text[self.at..];
        let (kind, length) = token(rest)?;
        let token = Token { kind, text: &rest[..length], start: self.at };
        self.at = token.end();
        Some(token)
    }
}

/// Returns the statements of a text without their semicolons, and without those that are empty. Comments stay.
pub fn statements(text: &str) -> Vec<&str> {
    let semicolons = Tokens::of(text).filter(|token| token.is_symbol(";")).map(|token| token.start);
    let mut start = 0;
    let mut part = |end| &text[std::mem::replace(&mut start, end + 1)..end];
    let parts: Vec<&str> = semicolons.chain([text.len()]).map(&mut part).collect();
    let has_tokens = |part: &&str| Tokens::of(part).next().is_some();
    parts.into_iter().filter(has_tokens).map(|part| part.trim_matches(is_space)).collect()
}

/// The server's white space. It takes other characters, like a no-break space, as a part of a name.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// Returns the length of white space and comments in bytes.
fn blank_length(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += match rest.chars().next() {
            Some(c) if is_space(c) => 1,
            Some('-') if rest.starts_with("--") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            Some('/') if rest.starts_with("/*") => comment_length(rest),
            _ => return at,
        };
    }
}

/// Returns the length of a comment in bytes. Comments nest.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']) {
        at += next + 2;
        match text.get(at - 2..at) {
            Some("/*") => depth += 1,
            Some("*/") if depth == 1 => return at,
            Some("*/") => depth -= 1,
            _ => at -= 1,
        }
    }
    text.len()
}

/// Returns the kind and the length of the first token.
fn token(text: &str) -> Option<(Kind, usize)> {
    let c = text.chars().next()?;
    Some(match c {
        '\'' => (Kind::Text, quoted_length(text, '\'', false)),
        '"' => (Kind::QuotedName, quoted_length(text, '"', false)),
        // B'01', E'a\n', N'a' and X'1f'
        'b' | 'B' | 'e' | 'E' | 'n' | 'N' | 'x' | 'X' if text[1..].starts_with('\'') => {
            (Kind::Text, 1 + quoted_length(&text[1..], '\'', c.eq_ignore_ascii_case(&'e')))
        }
        '$' if text[1..].starts_with(|c: char| c.is_ascii_digit()) => (Kind::Word, 1 + number_length(&text[1..])),
        '$' => dollar_quoted_length(text).map_or((Kind::Symbol, 1), |length| (Kind::Text, length)),
        _ if text.strip_prefix('.').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit()) => {
            (Kind::Number, number_length(text))
        }
        // A dollar sign can be a part of a name.
        _ if starts_word(c) => (Kind::Word, text.find(|c| !starts_word(c) && c != '$').unwrap_or(text.len())),
        _ => (Kind::Symbol, c.len_utf8()),
    })
}

/// Returns the length of a number: `1`, `.5`, `1.5e-3`, `0xff` or `1_000`.
fn number_length(text: &str) -> usize {
    let mut previous = ' ';
    let mut is_inside = |c: char| {
        let exponent = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E') && !text.starts_with("0x");
        previous = c;
        c.is_ascii_alphanumeric() || c == '_' || c == '.' || exponent
    };
    text.find(|c: char| !is_inside(c)).unwrap_or(text.len())
}

/// Returns the length of a quoted text. A doubled quote is a part of it.
fn quoted_length(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && has_escapes {
            characters.next();
        } else if c == quote && characters.next_if(|&(_, next)| next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// Returns `None` if no dollar quote begins here.
fn dollar_quoted_length(text: &str) -> Option<usize> {
    let end = text[1..].find('$')?;
    let tag = &text[..end + 2];
    let is_tag = tag[1..=end].chars().all(starts_word) && !tag[1..].starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_comments() {
        for (text, split) in [
            ("SELECT 1", &["SELECT 1"][..]),
            (" SELECT 1 ; \n", &["SELECT 1"]),
            ("SELECT 1; -- done;", &["SELECT 1"]),
            ("a;b;", &["a", "b"]),
            ("-- about;\na; /* ; /* ; */ ; */ b", &["-- about;\na", "/* ; /* ; */ ; */ b"]),
            ("SELECT ';', \";\", '''', 'a'';', \"\"\";\";b", &["SELECT ';', \";\", '''', 'a'';', \"\"\";\"", "b"]),
            ("$$;$$, $a$;$$;$a$, $é$;$é$;b", &["$$;$$, $a$;$$;$a$, $é$;$é$", "b"]),
            ("a$1;b$c;$d", &["a$1", "b$c", "$d"]),
            // Only E'..' has escapes.
            ("'\\';b", &["'\\'", "b"]),
            ("E'\\';b", &["E'\\';b"]),
            ("e'\\'';b", &["e'\\''", "b"]),
            ("date'\\';b", &["date'\\'", "b"]),
            ("E'a' '\\';b", &["E'a' '\\'", "b"]),
            ("U&'\\';b", &["U&'\\'", "b"]),
            // Texts without an end
            ("'a;b", &["'a;b"]),
            ("$a$;b", &["$a$;b"]),
            ("a /* ;b", &["a /* ;b"]),
            ("", &[]),
            (" ; -- nothing\n;", &[]),
            ("a -- x\r;b", &["a -- x", "b"]),
        ] {
            assert_eq!(statements(text), split, "{text}");
        }
    }

    #[test]
    fn parameters_and_names_are_found() {
        let kinds = |text: &str| Tokens::of(text).map(|token| (token.kind, token.text.to_string())).collect::<Vec<_>>();
        assert_eq!(kinds("$12+")[..], [(Kind::Word, "$12".into()), (Kind::Symbol, "+".into())]);
        let names: Vec<_> = Tokens::of("Größe \"A\"\"b\" 'c'").map(|token| token.name()).collect();
        assert_eq!(names, [Some("größe".into()), Some("A\"b".into()), None]);
    }

    proptest! {
        #[test]
        fn any_text_is_split(text in "[-/*$'\"\\\\;a1EeU& \n\rü]{0,40}") {
            for statement in statements(&text) {
                prop_assert_eq!(statements(statement), [statement]);
            }
        }
    }
}
