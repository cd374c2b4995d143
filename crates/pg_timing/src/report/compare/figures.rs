//! The table of figures: how to get each of them from a report, its bounds, and what an increase means.
//!
//! The bounds contain the noise of one report: the figure moves within them from run to run although the host is the same.

use super::{Compared, Effect, FigureName as Name, Measure, program};
use crate::report::{COUNTER, ClockReport, Fact, GOOD_READ_NS, Origin, Report, SETTABLE_CLOCK, SYSTEM, VISIBLE_NS};
use crate::statistics::two_deviations;

/// The clock that PostgreSQL 19 reads in EXPLAIN ANALYZE, if that is not the same one in both reports.
pub const PG19: &str = "PG19";

/// The undisturbed read cost (the 5th percentile) of 12 runs on a busy guest had ratios of 1.03 to 1.07.
const UNDISTURBED_SHARE: f64 = 0.05;
/// The median read cost of these runs had ratios of 1.12 to 1.17. The median timed call of 45 runs had a ratio of 1.19.
const MEDIAN_SHARE: f64 = 0.09;
/// The cheapest read, of monotonic_coarse, takes 5 ns and varied by 0.9 ns.
pub const READ_NS: f64 = 0.5;
/// The mean of pg_test_timing's loop contains slow phases of the CPU. 10 runs of one second had ratios of 1.94 to 2.13.
const LOOP_SHARE: f64 = 0.4;
/// The work of the loop, without the read, takes 2 to 6 ns here, and 2 to 4 ns less in PostgreSQL 19. 10 ns leave room for
/// slower processors.
const LOOP_WORK_NS: f64 = 10.0;
/// The measured step had a ratio of 1.00. It is a multiple of the counter's step, which is rounded to ns.
const STEP_SHARE: f64 = 0.1;
/// The kernel measures the rate at each boot. NTP can correct an error of at most 500 ppm (MAXFREQ in the Linux kernel), so
/// two boots differ by less on a host that works. Each report gets half of it.
const RATE_PPM: f64 = 250.0;
/// PostgreSQL 19's own calibration was 243 to 380 ppm off, and 1000 ppm are possible.
const CALIBRATED_RATE_PPM: f64 = 1000.0;
/// Crystals are off by up to 100 ppm and change with the temperature, and NTP corrects that. Each report gets half of it.
const DRIFT_PPM: f64 = 50.0;
/// 95% of a normal distribution are within this number of standard deviations.
const DEVIATIONS_95: f64 = 1.96;
/// If this number of steps is expected, the probability to see none is exp(-3) = 5%. This is the rule of three: Hanley and
/// Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249 (1983).
const EXPECTED_STEPS: f64 = 3.0;

/// A call of a plan node reads the clock twice, so 5 ns per read are 10 ns per row and node: a tenth of a node that takes
/// 100 ns per row. Runs on a quiet machine differ by 3% anyway.
const MATTERS_NS: f64 = 5.0;
/// Only a factor that everyone notices is much.
const MUCH: f64 = 2.0;
/// A century in ns. Larger figures are damaged.
const MAX: f64 = 3.2e18;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Ns,
    PerMillion,
    Khz,
    Ppm,
    Text,
}

/// All figures, with their names and units on the screen. The costs come first, in the order of their precision.
pub const TABLE: [(Name, &str, Unit); 15] = [
    (Name::UndisturbedReadCost, "undisturbed read", Unit::Ns),
    (Name::ReadCost, "one read", Unit::Ns),
    (Name::LoopCost, "one loop", Unit::Ns),
    (Name::TimedCall, "timed call", Unit::Ns),
    (Name::Step, "step", Unit::Ns),
    (Name::BackwardSteps, "went back", Unit::PerMillion),
    (Name::TscRate, "TSC rate", Unit::Khz),
    (Name::TscUsable, "TSC usable", Unit::Text),
    (Name::TscUsedByDefault, "TSC used by PostgreSQL 19", Unit::Text),
    (Name::Skew, "skew", Unit::Ns),
    (Name::Drift, "drift", Unit::Ppm),
    (Name::ClockSource, "clock source", Unit::Text),
    (Name::Kernel, "kernel", Unit::Text),
    (Name::CpuModel, "CPU model", Unit::Text),
    (Name::Virtualization, "virtualization", Unit::Text),
];

