//! The figures of the clocks.

use super::missing::Missing;
use super::pairs::{Pair, absent, numbers};
use super::{ComparedFigure, Effect, FigureName, Measure, MissingIn, Program, backward, cost, noise};
use crate::report::{ClockReport, Fact, Report, SETTABLE_CLOCK, SYSTEM, VISIBLE_NS};

/// Returns the figures of all clocks. PostgreSQL's clocks have all figures; the other ones only their cost and
/// their backward steps.
pub fn figures(pair: &Pair, missing: &mut Missing) -> Vec<ComparedFigure> {
    let mut names: Vec<&str> = pair.before.clocks.iter().map(|clock| clock.name.as_str()).collect();
    names.extend(pair.after.clocks.iter().map(|clock| clock.name.as_str()));
    if !names.contains(&SYSTEM) {
        names.insert(0, SYSTEM);
    }
    let mut figures = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for name in names {
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        let clocks = (clock(pair.before, name), clock(pair.after, name));
        if let Some((before, after)) = missing.both(&format!("clock {name}"), clocks.0, clocks.1) {
            figures.extend(OneClock { pair, name, before, after }.figures(missing));
        }
    }
    figures
}

/// Returns the clock of that name, or the reason why it has no figures.
fn clock<'a>(report: &'a Report, name: &str) -> Fact<&'a ClockReport> {
    match report.clocks.iter().find(|clock| clock.name == name) {
        Some(ClockReport { unavailable: Some(why), .. }) => Fact::unavailable(format!("not measured: {why}")),
        Some(clock) => Fact::Known(clock),
        None => Fact::unavailable(absent(report)),
    }
}

/// A clock that both reports have.
struct OneClock<'a> {
    pair: &'a Pair<'a>,
    name: &'a str,
    before: &'a ClockReport,
    after: &'a ClockReport,
}

impl OneClock<'_> {
    fn figures(&self, missing: &mut Missing) -> Vec<ComparedFigure> {
        let mut figures: Vec<ComparedFigure> = self.cost(missing).into_iter().collect();
        if matches!(self.name, SYSTEM | "rdtscp" | "rdtsc" | "cntvct") {
            figures.extend(self.step(missing));
            figures.extend(self.tail(missing));
        }
        // `clock-backward` judges the same clocks.
        if self.name != SETTABLE_CLOCK {
            figures.extend(self.backward_steps(missing));
        }
        // Interruptions hit all clocks alike. `clock-gaps` judges the same clock.
        if self.name == SYSTEM {
            figures.extend(self.lost_time(missing));
        }
        figures
    }

    fn programs(&self) -> (Program, Program) {
        (Program::of(self.pair.before), Program::of(self.pair.after))
    }

    /// Returns the read cost, or the loop cost if a report has only that.
    fn cost(&self, missing: &mut Missing) -> Option<ComparedFigure> {
        let costs = cost::costs(self.pair, &format!("{} cost", self.name), (self.before, self.after), missing)?;
        let is_read = self.pair.is_read_by_postgres(self.name);
        let effect = |low, high| if is_read { cost::effect(low, high) } else { Effect::Changed };
        Some(self.number(costs.figure, (costs.before, costs.after), effect))
    }

    fn step(&self, missing: &mut Missing) -> Option<ComparedFigure> {
        let step = |report, clock: &ClockReport| match (noise::step(clock), &clock.granularity_unavailable) {
            (Some(step), _) => Fact::Known(step),
            (None, Some(why)) => Fact::unavailable(why.as_str()),
            (None, None) => Fact::unavailable(absent(report)),
        };
        let (before, after) = (step(self.pair.before, self.before), step(self.pair.after, self.after));
        let steps = missing.both(&format!("{} step", self.name), before, after)?;
        Some(self.number(FigureName::Step, steps, |_, coarse| match coarse.low >= VISIBLE_NS {
            true if self.pair.is_read_by_postgres(self.name) => Effect::Worse,
            _ => Effect::Changed,
        }))
    }

    /// Compares how often the clock went back.
    fn backward_steps(&self, missing: &mut Missing) -> Option<ComparedFigure> {
        let (before, after) = ((self.pair.before, self.before), (self.pair.after, self.after));
        backward::figure(self.name, before, after, self.pair.is_read_by_postgres(self.name), missing)
    }

    fn lost_time(&self, missing: &mut Missing) -> Option<ComparedFigure> {
        let lost = |report, clock| match noise::lost_time(clock) {
            Some(share) => Fact::Known(share),
            None => Fact::unavailable(absent(report)),
        };
        let (before, after) = (lost(self.pair.before, self.before), lost(self.pair.after, self.after));
        let shares = missing.both(&format!("{} lost time", self.name), before, after)?;
        // Other programs cause most of it, so it says more about the load than about the host.
        Some(self.number(FigureName::LostTime, shares, |_, _| Effect::Changed))
    }

    fn tail(&self, missing: &mut Missing) -> Option<ComparedFigure> {
        let what = format!("{} 99.9%", self.name);
        let (a, b) = self.programs();
        let tail = |report, clock: &ClockReport| match noise::tail(clock) {
            Some(tail) => Fact::Known(tail),
            None if Program::of(report) == Program::PgTestTimingClassic => {
                Fact::unavailable("pg_test_timing 9.2 to 18 cuts readings to microseconds")
            }
            None => Fact::unavailable(absent(report)),
        };
        let tails = missing.both(&what, tail(self.pair.before, self.before), tail(self.pair.after, self.after))?;
        if (a == Program::Check) != (b == Program::Check) {
            missing.add(what, MissingIn::Neither, "pg_test_timing's figure includes the work of its loop");
            return None;
        }
        // Interruptions cause most of the tail, so it is neither better nor worse.
        Some(self.number(FigureName::Tail, tails, |_, _| Effect::Changed))
    }

    fn number(
        &self,
        figure: FigureName,
        (before, after): (Measure, Measure),
        increase: impl FnOnce(Measure, Measure) -> Effect,
    ) -> ComparedFigure {
        numbers(figure, Some(self.name), before, after, increase)
    }
}
