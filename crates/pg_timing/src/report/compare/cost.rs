//! The cost of reading a clock, and what a higher cost means.

use super::missing::Missing;
use super::pairs::{Pair, numbers};
use super::{Effect, FigureName, Measure, MissingIn, Program, loops, noise};
use crate::human::duration;
use crate::report::{COUNTER, ClockReport, Fact, GOOD_READ_NS, Report};

/// A call of a plan node reads the clock twice, so 5 ns per read are 10 ns per row and node: a tenth of a node that takes 100 ns
/// per row. Runs on a quiet machine differ by 3% anyway.
const MATTERS_NS: f64 = 5.0;
/// Only a factor that everyone notices is much.
const MUCH: f64 = 2.0;
/// Loops of one machine differ by less than this factor. If the noise can explain more, a comparison would prove nothing.
const UNCLEAR: f64 = 3.0;

/// The costs of two clocks, as the same figure.
pub struct Costs {
    pub figure: FigureName,
    pub before: Measure,
    pub after: Measure,
}

/// Returns the undisturbed read costs, or the median ones, or the loop costs: the first of them that both clocks have.
pub fn costs(
    pair: &Pair,
    what: &str,
    (before, after): (&ClockReport, &ClockReport),
    missing: &mut Missing,
) -> Option<Costs> {
    let read = |figure, measure: fn(&ClockReport) -> Option<Measure>| {
        let (before, after) = measure(before).zip(measure(after))?;
        Some(Costs { figure, before, after })
    };
    if let Some(costs) =
        read(FigureName::UndisturbedReadCost, noise::undisturbed).or_else(|| read(FigureName::ReadCost, noise::median))
    {
        return Some(costs);
    }
    let (a, b) = (Program::of(pair.before), Program::of(pair.after));
    let looped = |clock, program, other| match loops::cost(clock, program, other) {
        Some(cost) => Fact::Known(cost),
        None => Fact::unavailable(match program {
            Program::Check => "no loop cost in the report, and the other one has no read cost",
            _ => "no loop time in the output of pg_test_timing",
        }),
    };
    let (before, after) = missing.both(what, looped(before, a, b), looped(after, b, a))?;
    if let Some((low, high)) = before.estimate.zip(after.estimate).map(|(a, b)| (a.min(b), a.max(b)))
        && low > 0.0
        && high >= UNCLEAR * low
        && !before.differs_from(&after)
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
    Some(Costs { figure: FigureName::LoopCost, before, after })
}

/// Returns what PostgreSQL 19 pays by default for a read in EXPLAIN ANALYZE: the cost of the counter where it uses the counter,
/// else that of the system clock.
pub fn of_postgres_19<'a>(pair: &Pair<'a>) -> Option<Costs> {
    let clock = |report: &'a Report| match report.tsc.used_by_default? {
        true => report.clock(COUNTER),
        false => report.system(),
    };
    // The figures of the clocks give the reason if a cost is missing.
    costs(pair, "", (clock(pair.before)?, clock(pair.after)?), &mut Missing::default())
}

/// Returns the meaning of a higher cost for a server that reads the clock.
pub fn effect(low: Measure, high: Measure) -> Effect {
    let Some((cheap, expensive)) = low.estimate.zip(high.estimate) else { return Effect::Changed };
    match () {
        () if expensive - cheap <= MATTERS_NS => Effect::Changed,
        () if high.low >= MUCH * low.high && expensive > GOOD_READ_NS => Effect::MuchWorse,
        () => Effect::Worse,
    }
}

impl Costs {
    /// Returns the meaning of the change for a server that pays these costs.
    pub fn effect(&self) -> Effect {
        numbers(self.figure, None, self.before, self.after, effect).effect
    }
}
