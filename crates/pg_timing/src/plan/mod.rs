//! Plans that were executed: readers of EXPLAIN's text, JSON, YAML and XML, and the overhead of a captured plan. [`Plan`] is the
//! tree as a flat list with calls and processes.
//!
//! | file | what it does |
//! |---|---|
//! | `find` | finds the plans of a text, and reads those in JSON |
//! | `frame` | what is around each line of a plan, for example the bars of a table |
//! | `text`, `structured` | read one plan in text, or in YAML and XML, which become JSON |
//! | `layout` | restores wrapped lines and lost indentation |
//! | `tree` | the tree of a plan as it was printed, and its nodes in JSON |
//! | `unusable` | which plans cannot be used, and why |
//! | `overhead` | estimates the overhead of a captured plan |
//! | `attribution` | shares an overhead among the nodes |
//! | `writer` | the plan with corrected times |

pub mod attribution;
mod find;
mod frame;
mod layout;
mod overhead;
pub mod structured;
#[cfg(test)]
pub mod tests;
pub mod text;
pub mod tree;
pub mod unusable;
pub mod writer;

pub use find::{each_plan, from_json};
pub use overhead::{ClockOf, Estimate, Inputs, ServerClock, estimate};
pub use tree::{Explained, Node, Rows};
pub use unusable::{Unusable, executed};

use crate::report::{NS_PER_MS, Range};
use crate::statistics::{median, median_error};
use std::collections::{BTreeMap, HashMap, HashSet};
use tree::{is_append, parameters_of_init_plan};

/// A join of ten tables with thousands of partitions each has fewer nodes. A node takes about half a kilobyte of
/// memory.
const MAX_NODES: usize = 100_000;
/// A plan with more levels is damaged, and the tree's functions call themselves for each level.
const MAX_DEPTH: usize = 500;

/// A plan, or why something that looks like a plan cannot be used.
pub type Found = Result<Explained, Unusable>;

/// An executed plan with its tree flattened into a list. It is built once per run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// in the order of the printed tree, the root first
    pub nodes: Vec<PlanNode>,
    pub execution_ms: f64,
    pub planning_ms: Option<f64>,
    /// timed calls that belong to no node
    pub other_calls: f64,
    pub uses_jit: bool,
    /// pg_fast_timing timed the plan
    pub uses_fast_timing: bool,
    pub settings: BTreeMap<String, String>,
    pub query: Option<String>,
}

impl Plan {
    /// Returns the plan with EXPLAIN's tree as a flat list. The caller has checked its execution time.
    pub fn new(explained: Explained) -> Plan {
        Plan {
            execution_ms: explained.execution_ms.unwrap_or_default(),
            planning_ms: explained.planning_ms,
            other_calls: explained.other_calls(),
            uses_jit: explained.jit.is_some(),
            uses_fast_timing: explained.uses_fast_timing(),
            settings: explained.settings,
            query: explained.query,
            nodes: flatten(explained.root),
        }
    }

    /// Returns the calls of the whole plan by one process.
    pub fn calls_per_process(&self) -> Range {
        self.nodes.iter().fold(Range::exactly(self.other_calls), |sum, node| sum + node.calls)
    }

    /// Returns the calls of the whole plan by all processes.
    pub fn all_calls(&self) -> Range {
        self.nodes.iter().fold(Range::exactly(self.other_calls), |sum, node| sum + node.all_calls)
    }

    /// Returns how many processes make calls at the same time, on average over all calls.
    pub fn concurrent_processes(&self) -> f64 {
        let per_process = self.calls_per_process().estimate;
        let all: f64 = self.nodes.iter().map(|node| node.calls.estimate * node.processes).sum();
        if per_process > 0.0 { (all + self.other_calls) / per_process } else { 1.0 }
    }

    /// Returns whether `test` holds for any node.
    pub fn any(&self, test: impl Fn(&Node) -> bool) -> bool {
        self.nodes.iter().any(|node| test(&node.printed))
    }

    /// Returns the number of rows that the statement produced, if the plan shows it.
    pub fn rows(&self) -> Option<f64> {
        Some(self.nodes.first()?.printed.rows?.per_loop)
    }
}