impl Name {
    /// Returns the name on the screen.
    pub fn words(self) -> &'static str {
        self.row().1
    }

    pub fn unit(self) -> Unit {
        self.row().2
    }

    fn row(self) -> &'static (Name, &'static str, Unit) {
        TABLE.iter().find(|row| row.0 == self).unwrap_or(&TABLE[0])
    }

    /// Returns whether it is the cost of a read or of a loop with one read.
    pub fn is_cost(self) -> bool {
        matches!(self, Name::UndisturbedReadCost | Name::ReadCost | Name::LoopCost)
    }

    /// Returns the clocks of a report that have the figure. A figure of the host has an empty name.
    pub fn clocks(self, report: &Report) -> Vec<&str> {
        let all = || {
            // PostgreSQL's clock is always compared, so that its absence has a reason.
            let others = report.clocks.iter().map(|clock| clock.name.as_str()).filter(|name| *name != SYSTEM);
            [SYSTEM].into_iter().chain(others)
        };
        match self {
            Name::UndisturbedReadCost | Name::ReadCost | Name::LoopCost => all().collect(),
            Name::TimedCall => vec![SYSTEM],
            Name::Step => {
                all().filter(|clock| matches!(*clock, SYSTEM | "cntvct") || needs_postgres_19(clock)).collect()
            }
            Name::BackwardSteps => all().filter(|clock| *clock != SETTABLE_CLOCK).collect(),
            Name::Skew => report.cpus.skew.iter().map(|skew| skew.clock.as_str()).collect(),
            Name::Drift => report.drift.iter().map(|drift| drift.clock.as_str()).collect(),
            _ => vec![""],
        }
    }

    /// Returns the meaning of an increase for a server that reads the clock. A decrease means the opposite.
    pub fn increase(self, low: &Measure, high: &Measure) -> Effect {
        match self {
            Name::UndisturbedReadCost | Name::ReadCost | Name::LoopCost => more_ns(low, high, 1.0),
            // It reads the clock twice.
            Name::TimedCall => more_ns(low, high, 2.0),
            Name::Step if high.low >= VISIBLE_NS => Effect::Worse,
            // A clock that went back before was wrong before, too.
            Name::BackwardSteps if low.estimate == Some(0.0) => Effect::MuchWorse,
            Name::BackwardSteps | Name::Skew => Effect::Worse,
            _ => Effect::Changed,
        }
    }

    /// Returns what a change for the better or the worse means for EXPLAIN ANALYZE.
    pub fn meaning(self) -> &'static str {
        match self {
            Name::TimedCall => "it is added to each call of a plan node",
            Name::Step => "times are multiples of it",
            Name::BackwardSteps => "times can be too short, or negative",
            Name::Skew => "a time is wrong by it if the process moves to another CPU",
            Name::TscUsable => "times of PostgreSQL 19 can be wrong with an unsafe TSC",
            _ => "each call of a plan node reads the clock twice",
        }
    }
}

/// Returns whether only PostgreSQL 19 can read this clock: the counter.
pub fn needs_postgres_19(clock: &str) -> bool {
    matches!(clock, COUNTER | "rdtscp" | PG19)
}

/// A clock of a report, and the other report.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub report: &'a Report,
    pub other: &'a Report,
    pub clock: &'a str,
}

