//! Alarms that are new, gone, or have another severity.

use super::backward;
use super::missing::Missing;
use super::pairs::{Pair, absent};
use super::{ComparedFigure, Effect, FigureName, FindingChange, MissingIn};
use crate::report::{COUNTER, Finding, Origin, Report, SYSTEM, Severity, finding_id};

/// An alarm of one report, whose check the other report cannot decide.
pub struct Undecided {
    pub id: String,
    pub severity: Severity,
    pub missing_in: MissingIn,
    why: &'static str,
}

/// Returns the changes, and the alarms that only one of the reports can show.
pub fn changes(pair: &Pair, figures: &[ComparedFigure], missing: &mut Missing) -> (Vec<FindingChange>, Vec<Undecided>) {
    let mut changes = Vec::new();
    let mut undecided = Vec::new();
    for id in ids(pair) {
        let (before, after) = (finding(pair.before, id), finding(pair.after, id));
        let (Some(before), Some(after)) = (before, after) else {
            let missing_in = match (before, after) {
                // Nothing is known about it, so there is nothing to say.
                (None, None) => continue,
                (None, _) => MissingIn::Before,
                _ => MissingIn::After,
            };
            let severity = before.or(after).map_or(Severity::Unknown, |finding| finding.severity);
            let report = if missing_in == MissingIn::Before { pair.before } else { pair.after };
            let why = match report.origin {
                Origin::PgTestTiming => absent(report),
                Origin::Measured | Origin::Captured => "the check could not decide",
            };
            undecided.push(Undecided { id: id.into(), severity, missing_in, why });
            continue;
        };
        if before.severity == after.severity {
            continue;
        }
        let (worse, other) = match before.severity > after.severity {
            true => (before, MissingIn::After),
            false => (after, MissingIn::Before),
        };
        // pg_test_timing stops at the first step, and does not show how often it read. A sound clock never goes back, so the step
        // counts. Otherwise the report without steps may have too few reads to have seen them.
        let stopped = backward::stopped_at_a_step(pair.before) || backward::stopped_at_a_step(pair.after);
        if id == finding_id::CLOCK_BACKWARD && !stopped && !judged(id, figures).any(has_changed) {
            let why = "it is unknown whether that report would have seen the backward steps";
            undecided.push(Undecided { id: id.into(), severity: worse.severity, missing_in: other, why });
            continue;
        }
        changes.push(FindingChange {
            id: id.into(),
            before: before.severity,
            after: after.severity,
            summary: worse.summary.clone(),
            effect: match is_within_noise(pair, id, figures) {
                true => Effect::Same,
                false => effect(id, before.severity, after.severity),
            },
        });
    }
    // Most checks need facts that pg_test_timing does not show. An alarm must not disappear among them.
    let (alarms, others): (Vec<_>, Vec<_>) = undecided.into_iter().partition(|one| one.severity >= Severity::Warning);
    for one in alarms.iter().chain(&others) {
        let is_alarm = one.severity >= Severity::Warning;
        let alarm = if is_alarm { format!(" ({})", one.severity.word()) } else { String::new() };
        missing.add(format!("{}{alarm}", one.id), one.missing_in, one.why);
    }
    (changes, alarms)
}

/// Returns the ids of both reports in the order of the checks. Other versions can have other ids.
fn ids<'a>(pair: &Pair<'a>) -> Vec<&'a str> {
    let all = pair.before.findings.iter().chain(&pair.after.findings).map(|finding| finding.id.as_str());
    let mut ids: Vec<&str> = all.collect();
    ids.sort_by_key(|id| (finding_id::ALL.iter().position(|known| known == id).unwrap_or(usize::MAX), *id));
    ids.dedup();
    ids
}

/// Returns the finding, if it was decided.
fn finding<'a>(report: &'a Report, id: &str) -> Option<&'a Finding> {
    report.findings.iter().find(|finding| finding.id == id && finding.severity != Severity::Unknown)
}

/// Returns the meaning of another severity.
fn effect(id: &str, before: Severity, after: Severity) -> Effect {
    match after.max(before) {
        // It warns about the next restart. The times of EXPLAIN ANALYZE do not change until then.
        _ if id == finding_id::CLOCKSOURCE_NOT_PERSISTENT => Effect::Changed,
        // Other programs cause most interruptions, so it says more about the load than about the host.
        _ if id == finding_id::CLOCK_GAPS => Effect::Changed,
        Severity::Critical if after > before => Effect::MuchWorse,
        Severity::Critical => Effect::MuchBetter,
        _ if after > before => Effect::Worse,
        _ => Effect::Better,
    }
}

/// Returns whether the finding judges figures that did not change beyond noise. Then a figure is close to a limit.
fn is_within_noise(pair: &Pair, id: &str, figures: &[ComparedFigure]) -> bool {
    // No figure shows a jump, or a change of the rate.
    let drifts = || pair.before.drift.iter().chain(&pair.after.drift);
    if id == finding_id::DRIFT && !drifts().all(|drift| drift.has_constant_rate()) {
        return false;
    }
    judged(id, figures).next().is_some() && !judged(id, figures).any(has_changed)
}

fn has_changed(figure: &ComparedFigure) -> bool {
    figure.effect != Effect::Same
}

/// Returns the figures that the check `id` judges.
fn judged<'a>(id: &'a str, figures: &'a [ComparedFigure]) -> impl Iterator<Item = &'a ComparedFigure> {
    figures.iter().filter(move |figure| {
        let of = |clocks: &[&str]| figure.clock.as_deref().is_some_and(|clock| clocks.contains(&clock));
        match id {
            finding_id::CLOCK_SLOW => figure.is_cost() && of(&[SYSTEM]),
            finding_id::CLOCK_COARSE => figure.figure == FigureName::Step && of(&[SYSTEM]),
            finding_id::CLOCK_GAPS => figure.figure == FigureName::LostTime,
            finding_id::CLOCK_BACKWARD => figure.figure == FigureName::BackwardSteps,
            finding_id::CPU_SKEW => figure.figure == FigureName::Skew,
            finding_id::DRIFT => figure.figure == FigureName::Drift && of(&[SYSTEM]),
            finding_id::TSC_SLOW => {
                figure.is_cost() && of(&[SYSTEM, COUNTER]) || figure.figure == FigureName::TscUsedByDefault
            }
            _ => false,
        }
    })
}
