//! The verdict: the worst change, in sentences.

use super::findings::Undecided;
use super::pairs::{Pair, needs_postgres_19};
use super::{CompareVerdict, Compared, ComparedFigure, Effect, FigureName, FindingChange, MissingIn, Program, cost};
use crate::human::{duration, percent};
use crate::report::{SYSTEM, Severity, finding_id};

/// Returns the verdict. The worst change counts, then a missing comparison, then the best change.
pub fn verdict(
    pair: &Pair,
    figures: &[ComparedFigure],
    findings: &[FindingChange],
    undecided: &[Undecided],
) -> CompareVerdict {
    let all = || figures.iter().map(|figure| figure.effect).chain(findings.iter().map(|finding| finding.effect));
    let cost = figures.iter().find(|figure| figure.is_cost() && figure.clock.as_deref() == Some(SYSTEM));
    let worst = all().max().unwrap_or(Effect::Same);
    let best = all().min().unwrap_or(Effect::Same);
    // It is unknown whether it is new, or gone.
    let has_unknown_fault = undecided.iter().any(|one| one.severity == Severity::Critical);
    let effect = match () {
        () if worst >= Effect::Worse => worst,
        () if cost.is_none() || has_unknown_fault => Effect::NotCompared,
        () if best <= Effect::Better => best,
        () => worst,
    };
    let mut sentences: Vec<(Effect, String)> = Vec::new();
    if cost.is_none() {
        sentences.push((Effect::NotCompared, "The read cost of PostgreSQL's clock could not be compared.".into()));
    }
    let (costs, others): (Vec<_>, Vec<_>) = figures.iter().partition(|figure| figure.is_cost());
    let matters = |effect: Effect| !matches!(effect, Effect::Same | Effect::Changed);
    let costs = costs.iter().filter(|figure| matters(figure.effect));
    sentences.extend(costs.filter_map(|figure| Some((figure.effect, cost_sentence(figure)?))));
    if let Some(cost) = cost.filter(|cost| matters(cost.effect)) {
        sentences.extend(overhead(pair).map(|text| (cost.effect, text)));
    }
    for effect in [Effect::MuchWorse, Effect::Worse, Effect::Better, Effect::MuchBetter] {
        let labels = others.iter().filter(|f| f.effect == effect && f.figure != FigureName::TscUsedByDefault);
        let labels: Vec<String> = labels.map(|f| f.label()).collect();
        sentences.extend(list(&capital(effect.word()), labels).map(|text| (effect, text)));
    }
    let default = others.iter().find(|f| f.figure == FigureName::TscUsedByDefault && matters(f.effect));
    sentences.extend(default.and_then(|figure| Some((figure.effect, default_sentence(pair)?))));
    if others.iter().any(|figure| figure.figure == FigureName::LostTime && figure.effect != Effect::Same) {
        let text = "Lost time depends on the machine's load, and does not count: compare it under the same load.";
        sentences.push((Effect::Changed, text.into()));
    }
    sentences.extend(alarms(findings));
    sentences.extend(only_postgres_19(pair, effect, figures, findings).map(|text| (effect, text)));
    let changed: Vec<String> = figures.iter().filter(|f| f.effect == Effect::Changed).map(|f| f.label()).collect();
    match effect {
        Effect::Same => {
            sentences.push((effect, same(findings, undecided)));
            sentences.extend(cost.and_then(same_cost).map(|text| (effect, text)));
        }
        Effect::Changed => {
            sentences.extend(list("Different, but neither better nor worse", changed).map(|text| (effect, text)));
        }
        _ => {}
    }
    let alarms = undecided.iter().map(Undecided::label).collect();
    sentences.extend(list("Alarms that only one of the reports can show", alarms).map(|text| (Effect::Changed, text)));
    // The first sentence must be the reason for the verdict, and not an improvement at the same time.
    if effect >= Effect::Worse {
        sentences.sort_by_key(|(effect, _)| *effect < Effect::Worse);
    }
    let sentences: Vec<String> = sentences.into_iter().map(|(_, text)| text).collect();
    CompareVerdict { effect, summary: sentences.join(" ") }
}