impl<'a> Subject<'a> {
    /// Returns the figure, or the reason why the report does not have it.
    pub fn get(&self, name: Name) -> Fact<Compared> {
        let report = self.report;
        let text = |fact: &Fact<String>| fact.clone().map(Compared::Text);
        match name {
            Name::BackwardSteps => self.backward_steps(),
            Name::TscRate => self.tsc_rate(),
            Name::TscUsable => self.answer(report.tsc.usable),
            Name::TscUsedByDefault => self.answer(report.tsc.used_by_default),
            Name::Skew => self.skew(),
            Name::Drift => self.drift(),
            Name::ClockSource => text(&report.clocksource.current),
            Name::Kernel => text(&report.host.kernel),
            Name::CpuModel => text(&report.host.cpu_model),
            Name::Virtualization => text(&report.host.virtualization),
            _ => self.known(self.find().and_then(|clock| self.of_clock(name, clock))),
        }
    }

    /// Returns the cost or the step of a clock.
    fn of_clock(&self, name: Name, clock: &ClockReport) -> Option<Measure> {
        match name {
            Name::UndisturbedReadCost => {
                let cost = clock.read_ns.and(clock.undisturbed_ns)?;
                Measure::new(cost, cost * UNDISTURBED_SHARE + READ_NS)
            }
            // The spread of the buffers is not divided by the root of their number, because what makes a machine slow lasts for
            // many buffers.
            Name::ReadCost => {
                let cost = clock.read_ns?;
                Measure::new(cost, cost * MEDIAN_SHARE + READ_NS + two_deviations(clock.read_spread_ns.unwrap_or(0.0)))
            }
            // The cost of pg_test_timing's loop is that without heavy interruptions. Another program's loop contains other work.
            Name::LoopCost => {
                let work = if program(self.report) == program(self.other) { 0.0 } else { LOOP_WORK_NS };
                let is_output = self.report.origin == Origin::PgTestTiming;
                let printed = clock.loop_ns?;
                let cost = clock.undisturbed_ns.filter(|_| is_output).unwrap_or(printed);
                Measure::new(cost, cost * LOOP_SHARE + work)
            }
            Name::TimedCall => {
                let ns = clock.plausible_timed_call_ns()?;
                Measure::new(ns, ns * MEDIAN_SHARE + READ_NS)
            }
            _ => match (clock.granularity_ns, clock.granularity_between_ns) {
                (Some(step), _) => Measure::new(step, step * STEP_SHARE),
                (None, bounds) => bounds.and_then(|(low, high)| Measure::within(None, low, high)),
            },
        }
    }

    fn known(&self, measure: Option<Measure>) -> Fact<Compared> {
        let not_measured = self.report.clocks.iter().find(|clock| clock.name == self.clock);
        match (measure, not_measured.and_then(|clock| clock.unavailable.as_ref()), self.report.origin) {
            (Some(measure), ..) => Fact::Known(Compared::Number(measure)),
            (None, Some(why), _) => Fact::unavailable(format!("not measured: {why}")),
            (None, None, Origin::PgTestTiming) => Fact::unavailable("not in the output of pg_test_timing"),
            (None, None, _) => Fact::unavailable("not in the report"),
        }
    }

