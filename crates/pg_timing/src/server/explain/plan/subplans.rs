//! Which node's calls a subplan runs within. A plan shows it where it is defined, and that may be far from
//! where it runs.

use super::calls::Flat;

/// Puts CTEs and InitPlans where they run.
pub fn move_all(all: &mut [Flat]) {
    for plan in 0..all.len() {
        let (Some(label), Some(defined)) = (all[plan].node.subplan.clone(), all[plan].within) else { continue };
        if let Some(name) = cte_name(all, &label) {
            let readers = readers(all, defined, plan, name);
            let reader = first(all, plan, &readers).or_else(|| longest(all, &readers));
            // After all others, if it changes data and nobody reads it.
            if reader.is_some() || all[plan].node.kind == "ModifyTable" {
                all[plan].within = reader;
            }
        } else if label.starts_with("InitPlan ") {
            // Somebody may ask whose plan does not say so: an Append that leaves partitions out.
            all[plan].within = first(all, plan, &askers(all, defined, plan, &label)).or(Some(defined));
        }
    }
}

/// By which its readers call a CTE. Since PostgreSQL 19 those of one name are numbered, `CTE c_1`, and their
/// readers are not.
fn cte_name<'a>(all: &[Flat], label: &'a str) -> Option<&'a str> {
    let name = label.strip_prefix("CTE ")?;
    let is_read = |name: &str| {
        all.iter().any(|reader| reader.node.kind == "CTE Scan" && reader.node.cte.as_deref() == Some(name))
    };
    match name.rsplit_once('_') {
        Some((first, number)) if !is_read(name) && number.bytes().all(|digit| digit.is_ascii_digit()) => Some(first),
        _ => Some(name),
    }
}

/// What reads a CTE. A name means the innermost of those who have it.
fn readers(all: &[Flat], defined: usize, plan: usize, name: &str) -> Vec<usize> {
    let reads = |at: usize| all[at].node.kind == "CTE Scan" && all[at].node.cte.as_deref() == Some(name);
    let has_name = |at: usize| all[at].node.subplan.as_deref().and_then(|label| cte_name(all, label)) == Some(name);
    let namesakes = (0..all.len()).filter(|&other| other != plan && has_name(other));
    let inner: Vec<usize> = namesakes
        .filter_map(|other| parent(all, other))
        .filter(|&within| within != defined && is_below(all, within, defined))
        .collect();
    let means_another = |at: usize| inner.iter().any(|&within| is_below(all, at, within));
    wanting(all, defined, plan).filter(|&at| reads(at) && !means_another(at)).collect()
}

/// What asks for an InitPlan's value; a Gather does so before its workers start.
fn askers(all: &[Flat], defined: usize, plan: usize, label: &str) -> Vec<usize> {
    let names = values(label);
    let asks = |at: usize| all[at].node.asks.iter().any(|text| names.iter().any(|name| is_named(text, name)));
    let or_gather = |at: usize| {
        (defined..at).find(|&gather| all[gather].node.is_gather() && is_below(all, at, gather)).unwrap_or(at)
    };
    wanting(all, defined, plan).filter(|&at| asks(at)).map(or_gather).collect()
}

/// Nodes that ran where a subplan is known, and not within it.
fn wanting<'a>(all: &'a [Flat], defined: usize, plan: usize) -> impl Iterator<Item = usize> + 'a {
    let ran = |at: usize| all[at].node.loops.is_none_or(|loops| loops > 0.0);
    (defined..all.len()).filter(move |&at| ran(at) && is_below(all, at, defined) && !is_below(all, at, plan))
}

/// No plan says which of them came first; but that one took at least as long as what it ran, and so did all
/// that it ran within.
fn first(all: &[Flat], plan: usize, wanting: &[usize]) -> Option<usize> {
    let long_enough = |&&at: &&usize| ms(all, at) + all[at].rounded_ms + all[plan].rounded_ms >= ms(all, plan);
    let mut found = *wanting.iter().find(long_enough)?;
    while let Some(&below) = wanting.iter().filter(|&&at| at != found && is_below(all, at, found)).find(long_enough) {
        found = below;
    }
    Some(found)
}

