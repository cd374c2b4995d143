//! What a user wants to measure: one statement, after the settings and PREPARE lines that it needs, with values for its
//! parameters. The server decides whether it supports the statement: only its beginning is read here.

use crate::error::{Error, require};
use crate::server::own_sql::MARK;
use crate::server::settings::FAST_TIMING_METHOD;
use crate::tokens::{Token, Tokens, statements};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// all statements, as they were given
    pub text: String,
    pub settings: Vec<Setting>,
    /// the statement without EXPLAIN, or the one in its PREPARE line
    pub query: String,
    /// the types in the PREPARE line, like `(int)`
    types: String,
    /// the values of `$1`, `$2`, ... as SQL in parentheses, which can be empty after EXECUTE; `None`: the statement has no values
    pub values: Option<String>,
}

/// A SET or RESET line.
///
/// Each run applies it in its own transaction, and ROLLBACK undoes it. So all runs have it, and none is left behind, even if a
/// connection pooler gives the session to another client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// in lower case, like `work_mem`
    pub name: String,
    /// the line
    pub sql: String,
}

/// The value that is NULL, as in COPY.
const NULL: &str = "\\N";

/// Names, or their beginnings if they end with `*`, and why they are refused.
const REFUSED: [(&[&str], &str); 7] = [
    (
        &["idle_session_timeout", "idle_in_transaction_session_timeout", "transaction_timeout", "exit_on_error"],
        "it could end the session between two runs",
    ),
    (&["transaction_*", "default_transaction_*"], "pg_timing chooses the mode of its transactions"),
    (&["session_authorization"], "pg_timing keeps the rights of the user that connects"),
    (&["auto_explain.*"], "auto_explain also times runs without EXPLAIN"),
    (&[FAST_TIMING_METHOD], "pg_timing measures each method"),
    (&["client_encoding"], "pg_timing sends and reads UTF-8"),
    (&["standard_conforming_strings"], "pg_timing reads a backslash in '...' as an ordinary character"),
];

impl Script {
    /// Returns the script of some texts: those of `-c`, or of one file. `values` are those of `--param`.
    pub fn new<T: AsRef<str>>(texts: &[T], values: &[String]) -> Result<Script, Error> {
        let (mut settings, mut prepared, mut query) = (Vec::new(), Vec::new(), "");
        for line in texts.iter().flat_map(|text| statements(text.as_ref())) {
            let hint = "give one statement; only SET, RESET and PREPARE may come before it, and nothing after it";
            require(query.is_empty(), "there are several statements", hint)?;
            if begins(line, "SET") || begins(line, "RESET") {
                settings.push(Setting::new(line)?);
            } else if begins(line, "PREPARE") {
                prepared.push(parts_of_prepare(line)?);
            } else {
                query = line;
            }
        }
        require(!query.is_empty(), "there is no statement", "give one with -c, with -f, or on stdin, as the last one")?;
        let has_params = !values.is_empty() && (begins(query, "CREATE") || begins(query, "EXECUTE"));
        let hint = "use SELECT, INSERT, UPDATE, DELETE or MERGE";
        require(!has_params, "--param does not support EXECUTE and CREATE", hint)?;
        let hint = "remove WITH NO DATA; each run is rolled back";
        let is_empty = begins(query, "CREATE") && has_no_data(query);
        require(!is_empty, "WITH NO DATA runs no query, so there is nothing to measure", hint)?;
        let text = texts.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(";\n").trim_ascii().into();
        if begins(query, "EXECUTE") {
            let name = Tokens::of(query).nth(1);
            let prepared_name = name.and_then(|name| name.name()).unwrap_or_default();
            let Some((_, types, prepared)) = prepared.into_iter().find(|(name, ..)| *name == prepared_name) else {
                return Err(Error::new(
                    format!("EXECUTE of a statement that is not prepared: {prepared_name}"),
                    "put PREPARE name AS ...; before EXECUTE, in the same file or -c: pg_timing uses a session of its own",
                ));
            };
            let values = name.map(|name| query[name.end()..].trim().into());
            return Ok(Script { text, settings, query: prepared.into(), types: types.into(), values });
        }
        let (needed, given) =
            (Tokens::of(query).filter_map(|token| token.parameter()).max().unwrap_or(0), values.len());
        require(
            needed == given,
            format!("the statement's parameters and the values of --param differ in number: {needed} and {given}"),
            "give one --param VALUE for each of $1, $2, ...; pg_stat_statements and logs show parameters instead of values",
        )?;
        let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
        let values = (given > 0).then(|| format!("({})", values.join(", ")));
        Ok(Script { text, settings, query: query.into(), types: String::new(), values })
    }

