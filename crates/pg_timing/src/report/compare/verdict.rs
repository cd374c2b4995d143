//! The verdict: the worst change, in sentences.

use super::figures::{PG19, needs_postgres_19};
use super::{CompareVerdict, Compared, ComparedFigure, Effect, FigureName, FindingChange, Gap, Pair, program};
use crate::human::{duration, percent};
use crate::report::{SYSTEM, Severity, finding_id};

impl Pair<'_> {
    /// Returns the verdict. The worst change counts, then a missing comparison, then the best change.
    pub fn verdict(&self, figures: &[ComparedFigure], findings: &[FindingChange], gaps: &[Gap]) -> CompareVerdict {
        let effects = || figures.iter().map(|figure| figure.effect).chain(findings.iter().map(|change| change.effect));
        let worst = effects().max().unwrap_or(Effect::Same);
        let best = effects().min().unwrap_or(Effect::Same);
        let cost = figures.iter().find(|figure| figure.figure.is_cost() && figure.clock.as_deref() == Some(SYSTEM));
        // It is unknown whether it is new, or gone.
        let has_unknown_fault = gaps.iter().any(|gap| gap.alarm == Some(Severity::Critical));
        let effect = match () {
            () if worst >= Effect::Worse => worst,
            () if cost.is_none() || has_unknown_fault => Effect::NotCompared,
            () if best <= Effect::Better => best,
            () => worst,
        };
        let mut sentences: Vec<(Effect, String)> = Vec::new();
        if cost.is_none() {
            sentences.push((Effect::NotCompared, no_cost(gaps)));
        }
        for figure in figures.iter().filter(|figure| figure.effect.matters()) {
            sentences.push((figure.effect, sentence(figure)));
        }
        sentences
            .extend(cost.filter(|cost| cost.effect.matters()).and_then(|cost| Some((cost.effect, self.overhead()?))));
        sentences.extend(alarms(findings));
        if is_only_for_19(effect, figures, findings) {
            let word = if effect >= Effect::Worse { "Worse" } else { "Better" };
            sentences.push((effect, format!("{word} only for PostgreSQL 19: older servers read the system clock.")));
        }
        match effect {
            Effect::Same => sentences.push((effect, same(cost))),
            Effect::Changed => {
                let labels = figures.iter().filter(|figure| figure.effect == effect).map(ComparedFigure::label);
                sentences.extend(list("Different, but neither better nor worse", labels).map(|text| (effect, text)));
            }
            _ => {}
        }
        let unknown = gaps.iter().filter(|gap| gap.alarm.is_some()).map(|gap| gap.what.clone());
        sentences
            .extend(list("Alarms that only one of the reports can show", unknown).map(|text| (Effect::Same, text)));
        // The first sentence must be the reason for the verdict, and not an improvement at the same time.
        if effect >= Effect::Worse {
            sentences.sort_by_key(|(effect, _)| *effect < Effect::Worse);
        }
        let sentences: Vec<String> = sentences.into_iter().map(|(_, text)| text).collect();
        CompareVerdict { effect, summary: sentences.join(" ") }
    }

    /// Returns the overhead of EXPLAIN ANALYZE, if both figures are from the same kind of measurement.
    fn overhead(&self) -> Option<String> {
        let [before, after] = [self.before, self.after].map(|report| report.system()?.overhead_per_node_ns());
        let (before, after) = (duration(before?), duration(after?));
        (program(self.before) == program(self.after)).then(|| {
            format!("EXPLAIN ANALYZE now adds up to about {after} per row and plan node; before, up to about {before}.")
        })
    }
}

/// Returns why the read cost of PostgreSQL's clock was not compared.
fn no_cost(gaps: &[Gap]) -> String {
    let is_cost = |gap: &&Gap| gap.figure.as_ref().is_some_and(|(name, clock)| name.is_cost() && clock == SYSTEM);
    let why = gaps.iter().find(is_cost).map(|gap| format!(" ({}{})", gap.reason.0.prefix(), gap.reason.1));
    format!("The read cost of PostgreSQL's clock could not be compared{}.", why.unwrap_or_default())
}