/// A plan node with the figures that the correction needs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// the node as EXPLAIN printed it, without its children: they are nodes of the flat list
    pub printed: Node,
    /// number of child nodes that are not subplans
    pub inputs: usize,
    /// child indexes from the root down, like `0.1`
    pub path: String,
    /// index of the node above in the printed tree
    pub parent: Option<usize>,
    /// index after the last node below this one
    pub end: usize,
    /// the nodes whose calls run this node; for subplans, not always the node above
    pub callers: Callers,
    /// each row is a call. Nodes of extensions and of forks of PostgreSQL may run what is below them in another way
    pub rows_are_calls: bool,
    /// number of processes that ran the node in parallel, on average
    pub processes: f64,
    /// calls of all processes
    pub all_calls: Range,
    /// calls per process, on average
    pub calls: Range,
    /// time that EXPLAIN ANALYZE reported, per process on average; `None` without timing
    pub reported_ms: Option<f64>,
    /// maximum rounding error of `reported_ms`, over all loops
    pub rounding_ms: f64,
}

/// The nodes that run a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Callers {
    /// index of each caller, and the estimated part of the node's time that is within its time. The parts add up to 1
    pub parts: Vec<(usize, f64)>,
    /// only these nodes can have run it
    pub are_certain: bool,
}

impl Callers {
    /// Returns callers whose parts are not known yet.
    pub fn new(callers: Vec<usize>, are_certain: bool) -> Callers {
        Callers { parts: callers.into_iter().map(|caller| (caller, 1.0)).collect(), are_certain }
    }

    /// Returns the caller, if only one node can have run the node.
    pub fn only(&self) -> Option<usize> {
        if let ([(caller, _)], true) = (&self.parts[..], self.are_certain) { Some(*caller) } else { None }
    }

    /// Returns whether several nodes have run parts of the node, and the plan does not show how large they are.
    pub fn are_several(&self) -> bool {
        self.parts.len() > 1
    }
}

impl PlanNode {
    /// Returns whether the node was executed. A node without a loop count is assumed to be executed.
    pub fn was_executed(&self) -> bool {
        self.printed.loops.is_none_or(|loops| loops > 0.0)
    }

    /// Returns the reported time in ms, or 0 if the plan was not timed.
    pub fn reported_or_zero_ms(&self) -> f64 {
        self.reported_ms.unwrap_or(0.0)
    }
}

/// Returns the processes without the leader, at least 1.
fn workers(processes: f64) -> f64 {
    (processes - 1.0).max(1.0)
}

/// Returns, for each node, the nodes that it calls, and which part of their time is within its time.
pub fn callees(nodes: &[PlanNode]) -> Vec<Vec<(usize, f64)>> {
    let mut callees = vec![Vec::new(); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        node.callers.parts.iter().for_each(|&(caller, part)| callees[caller].push((index, part)));
    }
    callees
}

/// Returns the nodes in an order in which each node comes after all nodes that call it. Nodes that call each other in a
/// circle are missing.
pub fn callers_first(nodes: &[PlanNode]) -> Vec<usize> {
    let callees = callees(nodes);
    let mut missing: Vec<usize> = nodes.iter().map(|node| node.callers.parts.len()).collect();
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&node| missing[node] == 0).collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for &(callee, _) in &callees[node] {
            missing[callee] -= 1;
            if missing[callee] == 0 {
                order.push(callee);
            }
        }
    }
    order
}

/// These nodes return all their results in one call.
const ONE_CALL_PER_LOOP: [&str; 4] = ["Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr"];

/// Returns the calls that `parent` made to `child`, over all processes. `is_inner`: it is not the first input.
///
/// Each loop needs one call per row, and one more that finds the end. A parent that needs only one row does not
/// look for the end.
fn calls(parent: Option<&Node>, child: &Node, is_inner: bool) -> Range {
    let loops = child.loops.unwrap_or(0.0);
    let Rows { per_loop: rows, rounding } = child.rows.unwrap_or_default();
    if ONE_CALL_PER_LOOP.contains(&child.kind.as_str()) {
        return Range::exactly(loops);
    }
    // A foreign server that modifies the rows directly needs one call, unless it returns rows.
    if child.kind == "Foreign Scan" && child.name.starts_with("Foreign ") && !child.name.starts_with("Foreign Scan") {
        let high = loops * (rows + rounding + 1.0);
        let returns_rows = parent.and_then(|parent| parent.rows).is_some_and(|rows| rows.per_loop > 0.0);
        return Range { low: loops, estimate: if returns_rows { high } else { loops }, high };
    }
    let rounding = if loops > 1.0 { rounding } else { 0.0 };
    let needs_one_row = is_inner
        && parent.is_some_and(|parent| {
            let finds_one = [" Semi Join", " Anti Join"].iter().any(|join| parent.name.ends_with(join));
            parent.kind == "Nested Loop" && (parent.inner_unique || finds_one)
        });
    // A Limit or an EXISTS may stop before the node below it finds the end. The plan does not show that.
    let low = (rows - rounding).max(1.0);
    Range {
        low: loops * low,
        estimate: loops * if needs_one_row { rows.max(1.0) } else { rows + 1.0 },
        high: loops * (rows + rounding + 1.0),
    }
}