/// Returns the sentence for two reports without a change. It must not deny an alarm that the screen shows.
fn same(findings: &[FindingChange], undecided: &[Undecided]) -> String {
    let figures = "No figure changed by more than the noise";
    match findings.is_empty() && undecided.is_empty() {
        true => format!("{figures}, and no alarm is new or gone."),
        false if findings.is_empty() => format!("{figures}."),
        false => {
            let ids: Vec<&str> = findings.iter().map(|change| change.id.as_str()).collect();
            format!("{figures}. So these alarms do not count: {}.", ids.join(", "))
        }
    }
}

/// Returns both costs and their noise. Between different programs the noise is several times the cost, and "same" alone would
/// hide that.
fn same_cost(figure: &ComparedFigure) -> Option<String> {
    let (before, after) = figure.estimates()?;
    let (subject, noise) = (subject(figure)?, duration(figure.noise?));
    let (before, after) = (duration(before), duration(after));
    Some(format!("{subject} costs {after}, before {before}; noise can explain a difference of up to {noise}."))
}

/// Returns what a read or a turn of the loop costs now.
fn cost_sentence(figure: &ComparedFigure) -> Option<String> {
    let (before, after) = figure.estimates()?;
    let subject = subject(figure)?;
    let change = match after / before {
        _ if before <= 0.0 => "costs more than before".into(),
        ratio if ratio >= 2.0 => format!("costs {} times as much as before", rounded(ratio)),
        ratio if ratio > 1.0 => format!("costs {} more than before", percent(ratio - 1.0)),
        ratio if ratio <= 0.5 && ratio > 0.0 => format!("is {} times as fast as before", rounded(1.0 / ratio)),
        ratio => format!("costs {} less than before", percent(1.0 - ratio)),
    };
    Some(format!("{subject} {change} ({}, before {}).", duration(after), duration(before)))
}

/// Returns what another default clock of PostgreSQL 19 costs.
fn default_sentence(pair: &Pair) -> Option<String> {
    let costs = cost::of_postgres_19(pair)?;
    let uses = if pair.after.tsc.used_by_default? { "now uses" } else { "no longer uses" };
    let what =
        if costs.figure == FigureName::LoopCost { "a turn of pg_test_timing's loop" } else { "a read of its clock" };
    Some(format!(
        "PostgreSQL 19 {uses} the TSC by default: {what} now costs {}, before {}.",
        duration(costs.after.estimate?),
        duration(costs.before.estimate?)
    ))
}

/// Returns a sentence if nothing is worse for older servers, or nothing is better for them: they do not read the counter.
fn only_postgres_19(
    pair: &Pair,
    effect: Effect,
    figures: &[ComparedFigure],
    findings: &[FindingChange],
) -> Option<String> {
    let (word, counts): (_, fn(Effect) -> bool) = match effect {
        Effect::Worse | Effect::MuchWorse => ("Worse", |effect| effect >= Effect::Worse),
        Effect::Better | Effect::MuchBetter => ("Better", |effect| effect <= Effect::Better),
        Effect::Same | Effect::Changed | Effect::NotCompared => return None,
    };
    let is_only_alarm = |change: &FindingChange| match change.id.as_str() {
        finding_id::TSC_SLOW | finding_id::TSC_AUTO_DEMOTED => true,
        finding_id::CLOCK_BACKWARD => {
            let clocks =
                || pair.before.clocks.iter().chain(&pair.after.clocks).filter(|clock| clock.backward_steps > 0);
            clocks().next().is_some() && clocks().all(|clock| needs_postgres_19(&clock.name))
        }
        _ => false,
    };
    let is_only = figures.iter().filter(|f| counts(f.effect)).all(ComparedFigure::needs_postgres_19)
        && findings.iter().filter(|f| counts(f.effect)).all(is_only_alarm);
    is_only.then(|| format!("{word} only for PostgreSQL 19: older servers read the system clock."))
}

/// Returns what has a cost: a read, or a turn of the loop.
fn subject(figure: &ComparedFigure) -> Option<String> {
    let clock = match figure.clock.as_deref()? {
        SYSTEM => "PostgreSQL's clock".into(),
        // Older servers do not read the counter.
        name => format!("{name}, which PostgreSQL 19 uses,"),
    };
    Some(match figure.figure {
        FigureName::LoopCost => format!("A turn of pg_test_timing's loop with {clock}"),
        FigureName::UndisturbedReadCost => format!("An undisturbed read of {clock}"),
        _ => format!("A read of {clock}"),
    })
}

