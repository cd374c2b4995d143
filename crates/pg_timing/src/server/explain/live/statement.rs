//! The statement that is to be explained, as text.

use crate::error::{Error, SqlState};

/// One statement, without the semicolon and what is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: String,
    /// it begins like one that has a plan of its own
    query: bool,
}

pub const HAS_PLAN: &str = "what has a plan is a SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE or MERGE";

/// What keeps a text from being one statement that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    Empty,
    Several,
    /// as people keep it, with EXPLAIN before it
    Explain,
    /// `$1`, as pg_stat_statements and logs keep it
    Parameter,
}

impl From<Unfit> for Error {
    fn from(not_one: Unfit) -> Error {
        match not_one {
            Unfit::Empty => Error::new("there is no statement", "give one with -c, -f or on stdin"),
            Unfit::Several => Error::new(
                "there are several statements",
                "give one; what has to come before it can be set with PGOPTIONS",
            ),
            Unfit::Explain => {
                Error::new("the statement is an EXPLAIN itself", "give what stands behind EXPLAIN and its options")
            }
            Unfit::Parameter => Error::new(
                "the statement has a parameter, like $1",
                "that stands for a value, in pg_stat_statements and in logs: put the value there",
            ),
        }
    }
}

impl Statement {
    /// Takes a text with comments and one semicolon at most.
    pub fn new(text: &str) -> Result<Statement, Unfit> {
        let scan = Scan::of(text);
        let end = scan.semicolon.unwrap_or(text.len());
        let statement = text[..end].trim();
        match (scan.first, scan.after) {
            (None, _) => Err(Unfit::Empty),
            (Some(_), true) => Err(Unfit::Several),
            (Some(first), false) if first >= end => Err(Unfit::Empty),
            (Some(first), false) if word(&text[first..]).eq_ignore_ascii_case("explain") => Err(Unfit::Explain),
            (Some(_), false) if scan.parameter => Err(Unfit::Parameter),
            (Some(first), false) => Ok(Statement { text: statement.to_string(), query: is_query(&text[first..]) }),
        }
    }

    pub fn explained(&self, options: &str) -> String {
        format!("EXPLAIN ({options}) {}", self.text)
    }

    /// Produces all rows and returns none. The line ends keep a comment from swallowing what follows.
    pub fn without_output(&self) -> Statement {
        let text = format!("SELECT * FROM (\n{}\n) AS pg_timing OFFSET {}", self.text, i64::MAX);
        Statement { text, query: true }
    }

    pub fn prepared_as(&self, name: &str) -> String {
        format!("PREPARE {name} AS {}", self.text)
    }

    /// What is wrong with it, for that it is no query, or the server's error.
    pub fn unfit(&self, error: Option<Error>) -> Option<Error> {
        match (self.query, error) {
            (_, Some(error)) if error.state.is(SqlState::NOT_PREPARABLE) => {
                Some(Error { hint: HAS_PLAN.into(), ..error })
            }
            (true, Some(error)) if error.state.is(SqlState::SYNTAX) && error.what.contains("at or near \":\"") => {
                Some(Error { hint: "psql's variables are not known here: put the value there".into(), ..error })
            }
            (true, error) => error,
            (false, Some(error))
                if [SqlState::SYNTAX, SqlState::NO_SUCH_STATEMENT].iter().any(|code| error.state.is(code)) =>
            {
                Some(Error { hint: format!("{HAS_PLAN}; psql's own commands are not known here"), ..error })
            }
            (false, Some(error)) => Some(error),
            (false, None) => Some(Error::new("the statement is not run by its plan alone", HAS_PLAN)),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Letters, up to what is none.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn is_query(text: &str) -> bool {
    const FIRST: [&str; 8] = ["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"];
    text.starts_with('(') || FIRST.iter().any(|first| word(text).eq_ignore_ascii_case(first))
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
    /// a `$1` stands where a value may
    parameter: bool,
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
                    let before = text[..at].chars().next_back();
                    scan.parameter |= is_parameter(rest, before);
                    token(rest, before)
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

/// A dollar within a word is a part of it.
fn is_parameter(text: &str, before: Option<char>) -> bool {
    text.strip_prefix('$').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) && !in_word(before)
}

fn in_word(before: Option<char>) -> bool {
    before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// A quoted text, or else one character.
fn token(text: &str, before: Option<char>) -> usize {
    let c = text.chars().next().unwrap_or_default();
    match c {
        // E'..' knows backslashes; a quote within is written twice, which is two texts side by side.
        '\'' => quoted(text, '\'', matches!(before, Some('e' | 'E'))),
        '"' => quoted(text, '"', false),
        '$' if !in_word(before) => dollar_quoted(text),
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
            ("SELECT a$1, a$b$c, '$1', $a1$ $1 $a1$ FROM t;;", "SELECT a$1, a$b$c, '$1', $a1$ $1 $a1$ FROM t"),
        ] {
            assert_eq!(Statement::new(text).unwrap().text(), statement);
        }
        for text in ["", ";", " -- nothing\n", "/* ; */", " ; ;"] {
            assert_eq!(Statement::new(text), Err(Unfit::Empty), "{text}");
        }
        for text in ["SELECT 1; SELECT 2", "a;b;", "SELECT 1; /* */ x"] {
            assert_eq!(Statement::new(text), Err(Unfit::Several), "{text}");
        }
        for text in ["EXPLAIN SELECT 1", "-- slow\nexplain(analyze) SELECT 1;"] {
            assert_eq!(Statement::new(text), Err(Unfit::Explain), "{text}");
        }
        assert_eq!(Statement::new("SELECT * FROM t WHERE i = $1"), Err(Unfit::Parameter));
        assert!(Statement::new("SELECT 1 AS explain").is_ok() && Statement::new("explained").is_ok());
    }

    #[test]
    fn what_has_a_plan_of_its_own() {
        for (text, query) in [
            ("select 1", true),
            ("-- all\n(TABLE t)", true),
            ("CREATE TABLE x AS SELECT 1", false),
            ("\\timing", false),
        ] {
            assert_eq!(Statement::new(text).unwrap().unfit(None).is_none(), query, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_scanned_to_its_end(text in "[-/*$'\"\\\\;a1E \nü]{0,40}") {
            _ = Statement::new(&text);
        }
    }
}
