//! The figures of a node's line, as far as they exclude a parent.

use crate::server::explain::captured::node_line::costs;
use crate::server::explain::plan::Node;
use crate::server::explain::plan::validate::with_tolerance;

/// EXPLAIN prints costs with two decimals.
const COST_ROUNDING: f64 = 0.01;
/// EXPLAIN prints the time of one loop in ms with three decimals.
const MS_ROUNDING: f64 = 0.0005;

/// What is known about a node in all of its loops.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub loops: f64,
    pub rows: f64,
    pub rows_rounding: f64,
    /// `None` if times cannot be compared
    pub ms: Option<f64>,
    pub ms_rounding: f64,
    pub startup_cost: Option<f64>,
    pub total_cost: Option<f64>,
}

/// The sums of a node's inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub rows: f64,
    pub rows_rounding: f64,
    pub ms: f64,
    pub ms_rounding: f64,
    pub cost: f64,
    pub loops: f64,
}

impl Figures {
    pub fn of(node: &Node, line: &str) -> Figures {
        let loops = node.loops.unwrap_or(0.0);
        let (rows, rounding) = node.rows.map_or((0.0, 0.0), |rows| (rows.per_loop, rows.rounding));
        let costs = costs(line);
        Figures {
            loops,
            rows: rows * loops,
            rows_rounding: if loops > 1.0 { rounding * loops } else { 0.0 },
            ms: node.total_ms.map(|ms| ms * loops),
            ms_rounding: MS_ROUNDING * loops,
            startup_cost: costs.map(|(startup, _)| startup),
            total_cost: costs.map(|(_, total)| total),
        }
    }

    /// Returns whether a node with these figures can have an input. `inputs` are the sums of its inputs before this one.
    pub fn allow_input(&self, kind: &str, inputs: &Sums, input: &Figures) -> bool {
        // An executed node has executed its parent.
        let was_executed = self.loops > 0.0 || input.loops == 0.0;
        let repeats = match kind {
            // The inner side is repeated for each row of the outer side.
            "Nested Loop" if inputs.loops > 0.0 => input.loops <= inputs.rows + inputs.rows_rounding,
            // Each process repeats its part of the plan. The others are unknown nodes of extensions.
            "Gather" | "Gather Merge" | "Recursive Union" | "Custom Scan" | "Foreign Scan" => true,
            _ if !is_known(kind) => true,
            _ => input.loops <= self.loops,
        };
        let starts = match (kind, self.startup_cost, input.total_cost, input.startup_cost) {
            ("Sort", Some(startup), Some(total), _) => startup + COST_ROUNDING >= total,
            ("Limit", Some(startup), _, Some(input)) => startup + COST_ROUNDING >= input,
            _ => true,
        };
        was_executed && repeats && starts
    }

    /// Returns whether a node with these figures can have these inputs and no others.
    pub fn allow_inputs(&self, kind: &str, is_parallel: bool, inputs: &Sums, count: usize) -> bool {
        let is_gather = kind.starts_with("Gather");
        // Processes run at the same time.
        let fits_ms = self
            .ms
            .is_none_or(|ms| is_gather || inputs.ms <= with_tolerance(ms, self.ms_rounding + inputs.ms_rounding));
        let includes_cost = match kind {
            "Append" => !is_parallel,
            "Aggregate" | "Bitmap Heap Scan" | "Gather" | "Gather Merge" | "Group" | "Hash" | "Hash Join"
            | "LockRows" | "Materialize" | "Memoize" | "Merge Append" | "ProjectSet" | "Sort" | "Subquery Scan"
            | "Unique" | "WindowAgg" => true,
            _ => false,
        };
        let fits_cost = self
            .total_cost
            .is_none_or(|cost| !includes_cost || inputs.cost <= cost * 1.001 + COST_ROUNDING * (count + 1) as f64);
        let rounding = self.rows_rounding + inputs.rows_rounding;
        let fits_rows = match kind {
            "Append" | "Merge Append" => {
                // The node may have read one row of each input that nobody needed.
                let unread = count as f64 * self.loops;
                self.rows <= inputs.rows + rounding && inputs.rows <= self.rows + rounding + unread
            }
            _ => true,
        };
        fits_ms && fits_cost && fits_rows
    }
}

fn is_known(kind: &str) -> bool {
    crate::report::is_measured(kind) || crate::server::explain::plan::validate::least_inputs(kind) > 0
}

impl Sums {
    pub fn with(self, input: &Figures) -> Sums {
        Sums {
            rows: self.rows + input.rows,
            rows_rounding: self.rows_rounding + input.rows_rounding,
            ms: self.ms + input.ms.unwrap_or(0.0),
            ms_rounding: self.ms_rounding + input.ms_rounding,
            cost: self.cost + input.total_cost.unwrap_or(0.0),
            loops: self.loops + input.loops,
        }
    }
}