    /// Returns the script with one more setting, `NAME = VALUE`, after its own settings.
    pub fn with_setting(mut self, setting: &str) -> Result<Script, Error> {
        let line = format!("SET {}", setting.trim());
        require(statements(&line).len() == 1, "there are several statements", "give one setting: NAME = VALUE")?;
        self.settings.push(Setting::new(&line)?);
        Ok(self)
    }

    pub fn is_create(&self) -> bool {
        begins(&self.query, "CREATE")
    }

    /// Whether the statement can store its rows in a table, as INSERT INTO and SELECT INTO do. Skipped rows would not be stored.
    pub fn may_store_rows(&self) -> bool {
        self.is_create() || Tokens::of(&self.query).any(|token| token.is("INTO"))
    }

    /// Returns statements that produce all rows and send none, because they skip them. The server may refuse the first one,
    /// or plan it differently: a LIMIT of the statement would belong to the same query as the OFFSET. The second one adds
    /// a node above a set operation.
    pub fn without_output(&self) -> [String; 2] {
        // Without the line breaks, a comment at the end of the text would hide the parenthesis.
        let same_query = format!("(\n{}\n) OFFSET {}", self.query, i64::MAX);
        let subquery = format!("SELECT * FROM (\n{}\n) AS pg_timing OFFSET {}", self.query, i64::MAX);
        [same_query, subquery]
    }

    /// Returns a PREPARE of the statement, or of one that has the same parameters.
    pub fn prepare_as(&self, name: &str, query: &str) -> String {
        // The types can end with a comment. After the line break, an error shows only the user's line.
        format!("PREPARE {MARK} {name}{}\nAS\n{query}", self.types)
    }
}

/// Returns a value as SQL. The server infers the type.
fn literal(value: &str) -> String {
    // E'' has escapes with all settings, and UTF-8 has no other backslashes and quotes.
    let escaped = || format!("E'{}'", value.replace('\\', r"\\").replace('\'', "''"));
    if value == NULL { "NULL".into() } else { escaped() }
}

/// Returns the name, the types and the statement of the line `PREPARE name [(types)] AS statement`.
fn parts_of_prepare(line: &str) -> Result<(String, &str, &str), Error> {
    let mut tokens = Tokens::of(line).skip(1);
    let parts = tokens.next().zip(tokens.find(|token| token.is("AS")));
    parts
        .and_then(|(name, keyword)| {
            Some((name.name()?, line[name.end()..keyword.start].trim(), &line[keyword.end()..]))
        })
        .ok_or_else(|| Error::new("a PREPARE line is not understood", "use PREPARE name [(types)] AS statement"))
}

fn begins(line: &str, keyword: &str) -> bool {
    Tokens::of(line).next().is_some_and(|first| first.is(keyword))
}

/// Returns whether a statement ends with WITH NO DATA.
fn has_no_data(statement: &str) -> bool {
    let tokens: Vec<Token> = Tokens::of(statement).collect();
    tokens.iter().rev().zip(["DATA", "NO", "WITH"]).all(|(token, word)| token.is(word))
}

impl Setting {
    /// Returns the setting of `SET [LOCAL | SESSION] name {= | TO} value`, `SET ROLE name` or `RESET name`.
    fn new(line: &str) -> Result<Setting, Error> {
        let tokens: Vec<Token> = Tokens::of(line).collect();
        let name = match &tokens[1..] {
            tokens if begins(line, "RESET") => name(tokens).filter(|name| name != "all"),
            // In `SET local.x = 1`, the keyword is a part of the name.
            [scope, tokens @ ..]
                if (scope.is("LOCAL") || scope.is("SESSION"))
                    && tokens.first().is_some_and(|next| !next.is_symbol(".")) =>
            {
                name_of_set(tokens)
            }
            tokens => name_of_set(tokens),
        };
        let name =
            name.ok_or_else(|| Error::new("this form of SET or RESET is not supported", "write SET name = value"))?;
        let is_refused = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *pattern,
        };
        match REFUSED.iter().find(|(patterns, _)| patterns.iter().any(is_refused)) {
            Some((_, why)) => Err(Error::new(format!("{name} cannot be set: {why}"), "remove the line")),
            None => Ok(Setting { name, sql: line.into() }),
        }
    }
}

/// Returns the name in the rest of a SET line.
fn name_of_set(tokens: &[Token]) -> Option<String> {
    match tokens {
        [role, _] if role.is("ROLE") => Some("role".into()),
        _ => name(&tokens[..tokens.iter().position(|token| token.is_symbol("=") || token.is("TO"))?]),
    }
}

