//! The SQL statement that a user wants to measure.

use super::rejection::{Rejection, SUPPORTED_STATEMENTS};
use super::scan::{Kind, Token, Tokens, statements};
use crate::error::{Error, SqlState};
use crate::server::own_sql::MARK;

/// One SQL statement, without its semicolon and the text after it. It may contain comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: String,
    command: Command,
    /// number of parameters: the highest number, like 2 in `$2`
    parameters: usize,
}

/// What a statement begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    /// a keyword of a statement that PREPARE supports
    Query,
    /// `SELECT INTO`, `CREATE TABLE AS`, `CREATE MATERIALIZED VIEW`, perhaps with the name after `AS EXECUTE`
    CreateAs {
        executes: Option<String>,
    },
    /// `EXECUTE`: the name, and the text after it
    Execute {
        name: String,
        arguments: String,
    },
    Other,
}

impl Statement {
    /// Returns the only statement of a text. Comments are allowed, and semicolons after the statement.
    pub fn new(text: &str) -> Result<Statement, Rejection> {
        match statements(text)[..] {
            [] => Err(Rejection::Empty),
            [statement] => Statement::of(statement),
            _ => Err(Rejection::Several),
        }
    }

    /// Returns the statement of a text without semicolons.
    fn of(text: &str) -> Result<Statement, Rejection> {
        let first = Tokens::of(text).next().ok_or(Rejection::Empty)?;
        if first.is("EXPLAIN") {
            return Err(Rejection::Explain);
        }
        if let Some(backslash) = Tokens::of(text).find(|token| token.is_symbol("\\")) {
            let command = text[backslash.start..].split_whitespace().next().unwrap_or_default();
            return Err(Rejection::Backslash(command.into()));
        }
        let command = command(text, &first);
        if matches!(command, Command::CreateAs { .. }) && has_no_data(text) {
            return Err(Rejection::NoData);
        }
        let parameters = Tokens::of(text).filter_map(|token| token.parameter()).max().unwrap_or(0);
        Ok(Statement { text: text.into(), command, parameters })
    }

    /// Returns an EXPLAIN of the statement.
    pub fn explain(&self, options: &str) -> String {
        explain(options, &self.text)
    }

    /// Returns statements that produce all rows and send none, because they skip them. The server may refuse the first one,
    /// or plan it differently: a LIMIT of the statement would belong to the same query as the OFFSET. The second one adds
    /// a node above a set operation.
    pub fn without_output(&self) -> [Statement; 2] {
        // Without the line breaks, a comment at the end of the text would hide the parenthesis.
        let same_query = format!("(\n{}\n) OFFSET {}", self.text, i64::MAX);
        let subquery = format!("SELECT * FROM (\n{}\n) AS pg_timing OFFSET {}", self.text, i64::MAX);
        [same_query, subquery].map(|text| Statement { text, command: Command::Query, parameters: self.parameters })
    }

    /// Returns a PREPARE of the statement.
    pub fn prepare_as(&self, name: &str) -> String {
        self.prepare_with_types(name, &[])
    }

