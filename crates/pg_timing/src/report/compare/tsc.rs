//! The counter, and the offsets and drifts between clocks.

use super::missing::Missing;
use super::pairs::{Pair, absent, numbers, texts};
use super::{ComparedFigure, Effect, FigureName, Measure, cost, noise};
use crate::report::{COUNTER, Fact, Report};

pub fn figures(pair: &Pair, missing: &mut Missing) -> Vec<ComparedFigure> {
    let mut figures: Vec<ComparedFigure> = rate(pair, missing).into_iter().collect();
    figures.extend(usable(pair, missing));
    figures.extend(used_by_default(pair, missing));
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

/// Compares whether the counter is safe to use.
fn usable(pair: &Pair, missing: &mut Missing) -> Option<ComparedFigure> {
    let effect = match pair.after.tsc.usable {
        _ if !pair.is_read_by_postgres(COUNTER) => Effect::Changed,
        Some(true) => Effect::Better,
        _ => Effect::Worse,
    };
    answer(pair, missing, FigureName::TscUsable, |report| report.tsc.usable, effect)
}

/// Compares whether PostgreSQL 19 uses the counter by default. Its times are correct with both clocks, so only the read cost
/// decides.
fn used_by_default(pair: &Pair, missing: &mut Missing) -> Option<ComparedFigure> {
    let effect = match cost::of_postgres_19(pair).map(|costs| costs.effect()) {
        Some(Effect::Same) | None => Effect::Changed,
        Some(effect) => effect,
    };
    answer(pair, missing, FigureName::TscUsedByDefault, |report| report.tsc.used_by_default, effect)
}

/// Compares an answer of yes or no. `effect` is that of a difference.
fn answer(
    pair: &Pair,
    missing: &mut Missing,
    figure: FigureName,
    answer: fn(&Report) -> Option<bool>,
    effect: Effect,
) -> Option<ComparedFigure> {
    let known = |report: &Report| answer(report).map_or_else(|| Fact::unavailable(absent(report)), Fact::Known);
    let (before, after) = missing.both(figure.words(), known(pair.before), known(pair.after))?;
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

/// Compares the largest offset between two CPUs. Its bounds are those of the measurement, so there is no other noise. An offset
/// that changes within milliseconds is a fault, whatever its size.
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
    let increase = if pair.is_read_by_postgres(clock) { Effect::Worse } else { Effect::Changed };
    let mut figure = numbers(FigureName::Skew, Some(clock), before, after, |_, _| increase);
    let is_moving = |report: &Report| report.cpus.skew.iter().any(|skew| skew.clock == clock && skew.moving);
    match (is_moving(pair.before), is_moving(pair.after)) {
        (false, true) => figure.effect = increase,
        (true, false) => figure.effect = increase.mirrored(),
        _ => {}
    }
    Some(figure)
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