/// Of those that took turns at it.
fn longest(all: &[Flat], wanting: &[usize]) -> Option<usize> {
    // max_by() would give the last of equals.
    wanting.iter().copied().rev().max_by(|&a, &b| ms(all, a).total_cmp(&ms(all, b)))
}

fn ms(all: &[Flat], at: usize) -> f64 {
    all[at].reported_ms.unwrap_or(0.0)
}

/// The node that it hangs at, wherever it runs.
fn parent(all: &[Flat], at: usize) -> Option<usize> {
    let (above, _) = all[at].path.rsplit_once('.')?;
    (0..at).find(|&node| all[node].path == above)
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

/// `$1` is not in `$10`.
fn is_named(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| !text[at + name.len()..].starts_with(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use crate::server::explain::Explained;
    use crate::server::explain::plan::calls::flat;

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
    fn an_init_plan_runs_within_nobody_that_took_less() {
        // The Append has asked for it to leave out partitions, and does not say so.
        let pruned = within(
            r#"{"Plan": {"Node Type": "Append", "Actual Total Time": 200.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1", "Actual Total Time": 190.0, "Actual Loops": 1},
                {"Node Type": "Seq Scan", "Filter": "(day >= (InitPlan 1).col1)", "Actual Total Time": 5.0, "Actual Loops": 1}]}}"#,
        );
        assert_eq!(pruned[1], Some(0));
    }

    #[test]
    fn an_init_plan_runs_within_the_innermost_that_took_as_long() {
        let bitmap = within(
            r#"{"Plan": {"Node Type": "Bitmap Heap Scan", "Recheck Cond": "(a = $0)", "Actual Total Time": 200.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1 (returns $0)", "Actual Total Time": 190.0, "Actual Loops": 1},
                {"Node Type": "Bitmap Index Scan", "Index Cond": "(a = $0)", "Actual Total Time": 195.0, "Actual Loops": 1}]}}"#,
        );
        assert_eq!(bitmap[1], Some(2));
    }

    #[test]
    fn ctes_of_one_name() {
        let cte = |ms: f64| {
            format!(
                r#"{{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": {ms}, "Actual Loops": 1, "Plans": [
                {{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 9.0, "Actual Loops": 1}}]}}"#
            )
        };
        // A view that is read twice.
        let twice = within(&format!(
            r#"{{"Plan": {{"Node Type": "Append", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [{}, {}]}}}}"#,
            cte(11.0),
            cte(10.0)
        ));
        assert_eq!(twice, [None, Some(0), Some(1), Some(0), Some(3)]);
        // WITH c AS (WITH c AS (...) SELECT * FROM c) SELECT * FROM c
        let nested = within(&format!(
            r#"{{"Plan": {{"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": 30.0, "Actual Loops": 1, "Plans": [{}]}}}}"#,
            cte(10.0).replacen(
                r#""CTE Name""#,
                r#""Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "CTE Name""#,
                1
            )
        ));
        assert_eq!(nested, [None, Some(0), Some(1)]);
        // As PostgreSQL 19 prints it; the second is an outer one's plan, which reads the inner one.
        let numbered = within(
            r#"{"Plan": {"Node Type": "Append", "Actual Total Time": 40.0, "Actual Loops": 1, "Plans": [
                {"Node Type": "CTE Scan", "CTE Name": "c", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c", "Actual Total Time": 20.0, "Actual Loops": 1, "Plans": [
                    {"Node Type": "Result", "Parent Relationship": "InitPlan", "Subplan Name": "CTE c_1", "Actual Total Time": 9.0, "Actual Loops": 1}]},
                {"Node Type": "CTE Scan", "CTE Name": "c", "Actual Total Time": 30.0, "Actual Loops": 1}]}}"#,
        );
        assert_eq!(numbered, [None, Some(3), Some(1), Some(0)]);
    }

    #[test]
    fn an_init_plan_that_nobody_names_stays_where_it_hangs() {
        assert_eq!(of_init_plan("InitPlan 1", "", "(a > (InitPlan 12).col1)"), Some(0));
        assert_eq!(of_init_plan("InitPlan 1 (returns $1)", "(a > $10)", "(b = 1)"), Some(0));
    }
}
