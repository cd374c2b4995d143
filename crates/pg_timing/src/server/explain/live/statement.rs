//! The SQL statement that a user wants to measure.

use crate::error::{Error, SqlState};

/// One SQL statement, without its semicolon and the text after it. It may contain comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: String,
    /// it begins with a keyword of a statement that has a plan
    has_plan: bool,
}

/// A hint for statements without a plan.
pub const SUPPORTED_STATEMENTS: &str =
    "pg_timing supports statements that have a plan: SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE, MERGE";

/// Why a text is not one statement that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    Empty,
    Several,
    /// the text begins with EXPLAIN
    Explain,
    /// `$1`, as pg_stat_statements and logs show it
    Parameter,
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Error {
        match rejection {
            Rejection::Empty => Error::new("there is no statement", "give one with -c, with -f, or on stdin"),
            Rejection::Several => Error::new(
                "there are several statements",
                "give one statement; settings that it needs can be set with PGOPTIONS",
            ),
            Rejection::Explain => Error::new(
                "the statement is an EXPLAIN",
                "give the statement without EXPLAIN and its options; pg_timing runs EXPLAIN itself",
            ),
            Rejection::Parameter => Error::new(
                "the statement has a parameter, like $1",
                "replace it with a value: pg_stat_statements and logs show parameters instead of values",
            ),
        }
    }
}

impl Statement {
    /// Returns the only statement of a text. Comments are allowed, and semicolons after the statement.
    pub fn new(text: &str) -> Result<Statement, Rejection> {
        let scan = Scan::of(text);
        let end = scan.semicolon.unwrap_or(text.len());
        let statement = text[..end].trim();
        match (scan.start, scan.has_text_after_semicolon) {
            (None, _) => Err(Rejection::Empty),
            (Some(_), true) => Err(Rejection::Several),
            (Some(start), false) if start >= end => Err(Rejection::Empty),
            (Some(start), false) if first_word(&text[start..]).eq_ignore_ascii_case("explain") => {
                Err(Rejection::Explain)
            }
            (Some(_), false) if scan.has_parameter => Err(Rejection::Parameter),
            (Some(start), false) => {
                Ok(Statement { text: statement.to_string(), has_plan: starts_like_a_query(&text[start..]) })
            }
        }
    }

    /// Returns an EXPLAIN of the statement.
    pub fn explain(&self, options: &str) -> String {
        format!("EXPLAIN ({options}) {}", self.text)
    }

    /// Returns a statement that produces all rows and sends none.
    pub fn without_output(&self) -> Statement {
        // Without the line break, a comment at the end of the text would hide the parenthesis.
        let text = format!("SELECT * FROM (\n{}\n) AS pg_timing OFFSET {}", self.text, i64::MAX);
        Statement { text, has_plan: true }
    }

    /// Returns a PREPARE of the statement.
    pub fn prepare_as(&self, name: &str) -> String {
        format!("PREPARE {name} AS {}", self.text)
    }

    /// Returns why the statement cannot be measured: the server's error with a better hint, or an unsupported command.
    pub fn rejection(&self, error: Option<Error>) -> Option<Error> {
        match (self.has_plan, error) {
            (_, Some(error)) if error.state.is(SqlState::NOT_PREPARABLE) => {
                Some(Error { hint: SUPPORTED_STATEMENTS.into(), ..error })
            }
            (true, Some(error)) if error.state.is(SqlState::SYNTAX) && error.what.contains("at or near \":\"") => {
                Some(Error {
                    hint: "replace psql's variables with values: pg_timing does not know them".into(),
                    ..error
                })
            }
            (true, error) => error,
            (false, Some(error))
                if [SqlState::SYNTAX, SqlState::NO_SUCH_STATEMENT].iter().any(|code| error.state.is(code)) =>
            {
                Some(Error {
                    hint: format!("{SUPPORTED_STATEMENTS}; psql's backslash commands are not supported"),
                    ..error
                })
            }
            (false, Some(error)) => Some(error),
            (false, None) => Some(Error::new(format!("not supported: {}", self.command()), SUPPORTED_STATEMENTS)),
        }
    }