    /// Returns a PREPARE of the statement with these types of its parameters.
    pub fn prepare_with_types(&self, name: &str, types: &[String]) -> String {
        let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
        // After the line break, an error shows only the user's line.
        format!("PREPARE {MARK} {name}{types} AS\n{}", self.text)
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Whether PREPARE supports the statement.
    pub fn is_preparable(&self) -> bool {
        self.command == Command::Query
    }

    /// Whether the statement creates a table or a materialized view.
    pub fn creates_table(&self) -> bool {
        matches!(self.command, Command::CreateAs { .. })
    }

    /// Whether the statement creates a materialized view.
    pub fn creates_view(&self) -> bool {
        self.creates_table() && Tokens::of(&self.text).nth(1).is_some_and(|token| token.is("MATERIALIZED"))
    }

    /// Returns the name of the prepared statement that the statement executes.
    pub fn executes(&self) -> Option<&str> {
        match &self.command {
            Command::Execute { name, .. } => Some(name),
            Command::CreateAs { executes } => executes.as_deref(),
            _ => None,
        }
    }

    /// Returns the text after `EXECUTE name`: the values in parentheses, or nothing.
    pub fn arguments(&self) -> Option<&str> {
        match &self.command {
            Command::Execute { arguments, .. } => Some(arguments),
            _ => None,
        }
    }

    /// Returns why the statement cannot be measured: the server's error with a better hint, or an unsupported command.
    pub fn rejection(&self, error: Option<Error>) -> Option<Error> {
        let has_plan = self.command != Command::Other;
        match (has_plan, error) {
            (_, Some(error)) if error.state.is(SqlState::NOT_PREPARABLE) => {
                Some(Error { hint: SUPPORTED_STATEMENTS.into(), ..error })
            }
            (true, Some(error)) if error.state.is(SqlState::SYNTAX) && error.what.contains("at or near \":\"") => {
                Some(Error { hint: "replace psql's variables with values, or with $1 and --param".into(), ..error })
            }
            // For example CREATE VIEW
            (true, Some(error)) if self.creates_table() && error.state.is(SqlState::SYNTAX) => {
                Some(Error { hint: SUPPORTED_STATEMENTS.into(), ..error })
            }
            (true, error) => error,
            (false, Some(error))
                if [SqlState::SYNTAX, SqlState::NO_SUCH_STATEMENT].iter().any(|code| error.state.is(code)) =>
            {
                Some(Error { hint: SUPPORTED_STATEMENTS.into(), ..error })
            }
            (false, Some(error)) => Some(error),
            (false, None) => Some(Error::new(format!("not supported: {}", self.first_words()), SUPPORTED_STATEMENTS)),
        }
    }

    /// Returns the keywords that the statement begins with, like `CREATE INDEX`.
    fn first_words(&self) -> String {
        let words = Tokens::of(&self.text).take_while(|token| token.kind == Kind::Word).take(2);
        words.map(|token| token.text.to_uppercase()).collect::<Vec<_>>().join(" ")
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns an EXPLAIN ANALYZE of a statement, in the format that pg_timing reads.
pub fn explain_analyze(options: &str, statement: &str) -> String {
    explain(&format!("ANALYZE, {options}, FORMAT JSON"), statement)
}

/// Returns an EXPLAIN of a statement.
pub fn explain(options: &str, statement: &str) -> String {
    format!("EXPLAIN {MARK} ({options}) {statement}")
}

fn command(text: &str, first: &Token) -> Command {
    const QUERIES: [&str; 8] = ["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"];
    let is_query = first.is_symbol("(") || QUERIES.iter().any(|keyword| first.is(keyword));
    if is_query && selects_into(text) {
        return Command::CreateAs { executes: None };
    }
    let mut tokens = Tokens::of(text).skip(1);
    match () {
        () if is_query => Command::Query,
        () if first.is("CREATE") => Command::CreateAs { executes: executes(text) },
        () if first.is("EXECUTE") => match tokens.next().and_then(|token| Some((token.name()?, token.end()))) {
            Some((name, end)) => Command::Execute { name, arguments: text[end..].trim().into() },
            None => Command::Other,
        },
        () => Command::Other,
    }
}

/// Whether a query writes its rows to a new table, as in `SELECT 1 INTO t`. INTO also follows INSERT or MERGE.
fn selects_into(text: &str) -> bool {
    let tokens: Vec<Token> = Tokens::of(text).collect();
    (1..tokens.len()).any(|at| {
        let before = &tokens[at - 1];
        // `AS insert INTO t`: here INSERT is a name.
        let names_a_column = at > 1 && (tokens[at - 2].is("AS") || tokens[at - 2].is_symbol("."));
        let writes = (before.is("INSERT") || before.is("MERGE")) && !names_a_column;
        tokens[at].is("INTO") && !writes && !before.is("AS") && !before.is_symbol(".")
    })
}

/// Returns the name after `AS EXECUTE`.
fn executes(text: &str) -> Option<String> {
    let tokens = || Tokens::of(text);
    let mut found = tokens().zip(tokens().skip(1)).zip(tokens().skip(2));
    let ((_, _), name) = found.find(|((first, second), _)| first.is("AS") && second.is("EXECUTE"))?;
    name.name()
}

/// Whether a CREATE TABLE AS ends with `WITH NO DATA`.
fn has_no_data(text: &str) -> bool {
    let mut last: [Option<Token>; 3] = [None; 3];
    Tokens::of(text).for_each(|token| last = [last[1], last[2], Some(token)]);
    last.iter().zip(["WITH", "NO", "DATA"]).all(|(token, word)| token.is_some_and(|token| token.is(word)))
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
            ("SELECT '\\'; -- x", "SELECT '\\'"),
            ("SELECT a$1, a$b$c, '$1', $a1$ $1 $a1$ FROM t;;", "SELECT a$1, a$b$c, '$1', $a1$ $1 $a1$ FROM t"),
        ] {
            let statement_of = Statement::new(text).unwrap();
            assert_eq!((statement_of.text(), statement_of.parameters()), (statement, 0));
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
        assert!(Statement::new("SELECT 1 AS explain").is_ok() && Statement::new("explained").is_ok());
        assert_eq!(Statement::new("SELECT * FROM t WHERE i = $1 AND k < $3").unwrap().parameters(), 3);
    }

    #[test]
    fn commands_of_psql_are_refused_by_name() {
        for (text, command) in [("\\timing", "\\timing"), ("SELECT 1 \\gset x", "\\gset"), ("SELECT '\\' \\", "\\")] {
            assert_eq!(Statement::new(text), Err(Rejection::Backslash(command.into())), "{text}");
        }
    }

    #[test]
    fn only_statements_with_a_plan_are_accepted() {
        for (text, has_plan) in [
            ("select 1", true),
            ("-- all\n(TABLE t)", true),
            ("CREATE TABLE x AS SELECT 1", true),
            ("EXECUTE q(1)", true),
            ("EXECUTE", false),
            ("DECLARE c CURSOR FOR SELECT 1", false),
        ] {
            assert_eq!(Statement::new(text).unwrap().rejection(None).is_none(), has_plan, "{text}");
        }
        let what = |text: &str| Statement::new(text).unwrap().rejection(None).unwrap().what;
        assert_eq!(what("-- new\nrefresh\nmaterialized view m"), "not supported: REFRESH MATERIALIZED");
        assert_eq!(what("VACUUM"), "not supported: VACUUM");
    }

    #[test]
    fn statements_that_create_a_table_are_recognized() {
        for (text, creates) in [
            ("SELECT * INTO x FROM t", true),
            ("WITH a AS (SELECT 1) SELECT * INTO TEMP x FROM a", true),
            ("CREATE MATERIALIZED VIEW m AS SELECT 1", true),
            ("SELECT 1 AS insert INTO new FROM t", true),
            ("SELECT i AS into FROM t", false),
            ("SELECT t.into FROM t", false),
            ("INSERT INTO x SELECT 1", false),
            ("WITH a AS (INSERT INTO x SELECT 1 RETURNING i) SELECT 'INTO', \"into\" FROM a", false),
            ("MERGE INTO x USING t ON true WHEN MATCHED THEN DELETE", false),
        ] {
            assert_eq!(Statement::new(text).unwrap().creates_table(), creates, "{text}");
        }
        assert_eq!(Statement::new("CREATE TABLE x AS SELECT 1 WITH no /* */ DATA -- x"), Err(Rejection::NoData));
        assert!(Statement::new("CREATE TABLE x AS SELECT 1 WITH DATA").is_ok());
    }

    #[test]
    fn the_executed_statement_is_named() {
        let statement = |text: &str| Statement::new(text).unwrap();
        let execute = statement("execute /* x */ Q (1, 'a;')");
        assert_eq!((execute.executes(), execute.arguments()), (Some("q"), Some("(1, 'a;')")));
        assert_eq!(statement("EXECUTE \"Q\"").executes(), Some("Q"));
        let create = statement("CREATE TEMP TABLE x AS EXECUTE q(1)");
        assert_eq!((create.executes(), create.arguments()), (Some("q"), None));
        assert_eq!(statement("SELECT 1 AS execute").executes(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused(text in "(SELECT |EXECUTE |CREATE |WITH )?[-/*$'\"\\\\;a1E(), \nü]{0,40}") {
            if let Ok(statement) = Statement::new(&text) {
                prop_assert_eq!(Statement::new(statement.text()), Ok(statement.clone()));
                _ = statement.rejection(None);
            }
        }
    }
}
