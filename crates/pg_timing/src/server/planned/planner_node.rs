//! A plan node as EXPLAIN prints it without ANALYZE: the planner's rows and costs.

use serde::Deserialize;

/// The properties that the number of calls depends on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PlannerNode {
    #[serde(rename = "Node Type")]
    pub kind: String,
    #[serde(rename = "Parent Relationship")]
    pub relationship: Option<String>,
    #[serde(rename = "Subplan Name")]
    pub subplan: Option<String>,
    #[serde(rename = "Join Type")]
    pub join: Option<String>,
    #[serde(rename = "Operation")]
    pub operation: Option<String>,
    #[serde(rename = "Strategy")]
    pub strategy: Option<String>,
    #[serde(rename = "Inner Unique")]
    pub inner_unique: bool,
    #[serde(rename = "Parallel Aware")]
    pub parallel_aware: bool,
    #[serde(rename = "Single Copy")]
    pub single_copy: bool,
    #[serde(rename = "Workers Planned")]
    pub workers: f64,
    /// rows per loop, and per process in a parallel plan
    #[serde(rename = "Plan Rows")]
    pub rows: f64,
    #[serde(rename = "Startup Cost")]
    pub startup_cost: f64,
    #[serde(rename = "Total Cost")]
    pub total_cost: f64,
    #[serde(rename = "Filter")]
    pub filter: Option<String>,
    #[serde(rename = "Join Filter")]
    pub join_filter: Option<String>,
    #[serde(rename = "Hash Cond")]
    pub hash_condition: Option<String>,
    #[serde(rename = "Index Cond")]
    pub index_condition: Option<String>,
    #[serde(rename = "TID Cond")]
    pub tid_condition: Option<String>,
    #[serde(rename = "Schema")]
    pub schema: Option<String>,
    #[serde(rename = "Relation Name")]
    pub relation: Option<String>,
    /// partitions that the values of the parameters exclude
    #[serde(rename = "Subplans Removed")]
    pub removed: f64,
    #[serde(rename = "Plans")]
    pub plans: Vec<PlannerNode>,
}

/// One statement in EXPLAIN's JSON.
#[derive(Debug, Deserialize)]
struct PlannedStatement {
    #[serde(rename = "Plan")]
    plan: PlannerNode,
}

/// The planner prints at most this number of rows (MAXIMUM_ROWCOUNT in costsize.c), and no cost is higher by much.
const MAX_FIGURE: f64 = 1e100;
/// A plan with more workers is damaged: the limit of max_parallel_workers is 1024.
const MAX_WORKERS: f64 = 1024.0;

impl PlannerNode {
    /// Reads the JSON of EXPLAIN for one statement. Returns why there is no single plan.
    pub fn of_json(json: &str) -> Result<PlannerNode, &'static str> {
        const SEVERAL: &str = "a rule makes several statements, or none, of it";
        let Ok(statements) = serde_json::from_str::<Vec<PlannedStatement>>(json) else {
            return Err("pg_timing does not understand the server's plan");
        };
        let [statement] = <[PlannedStatement; 1]>::try_from(statements).map_err(|_| SEVERAL)?;
        match statement.plan.is_plausible() {
            true => Ok(statement.plan.with_one_partition()),
            false => Err("the server's plan has impossible figures"),
        }
    }

    /// Adds a partition to an Append without any. We plan with NULL values, which usually exclude all partitions, and real
    /// values usually leave one.
    fn with_one_partition(mut self) -> PlannerNode {
        if self.removed >= 1.0 && self.plans.is_empty() {
            self.rows = (self.rows / self.removed).max(1.0);
            self.plans.push(PlannerNode { kind: "Index Scan".into(), rows: self.rows, ..PlannerNode::default() });
        }
        self.plans = self.plans.into_iter().map(PlannerNode::with_one_partition).collect();
        self
    }

    fn is_plausible(&self) -> bool {
        let is_figure = |figure: f64| (0.0..=MAX_FIGURE).contains(&figure);
        is_figure(self.rows)
            // Disabled nodes and some extensions have negative costs.
            && self.startup_cost.abs() <= MAX_FIGURE
            && self.total_cost.abs() <= MAX_FIGURE
            && (0.0..=MAX_WORKERS).contains(&self.workers)
            && is_figure(self.removed)
            && self.plans.iter().all(PlannerNode::is_plausible)
    }

    /// Returns the child nodes that are not subplans.
    pub fn inputs(&self) -> impl Iterator<Item = &PlannerNode> {
        self.plans.iter().filter(|plan| plan.subplan.is_none())
    }

    /// Returns whether the processes of a parallel plan share this node's rows.
    pub fn is_partial(&self) -> bool {
        self.parallel_aware
            || !self.kind.starts_with("Gather") && self.inputs().next().is_some_and(PlannerNode::is_partial)
    }

    /// Returns the number of joins with a condition. Without one, each outer row has all inner rows.
    pub fn joins(&self) -> u32 {
        let is_join = match self.kind.as_str() {
            "Hash Join" | "Merge Join" => true,
            "Nested Loop" => self.join_filter.is_some() || self.plans.iter().skip(1).any(PlannerNode::has_condition),
            _ => false,
        };
        u32::from(is_join) + self.plans.iter().map(PlannerNode::joins).sum::<u32>()
    }

    /// Returns whether a condition of this node, or of one below it, can select rows.
    fn has_condition(&self) -> bool {
        let own = [&self.filter, &self.join_filter, &self.hash_condition, &self.index_condition, &self.tid_condition];
        own.into_iter().any(Option::is_some) || self.plans.iter().any(PlannerNode::has_condition)
    }

    /// Returns whether a condition uses this subplan, and whether it is a hash table there.
    pub fn use_of(&self, subplan: &str) -> SubplanUse {
        let conditions = [&self.filter, &self.join_filter, &self.hash_condition].into_iter().flatten();
        let found: Vec<bool> = conditions
            .flat_map(|condition| {
                condition.match_indices(subplan).map(|(at, _)| {
                    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                    let ends = condition[at + subplan.len()..].starts_with(is_end);
                    ends.then(|| condition[..at].ends_with("hashed "))
                })
            })
            .flatten()
            .collect();
        match found[..] {
            [] => SubplanUse::InOutput,
            _ if found.contains(&true) => SubplanUse::Hashed,
            _ => SubplanUse::InCondition,
        }
    }
}