    /// Returns the keywords that the statement begins with, like `CREATE TABLE AS`.
    fn command(&self) -> String {
        let start = Scan::of(&self.text).start.unwrap_or(0);
        let words: Vec<String> = self.text[start..].split_whitespace().take(2).map(str::to_uppercase).collect();
        let text = self.text.to_uppercase();
        match words.join(" ").as_str() {
            "CREATE TABLE" if text.contains(" AS ") => "CREATE TABLE AS".into(),
            command => command.into(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns the word that the text begins with.
fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn starts_like_a_query(text: &str) -> bool {
    const KEYWORDS: [&str; 8] = ["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"];
    text.starts_with('(') || KEYWORDS.iter().any(|keyword| first_word(text).eq_ignore_ascii_case(keyword))
}

/// Where a text has semicolons and parameters outside of quotes, dollar quotes and comments:
/// <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>
#[derive(Debug, Default, PartialEq, Eq)]
struct Scan {
    /// the first character that is neither white space nor comment
    start: Option<usize>,
    /// the first semicolon
    semicolon: Option<usize>,
    /// text other than white space, comments and semicolons follows the first semicolon
    has_text_after_semicolon: bool,
    /// the text has a parameter like `$1`
    has_parameter: bool,
}

impl Scan {
    fn of(text: &str) -> Scan {
        let mut scan = Scan::default();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = match c {
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => comment_length(rest),
                _ if c.is_whitespace() => c.len_utf8(),
                ';' => {
                    scan.semicolon.get_or_insert(at);
                    1
                }
                _ => {
                    scan.start.get_or_insert(at);
                    scan.has_text_after_semicolon |= scan.semicolon.is_some();
                    let before = text[..at].chars().next_back();
                    scan.has_parameter |= is_parameter(rest, before);
                    token_length(rest, before)
                }
            };
            at += length;
        }
        scan
    }
}

/// Returns the length of a comment in bytes. Comments nest.
fn comment_length(text: &str) -> usize {
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

/// Whether the text begins with a parameter. A dollar sign inside a word is a part of the word.
fn is_parameter(text: &str, before: Option<char>) -> bool {
    text.strip_prefix('$').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) && !in_word(before)
}

fn in_word(before: Option<char>) -> bool {
    before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// Returns the length of a quoted text, or of one character.
fn token_length(text: &str, before: Option<char>) -> usize {
    let c = text.chars().next().unwrap_or_default();
    match c {
        // Only E'..' has backslash escapes. A doubled quote counts as two adjacent texts, which gives the same end.
        '\'' => quoted_length(text, '\'', matches!(before, Some('e' | 'E'))),
        '"' => quoted_length(text, '"', false),
        '$' if !in_word(before) => dollar_quoted_length(text),
        _ => c.len_utf8(),
    }
}

fn quoted_length(text: &str, quote: char, backslashes: bool) -> usize {
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

fn dollar_quoted_length(text: &str) -> usize {
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
    fn exactly_one_statement_is_accepted() {
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
            assert_eq!(Statement::new(text), Err(Rejection::Empty), "{text}");
        }
        for text in ["SELECT 1; SELECT 2", "a;b;", "SELECT 1; /* */ x"] {
            assert_eq!(Statement::new(text), Err(Rejection::Several), "{text}");
        }
        for text in ["EXPLAIN SELECT 1", "-- slow\nexplain(analyze) SELECT 1;"] {
            assert_eq!(Statement::new(text), Err(Rejection::Explain), "{text}");
        }
        assert_eq!(Statement::new("SELECT * FROM t WHERE i = $1"), Err(Rejection::Parameter));
        assert!(Statement::new("SELECT 1 AS explain").is_ok() && Statement::new("explained").is_ok());
    }

    #[test]
    fn only_statements_with_a_plan_are_accepted() {
        for (text, has_plan) in [
            ("select 1", true),
            ("-- all\n(TABLE t)", true),
            ("CREATE TABLE x AS SELECT 1", false),
            ("\\timing", false),
        ] {
            assert_eq!(Statement::new(text).unwrap().rejection(None).is_none(), has_plan, "{text}");
        }
    }

    #[test]
    fn an_unsupported_statement_is_named() {
        let what = |text: &str| Statement::new(text).unwrap().rejection(None).unwrap().what;
        assert_eq!(what("-- new\ncreate table t AS select 1"), "not supported: CREATE TABLE AS");
        assert_eq!(what("VACUUM"), "not supported: VACUUM");
    }

    proptest! {
        #[test]
        fn scanning_any_text_ends(text in "[-/*$'\"\\\\;a1E \nü]{0,40}") {
            _ = Statement::new(&text);
        }
    }
}
