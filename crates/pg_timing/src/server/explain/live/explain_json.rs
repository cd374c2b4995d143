//! Reads the JSON that EXPLAIN prints for one statement.

use super::statement::SUPPORTED_STATEMENTS;
use crate::error::Error;
use crate::server::explain::plan::{Explained, Plan};
use serde::de::IgnoredAny;

const RULES: &str =
    "pg_timing compares runs of one plan: use a table without such a rule, or run the rule's statement directly";

/// Parses EXPLAIN's JSON. It is a list with one entry for each statement that rules make of the original.
pub fn parse(json: &str) -> Result<Explained, Error> {
    if serde_json::from_str::<Vec<String>>(json).is_ok_and(|plans| !plans.is_empty()) {
        return Err(Error::new("the statement has no plan: it is a utility statement", SUPPORTED_STATEMENTS));
    }
    match serde_json::from_str::<Vec<IgnoredAny>>(json).map_or(1, |plans| plans.len()) {
        1 => {}
        0 => return Err(removed_by_rule()),
        count => return Err(Error::new(format!("rules rewrite the statement into {count} statements"), RULES)),
    }
    let plans: Vec<Explained> = serde_json::from_str(json).map_err(|error| match error.to_string() {
        text if text.contains("recursion limit") => {
            Error::new("the plan is nested deeper than 60 nodes", "pg_timing cannot read plans of this depth")
        }
        text => not_understood(&text),
    })?;
    plans.into_iter().next().ok_or_else(removed_by_rule)
}

/// Parses the JSON of EXPLAIN ANALYZE and returns the executed plan.
pub fn parse_executed(json: &str) -> Result<Plan, Error> {
    let explained = parse(json)?;
    let execution_ms = explained.execution_ms.ok_or_else(|| not_understood("it has no Execution Time"))?;
    Ok(Plan::new(explained, execution_ms))
}

fn removed_by_rule() -> Error {
    Error::new("a rule removes the statement: nothing is left to run", RULES)
}

fn not_understood(why: &str) -> Error {
    Error::new(
        format!("pg_timing does not understand the server's EXPLAIN: {why}"),
        "PostgreSQL 15 to 19 are supported; check the server's version with SHOW server_version",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"Plan": {"Node Type": "Result"}}"#;

    #[test]
    fn exactly_one_plan_is_accepted() {
        assert!(parse(&format!("[{PLAN}]")).is_ok());
        for (json, what) in [
            (format!("[{PLAN}, {PLAN}]"), "rules rewrite the statement into 2 statements"),
            ("[]".into(), "a rule removes the statement: nothing is left to run"),
            (r#"["Utility Statement"]"#.into(), "the statement has no plan: it is a utility statement"),
            (
                "[{}]".into(),
                "pg_timing does not understand the server's EXPLAIN: missing field `Plan` at line 1 column 3",
            ),
        ] {
            assert_eq!(parse(&json).unwrap_err().what, what);
        }
    }

    #[test]
    fn an_executed_plan_has_an_execution_time() {
        let error = parse_executed(&format!("[{PLAN}]")).unwrap_err();
        assert!(error.what.ends_with("it has no Execution Time"), "{}", error.what);
        let timed = PLAN.replace("}}", r#"}, "Execution Time": 6.25}"#);
        assert_eq!(parse_executed(&format!("[{timed}]")).unwrap().execution_ms, 6.25);
    }
}