/// Returns the calls of a node whose rows may not be calls: from none to those that its time allows.
fn possible_calls(calls: &Range, node: &Node) -> Range {
    /// The fastest timed call of any published plan took 3.3 ns more than an untimed one (PostgreSQL 19, TSC).
    const FASTEST_CALL_NS: f64 = 3.0;
    /// EXPLAIN rounds the time of a loop to this.
    const STEP_MS: f64 = 0.001;
    let loops = node.loops.unwrap_or(0.0);
    let longest_ns = (node.total_ms.unwrap_or(0.0) + STEP_MS) * loops * NS_PER_MS;
    let most = longest_ns / FASTEST_CALL_NS;
    Range { low: 0.0, estimate: calls.estimate.min(most), high: calls.high.min(most) }
}

/// Returns the calls of one process.
///
/// The upper bound assumes that the leader only collected the workers' rows, so the workers made all calls.
fn per_process(calls: Range, processes: f64) -> Range {
    Range { low: calls.low / processes, estimate: calls.estimate / processes, high: calls.high / workers(processes) }
}

/// Returns the number of processes that ran the input of a Gather, on average. Each ran it once per loop.
///
/// `Workers Launched` is not used: it describes the last loop only, and the leader may not have taken part.
fn processes_below_gather(input: &Node, gather: &Node) -> f64 {
    match (input.loops, gather.loops) {
        (Some(input_loops), Some(gather_loops)) if gather_loops > 0.0 => (input_loops / gather_loops).max(1.0),
        _ => 1.0,
    }
}

/// Returns the 95% margin of the median of `part_ms`, in ms. `part_ms` returns a part of the root's time.
///
/// The margin comes from the runs' shares of their own root, because the machine's speed cancels in a share.
/// It is 0 for a single run.
pub fn share_margin_ms(plans: &[Plan], part_ms: impl Fn(&[PlanNode]) -> Option<f64>) -> f64 {
    let root_ms = |plan: &Plan| plan.nodes.first()?.reported_ms.filter(|&root| root > 0.0);
    let shares: Vec<f64> = plans.iter().filter_map(|plan| Some(part_ms(&plan.nodes)? / root_ms(plan)?)).collect();
    let roots: Vec<f64> = plans.iter().filter_map(root_ms).collect();
    if shares.len() > 1 { median_error(&shares) * median(&roots) } else { 0.0 }
}

fn flatten(root: Node) -> Vec<PlanNode> {
    let mut nodes = Vec::new();
    add(&mut nodes, root, None, "0".into(), 1.0);
    assign_callers(&mut nodes);
    nodes
}

/// Adds a node and those below it. `place`: its parent, and the number of the parent's inputs before it.
fn add(nodes: &mut Vec<PlanNode>, mut node: Node, place: Option<(usize, usize)>, path: String, processes: f64) {
    /// EXPLAIN prints the time of one loop in ms with three decimals.
    const ROUNDING_MS: f64 = 0.0005;
    let children = std::mem::take(&mut node.children);
    let parent = place.map(|(parent, _)| &nodes[parent]);
    let rows_are_calls = tree::is_known(&node.kind) && parent.is_none_or(|parent| parent.rows_are_calls);
    let is_inner = node.subplan.is_none() && place.is_some_and(|(_, inputs_before)| inputs_before > 0);
    let all_calls = calls(parent.map(|parent| &parent.printed), &node, is_inner);
    let all_calls = if rows_are_calls { all_calls } else { possible_calls(&all_calls, &node) };
    let loops = node.loops.unwrap_or(0.0);
    let index = nodes.len();
    nodes.push(PlanNode {
        inputs: children.iter().filter(|child| child.subplan.is_none()).count(),
        path: path.clone(),
        parent: place.map(|(parent, _)| parent),
        end: index + 1,
        callers: Callers::new(place.into_iter().map(|(parent, _)| parent).collect(), node.subplan.is_none()),
        rows_are_calls,
        processes,
        all_calls,
        calls: per_process(all_calls, processes),
        reported_ms: node.total_ms.map(|ms| ms * loops / processes),
        rounding_ms: ROUNDING_MS * loops / processes,
        printed: node,
    });
    let mut inputs_before = 0;
    for (n, child) in children.into_iter().enumerate() {
        let gather = &nodes[index].printed;
        // Only the leader runs the subplans of a Gather.
        let below_gather = gather.is_gather() && child.subplan.is_none();
        let processes = if below_gather { processes_below_gather(&child, gather) } else { processes };
        let place = Some((index, inputs_before));
        inputs_before += usize::from(child.subplan.is_none());
        add(nodes, child, place, format!("{path}.{n}"), processes);
    }
    nodes[index].end = nodes.len();
}

