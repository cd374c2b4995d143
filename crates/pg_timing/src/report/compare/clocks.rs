//! The figures of the clocks.

use super::missing::Missing;
use super::pairs::{Pair, absent, numbers};
use super::{ComparedFigure, Effect, FigureName, Measure, MissingIn, Program, loops, noise};
use crate::human::duration;
use crate::report::{ClockReport, Fact, GOOD_READ_NS, Report, SYSTEM, VISIBLE_NS};

/// A call of a plan node reads the clock twice, so 5 ns per read are 10 ns per row and node: a tenth of a node that takes 100 ns
/// per row. Runs on a quiet machine differ by 3% anyway.
const MATTERS_NS: f64 = 5.0;
/// Only a factor that everyone notices is much.
const MUCH: f64 = 2.0;

/// Loops of one machine differ by less than this factor. If the noise can explain more, a comparison would prove nothing.
const UNCLEAR: f64 = 3.0;

/// Returns the figures of all clocks. PostgreSQL's clocks have all figures, the other ones only their read cost.
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
            figures.extend(self.backward_steps(missing));
            figures.extend(self.tail(missing));
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
        let (before, after) = (self.before, self.after);
        let read = |measure: fn(&ClockReport) -> Option<Measure>| measure(before).zip(measure(after));
        if let Some(costs) = read(noise::undisturbed).or_else(|| read(noise::median)) {
            return Some(self.number(FigureName::ReadCost, costs, |low, high| self.cost_effect(low, high)));
        }
        let (a, b) = self.programs();
        let looped = |clock, program, other| match loops::cost(clock, program, other) {
            Some(cost) => Fact::Known(cost),
            None => Fact::unavailable(match program {
                Program::Check => "no loop cost in the report, and the other one has no read cost",
                _ => "no loop time in the output of pg_test_timing",
            }),
        };
        let what = format!("{} cost", self.name);
        let costs = missing.both(&what, looped(before, a, b), looped(after, b, a))?;
        if let Some((low, high)) = costs.0.estimate.zip(costs.1.estimate).map(|(a, b)| (a.min(b), a.max(b)))
            && low > 0.0
            && high >= UNCLEAR * low
            && !costs.0.differs_from(&costs.1)
        {
            let why = format!(
                "{} and {} differ by a factor of {:.1}, but the loops contain different work, or interruptions",
                duration(low),
                duration(high),
                high / low
            );
            missing.add(what, MissingIn::Neither, why);
            return None;
        }
        Some(self.number(FigureName::LoopCost, costs, |low, high| self.cost_effect(low, high)))
    }

    /// Returns the meaning of a higher cost.
    fn cost_effect(&self, low: Measure, high: Measure) -> Effect {
        let Some((cheap, expensive)) = low.estimate.zip(high.estimate) else { return Effect::Changed };
        match () {
            () if !self.pair.is_read_by_postgres(self.name) || expensive - cheap <= MATTERS_NS => Effect::Changed,
            () if high.low >= MUCH * low.high && expensive > GOOD_READ_NS => Effect::MuchWorse,
            () => Effect::Worse,
        }
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

    /// Compares whether the clock went back. The number of steps depends on the measuring time.
    fn backward_steps(&self, missing: &mut Missing) -> Option<ComparedFigure> {
        let steps = |report, clock: &ClockReport| match (clock.backward_steps, clock.reads) {
            (0, 0) => Fact::unavailable(absent(report)),
            (steps, _) => Fact::Known(steps),
        };
        let (before, after) = (steps(self.pair.before, self.before), steps(self.pair.after, self.after));
        let (before, after) = missing.both(&format!("{} backward steps", self.name), before, after)?;
        let measure = |steps: u64| Measure::new(steps as f64, 0.0);
        let mut figure = self.number(FigureName::BackwardSteps, (measure(before)?, measure(after)?), |_, _| match self
            .pair
            .is_read_by_postgres(self.name)
        {
            true => Effect::MuchWorse,
            false => Effect::Changed,
        });
        if before > 0 && after > 0 {
            figure.effect = Effect::Same;
        }
        figure.noise = None;
        Some(figure)
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
