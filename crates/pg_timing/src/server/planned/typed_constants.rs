//! Texts of pg_stat_statements that are no SQL. It replaces constants by parameters, also in `date '2024-01-01'`, and in
//! `extract(year FROM a)`. From PostgreSQL 18 on, it shows only the first constant of a list.

use crate::server::explain::{Token, Tokens};

/// Types whose constants are often written with the type's name before them.
const TYPES: [&str; 19] = [
    "bool",
    "box",
    "bytea",
    "cidr",
    "circle",
    "date",
    "inet",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "numeric",
    "point",
    "regclass",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
];
const FIELDS: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];

/// pg_stat_statements shows this instead of the other constants of a list.
const LIST: &str = " /*, ... */";
/// The assumed length of such a list.
const LIST_LENGTH: usize = 10;

/// Returns the text as SQL that the server understands.
pub fn as_sql(text: &str) -> String {
    with_casts(&with_fields(&with_lists(text)))
}

/// Returns the text with `$1, $1` instead of `$1 /*, ... */`.
fn with_lists(text: &str) -> String {
    let mut parts = text.split(LIST);
    let mut result = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let parameter = result.rfind('$').map(|at| result[at..].to_string()).filter(|end| is_parameter(end));
        if let Some(parameter) = parameter {
            result += &format!(", {parameter}").repeat(LIST_LENGTH - 1);
        }
        result += part;
    }
    result
}

fn is_parameter(text: &str) -> bool {
    let mut tokens = Tokens::of(text);
    tokens.next().is_some_and(|token| token.parameter().is_some()) && tokens.next().is_none()
}

/// Returns the text with `extract(year FROM a)` instead of `extract($1 FROM a)`. The field does not change the plan.
fn with_fields(text: &str) -> String {
    let tokens: Vec<Token> = Tokens::of(text).collect();
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for part in tokens.windows(4) {
        let [name, open, parameter, from] = part else { continue };
        if name.is("extract") && open.is_symbol("(") && parameter.parameter().is_some() && from.is("from") {
            result += &text[done..parameter.start];
            result += "year";
            done = parameter.end();
        }
    }
    result + &text[done..]
}

/// Returns the text with `CAST($1 AS date)` instead of `date $1`.
fn with_casts(text: &str) -> String {
    let tokens: Vec<Token> = Tokens::of(text).collect();
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (at, parameter) in tokens.iter().enumerate().filter(|(_, token)| token.parameter().is_some()) {
        let Some(length) = type_length(&tokens[..at]) else { continue };
        let name = &text[tokens[at - length].start..tokens[at - 1].end()];
        let fields = if name.eq_ignore_ascii_case("interval") { fields_length(&tokens[at + 1..]) } else { 0 };
        let end = tokens[at + fields].end();
        result += &text[done..tokens[at - length].start];
        result += &format!("CAST({} AS {name}{})", parameter.text, &text[parameter.end()..end]);
        done = end;
    }
    result + &text[done..]
}

/// Returns the number of tokens of the type's name at the end.
fn type_length(tokens: &[Token]) -> Option<usize> {
    let is = |back: usize, words: &[&str]| {
        let token = tokens.len().checked_sub(back).map(|at| &tokens[at]);
        token.is_some_and(|token| words.iter().any(|word| token.is(word)))
    };
    let has_zone = is(1, &["zone"]) && is(2, &["time"]) && is(3, &["with", "without"]) && is(4, &["time", "timestamp"]);
    match () {
        () if has_zone => Some(4),
        () if is(1, &TYPES) => Some(1),
        () => None,
    }
}

/// Returns the number of tokens of an interval's fields at the start: `day to second` has three.
fn fields_length(tokens: &[Token]) -> usize {
    let is_field = |at: usize| tokens.get(at).is_some_and(|token| FIELDS.iter().any(|field| token.is(field)));
    match () {
        () if !is_field(0) => 0,
        () if tokens.get(1).is_some_and(|token| token.is("to")) && is_field(2) => 3,
        () => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn constants_with_a_type_become_casts() {
        for (text, expected) in [
            ("SELECT date $1 - interval $2", "SELECT CAST($1 AS date) - CAST($2 AS interval)"),
            ("SELECT DATE $1 + INTERVAL $2 YEAR, 1", "SELECT CAST($1 AS DATE) + CAST($2 AS INTERVAL YEAR), 1"),
            ("SELECT interval $1 day to second", "SELECT CAST($1 AS interval day to second)"),
            ("SELECT timestamp with time zone $1;", "SELECT CAST($1 AS timestamp with time zone);"),
            ("SELECT date, $1, x.date = $2", "SELECT date, $1, x.date = $2"),
            ("SELECT 'date $1' LIMIT $2", "SELECT 'date $1' LIMIT $2"),
            ("date", "date"),
        ] {
            assert_eq!(with_casts(text), expected);
        }
    }

    #[test]
    fn hidden_fields_and_lists_get_values() {
        assert_eq!(as_sql("SELECT EXTRACT($1 FROM a), extract(b)"), "SELECT EXTRACT(year FROM a), extract(b)");
        let ten = ["$2"; LIST_LENGTH].join(", ");
        assert_eq!(as_sql("SELECT $1 WHERE a IN ($2 /*, ... */) AND b"), format!("SELECT $1 WHERE a IN ({ten}) AND b"));
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "(date |interval |zone|with |\\$1 |year |to |extract\\(|FROM | /\\*, ... \\*/|['\";ü]){0,12}") {
            _ = as_sql(&text);
        }
    }
}
