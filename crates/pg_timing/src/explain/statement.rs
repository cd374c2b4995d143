//! The statement that is to be explained, as text.

use crate::postgres::Error;

/// One statement, without the semicolon and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement(String);

/// What keeps a text from being one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOne {
    Empty,
    Several,
}

impl From<NotOne> for Error {
    fn from(not_one: NotOne) -> Error {
        match not_one {
            NotOne::Empty => Error::new("there is no statement", "give one with -c, -f or on stdin"),
            NotOne::Several => Error::new(
                "there are several statements",
                "give one; what has to come before it can be set with PGOPTIONS",
            ),
        }
    }
}

impl Statement {
    /// Takes a text with comments and one semicolon at most.
    pub fn new(text: &str) -> Result<Statement, NotOne> {
        let scan = Scan::of(text);
        let end = scan.semicolon.unwrap_or(text.len());
        let statement = text[..end].trim();
        match (scan.first, scan.after) {
            (None, _) => Err(NotOne::Empty),
            (Some(_), true) => Err(NotOne::Several),
            (Some(first), false) if first >= end => Err(NotOne::Empty),
            (Some(_), false) => Ok(Statement(statement.to_string())),
        }
    }

    pub fn explained(&self, options: &str) -> String {
        format!("EXPLAIN ({options}) {}", self.0)
    }

    /// Produces all rows and returns none. The line ends keep a comment from swallowing what follows.
    pub fn without_output(&self) -> Statement {
        Statement(format!("SELECT * FROM (\n{}\n) AS pg_timing OFFSET {}", self.0, i64::MAX))
    }

    pub fn prepared_as(&self, name: &str) -> String {
        format!("PREPARE {name} AS {}", self.0)
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Where a text has what matters here. Quotes, dollar quotes and comments may hold semicolons:
/// <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>
#[derive(Debug, Default, PartialEq, Eq)]
struct Scan {
    /// the first character that is neither blank nor comment
    first: Option<usize>,
    /// the first semicolon
    semicolon: Option<usize>,
    /// something that is neither blank, comment nor semicolon comes after it
    after: bool,
}

impl Scan {
    fn of(text: &str) -> Scan {
        let mut scan = Scan::default();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = match c {
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => comment(rest),
                _ if c.is_whitespace() => c.len_utf8(),
                ';' => {
                    scan.semicolon.get_or_insert(at);
                    1
                }
                _ => {
                    scan.first.get_or_insert(at);
                    scan.after |= scan.semicolon.is_some();
                    token(rest, text[..at].chars().next_back())
                }
            };
            at += length;
        }
        scan
    }
}

/// Comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// A quoted text, or else one character.
fn token(text: &str, before: Option<char>) -> usize {
    let c = text.chars().next().unwrap_or_default();
    match c {
        // E'..' knows backslashes; a quote within is written twice, which is two texts side by side.
        '\'' => quoted(text, '\'', matches!(before, Some('e' | 'E'))),
        '"' => quoted(text, '"', false),
        '$' if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') => dollar_quoted(text),
        _ => c.len_utf8(),
    }
}

fn quoted(text: &str, quote: char, backslashes: bool) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == quote {
            return at + 1;
        }
        if c == '\\' && backslashes {
            characters.next();
        }
    }
    text.len()
}

fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$') else { return 1 };
    let tag = &text[..end + 2];
    if !tag[1..=end].chars().all(|c| c.is_alphanumeric() || c == '_')
        || tag[1..].starts_with(|c: char| c.is_ascii_digit())
    {
        return 1;
    }
    text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_statement() {
        for (text, statement) in [
            ("SELECT 1", "SELECT 1"),
            (" SELECT 1 ; \n", "SELECT 1"),
            ("SELECT 1; -- done;", "SELECT 1"),
            (
                "-- about\nSELECT ';' /* ; /* ; */ ; */, \";\", $$;$$, $a$;$$;$a$, E'\\';', '''';",
                "-- about\nSELECT ';' /* ; /* ; */ ; */, \";\", $$;$$, $a$;$$;$a$, E'\\';', ''''",
            ),
            ("SELECT '\\'; -- x", "SELECT '\\'"),
            ("SELECT $1, a$b$c FROM t;;", "SELECT $1, a$b$c FROM t"),
        ] {
            assert_eq!(Statement::new(text).unwrap().text(), statement);
        }
        for text in ["", ";", " -- nothing\n", "/* ; */", " ; ;"] {
            assert_eq!(Statement::new(text), Err(NotOne::Empty), "{text}");
        }
        for text in ["SELECT 1; SELECT 2", "a;b;", "SELECT 1; /* */ x"] {
            assert_eq!(Statement::new(text), Err(NotOne::Several), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_to_its_end(text in "[-/*$'\"\\\\;a1E \nü]{0,40}") {
            _ = Statement::new(&text);
        }
    }
}
