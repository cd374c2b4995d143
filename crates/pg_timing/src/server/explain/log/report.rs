//! Turns the sums into the report.

use super::Gaps;
use super::entry::Place;
use super::notes;
use super::pipeline::Outcome;
use super::shapes::{NodeSum, Shape};
use super::skipped::{Skipped, Skips};
use super::source::Sources;
use super::statements::Statement;
use super::totals::Sum;
use crate::error::Error;
use crate::report::{LogPlace, LogReport, LogTotal, LoggedStatement, Range, RankChange, SelfTime, SkippedPlans};
use crate::server::explain::captured::errors;
use crate::statistics::{ranks, root_sum_squares};

/// Returns the report of a log.
pub fn report(sources: &Sources, gaps: Gaps, sum: Sum) -> LogReport {
    let mut notes: Vec<String> = sum.notes.iter().cloned().collect();
    notes.extend(gaps.notes);
    notes.extend(notes::on_nested_plans(&sum, sources));
    let Sum { statements, nested_plans, nested_ms, common_error, .. } = sum;
    let plans_without_row = statements.plans_without_row;
    let mut statements: Vec<Statement> = statements.into_statements().collect();
    notes.extend(notes::on_limits(plans_without_row, &statements));
    notes.extend(gaps.errors.iter().map(|error| error.what.clone()));
    // Equal statements have the order of the log.
    statements.sort_by(|a, b| overhead_ms(b).total_cmp(&overhead_ms(a)).then(a.slowest.cmp(&b.slowest)));
    LogReport {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        files: (0..sources.paths.len()).map(|file| sources.file(file)).collect(),
        plans: gaps.plans as u64,
        total: LogTotal { nested_runs: nested_plans, ..total_of_all(&statements, nested_ms, common_error) },
        nested_ms,
        statements: statements.into_iter().map(|statement| logged(statement, sources)).collect(),
        skipped: gaps.skipped,
        hosts: gaps.hosts,
        is_incomplete: gaps.was_stopped || !gaps.errors.is_empty(),
        notes,
    }
}

/// Returns the time that a statement lost, with that of the statements that it called.
fn overhead_ms(statement: &Statement) -> f64 {
    statement.reported_ms - statement.own_corrected_ms.estimate + statement.called.overhead_ms.estimate
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
    if let Some(error) = outcome.read.errors.first() {
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
    let called = statement.called;
    let corrected_ms = Range {
        low: statement.own_corrected_ms.low - called.overhead_ms.high,
        estimate: statement.own_corrected_ms.estimate - called.overhead_ms.estimate,
        high: statement.own_corrected_ms.high - called.overhead_ms.low,
    };
    let clock_ms = statement.own_clock_ms + called.clock_ms;
    let most = statement.shapes.most();
    LoggedStatement {
        total: LogTotal {
            nested_runs: statement.nested_runs,
            ..total(statement.runs, statement.reported_ms, corrected_ms, clock_ms)
        },
        called_overhead_ms: (called.plans > 0).then_some(called.overhead_ms),
        plan_shapes: statement.shapes.len(),
        slowest: place(sources, statement.slowest),
        nodes: most.map_or(0, |shape| shape.nodes.len().max(1)),
        rank_changes: most.map_or_else(Vec::new, rank_changes),
        statement: statement.text,
        query_id: statement.query_id,
    }
}

/// Returns the nodes whose rank the overhead changed by more than the errors, in the order of their corrected rank.
fn rank_changes(shape: &Shape) -> Vec<RankChange> {
    let ranks_by = |ms: &dyn Fn(&SelfTime) -> f64| ranks(&shape.nodes.iter().map(|n| ms(&n.time)).collect::<Vec<_>>());
    let (reported, corrected) = (ranks_by(&|time| time.reported_ms), ranks_by(&|time| time.corrected_ms));
    // The overhead of nested plans can be in the time of each node.
    let with_rank = |((node, rank), corrected_rank): ((&NodeSum, usize), usize)| SelfTime {
        corrected_margin_ms: node.time.corrected_margin_ms + shape.called_overhead_ms,
        rank,
        corrected_rank,
        ..node.time
    };
    let times: Vec<SelfTime> = shape.nodes.iter().zip(reported).zip(corrected).map(with_rank).collect();
    let sum = |ms: &dyn Fn(&SelfTime) -> f64| times.iter().map(ms).sum::<f64>();
    let (reported_ms, corrected_ms) = (sum(&|time| time.reported_ms), sum(&|time| time.corrected_ms));
    let has_changed = |time: &SelfTime| time.has_other_rank(times.iter().copied(), reported_ms, corrected_ms);
    let changed = shape.nodes.iter().zip(&times).filter(|(_, time)| has_changed(time));
    let mut changes: Vec<RankChange> = changed
        .map(|(node, time)| RankChange {
            path: node.path.clone(),
            title: node.title.clone(),
            rank: time.rank,
            corrected_rank: time.corrected_rank,
            reported_self_ms: time.reported_ms,
            corrected_self_ms: time.corrected_ms,
        })
        .collect();
    changes.sort_by_key(|change| change.corrected_rank);
    changes
}

/// Returns the sum over all statements. It contains `nested_ms` once, although both the nested statements and their callers
/// contain it.
///
/// The errors of different statements are independent, except for the relative error of the overhead that all statements
/// of a host have in common.
fn total_of_all(statements: &[Statement], nested_ms: f64, common_error: f64) -> LogTotal {
    let sum = |value: &dyn Fn(&Statement) -> f64| statements.iter().map(value).sum::<f64>();
    let margin = |range: &dyn Fn(&Statement) -> Range, common: f64| {
        let below = root_sum_squares(statements.iter().map(range).map(|range| range.estimate - range.low));
        let above = root_sum_squares(statements.iter().map(range).map(|range| range.high - range.estimate));
        (below.hypot(common), above.hypot(common))
    };
    let of_all = |range: &dyn Fn(&Statement) -> Range, estimate: f64, common: f64| {
        let (below, above) = margin(range, common);
        Range { low: (estimate - below).max(0.0), estimate, high: estimate + above }
    };
    let reported = (sum(&|statement| statement.reported_ms) - nested_ms).max(0.0);
    let corrected = (sum(&|statement| statement.own_corrected_ms.estimate) - nested_ms).max(0.0);
    let clock = sum(&|statement| statement.own_clock_ms.estimate);
    let corrected = of_all(&|statement| statement.own_corrected_ms, corrected, common_error * (reported - corrected));
    let clock = of_all(&|statement| statement.own_clock_ms, clock, common_error * clock);
    total(statements.iter().map(|statement| statement.runs).sum(), reported, corrected, clock)
}

fn total(runs: u64, reported_ms: f64, corrected_ms: Range, clock_ms: Range) -> LogTotal {
    let limited = |ms: f64| ms.clamp(0.0, reported_ms);
    let limit =
        |range: Range| Range { low: limited(range.low), estimate: limited(range.estimate), high: limited(range.high) };
    let (corrected_ms, clock_ms) = (limit(corrected_ms), limit(clock_ms));
    let in_shares = if reported_ms > 0.0 { 1.0 / reported_ms } else { 0.0 };
    let mut total = LogTotal { runs, reported_ms, corrected_ms, clock_ms, ..LogTotal::default() };
    total.overhead_share = total.overhead_ms().times(in_shares);
    total.clock_share = clock_ms.times(in_shares);
    total
}