// The node that runs each subplan. EXPLAIN prints a subplan where it is defined, not where it runs.

/// Maximum number of subplans with one name at one place. No real plan has more. If there are more, all of them keep
/// the caller that EXPLAIN shows. Without the limit, a file in which all subplans and all conditions have one name
/// would take hours.
const MAX_NAMESAKES: usize = 10;

/// Sets the callers of CTEs and InitPlans to the nodes that run them.
///
/// The time of a CTE that several nodes read is divided among them in proportion to their own times: the plan does not show
/// which rows were computed for which reader. The same applies to an InitPlan with several users.
fn assign_callers(nodes: &mut [PlanNode]) {
    let callers = callers_of_ctes(nodes).into_iter().chain(callers_of_init_plans(nodes));
    for (subplan, callers) in callers.collect::<Vec<_>>() {
        nodes[subplan].callers = callers;
    }
    // In a damaged file, CTEs may call each other in a circle.
    let mut in_circle = vec![true; nodes.len()];
    callers_first(nodes).into_iter().for_each(|node| in_circle[node] = false);
    for (node, _) in nodes.iter_mut().zip(in_circle).filter(|(_, in_circle)| *in_circle) {
        node.callers = Callers::new(node.parent.into_iter().collect(), false);
    }
    divide_shared_subplans(nodes);
}

/// Divides each subplan with several callers in proportion to the time that each caller has without the nodes that only it
/// has called.
fn divide_shared_subplans(nodes: &mut [PlanNode]) {
    let own_ms: Vec<f64> = callees(nodes)
        .iter()
        .zip(nodes.iter())
        .map(|(callees, node)| {
            let called = callees.iter().filter(|(callee, _)| !nodes[*callee].callers.are_several());
            let called_ms: f64 = called.map(|(callee, _)| nodes[*callee].reported_or_zero_ms()).sum();
            (node.reported_or_zero_ms() - called_ms).max(0.0)
        })
        .collect();
    for node in nodes.iter_mut().filter(|node| node.callers.are_several()) {
        let equal = 1.0 / node.callers.parts.len() as f64;
        let sum: f64 = node.callers.parts.iter().map(|(caller, _)| own_ms[*caller]).sum();
        for (caller, part) in &mut node.callers.parts {
            *part = if sum > 0.0 { own_ms[*caller] / sum } else { equal };
        }
    }
}

/// Returns the callers of all CTEs whose caller is not the node above.
fn callers_of_ctes(nodes: &[PlanNode]) -> Vec<(usize, Callers)> {
    let all_scans = nodes.iter().enumerate().filter(|(_, node)| node.printed.kind == "CTE Scan");
    let scans: Vec<(usize, &str)> =
        all_scans.filter_map(|(index, node)| Some((index, node.printed.cte.as_deref()?))).collect();
    let names: HashSet<&str> = scans.iter().map(|(_, name)| *name).collect();
    // The node that defines a CTE, and the CTE's name. Only a damaged file or an old server repeats a name.
    let mut defined: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let name = node.printed.subplan.as_deref().and_then(|label| cte_name(label, |name| names.contains(name)));
        if let Some(place) = node.parent.zip(name) {
            defined.entry(place).or_default().push(index);
        }
    }
    // If several CTEs have one name, a scan reads the innermost one around it.
    let mut readers: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
    for &(index, name) in scans.iter().filter(|(index, _)| nodes[*index].was_executed()) {
        let mut around = std::iter::successors(Some(index), |node| nodes[*node].parent);
        if let Some(definer) = around.find(|node| defined.contains_key(&(*node, name))) {
            readers.entry((definer, name)).or_default().push(index);
        }
    }
    let mut callers = Vec::new();
    for (place, subplans) in defined {
        let readers = readers.get(&place).map_or(&[][..], Vec::as_slice);
        for &subplan in subplans.iter().filter(|_| subplans.len() <= MAX_NAMESAKES) {
            let readers = outside_of(nodes, subplan, readers);
            // A data-modifying CTE without a reader runs at the end, outside of all nodes. So does the rest of such a CTE
            // that its reader did not read to the end.
            let modifies = nodes[subplan].printed.kind == "ModifyTable";
            let are_certain = subplans.len() == 1 && !modifies;
            if !readers.is_empty() || modifies {
                callers.push((subplan, Callers::new(readers, are_certain)));
            }
        }
    }
    callers
}