/// Returns the sentence for two reports without a change. Between different programs the noise is several times the cost, and
/// "same" alone would hide that.
fn same(cost: Option<&ComparedFigure>) -> String {
    let costs = cost.and_then(|figure| {
        let ((before, after), noise) = (figure.estimates()?, duration(figure.noise?));
        let (subject, before, after) = (figure.subject(), duration(before), duration(after));
        Some(format!(" {subject} costs {after}, before {before}; noise can explain a difference of up to {noise}."))
    });
    format!("No figure changed by more than the noise.{}", costs.unwrap_or_default())
}

/// Returns what changed, and what that means.
fn sentence(figure: &ComparedFigure) -> String {
    let costs = figure.estimates().filter(|_| figure.figure.is_cost());
    let Some((before, after)) = costs else {
        return format!("Now {}: {} ({}).", figure.effect.word(), figure.label(), figure.figure.meaning());
    };
    let change = match after / before {
        _ if before <= 0.0 => "more than".into(),
        ratio if ratio >= 9.95 => format!("{ratio:.0} times as much as"),
        ratio if ratio >= 2.0 => format!("{ratio:.1} times as much as"),
        ratio if ratio > 1.0 => format!("{} more than", percent(ratio - 1.0)),
        ratio => format!("{} less than", percent(1.0 - ratio)),
    };
    format!("{} costs {change} before ({}, before {}).", figure.subject(), duration(after), duration(before))
}

/// Returns whether nothing is worse for older servers, or nothing is better for them: they do not read the counter.
fn is_only_for_19(effect: Effect, figures: &[ComparedFigure], findings: &[FindingChange]) -> bool {
    let counts = |one: Effect| if effect >= Effect::Worse { one >= Effect::Worse } else { one <= Effect::Better };
    let is_tsc = |change: &FindingChange| matches!(&*change.id, finding_id::TSC_SLOW | finding_id::TSC_AUTO_DEMOTED);
    effect.matters()
        && figures.iter().filter(|figure| counts(figure.effect)).all(ComparedFigure::needs_postgres_19)
        && findings.iter().filter(|change| counts(change.effect)).all(is_tsc)
}

/// Lists the alarms that are new, gone, or have another severity, with the worst effect of each list.
fn alarms(findings: &[FindingChange]) -> Vec<(Effect, String)> {
    let of = |head, is_shown: fn(&FindingChange) -> bool| {
        let shown = || findings.iter().filter(move |change| change.effect != Effect::Same && is_shown(change));
        let worst = |change: &FindingChange| if change.after == Severity::Ok { change.before } else { change.after };
        let labels = shown().map(|change| format!("{} ({})", change.id, worst(change).word().to_ascii_lowercase()));
        shown().map(|change| change.effect).max().zip(list(head, labels))
    };
    let lists = [
        of("New alarm", |change| change.before == Severity::Ok),
        of("Changed alarm", |change| change.before != Severity::Ok && change.after != Severity::Ok),
        of("Alarm gone", |change| change.after == Severity::Ok),
    ];
    lists.into_iter().flatten().collect()
}

fn list(head: &str, items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("{head}: {}.", items.join(", ")))
}

impl ComparedFigure {
    /// Returns whether it concerns PostgreSQL 19 only, because older servers do not read the counter.
    fn needs_postgres_19(&self) -> bool {
        self.figure == FigureName::TscUsable || self.clock.as_deref().is_some_and(needs_postgres_19)
    }

    /// Returns the name for the screen, like `system step`.
    pub fn label(&self) -> String {
        self.clock.iter().map(String::as_str).chain([self.figure.words()]).collect::<Vec<_>>().join(" ")
    }

    /// Returns what has a cost: a read, or a turn of the loop.
    fn subject(&self) -> String {
        let clock = match self.clock.as_deref() {
            None | Some(SYSTEM) => "PostgreSQL's clock",
            Some(PG19) => "PostgreSQL 19's clock",
            Some(name) => &format!("{name}, which PostgreSQL 19 uses,"),
        };
        match self.figure {
            FigureName::LoopCost => format!("A turn of pg_test_timing's loop with {clock}"),
            FigureName::UndisturbedReadCost => format!("An undisturbed read of {clock}"),
            _ => format!("A read of {clock}"),
        }
    }

    /// Returns both estimates.
    fn estimates(&self) -> Option<(f64, f64)> {
        match (&self.before, &self.after) {
            (Compared::Number(before), Compared::Number(after)) => before.estimate.zip(after.estimate),
            _ => None,
        }
    }
}
