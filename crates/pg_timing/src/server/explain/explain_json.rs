//! Reads the JSON that EXPLAIN prints for one statement.

use crate::error::Error;
use crate::plan::validate::{check_figures, check_run};
use crate::plan::{Explained, Plan};
use crate::server::connection::SUPPORTED_SERVERS;

/// A hint for texts that are not one statement with a plan.
pub const SUPPORTED_STATEMENTS: &str = "give one statement that has a plan: SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE, MERGE, \
     EXECUTE, CREATE TABLE AS; without EXPLAIN, and without commands and variables of psql";

/// Parses EXPLAIN's JSON. It is a list with one entry for each statement that rules make of the original.
pub fn parse(json: &str) -> Result<Explained, Error> {
    if serde_json::from_str::<Vec<String>>(json).is_ok_and(|plans| !plans.is_empty()) {
        let what =
            "the statement has no plan: it is a utility statement, or the relation that it creates exists already";
        return Err(Error::new(what, SUPPORTED_STATEMENTS));
    }
    let mut plans: Vec<Explained> = serde_json::from_str(json).map_err(|error| not_understood(&error.to_string()))?;
    match (plans.pop(), plans.len()) {
        (Some(plan), 0) => Ok(plan),
        (plan, others) => Err(Error::new(
            format!("rules rewrite the statement into {} statements", others + usize::from(plan.is_some())),
            "pg_timing compares runs of one plan: use a table without such a rule, or run the rule's statement directly",
        )),
    }
}

/// Parses the JSON of EXPLAIN with SUMMARY and returns the planning time in ms.
pub fn parse_planning_ms(json: &str) -> Result<f64, Error> {
    let explained = parse(json)?;
    check_figures(&explained).map_err(impossible)?;
    explained.planning_ms.ok_or_else(|| not_understood("it has no Planning Time"))
}

/// Parses the JSON of EXPLAIN ANALYZE and returns the executed plan.
///
/// pg_fast_timing may estimate the times. Servers before 18 do not show this in the plan, so the caller says it.
pub fn parse_executed(json: &str, fast_timing: bool) -> Result<Plan, Error> {
    let explained = parse(json)?;
    let execution_ms = explained.execution_ms.ok_or_else(|| not_understood("it has no Execution Time"))?;
    check_figures(&explained).map_err(impossible)?;
    let mut plan = Plan::new(explained, execution_ms);
    plan.uses_fast_timing |= fast_timing;
    check_run(&plan).map_err(impossible)?;
    Ok(plan)
}

fn impossible(why: Error) -> Error {
    Error::new(why.what, "the server's clock may be faulty: run pg_timing check on the server's host")
}

fn not_understood(why: &str) -> Error {
    Error::new(
        format!("pg_timing does not understand the server's EXPLAIN: {why}"),
        format!("{SUPPORTED_SERVERS}; check the server's version with SHOW server_version"),
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
            ("[]".into(), "rules rewrite the statement into 0 statements"),
            (
                r#"["Utility Statement"]"#.into(),
                "the statement has no plan: it is a utility statement, or the relation that it creates exists already",
            ),
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
        let error = parse_executed(&format!("[{PLAN}]"), false).unwrap_err();
        assert!(error.what.ends_with("it has no Execution Time"), "{}", error.what);
        let timed = PLAN.replace("}}", r#"}, "Execution Time": 6.25}"#);
        assert_eq!(parse_executed(&format!("[{timed}]"), false).unwrap().execution_ms, 6.25);
    }

    #[test]
    fn a_plan_with_a_summary_has_a_planning_time() {
        let planned = |ms: &str| PLAN.replace("}}", &format!(r#"}}, "Planning Time": {ms}}}"#));
        assert_eq!(parse_planning_ms(&format!("[{}]", planned("0.25"))).unwrap(), 0.25);
        for plan in [PLAN, &planned("-1.0"), &planned("1e300")] {
            assert!(parse_planning_ms(&format!("[{plan}]")).is_err(), "{plan}");
        }
    }

    /// Returns the plan of a sort with these figures, and a scan below it that took 1 ms.
    fn sort(total_ms: &str, rows: &str, loops: &str, execution_ms: &str) -> String {
        format!(
            r#"[{{"Plan": {{"Node Type": "Sort", "Actual Total Time": {total_ms}, "Actual Rows": {rows}, "Actual Loops": {loops}, "Plans": [
                {{"Node Type": "Seq Scan", "Alias": "t", "Actual Total Time": 1.0, "Actual Rows": 5, "Actual Loops": 1}}]}},
                "Execution Time": {execution_ms}}}]"#
        )
    }

    #[test]
    fn impossible_figures_are_refused() {
        assert!(parse_executed(&sort("2.0", "5", "1", "3.0"), false).is_ok());
        for (total_ms, rows, loops, execution_ms, why) in [
            ("-2.0", "5", "1", "3.0", "Actual Total Time of Sort is -2.0"),
            ("1e300", "5", "1", "3.0", "Actual Total Time of Sort is 1e300"),
            ("2.0", "-5", "1", "3.0", "Actual Rows of Sort is -5.0"),
            ("2.0", "5", "1e300", "3.0", "Actual Loops of Sort is 1e300"),
            ("2.0", "5", "-1", "3.0", "Actual Loops of Sort is -1.0"),
            ("2.0", "5", "1", "-3.0", "Execution Time is -3.0"),
            ("2.0", "5", "1", "1e300", "Execution Time is 1e300"),
            // Each figure is possible, but not their product.
            ("0.0", "1e12", "1e12", "3.0", "the calls of Sort is 1."),
            ("1e12", "5", "1e12", "3.0", "the time of Sort in all loops is 1e24"),
            ("2.0", "5", "1", "1.0", "the plan's root took 2 ms, but its Execution Time is 1 ms"),
            ("0.5", "5", "1", "3.0", "Sort took 0.5 ms, but its inputs took 1 ms"),
        ] {
            let error = parse_executed(&sort(total_ms, rows, loops, execution_ms), false).unwrap_err();
            assert!(error.what.contains(why), "{why}: {}", error.what);
            assert!(error.hint.contains("clock"), "{}", error.hint);
        }
    }

    #[test]
    fn estimated_times_need_not_add_up() {
        let longer_inputs = sort("0.5", "5", "1", "0.4");
        assert!(parse_executed(&longer_inputs, true).is_ok());
        assert!(parse_executed(&longer_inputs, false).is_err());
        assert!(parse_executed(&sort("-0.5", "5", "1", "3.0"), true).is_err());
    }
}