/// Returns the name that CTE scans use for this CTE.
///
/// PostgreSQL 19 numbers CTEs of the same name, `CTE c_1`, but not their scans.
fn cte_name(label: &str, has_scan: impl Fn(&str) -> bool) -> Option<&str> {
    let name = label.strip_prefix("CTE ")?;
    match name.rsplit_once('_') {
        Some((base, number)) if !has_scan(name) && number.bytes().all(|digit| digit.is_ascii_digit()) => Some(base),
        _ => Some(name),
    }
}

/// Returns the callers of all InitPlans whose caller is not the node above.
fn callers_of_init_plans(nodes: &[PlanNode]) -> Vec<(usize, Callers)> {
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut init_plans: Vec<(usize, usize, Vec<&str>)> = Vec::new();
    let mut namesakes: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for parameter in node.printed.parameters.iter().filter(|_| node.was_executed()) {
            users.entry(parameter).or_default().push(index);
        }
        let label = node.printed.subplan.as_deref().filter(|label| label.starts_with("InitPlan "));
        if let (Some(label), Some(definer)) = (label, node.parent) {
            let sets = parameters_of_init_plan(label);
            sets.iter().for_each(|parameter| *namesakes.entry(parameter).or_default() += 1);
            init_plans.push((index, definer, sets));
        }
    }
    let mut callers = Vec::new();
    for (subplan, definer, sets) in init_plans {
        let mut callers_of_this = Vec::new();
        for parameter in sets.into_iter().filter(|parameter| namesakes[parameter] <= MAX_NAMESAKES) {
            let users = users.get(parameter).map_or(&[][..], Vec::as_slice);
            let begin = users.partition_point(|&user| user < definer);
            let end = users.partition_point(|&user| user < nodes[definer].end);
            let users = outside_of(nodes, subplan, &users[begin..end]);
            // If a node that uses the value is below a Gather, the Gather counts as the user: it computes the value
            // before its workers start.
            callers_of_this.extend(users.into_iter().map(|user| {
                let above = std::iter::successors(nodes[user].parent, |&node| nodes[node].parent);
                let within = above.take_while(|&node| node >= definer);
                within.filter(|&node| nodes[node].printed.is_gather()).last().unwrap_or(user)
            }));
        }
        callers_of_this.sort_unstable();
        callers_of_this.dedup();
        // Some nodes use an InitPlan without a visible condition, for example an Append that prunes partitions.
        let long_enough = innermost_long_enough(nodes, subplan, &callers_of_this);
        if !long_enough.is_empty() {
            let has_append = nodes[definer..nodes[definer].end].iter().any(|node| is_append(&node.printed.kind));
            let are_certain = callers_of_this.len() == 1 && !has_append;
            callers.push((subplan, Callers::new(long_enough, are_certain)));
        }
    }
    callers
}

/// Returns the nodes that do not belong to a subplan.
fn outside_of(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Vec<usize> {
    let own = subplan..nodes[subplan].end;
    candidates.iter().copied().filter(|node| !own.contains(node)).collect()
}

/// Returns the candidates that took at least as long as the subplan, without those that contain another one of them. The
/// candidates are in the order of the tree.
///
/// EXPLAIN does not show which node ran an InitPlan first. But that node, and all nodes that called it, took at least as
/// long as the InitPlan.
fn innermost_long_enough(nodes: &[PlanNode], subplan: usize, candidates: &[usize]) -> Vec<usize> {
    let subplan = &nodes[subplan];
    let mut found: Vec<usize> = Vec::new();
    for &index in candidates {
        let rounding = nodes[index].rounding_ms + subplan.rounding_ms;
        if nodes[index].reported_or_zero_ms() + rounding < subplan.reported_or_zero_ms() {
            continue;
        }
        if found.last().is_some_and(|last| index < nodes[*last].end) {
            found.pop();
        }
        found.push(index);
    }
    found
}
