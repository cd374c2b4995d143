//! Turns the sums into the report.

use super::entry::Place;
use super::pipeline::Outcome;
use super::skipped::{Skipped, Skips};
use super::source::Sources;
use super::totals::{NodeSum, Shape, Statement, Sum, Sums, Totals};
use crate::error::Error;
use crate::report::{LogPlace, LogReport, LogTotal, LoggedStatement, Range, RankChange, SkippedPlans};
use crate::server::explain::captured::errors;
use crate::statistics::{ranks, root_sum_squares};

/// Returns the report of a log.
pub fn report(sources: &Sources, outcome: Outcome<Totals>) -> LogReport {
    let plans = outcome.plans() as u64;
    let sums = outcome.collectors.into_iter().map(|totals| totals.sums).fold(Sums::default(), Sums::merge);
    let mut notes: Vec<String> = sums.notes.iter().cloned().collect();
    notes.extend(hosts_note(&outcome.hosts));
    notes.extend(outcome.errors.iter().map(|error| error.what.clone()));
    let common_error = sums.common_error;
    let mut statements: Vec<Statement> = sums.into_statements().collect();
    // Equal statements have the order of the log.
    let overhead = |statement: &Statement| statement.sum.reported_ms - statement.sum.corrected_ms.estimate;
    statements.sort_by(|a, b| overhead(b).total_cmp(&overhead(a)).then(a.slowest.cmp(&b.slowest)));
    let total = total_of_all(statements.iter().map(|statement| statement.sum), common_error);
    LogReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        files: (0..sources.paths.len()).map(|file| sources.file(file)).collect(),
        plans,
        total,
        statements: statements.into_iter().map(|statement| logged(statement, sources)).collect(),
        skipped: skipped_plans(sources, outcome.skips),
        is_incomplete: outcome.was_stopped || !outcome.errors.is_empty(),
        notes,
    }
}

/// Returns a note if several servers may have written the log.
fn hosts_note(hosts: &[String]) -> Option<String> {
    (hosts.len() > 1).then(|| {
        format!(
            "the log has lines from several hosts or containers, for example {}; the cost of the clock belongs to one host",
            hosts.join(" and ")
        )
    })
}

/// Returns what was skipped, with the names of the files.
pub fn skipped_plans(sources: &Sources, skips: Skips) -> Vec<SkippedPlans> {
    let of_one_reason = |skipped: Skipped| {
        let Skipped { plans, error, first, is_damaged } = skipped;
        SkippedPlans { plans, reason: error.what, hint: error.hint, first: place(sources, first), is_damaged }
    };
    skips.into_vec().into_iter().map(of_one_reason).collect()
}

/// Returns an error if no plan could be analyzed.
pub fn check_any<C>(outcome: &Outcome<C>) -> Result<(), Error> {
    let plans = outcome.plans() as u64;
    if plans > outcome.skips.plans() {
        return Ok(());
    }
    if outcome.was_stopped {
        return Err(Error::new("stopped before a plan was read", "wait until the progress bar moves"));
    }
    if let Some(error) = outcome.errors.first() {
        return Err(error.clone());
    }
    let Some(most) = outcome.skips.clone().into_vec().into_iter().next() else { return Err(errors::no_plan()) };
    match plans {
        1 => Err(most.error),
        _ => Err(Error::new(
            format!("none of the {plans} plans can be used; {} of them: {}", most.plans, most.error.what),
            most.error.hint,
        )),
    }
}

fn place(sources: &Sources, place: Place) -> LogPlace {
    LogPlace { file: sources.file(place.file), line: place.line }
}

fn logged(statement: Statement, sources: &Sources) -> LoggedStatement {
    let most = statement.shapes.values().max_by(|a, b| a.reported_ms.total_cmp(&b.reported_ms));
    LoggedStatement {
        total: total(statement.sum, statement.sum.corrected_ms, statement.sum.clock_ms),
        plan_shapes: statement.shapes.len(),
        slowest: place(sources, statement.slowest),
        nodes: most.map_or(0, |shape| shape.nodes.len().max(1)),
        rank_changes: most.map_or_else(Vec::new, rank_changes),
        statement: statement.text,
        query_id: statement.query_id,
    }
}

/// Returns the nodes whose rank is another one without timing, in the order of their corrected rank.
fn rank_changes(shape: &Shape) -> Vec<RankChange> {
    let ranks_by = |ms: &dyn Fn(&NodeSum) -> f64| ranks(&shape.nodes.iter().map(ms).collect::<Vec<_>>());
    let (reported, corrected) = (ranks_by(&|node| node.reported_self_ms), ranks_by(&|node| node.corrected_self_ms));
    let mut changes: Vec<RankChange> = shape
        .nodes
        .iter()
        .zip(reported.into_iter().zip(corrected))
        .filter(|(_, (rank, corrected_rank))| rank != corrected_rank)
        .map(|(node, (rank, corrected_rank))| RankChange {
            path: node.path.clone(),
            title: node.title.clone(),
            rank,
            corrected_rank,
            reported_self_ms: node.reported_self_ms,
            corrected_self_ms: node.corrected_self_ms,
        })
        .collect();
    changes.sort_by_key(|change| change.corrected_rank);
    changes
}

/// Returns the sum over all statements. Their errors are independent, except for the relative error of the overhead that
/// all statements of a host have in common.
fn total_of_all(sums: impl Iterator<Item = Sum> + Clone, common_error: f64) -> LogTotal {
    let all = sums.clone().fold(Sum::default(), |all, sum| Sum {
        runs: all.runs + sum.runs,
        reported_ms: all.reported_ms + sum.reported_ms,
        corrected_ms: all.corrected_ms + sum.corrected_ms,
        clock_ms: all.clock_ms + sum.clock_ms,
    });
    let of_all = |range: &dyn Fn(&Sum) -> Range, estimate: f64, common: f64| {
        let below = root_sum_squares(sums.clone().map(|sum| range(&sum)).map(|range| range.estimate - range.low));
        let above = root_sum_squares(sums.clone().map(|sum| range(&sum)).map(|range| range.high - range.estimate));
        Range { low: (estimate - below.hypot(common)).max(0.0), estimate, high: estimate + above.hypot(common) }
    };
    let overhead = (all.reported_ms - all.corrected_ms.estimate).max(0.0);
    let corrected = of_all(&|sum| sum.corrected_ms, all.corrected_ms.estimate, common_error * overhead);
    let clock = of_all(&|sum| sum.clock_ms, all.clock_ms.estimate, common_error * all.clock_ms.estimate);
    total(all, corrected, clock)
}

fn total(sum: Sum, corrected_ms: Range, clock_ms: Range) -> LogTotal {
    let reported_ms = sum.reported_ms;
    let limited = |ms: f64| ms.clamp(0.0, reported_ms);
    let limit =
        |range: Range| Range { low: limited(range.low), estimate: limited(range.estimate), high: limited(range.high) };
    let (corrected_ms, clock_ms) = (limit(corrected_ms), limit(clock_ms));
    let in_shares = if reported_ms > 0.0 { 1.0 / reported_ms } else { 0.0 };
    let mut total = LogTotal { runs: sum.runs, reported_ms, corrected_ms, clock_ms, ..LogTotal::default() };
    total.overhead_share = total.overhead_ms().times(in_shares);
    total.clock_share = clock_ms.times(in_shares);
    total
}
