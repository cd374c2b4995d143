//! What EXPLAIN prints, as the one plan that it has to be.

use super::statement::HAS_PLAN;
use crate::error::Error;
use crate::server::explain::Explained;
use serde::de::IgnoredAny;

/// What is compared has to be one plan.
pub fn add(plans: &mut Vec<Explained>, plan: Explained) -> Result<(), Error> {
    if plans.first().is_some_and(|before| before.plan.shape() != plan.plan.shape()) {
        return Err(Error::new(
            "the plan changes from run to run",
            "what is compared has to be one plan: run ANALYZE on the tables, or wait for autovacuum",
        ));
    }
    plans.push(plan);
    Ok(())
}

const RULES: &str =
    "what is timed has to be one plan: take a table that has no such rule, or what the rule says itself";

/// EXPLAIN's JSON is a list of all plans that rules make of a statement.
pub fn explained(json: &str) -> Result<Explained, Error> {
    if serde_json::from_str::<Vec<String>>(json).is_ok_and(|plans| !plans.is_empty()) {
        return Err(Error::new("the statement has no plan: it is a utility statement", HAS_PLAN));
    }
    match serde_json::from_str::<Vec<IgnoredAny>>(json).map_or(1, |plans| plans.len()) {
        1 => {}
        0 => return Err(nothing()),
        many => return Err(Error::new(format!("rules make {many} statements of this one"), RULES)),
    }
    let plans: Vec<Explained> = serde_json::from_str(json).map_err(|error| match error.to_string() {
        said if said.contains("recursion limit") => {
            Error::new("the plan nests more than 60 nodes", "that is deeper than can be read")
        }
        said => no_plan(&said),
    })?;
    plans.into_iter().next().ok_or_else(nothing)
}

fn nothing() -> Error {
    Error::new("a rule leaves nothing of the statement to be run", RULES)
}

pub fn no_plan(why: &str) -> Error {
    Error::new(format!("the server's EXPLAIN is not understood: {why}"), "this knows PostgreSQL 15 to 19")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plan_and_no_more() {
        let plan = r#"{"Plan": {"Node Type": "Result"}}"#;
        assert!(explained(&format!("[{plan}]")).is_ok());
        for (json, what) in [
            (format!("[{plan}, {plan}]"), "rules make 2 statements of this one"),
            ("[]".into(), "a rule leaves nothing of the statement to be run"),
            (r#"["Utility Statement"]"#.into(), "the statement has no plan: it is a utility statement"),
            ("[{}]".into(), "the server's EXPLAIN is not understood: missing field `Plan` at line 1 column 3"),
        ] {
            assert_eq!(explained(&json).unwrap_err().what, what);
        }
    }
}
