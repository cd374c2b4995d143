//! The counter, and the offsets and drifts between clocks.

use super::missing::Missing;
use super::pairs::{Pair, absent, numbers, texts};
use super::{ComparedFigure, Effect, FigureName, Measure, noise};
use crate::report::{COUNTER, Fact, Report};

pub fn figures(pair: &Pair, missing: &mut Missing) -> Vec<ComparedFigure> {
    let mut figures: Vec<ComparedFigure> = rate(pair, missing).into_iter().collect();
    figures.extend(answer(pair, missing, FigureName::TscUsable));
    figures.extend(answer(pair, missing, FigureName::TscUsedByDefault));
    for clock in clocks(pair, |report| report.cpus.skew.iter().map(|skew| skew.clock.as_str()).collect()) {
        figures.extend(skew(pair, missing, clock));
    }
    if clocks(pair, |report| report.cpus.skew.iter().map(|skew| skew.clock.as_str()).collect()).is_empty() {
        missing.both::<Measure>("skew", no_skew(pair.before), no_skew(pair.after));
    }
    figures.extend(drifts(pair, missing));
    figures
}

fn rate(pair: &Pair, missing: &mut Missing) -> Option<ComparedFigure> {
    let rate = |report: &Report| {
        let khz = report.tsc.frequency_khz.clone();
        khz.and_then(|khz| match noise::rate(khz, report.tsc.uncertainty_ppm) {
            Some(rate) => Fact::Known(rate),
            None => Fact::unavailable("the rate in the report is impossible"),
        })
    };
    let (before, after) = missing.both("TSC rate", rate(pair.before), rate(pair.after))?;
    // Another CPU has another rate.
    Some(numbers(FigureName::TscRate, None, before, after, |_, _| Effect::Changed))
}

/// Compares an answer of yes or no.
fn answer(pair: &Pair, missing: &mut Missing, figure: FigureName) -> Option<ComparedFigure> {
    let is_usable = figure == FigureName::TscUsable;
    let known = |report: &Report| {
        let answer = if is_usable { report.tsc.usable } else { report.tsc.used_by_default };
        answer.map_or_else(|| Fact::unavailable(absent(report)), Fact::Known)
    };
    let what = if is_usable { "TSC usable" } else { "TSC used by PostgreSQL 19" };
    let (before, after) = missing.both(what, known(pair.before), known(pair.after))?;
    let effect = match after {
        // Without the counter, PostgreSQL's times are as correct as before.
        _ if !is_usable || !pair.is_read_by_postgres(COUNTER) => Effect::Changed,
        false => Effect::Worse,
        true => Effect::Better,
    };
    let word = |yes| String::from(if yes { "yes" } else { "no" });
    Some(texts(figure, word(before), word(after), effect))
}

/// Returns the names of the clocks in both reports, in order.
fn clocks<'a>(pair: &Pair<'a>, names: impl Fn(&'a Report) -> Vec<&'a str>) -> Vec<&'a str> {
    let mut all = names(pair.before);
    all.extend(names(pair.after));
    all.sort_unstable();
    all.dedup();
    all
}

/// Compares the largest offset between two CPUs. Its bounds are those of the measurement, so there is no other noise.
fn skew(pair: &Pair, missing: &mut Missing, clock: &str) -> Option<ComparedFigure> {
    let largest = |report: &Report| match report
        .cpus
        .largest_offset(clock)
        .and_then(|(low, high)| Measure::within(None, low, high))
    {
        Some(offset) => Fact::Known(offset),
        None => no_skew(report),
    };
    let (before, after) = missing.both(&format!("{clock} skew"), largest(pair.before), largest(pair.after))?;
    Some(numbers(FigureName::Skew, Some(clock), before, after, |_, _| match pair.is_read_by_postgres(clock) {
        true => Effect::Worse,
        false => Effect::Changed,
    }))
}

fn no_skew<T>(report: &Report) -> Fact<T> {
    Fact::unavailable(report.cpus.skew_unavailable.as_deref().unwrap_or(absent(report)))
}

fn drifts(pair: &Pair, missing: &mut Missing) -> Vec<ComparedFigure> {
    let names = clocks(pair, |report| report.drift.iter().map(|drift| drift.clock.as_str()).collect());
    let drift = |report: &Report, clock: &str| {
        let found = report.drift.iter().find(|drift| drift.clock == clock);
        match found.and_then(|drift| Some((noise::drift(drift.rate_ppm, drift.uncertainty_ppm)?, &drift.reference))) {
            Some((rate, reference)) => Fact::Known((rate, reference.clone())),
            None => Fact::unavailable(absent(report)),
        }
    };
    let mut figures = Vec::new();
    for clock in names {
        let what = format!("{clock} drift");
        match missing.both(&what, drift(pair.before, clock), drift(pair.after, clock)) {
            Some(((before, a), (after, b))) if a == b => {
                // NTP corrects it, and the finding `drift` judges it.
                figures.push(numbers(FigureName::Drift, Some(clock), before, after, |_, _| Effect::Changed));
            }
            Some(_) => missing.add(what, super::MissingIn::Neither, "the reference clocks differ"),
            None => {}
        }
    }
    figures
}