    fn find(&self) -> Option<&'a ClockReport> {
        self.report.clock(match self.clock {
            PG19 if self.report.tsc.used_by_default == Some(true) => COUNTER,
            PG19 => SYSTEM,
            name => name,
        })
    }

    /// Returns the backward steps per million reads. They are unknown if the report has none, but too few reads to see steps that
    /// are as rare as in the other report.
    fn backward_steps(&self) -> Fact<Compared> {
        let own = self.find().and_then(rate_of_steps);
        let other = Subject { report: self.other, ..*self }.find().and_then(rate_of_steps);
        match own.zip(other) {
            Some((own, other))
                if own.estimate == Some(0.0) && other.estimate > own.estimate && !own.differs_from(&other) =>
            {
                Fact::unavailable("too few reads to see steps as rare as in the other report")
            }
            _ => self.known(own),
        }
    }

    /// Returns the counter's rate in kHz. Without an uncertainty it is PostgreSQL 19's.
    fn tsc_rate(&self) -> Fact<Compared> {
        let tsc = &self.report.tsc;
        let ppm = tsc.uncertainty_ppm.map_or(CALIBRATED_RATE_PPM, |ppm| ppm + RATE_PPM);
        tsc.frequency_khz.clone().and_then(|khz| self.known(Measure::new(khz, khz * ppm / 1e6)))
    }

    /// Returns the largest offset between two CPUs. Its bounds are those of the measurement, so there is no other noise.
    fn skew(&self) -> Fact<Compared> {
        let cpus = &self.report.cpus;
        let offset = cpus.largest_offset(self.clock).and_then(|(low, high)| Measure::within(None, low, high));
        match &cpus.skew_unavailable {
            Some(why) if offset.is_none() => Fact::unavailable(why.as_str()),
            _ => self.known(offset),
        }
    }

    /// Returns a drift in ppm, if both reports have the same reference clock.
    fn drift(&self) -> Fact<Compared> {
        let of = |report: &'a Report| report.drift.iter().find(|drift| drift.clock == self.clock);
        let own = of(self.report);
        match own.zip(of(self.other)) {
            Some((own, other)) if own.reference != other.reference => Fact::unavailable("the reference clocks differ"),
            _ => self.known(own.and_then(|own| Measure::new(own.rate_ppm, own.uncertainty_ppm + DRIFT_PPM))),
        }
    }

    fn answer(&self, answer: Option<bool>) -> Fact<Compared> {
        let word = |yes| Compared::Text(if yes { "yes" } else { "no" }.into());
        answer.map_or_else(|| self.known(None), |yes| Fact::Known(word(yes)))
    }
}

/// Returns the steps per million reads with the 95% bounds of a Poisson count.
pub fn rate_of_steps(clock: &ClockReport) -> Option<Measure> {
    let (low, high) = poisson_bounds(clock.backward_steps as f64);
    let [rate, low, high] = [clock.backward_steps as f64, low, high].map(|steps| steps / clock.reads as f64 * 1e6);
    Measure::within(Some(rate), low, high).filter(|_| clock.reads > 0)
}

/// Returns the 95% bounds of the expected count: Byar's approximation of the exact bounds of a Poisson count (Garwood,
/// Biometrika 28, 1936), from Breslow and Day, Statistical Methods in Cancer Research II (1987), page 69. The lower bound of
/// one or two steps is too low, and all other bounds are within 3%.
fn poisson_bounds(steps: f64) -> (f64, f64) {
    let bound = |n: f64, deviations: f64| n * (1.0 - 1.0 / (9.0 * n) + deviations / (3.0 * n.sqrt())).powi(3);
    match steps {
        0.0 => (0.0, EXPECTED_STEPS),
        _ => (bound(steps, -DEVIATIONS_95).max(0.0), bound(steps + 1.0, DEVIATIONS_95)),
    }
}

fn more_ns(low: &Measure, high: &Measure, reads: f64) -> Effect {
    let Some((cheap, expensive)) = low.estimate.zip(high.estimate) else { return Effect::Changed };
    match () {
        () if expensive - cheap <= reads * MATTERS_NS => Effect::Changed,
        () if high.low >= MUCH * low.high && expensive > reads * GOOD_READ_NS => Effect::MuchWorse,
        () => Effect::Worse,
    }
}

impl Measure {
    /// Returns a figure with a symmetric noise. `None` for an impossible figure.
    pub(super) fn new(estimate: f64, noise: f64) -> Option<Measure> {
        Measure::within(Some(estimate), estimate - noise, estimate + noise)
    }

    /// Returns a figure with these bounds. `None` if they are impossible.
    fn within(estimate: Option<f64>, low: f64, high: f64) -> Option<Measure> {
        let possible = |figure: f64| (-MAX..=MAX).contains(&figure);
        let ordered = low <= high && estimate.is_none_or(|estimate| (low..=high).contains(&estimate));
        (possible(low) && possible(high) && ordered).then_some(Measure { estimate, low, high })
    }

    /// Returns whether noise cannot explain the difference: the bounds do not overlap.
    pub(super) fn differs_from(&self, other: &Measure) -> bool {
        self.low > other.high || other.low > self.high
    }
}