/// Returns the name of a setting, with dots between its parts. The server ignores the case of these names, also in quotes.
fn name(tokens: &[Token]) -> Option<String> {
    let part = |(nth, token): (usize, &Token)| match nth % 2 {
        0 => token.name(),
        _ => token.is_symbol(".").then(|| ".".into()),
    };
    let name: Option<String> = tokens.iter().enumerate().map(part).collect();
    name.filter(|name| !name.is_empty()).map(|name| name.to_ascii_lowercase())
}

/// Returns an EXPLAIN ANALYZE of a statement, in the format that pg_timing reads.
pub fn explain_analyze(options: &str, statement: &str) -> String {
    explain(&format!("ANALYZE, {options}, FORMAT JSON"), statement)
}

/// Returns an EXPLAIN of a statement.
pub fn explain(options: &str, statement: &str) -> String {
    format!("EXPLAIN {MARK} ({options}) {statement}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn script(text: &str) -> Result<Script, Error> {
        Script::new(&[text], &[])
    }

    fn why(text: &str) -> String {
        script(text).unwrap_err().what
    }

    #[test]
    fn settings_and_prepared_statements_come_before_the_statement() {
        let script = script(
            "-- my file\nSET jit = off;\nreset work_mem; PREPARE \"Q\" (numeric(9, 2), text) AS SELECT $1, $2, ';';
             EXECUTE \"Q\"(1, 'x'); -- done",
        )
        .unwrap();
        let names: Vec<&str> = script.settings.iter().map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["jit", "work_mem"]);
        assert_eq!(script.values.as_deref(), Some("(1, 'x')"));
        let sql = script.prepare_as("own", &script.query);
        assert_eq!(sql, format!("PREPARE {MARK} own(numeric(9, 2), text)\nAS\n SELECT $1, $2, ';'"));
        assert!(script.text.starts_with("-- my file\nSET jit = off;\nreset") && script.text.ends_with("done"));
        let commented = self::script("PREPARE q (int) -- AS\nAS SELECT $1; EXECUTE q(1)").unwrap();
        assert_eq!(commented.prepare_as("own", "TABLE t"), format!("PREPARE {MARK} own(int) -- AS\nAS\nTABLE t"));
        let several = Script::new(&["SET jit = off -- a", "SELECT 1;"], &[]).unwrap();
        assert_eq!((several.settings.len(), several.query.as_str(), several.values.as_deref()), (1, "SELECT 1", None));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", ";", " -- nothing\n", "/* ; */", "SET jit = off; -- x", "PREPARE q AS SELECT 1", "RESET jit;"]
        {
            assert_eq!(why(text), "there is no statement", "{text}");
        }
        for text in ["SELECT 1; SELECT 2", "BEGIN; SELECT 1", "SELECT 1; SET jit = off", "SET a = 1; SELECT 1; RESET a"]
        {
            assert_eq!(why(text), "there are several statements", "{text}");
        }
        assert_eq!(why("PREPARE q AS SELECT 1; EXECUTE r"), "EXECUTE of a statement that is not prepared: r");
        for line in ["TRANSACTION 'x'", "q", "q (int", "'q' AS SELECT 1"] {
            assert_eq!(why(&format!("PREPARE {line}; SELECT 1")), "a PREPARE line is not understood", "{line}");
        }
    }

    #[test]
    fn values_are_null_only_by_the_sign_of_copy() {
        let given = |text: &str, values: &[&str]| {
            Script::new(&[text], &values.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(given("SELECT $1, $2", &["NULL ", "\\N"]).unwrap().values.unwrap(), "(E'NULL ', NULL)");
        assert_eq!(given("SELECT $1", &[r"a'\'b"]).unwrap().values.unwrap(), r"(E'a''\\''b')");
        for text in ["PREPARE q AS SELECT $1; EXECUTE q(1)", "CREATE TABLE x AS SELECT $1"] {
            assert_eq!(given(text, &["hunter2"]).unwrap_err().what, "--param does not support EXECUTE and CREATE");
        }
        assert!(why("SELECT $2").ends_with("differ in number: 2 and 0") && given("SELECT 1", &["a"]).is_err());
        assert!(script("SELECT a$1, '$1', $a1$ $1 $a1$ -- $1").is_ok());
    }

    #[test]
    fn no_error_contains_a_value() {
        for text in [
            "SELECT 1",
            "SELECT $2",
            "EXECUTE q",
            "CREATE TABLE x AS SELECT $1",
            "SELECT $1; SELECT $1",
            "SET a = 1",
            "PREPARE q; SELECT $1",
        ] {
            let error = Script::new(&[text], &["hunter2".into()]).unwrap_err();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn statements_that_run_no_query_are_refused() {
        for create in ["TABLE x", "MATERIALIZED VIEW x"] {
            let create = format!("CREATE {create} AS SELECT 1 WITH");
            assert!(why(&format!("{create} no Data -- the end")).starts_with("WITH NO DATA runs no query"));
            assert!(script(&format!("{create} DATA")).is_ok());
        }
        assert!(script("SELECT 1 FROM \"with\" NO, data").is_ok() && script("SELECT data").is_ok());
    }

    #[test]
    fn statements_that_can_store_rows_are_recognized() {
        for (text, stores) in [
            ("CREATE TABLE x AS SELECT 1", true),
            ("WITH a AS (SELECT 1) SELECT * INTO TEMP x FROM a", true),
            ("SELECT 1 AS insert INTO new FROM t", true),
            ("INSERT INTO x SELECT 1", true),
            ("SELECT 'INTO', \"into\" FROM a -- INTO", false),
        ] {
            assert_eq!(script(text).unwrap().may_store_rows(), stores, "{text}");
        }
    }

    #[test]
    fn each_form_has_a_name() {
        for (text, name) in [
            ("SET work_mem = '1GB'", "work_mem"),
            ("-- a\nset Local Work_Mem to 1", "work_mem"),
            ("SET SESSION jit=off", "jit"),
            ("SET \"app\".User_ID = '7'", "app.user_id"),
            ("SET ROLE reader", "role"),
            ("SET session ROLE reader", "role"),
            ("RESET work_mem", "work_mem"),
            ("RESET jit -- again", "jit"),
            ("RESET ROLE", "role"),
            // Names whose first part is a keyword
            ("SET schema.Name = 1", "schema.name"),
            ("SET LOCAL Role . x TO 1", "role.x"),
            ("SET transaction.x = 1", "transaction.x"),
            ("SET local.x = 1", "local.x"),
            ("SET pg_fast_timing.sample_rate = 9", "pg_fast_timing.sample_rate"),
        ] {
            assert_eq!(Setting::new(text), Ok(Setting { name: name.into(), sql: text.into() }), "{text}");
        }
    }

    #[test]
    fn settings_against_the_programs_promises_are_refused() {
        for text in [
            "SET default_transaction_read_only = off",
            "SET \"Transaction_Read_Only\" TO off",
            "SET LOCAL transaction_isolation = 'serializable'",
            "SET session_authorization = bob",
            "SET SESSION session_authorization TO bob",
            "SET idle_in_transaction_session_timeout = 1",
            "SET transaction_timeout = 1",
            "SET /* x */ auto_explain . log_analyze = on",
            "SET pg_fast_timing.method = tsc",
            "SET client_encoding TO latin1",
            "RESET standard_conforming_strings",
        ] {
            assert!(why(&format!("{text}; SELECT 1")).contains(" cannot be set: "), "{text}");
        }
        for text in [
            "SET TRANSACTION READ WRITE",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SET CONSTRAINTS ALL DEFERRED",
            "SET SESSION AUTHORIZATION bob",
            "SET LOCAL SESSION AUTHORIZATION bob",
            "RESET SESSION AUTHORIZATION",
            "SET NAMES 'latin1'",
            "SET U&\"transaction\\005fread_only\" = off",
            "SET",
            "SET = 1",
            "SET x y",
            "SET x y = 1",
            "RESET x = 1",
            "RESET ALL",
        ] {
            assert_eq!(why(&format!("{text}; SELECT 1")), "this form of SET or RESET is not supported", "{text}");
        }
    }

    #[test]
    fn the_guide_and_this_list_name_the_same_settings() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md")).unwrap();
        let (_, table) = page.split_once("| setting | why it is refused |\n").unwrap();
        let rows = table.lines().skip(1).map_while(|line| line.trim().strip_prefix("| "));
        let names = rows.flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2));
        let mut guide: Vec<&str> = names.filter(|name| !name.contains(' ')).collect();
        let mut list: Vec<&str> = REFUSED.iter().flat_map(|(names, _)| *names).copied().collect();
        guide.sort_unstable();
        list.sort_unstable();
        assert_eq!(guide, list);
    }

    proptest! {
        #[test]
        fn any_text_is_accepted_or_refused(
            text in "(SET |RESET |LOCAL |PREPARE |SELECT |EXECUTE |q|AS|[-/*$'\"\\\\;a1E(),.= \n\rü]){0,40}"
        ) {
            if let Ok(script) = script(&text) {
                prop_assert_eq!(Script::new(&[&script.text], &[]), Ok(script.clone()));
            }
        }
    }
}
