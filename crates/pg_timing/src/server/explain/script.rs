//! What a user wants to measure: one statement, after the settings and PREPARE lines that it needs, with values for its
//! parameters.

use super::rejection::Rejection;
use super::scan::{self, Tokens, statements, stored};
use super::setting::Setting;
use super::statement::Statement;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    text: String,
    settings: Vec<Setting>,
    prepared: Vec<Prepared>,
    statement: Statement,
    /// values of `$1`, `$2`, ...; `None` is NULL
    values: Vec<Option<String>>,
}

/// A PREPARE line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// as the server folds it, but not shortened
    pub name: String,
    /// the whole line
    pub sql: String,
    pub statement: Statement,
}

/// The value that is NULL, as in COPY.
const NULL: &str = "\\N";

impl Script {
    /// Returns the script of some texts: those of `-c`, or of one file. `values` are those of `--param`.
    pub fn new<T: AsRef<str>>(texts: &[T], values: &[String]) -> Result<Script, Rejection> {
        let lines: Vec<&str> = texts.iter().flat_map(|text| statements(text.as_ref())).collect();
        let (last, leading) = lines.split_last().ok_or(Rejection::Empty)?;
        let (mut settings, mut prepared) = (Vec::new(), Vec::new());
        for line in leading {
            refuse_backslash(line)?;
            match () {
                () if Setting::begins(line) => settings.push(Setting::new(line)?),
                () if Prepared::begins(line) => {
                    let line = Prepared::new(line)?;
                    if prepared.iter().any(|other: &Prepared| other.is_named(&line.name)) {
                        return Err(Rejection::Prepare("two PREPARE lines have the same name"));
                    }
                    prepared.push(line);
                }
                () => return Err(Rejection::Several),
            }
        }
        if Setting::begins(last) || Prepared::begins(last) {
            let is_late = leading.iter().any(|line| !Setting::begins(line) && !Prepared::begins(line));
            return Err(if is_late { Rejection::Several } else { Rejection::OnlyLeadingLines });
        }
        let values = values.iter().map(|value| (value != NULL).then(|| value.clone())).collect();
        let statement = Statement::new(last)?;
        let script = Script { text: joined(&lines), settings, prepared, statement, values };
        script.check().map(|()| script)
    }

    fn check(&self) -> Result<(), Rejection> {
        let (needed, given) = (self.statement.parameters(), self.values.len());
        if given > 0 && self.statement.creates_table() {
            return Err(Rejection::ValuesFor("a statement that creates a table"));
        }
        if given > 0 && self.statement.executes().is_some() {
            return Err(Rejection::ValuesFor("EXECUTE, which has its own values"));
        }
        match self.statement.executes() {
            Some(name) if self.prepared_as(name).is_none() => return Err(Rejection::NotPrepared(name.into())),
            _ => {}
        }
        match () {
            () if needed == given => Ok(()),
            () if given == 0 => Err(Rejection::Parameter),
            () => Err(Rejection::Values { needed, given }),
        }
    }

    /// Returns all statements, as they were given.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    pub fn prepared(&self) -> &[Prepared] {
        &self.prepared
    }

    /// Returns the PREPARE line of this name.
    pub fn prepared_as(&self, name: &str) -> Option<&Prepared> {
        self.prepared.iter().find(|prepared| prepared.is_named(name))
    }

    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    pub fn values(&self) -> &[Option<String>] {
        &self.values
    }
}

impl Prepared {
    /// Whether the server stores the line's name and this name alike.
    fn is_named(&self, name: &str) -> bool {
        stored(&self.name) == stored(name)
    }

    fn begins(statement: &str) -> bool {
        Tokens::of(statement).next().is_some_and(|first| first.is("PREPARE"))
    }

    /// Returns the line `PREPARE name [(types)] AS statement`.
    fn new(line: &str) -> Result<Prepared, Rejection> {
        const NOT_UNDERSTOOD: Rejection = Rejection::Prepare("a PREPARE line is not understood");
        let mut tokens = Tokens::of(line).skip(1);
        let name = tokens.next().and_then(|token| token.name()).ok_or(NOT_UNDERSTOOD)?;
        if name.starts_with("pg_timing") {
            return Err(Rejection::Prepare("pg_timing uses prepared statements that begin with pg_timing"));
        }
        let mut next = tokens.next();
        if next.is_some_and(|token| token.is_symbol("(")) {
            let mut depth = 1;
            while depth > 0 {
                let token = tokens.next().ok_or(NOT_UNDERSTOOD)?;
                depth += i32::from(token.is_symbol("(")) - i32::from(token.is_symbol(")"));
            }
            next = tokens.next();
        }
        let start = next.filter(|token| token.is("AS")).ok_or(NOT_UNDERSTOOD)?.end();
        let statement = Statement::new(&line[start..])?;
        match statement.is_preparable() {
            true => Ok(Prepared { name, sql: line.into(), statement }),
            false => Err(Rejection::Prepare("a PREPARE line has a statement that PREPARE does not support")),
        }
    }
}

/// Joins the statements of a script.
fn joined(statements: &[&str]) -> String {
    let mut text = String::new();
    for statement in statements {
        if !text.is_empty() {
            text += ";\n";
        }
        text += statement;
        let end = Tokens::of(statement).last().map_or(0, |token| token.end());
        // The comment would hide the semicolon.
        if statement[end..].contains("--") {
            text.push('\n');
        }
    }
    scan::trimmed(&text).into()
}