/// Where a node uses a subplan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubplanUse {
    /// no condition names it: it belongs to the output columns, and runs once per row
    InOutput,
    /// it runs once per row before the filter
    InCondition,
    /// it runs once and fills a hash table
    Hashed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_plan_with_possible_figures_is_accepted() {
        let plan = r#"{"Plan": {"Node Type": "Seq Scan", "Plan Rows": 5, "Total Cost": 1.5, "Parallel Aware": false}}"#;
        let node = PlannerNode::of_json(&format!("[{plan}]")).unwrap();
        assert_eq!((node.kind.as_str(), node.rows, node.total_cost), ("Seq Scan", 5.0, 1.5));
        for json in ["[]", "", "[7]", &format!("[{plan}, {plan}]"), r#"["Utility Statement"]"#] {
            assert!(PlannerNode::of_json(json).is_err(), "{json}");
        }
        for rows in ["-5", "1e300"] {
            let json = format!("[{}]", plan.replace("\"Plan Rows\": 5", &format!("\"Plan Rows\": {rows}")));
            assert_eq!(PlannerNode::of_json(&json), Err("the server's plan has impossible figures"), "{rows}");
        }
    }

    #[test]
    fn only_joins_with_a_condition_have_the_error_of_a_join() {
        let node = |kind: &str, plans| PlannerNode { kind: kind.into(), plans, ..PlannerNode::default() };
        let inner = |condition: Option<&str>| {
            let scan = PlannerNode { index_condition: condition.map(String::from), ..node("Index Scan", Vec::new()) };
            node("Nested Loop", vec![node("Seq Scan", Vec::new()), node("Memoize", vec![scan])])
        };
        assert_eq!([inner(None).joins(), inner(Some("(a = b)")).joins()], [0, 1]);
        assert_eq!(PlannerNode { join_filter: Some("(a > b)".into()), ..inner(None) }.joins(), 1);
        assert_eq!(node("Hash Join", vec![inner(Some("(a = b)"))]).joins(), 2);
    }

    #[test]
    fn one_of_the_excluded_partitions_is_read() {
        let json = r#"[{"Plan": {"Node Type": "Append", "Plan Rows": 400, "Subplans Removed": 4}}]"#;
        let append = PlannerNode::of_json(json).unwrap();
        assert_eq!((append.rows, append.plans[0].rows, append.plans.len()), (100.0, 100.0, 1));
    }

    #[test]
    fn conditions_show_how_a_subplan_is_used() {
        let node = |filter: &str| PlannerNode { filter: Some(filter.into()), ..PlannerNode::default() };
        for (filter, used) in [
            ("(a > (SubPlan 1))", SubplanUse::InCondition),
            ("(NOT (hashed SubPlan 1))", SubplanUse::Hashed),
            ("(ANY (a = (hashed SubPlan 1).col1))", SubplanUse::Hashed),
            ("(a > (SubPlan 12))", SubplanUse::InOutput),
            ("(a > 5)", SubplanUse::InOutput),
        ] {
            assert_eq!(node(filter).use_of("SubPlan 1"), used, "{filter}");
        }
    }
}
