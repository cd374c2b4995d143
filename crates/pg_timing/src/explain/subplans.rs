//! Which node's calls a subplan runs within. A plan shows it where it is defined, and that may be far from
//! where it runs.

use super::flat::Flat;
use serde_json::Value;

/// Puts CTEs and InitPlans where they run.
pub fn move_all(all: &mut [Flat]) {
    for plan in 0..all.len() {
        let Some(label) = all[plan].node.subplan.clone() else { continue };
        if let Some(name) = label.strip_prefix("CTE ") {
            let scan = cte_reader(all, plan, name);
            // After all others, if it changes data and nobody reads it.
            if scan.is_some() || all[plan].node.kind == "ModifyTable" {
                all[plan].within = scan;
            }
        } else if label.starts_with("InitPlan ") {
            all[plan].within = asker(all, plan, &label).or(all[plan].within);
        }
    }
}

fn cte_reader(all: &[Flat], plan: usize, name: &str) -> Option<usize> {
    let reads = |at: usize| all[at].node.kind == "CTE Scan" && all[at].node.cte.as_deref() == Some(name);
    first(all, plan, (0..all.len()).filter(|&at| reads(at)).collect())
}

/// The node that asks for an InitPlan's value, somewhere in the tree that it hangs at.
fn asker(all: &[Flat], plan: usize, label: &str) -> Option<usize> {
    let defined = all[plan].within?;
    let names = values(label);
    let asks =
        |at: usize| is_below(all, at, defined) && all[at].node.others.values().any(|text| names_one(text, &names));
    let asker = first(all, plan, (defined..all.len()).filter(|&at| asks(at)).collect())?;
    // A Gather runs it before its workers start.
    let gather = |&at: &usize| all[at].node.is_gather() && at != asker && is_below(all, asker, at);
    Some((defined..asker).find(gather).unwrap_or(asker))
}

/// Of those that want it. No plan says which one came first; but that one took at least as long as what it
/// ran; or the most, if several took turns at it.
fn first(all: &[Flat], plan: usize, mut wanting: Vec<usize>) -> Option<usize> {
    wanting.retain(|&at| all[at].node.loops.is_none_or(|loops| loops > 0.0) && !is_below(all, at, plan));
    let ms = |at: usize| all[at].reported_ms.unwrap_or(0.0);
    let long_enough = |&at: &usize| ms(at) + all[at].rounded_ms + all[plan].rounded_ms >= ms(plan);
    // max_by() would give the last of equals.
    let longest = || wanting.iter().copied().rev().max_by(|&a, &b| ms(a).total_cmp(&ms(b)));
    wanting.iter().copied().find(long_enough).or_else(longest)
}

/// Or the same.
fn is_below(all: &[Flat], at: usize, above: usize) -> bool {
    let rest = all[at].path.strip_prefix(all[above].path.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What conditions call an InitPlan's values: `(InitPlan 1).col1`, and `$0` before PostgreSQL 17, where the
/// label is `InitPlan 1 (returns $0,$1)`.
fn values(label: &str) -> Vec<String> {
    match label.split_once(" (returns ") {
        Some((_, values)) => values.trim_end_matches(')').split(',').map(String::from).collect(),
        None => vec![label.to_string()],
    }
}

fn names_one(value: &Value, names: &[String]) -> bool {
    match value {
        Value::String(text) => names.iter().any(|name| is_named(text, name)),
        Value::Array(values) => values.iter().any(|value| names_one(value, names)),
        _ => false,
    }
}

/// `$1` is not in `$10`.
fn is_named(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| !text[at + name.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use crate::explain::Explained;
    use crate::explain::flat::flat;

    fn plan(json: &str) -> Explained {
        serde_json::from_str(json).unwrap()
    }

    fn within(json: &str) -> Vec<Option<usize>> {
        flat(&plan(json).plan).iter().map(|node| node.within).collect()
    }

    #[test]
    fn a_cte_that_is_not_read() {
        let explained = plan(
            r#"{"Plan": {"Node Type": "Append", "Actual Loops": 1, "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Loops": 1},
                {"Node Type": "ModifyTable", "Parent Relationship": "InitPlan", "Subplan Name": "CTE w", "Actual Loops": 1},
                {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 0},
                {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Loops": 1}]}}"#,
        );
        let within: Vec<_> = flat(&explained.plan).iter().map(|node| node.within).collect();
        assert_eq!(within, [None, Some(4), None, Some(0), Some(0)]);
    }

    #[test]
    fn a_cte_that_is_read_twice_runs_within_the_one_that_took_as_long() {
        let within = |first: f64, second: f64| {
            let explained = plan(&format!(
                r#"{{"Plan": {{"Node Type": "Append", "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 9.0, "Actual Loops": 1}},
                    {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {first}, "Actual Loops": 1}},
                    {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {second}, "Actual Loops": 1}}]}}}}"#
            ));
            flat(&explained.plan)[1].within
        };
        assert_eq!(within(2.0, 10.0), Some(3));
        // Which of these ran it, and which only read much of it, is not known.
        assert_eq!(within(10.0, 11.0), Some(2));
        // As far as their last digits tell.
        assert_eq!(within(8.9995, 11.0), Some(2));
        // Each ran some of it.
        assert_eq!(within(5.0, 6.0), Some(3));
        assert_eq!(within(6.0, 6.0), Some(2));
    }

    #[test]
    fn a_cte_runs_within_its_scan() {
        let explained = plan(
            r#"{"Plan": {"Node Type": "Limit", "Plans": [
                {"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Rows": 9, "Actual Loops": 1},
                {"Node Type": "Sort", "Plans": [{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Rows": 10, "Actual Loops": 1}]}]}}"#,
        );
        let all = flat(&explained.plan);
        assert_eq!(all.iter().map(|node| node.within).collect::<Vec<_>>(), [None, Some(3), Some(0), Some(2)]);
        assert_eq!(all.iter().map(|node| node.calls_below.estimate).collect::<Vec<_>>(), [21.0, 0.0, 21.0, 10.0]);
    }

    /// A root, its InitPlan, a Gather and two scans; of which the conditions are given.
    fn of_init_plan(label: &str, parallel: &str, plain: &str) -> Option<usize> {
        within(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "{label}", "Actual Total Time": 9.0, "Actual Loops": 1}},
                {{"Node Type": "Gather", "Actual Total Time": 12.0, "Actual Loops": 1, "Plans": [
                    {{"Node Type": "Seq Scan", "Filter": "{parallel}", "Actual Total Time": 2.0, "Actual Loops": 3}}]}},
                {{"Node Type": "Seq Scan", "Filter": "{plain}", "Actual Total Time": 10.0, "Actual Loops": 1}}]}}}}"#
        ))[1]
    }

    #[test]
    fn an_init_plan_runs_within_who_asks_for_it() {
        assert_eq!(of_init_plan("InitPlan 1", "", "(a > (InitPlan 1).col1)"), Some(4));
        assert_eq!(of_init_plan("InitPlan 1 (returns $0,$1)", "", "(a > $1)"), Some(4));
        // Before the workers start.
        assert_eq!(of_init_plan("InitPlan 1", "(a > (InitPlan 1).col1)", ""), Some(2));
    }

    #[test]
    fn an_init_plan_that_nobody_names_stays_where_it_hangs() {
        assert_eq!(of_init_plan("InitPlan 1", "", "(a > (InitPlan 12).col1)"), Some(0));
        assert_eq!(of_init_plan("InitPlan 1 (returns $1)", "(a > $10)", "(b = 1)"), Some(0));
    }
}