fn refuse_backslash(line: &str) -> Result<(), Rejection> {
    match Statement::new(line) {
        Err(rejection @ Rejection::Backslash(_)) => Err(rejection),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn script(text: &str) -> Result<Script, Rejection> {
        Script::new(&[text], &[])
    }

    fn with_values(text: &str, values: &[&str]) -> Result<Script, Rejection> {
        Script::new(&[text], &values.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn settings_and_prepared_statements_come_before_the_statement() {
        let script = script(
            "-- my file\nSET jit = off;\nreset work_mem; PREPARE \"Q\" (numeric(9, 2), text) AS SELECT $1, $2, ';';
             EXECUTE \"Q\"(1, 'x'); -- done",
        )
        .unwrap();
        let names: Vec<&str> = script.settings().iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["jit", "work_mem"]);
        let prepared = script.prepared_as("Q").unwrap();
        assert_eq!((prepared.statement.text().trim(), prepared.statement.parameters()), ("SELECT $1, $2, ';'", 2));
        assert_eq!(script.statement().executes(), Some("Q"));
        assert!(script.text().starts_with("-- my file\nSET jit = off;\nreset work_mem;\nPREPARE"), "{}", script.text());
        let several = Script::new(&["SET jit = off -- a", "SELECT 1;"], &[]).unwrap();
        assert_eq!((several.settings().len(), several.statement().text()), (1, "SELECT 1"));
        assert_eq!(super::Script::new(&["SELECT 1;"], &[]).unwrap().text(), "SELECT 1");
    }

    #[test]
    fn the_end_of_a_long_name_is_ignored() {
        let name = "q".repeat(63);
        let long = script(&format!("PREPARE {name}a AS SELECT 1; EXECUTE \"{name}b\"")).unwrap();
        assert_eq!(long.prepared_as(&name).unwrap().name, format!("{name}a"));
        let twice = script(&format!("PREPARE {name}a AS SELECT 1; PREPARE {name}b AS SELECT 2; SELECT 1"));
        assert_eq!(twice, Err(Rejection::Prepare("two PREPARE lines have the same name")));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["SET jit = off", "SET jit = off; -- x", "PREPARE q AS SELECT 1", "RESET jit; SET jit = on;"] {
            assert_eq!(script(text), Err(Rejection::OnlyLeadingLines), "{text}");
        }
        for text in ["SELECT 1; SELECT 2", "BEGIN; SELECT 1", "SELECT 1; SET jit = off", "SET a = 1; SELECT 1; RESET a"]
        {
            assert_eq!(script(text), Err(Rejection::Several), "{text}");
        }
        for text in ["\\timing\nSELECT 1", "\\set x 1\nSET jit = off; SELECT 1", "SET jit = off; \\i x"] {
            assert!(matches!(script(text), Err(Rejection::Backslash(_))), "{text}");
        }
        assert_eq!(script("SET jit = off; EXPLAIN SELECT 1"), Err(Rejection::Explain));
        assert_eq!(script("PREPARE q AS SELECT 1; EXECUTE r"), Err(Rejection::NotPrepared("r".into())));
        assert_eq!(script("CREATE TABLE x AS EXECUTE r"), Err(Rejection::NotPrepared("r".into())));
        for line in [
            "a AS SELECT 1; PREPARE A AS SELECT 2",
            "TRANSACTION 'x'",
            "q",
            "q (int",
            "q AS SELECT 1 INTO x",
            "q AS VACUUM",
            "pg_timing_probe AS SELECT 1",
        ] {
            let refused = script(&format!("PREPARE {line}; SELECT 1"));
            assert!(matches!(refused, Err(Rejection::Prepare(_))), "{line}: {refused:?}");
        }
    }

    #[test]
    fn each_parameter_has_one_value() {
        let values = |values: &[&str]| with_values("SELECT $1, $2", values);
        assert_eq!(values(&["a", "\\N"]).unwrap().values(), [Some("a".into()), None]);
        assert_eq!(values(&["NULL", ""]).unwrap().values(), [Some("NULL".into()), Some("".into())]);
        assert_eq!(values(&[]), Err(Rejection::Parameter));
        assert_eq!(values(&["a"]), Err(Rejection::Values { needed: 2, given: 1 }));
        assert_eq!(values(&["a", "b", "c"]), Err(Rejection::Values { needed: 2, given: 3 }));
        assert_eq!(with_values("SELECT 1", &["a"]), Err(Rejection::Values { needed: 0, given: 1 }));
        for text in ["CREATE TABLE x AS SELECT $1", "PREPARE q AS SELECT $1; EXECUTE q(1)"] {
            assert!(matches!(with_values(text, &["a"]), Err(Rejection::ValuesFor(_))), "{text}");
        }
    }

    #[test]
    fn no_error_contains_a_value() {
        for text in ["SELECT 1", "SELECT $2", "EXECUTE q", "CREATE TABLE x AS SELECT $1"] {
            let error = crate::error::Error::from(with_values(text, &["hunter2"]).unwrap_err());
            assert!(!error.what.contains("hunter2") && !error.hint.contains("hunter2"), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused(text in "(SET |PREPARE |SELECT |EXECUTE |q|AS|[-/*$'\"\\\\;a1E(),= \n\rü]){0,40}") {
            if let Ok(script) = script(&text) {
                prop_assert_eq!(Script::new(&[script.text()], &[]), Ok(script.clone()));
            }
        }
    }
}