/// Returns a ratio with two or more digits.
fn rounded(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

/// Returns the overhead of EXPLAIN ANALYZE, if both figures are from the same kind of measurement.
fn overhead(pair: &Pair) -> Option<String> {
    if Program::of(pair.before) != Program::of(pair.after) {
        return None;
    }
    let [before, after] = [pair.before, pair.after].map(|report| report.system()?.overhead_per_node_ns());
    Some(format!(
        "EXPLAIN ANALYZE now adds up to about {} per row and plan node; before, up to about {}.",
        duration(after?),
        duration(before?)
    ))
}

/// Lists the alarms that are new, gone, or have another severity, with the worst effect of each list.
fn alarms(findings: &[FindingChange]) -> Vec<(Effect, String)> {
    let of = |head, is_shown: fn(&FindingChange) -> bool, severity: fn(&FindingChange) -> Severity| {
        let shown = || findings.iter().filter(move |change| is_shown(change) && change.effect != Effect::Same);
        let labels = shown().map(|change| format!("{} ({})", change.id, small(severity(change)))).collect();
        shown().map(|change| change.effect).max().zip(list(head, labels))
    };
    let is_new = |change: &FindingChange| change.before == Severity::Ok;
    let is_gone = |change: &FindingChange| change.after == Severity::Ok;
    let is_other = |change: &FindingChange| change.before != Severity::Ok && change.after != Severity::Ok;
    [
        of("New alarm", is_new, |change| change.after),
        of("Changed alarm", is_other, |change| change.after),
        of("Alarm gone", is_gone, |change| change.before),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn small(severity: Severity) -> String {
    severity.word().to_ascii_lowercase()
}

impl Undecided {
    fn label(&self) -> String {
        let place = if self.missing_in == MissingIn::Before { "after" } else { "before" };
        format!("{} ({}, {place})", self.id, small(self.severity))
    }
}

fn list(head: &str, items: Vec<String>) -> Option<String> {
    (!items.is_empty()).then(|| format!("{head}: {}.", items.join(", ")))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl ComparedFigure {
    /// Returns whether it is the cost of a read or of a loop with one read.
    pub fn is_cost(&self) -> bool {
        matches!(self.figure, FigureName::ReadCost | FigureName::UndisturbedReadCost | FigureName::LoopCost)
    }

    /// Returns whether it concerns PostgreSQL 19 only, because older servers do not read the counter.
    pub fn needs_postgres_19(&self) -> bool {
        let is_answer = matches!(self.figure, FigureName::TscUsable | FigureName::TscUsedByDefault);
        is_answer || self.clock.as_deref().is_some_and(needs_postgres_19)
    }

    /// Returns both estimates.
    pub fn estimates(&self) -> Option<(f64, f64)> {
        match (&self.before, &self.after) {
            (Compared::Number(before), Compared::Number(after)) => before.estimate.zip(after.estimate),
            _ => None,
        }
    }

    /// Returns the name for the screen, like `system step`.
    pub fn label(&self) -> String {
        match &self.clock {
            Some(clock) => format!("{clock} {}", self.figure.words()),
            None => self.figure.words().into(),
        }
    }
}

impl FigureName {
    /// Returns the name for the screen.
    pub fn words(self) -> &'static str {
        match self {
            FigureName::ReadCost => "one read",
            FigureName::UndisturbedReadCost => "undisturbed read",
            FigureName::LoopCost => "one loop",
            FigureName::Step => "step",
            FigureName::BackwardSteps => "went back",
            FigureName::LostTime => "lost time",
            FigureName::Tail => "99.9%",
            FigureName::TscRate => "TSC rate",
            FigureName::TscUsable => "TSC usable",
            FigureName::TscUsedByDefault => "TSC used by PostgreSQL 19",
            FigureName::Skew => "skew",
            FigureName::Drift => "drift",
            FigureName::ClockSource => "clock source",
            FigureName::Kernel => "kernel",
            FigureName::CpuModel => "CPU model",
            FigureName::Virtualization => "virtualization",
        }
    }
}
