//! The figures of two reports: how to get each of them, its bounds, what an increase means, and the effect of load.
//!
//! The bounds contain the noise of one report: the figure moves within them from run to run although the host is the same.

use super::{Compared, ComparedFigure, Effect, Gap, Measure, both, program};
use crate::human::{count, duration};
use crate::report::{
    COUNTER, ClockReport, Fact, GOOD_READ_NS, Origin, Report, SETTABLE_CLOCK, SYSTEM, Severity, VISIBLE_NS, finding_id,
};
use crate::statistics::two_deviations;
use serde::Serialize;
use std::cmp::Ordering;

/// The clock that PostgreSQL 19 reads in EXPLAIN ANALYZE, if that is not the same one in both reports.
pub const PG19: &str = "PG19";

// Names of figures with a rule of their own.
const COSTS: [&str; 3] = ["undisturbed read", "read", "loop"];
const TIMED_CALL: &str = "timed call";
const STEP: &str = "step";
const WENT_BACK: &str = "went back";
pub const TSC_USABLE: &str = "TSC usable";
const SKEW: &str = "skew";
const DRIFT: &str = "drift";

/// The undisturbed read cost (the 5th percentile) of 12 runs on a busy guest had ratios of 1.03 to 1.07.
const UNDISTURBED_SHARE: f64 = 0.05;
/// The median read cost of these runs had ratios of 1.12 to 1.17. The median timed call of 45 runs had a ratio of 1.19.
const MEDIAN_SHARE: f64 = 0.09;
/// The cheapest read, of monotonic_coarse, takes 5 ns and varied by 0.9 ns.
const READ_NS: f64 = 0.5;
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

/// A core that other work shares takes up to twice as long: runs had ratios of 1.3 to 2.13.
const SLOW_FACTOR: f64 = 2.2;
/// On a quiet host, the median of the reads is at most 3% above their 5th percentile. The slow speed of a shared core takes at
/// least 30% longer.
const CHANGING_SPEED: f64 = 0.1;
/// If all clocks differ by more than this in one direction, the speed of the CPU differs. Undisturbed costs vary by 3%.
const OTHER_SPEED: f64 = 1.05;
/// A change of a clock can slow two others, as `rdtsc` slows `rdtscp` and `system`, but not more.
const CLOCKS_OF_ONE_SPEED: usize = 4;
/// A report has up to 12 clocks. Only a damaged one has more than this.
const MAX_CLOCKS: usize = 64;
/// If noise can explain a larger factor, the bounds overlap, but "same" would be a claim without proof.
const UNCLEAR: f64 = 3.0;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Ns,
    PerMillion,
    Khz,
    Ppm,
    Text,
}

/// The two reports: before and after.
pub struct Pair<'a> {
    pub reports: [&'a Report; 2],
    /// why the times of each report are not comparable
    load: [Fact<()>; 2],
    /// the CPU's speed differs
    has_other_speed: bool,
}

impl<'a> Pair<'a> {
    pub fn new(reports: [&'a Report; 2]) -> Pair<'a> {
        let mut pair = Pair { reports, load: reports.map(why_busy), has_other_speed: false };
        pair.has_other_speed = pair.has_other_speed();
        pair
    }

    /// Returns the figures that both reports have, and the other ones with the reason.
    pub fn figures(&self) -> Vec<Result<ComparedFigure, Gap>> {
        let mut all = Vec::new();
        for clock in self.clocks() {
            all.push(self.cost(clock));
            // The missing cost names a clock that one report does not have.
            if self.reports.iter().any(|report| find(report, clock).is_none()) || clock == PG19 {
                continue;
            }
            if clock == SYSTEM {
                all.push(self.of_clock(TIMED_CALL, clock, timed_call));
            }
            if matches!(clock, SYSTEM | "cntvct") || needs_postgres_19(clock) {
                all.push(self.of_clock(STEP, clock, step));
            }
            if clock != SETTABLE_CLOCK {
                all.push(self.backward_steps(clock));
            }
        }
        for clock in self.names(|report| report.cpus.skew.iter().map(|skew| skew.clock.as_str()).collect()) {
            all.push(self.number(SKEW, clock, Unit::Ns, self.reports.map(|report| skew(report, clock))));
        }
        for clock in self.names(|report| report.drift.iter().map(|drift| drift.clock.as_str()).collect()) {
            all.push(self.drift(clock));
        }
        all.push(self.number("TSC rate", "", Unit::Khz, self.reports.map(tsc_rate)));
        let answer = |of: fn(&Report) -> Option<bool>| {
            self.reports.map(|report| {
                let word = of(report).map(|yes| if yes { "yes" } else { "no" }.to_string());
                word.map_or_else(|| missing(report, ""), Fact::Known)
            })
        };
        for (figure, values) in [
            (TSC_USABLE, answer(|report| report.tsc.usable)),
            ("TSC used by PostgreSQL 19", answer(|report| report.tsc.used_by_default)),
            ("clock source", self.reports.map(|report| report.clocksource.current.clone())),
            ("kernel", self.reports.map(|report| report.host.kernel.clone())),
            ("CPU model", self.reports.map(|report| report.host.cpu_model.clone())),
            ("virtualization", self.reports.map(|report| report.host.virtualization.clone())),
        ] {
            all.push(self.text(figure, values));
        }
        all
    }

    /// Returns the names in both reports, without duplicates.
    fn names(&self, of: fn(&Report) -> Vec<&str>) -> Vec<&'a str> {
        let mut names = Vec::new();
        for name in self.reports.into_iter().flat_map(of) {
            if names.len() < MAX_CLOCKS && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the clocks of both reports. PostgreSQL's clock is always compared, so that its absence has a reason.
    fn clocks(&self) -> Vec<&'a str> {
        let mut clocks = self.names(|report| report.clocks.iter().map(|clock| clock.name.as_str()).collect());
        clocks.retain(|clock| *clock != SYSTEM);
        clocks.insert(0, SYSTEM);
        let [before, after] = self.reports.map(|report| report.tsc.used_by_default);
        if before.zip(after).is_some_and(|(before, after)| before != after) {
            clocks.push(PG19);
        }
        clocks
    }

    /// Compares the undisturbed read, or the median read, or the loop: the first of them that both reports have.
    fn cost(&self, clock: &str) -> Result<ComparedFigure, Gap> {
        // Another program's loop contains other work.
        let work = if program(self.reports[0]) == program(self.reports[1]) { 0.0 } else { LOOP_WORK_NS };
        let of = |nth: usize| {
            self.reports.map(|report| {
                let is_output = report.origin == Origin::PgTestTiming;
                measured(report, clock, |clock| match nth {
                    0 => undisturbed(clock),
                    1 => median(clock),
                    _ => turn_of_loop(clock, is_output, work),
                })
            })
        };
        let is_known = |nth: &usize| both(of(*nth)).is_ok();
        match (0..COSTS.len()).find(is_known) {
            Some(nth) => self.number(COSTS[nth], clock, Unit::Ns, of(nth)),
            None => self.number("cost", clock, Unit::Ns, of(COSTS.len())),
        }
    }

    fn of_clock(
        &self,
        figure: &'static str,
        clock: &str,
        of: fn(&ClockReport) -> Option<Measure>,
    ) -> Result<ComparedFigure, Gap> {
        self.number(figure, clock, Unit::Ns, self.reports.map(|report| measured(report, clock, of)))
    }

    /// Compares the backward steps per million reads. They are unknown if a report has none, but too few reads to see steps that are
    /// as rare as in the other report.
    fn backward_steps(&self, clock: &str) -> Result<ComparedFigure, Gap> {
        let mut rates = self.reports.map(|report| measured(report, clock, rate_of_steps));
        if let [Fact::Known(a), Fact::Known(b)] = rates
            && !a.differs_from(&b)
            && (a.estimate == Some(0.0)) != (b.estimate == Some(0.0))
        {
            rates[usize::from(b.estimate == Some(0.0))] =
                Fact::unavailable("too few reads to see steps as rare as in the other report");
        }
        self.number(WENT_BACK, clock, Unit::PerMillion, rates)
    }

    /// Compares a drift in ppm, if both reports have the same reference clock.
    fn drift(&self, clock: &str) -> Result<ComparedFigure, Gap> {
        let drifts = self.reports.map(|report| report.drift.iter().find(|drift| drift.clock == clock));
        if let [Some(before), Some(after)] = drifts
            && before.reference != after.reference
        {
            return Err(gap(DRIFT, clock, "the reference clocks differ".into()));
        }
        let measure = |nth: usize| {
            let drift = drifts[nth].and_then(|drift| Measure::new(drift.rate_ppm, drift.uncertainty_ppm + DRIFT_PPM));
            drift.map_or_else(|| missing(self.reports[nth], clock), Fact::Known)
        };
        self.number(DRIFT, clock, Unit::Ppm, [measure(0), measure(1)])
    }

    fn number(
        &self,
        figure: &'static str,
        clock: &str,
        unit: Unit,
        values: [Fact<Measure>; 2],
    ) -> Result<ComparedFigure, Gap> {
        let [mut before, mut after] = both(values).map_err(|why| gap(figure, clock, why))?;
        if COSTS.contains(&figure) || figure == TIMED_CALL {
            self.add_load(&mut before, &mut after).map_err(|why| gap(figure, clock, why))?;
        }
        let effect = match () {
            () if !before.differs_from(&after) => Effect::Same,
            () if !self.is_read(clock) => Effect::Changed,
            () if after.low > before.high => increase(figure, &before, &after),
            () => increase(figure, &after, &before).mirrored(),
        };
        let noise = before.noise_against(&after);
        let [before, after] = [before, after].map(Compared::Number);
        Ok(ComparedFigure { figure, clock: name_of(clock), unit, before, after, noise, effect })
    }

    fn text(&self, figure: &'static str, values: [Fact<String>; 2]) -> Result<ComparedFigure, Gap> {
        let [before, after] = both(values).map_err(|why| gap(figure, "", why))?;
        let effect = match () {
            () if before == after => Effect::Same,
            () if figure == TSC_USABLE && self.is_read(COUNTER) => {
                if before == "no" {
                    Effect::Better
                } else {
                    Effect::Worse
                }
            }
            () => Effect::Changed,
        };
        let [before, after] = [before, after].map(Compared::Text);
        Ok(ComparedFigure { figure, clock: None, unit: Unit::Text, before, after, noise: None, effect })
    }

    /// Returns whether PostgreSQL reads this clock before and after: the system clock, and the counter if PostgreSQL 19 uses
    /// it by default. A figure without a clock concerns the whole host.
    fn is_read(&self, clock: &str) -> bool {
        let uses_tsc = self.reports.iter().all(|report| report.tsc.used_by_default == Some(true));
        matches!(clock, "" | SYSTEM | PG19) || uses_tsc && needs_postgres_19(clock)
    }

    /// Adds the effect of load to the bounds of a time: a busy host makes it longer, and never shorter. Returns the reason if
    /// load can explain the difference, or if other noise can explain a large factor.
    fn add_load(&self, before: &mut Measure, after: &mut Measure) -> Result<(), String> {
        for (measure, load) in [&mut *before, &mut *after].into_iter().zip(&self.load) {
            if load.known().is_none() || self.has_other_speed {
                measure.low = measure.low.min(measure.low / SLOW_FACTOR);
            }
        }
        if before.differs_from(after) {
            return Ok(());
        }
        both(self.load.clone())?;
        let (a, b) = before.estimate.zip(after.estimate).unwrap_or_default();
        match () {
            () if self.has_other_speed => {
                Err("all clocks differ alike: the CPU's speed changed, and not the clock".into())
            }
            () if a.min(b) > 0.0 && a.max(b) >= UNCLEAR * a.min(b) => {
                Err("noise can explain even a factor of three between these reports".into())
            }
            () => Ok(()),
        }
    }

    /// Returns whether the clocks of one CPU model differ in one direction by a factor that a shared core explains: the CPU's speed
    /// changed, and no clock.
    fn has_other_speed(&self) -> bool {
        let cost = |clock: &ClockReport| clock.undisturbed_ns.or(clock.read_ns);
        let ratio = |name: &str| {
            let [before, after] = self.reports.map(|report| cost(find(report, name)?));
            Some(after? / before?)
        };
        let ratios: Vec<f64> = self.clocks().into_iter().filter_map(ratio).collect();
        let lie = |low: f64, high: f64| ratios.iter().all(|ratio| (low..=high).contains(ratio));
        let is_other = lie(OTHER_SPEED, SLOW_FACTOR) || lie(1.0 / SLOW_FACTOR, 1.0 / OTHER_SPEED);
        let [before, after] = self.reports.map(|report| report.host.cpu_model.known());
        is_other && before == after && ratios.len() >= CLOCKS_OF_ONE_SPEED
    }
}

/// Returns why the times in this report are not comparable, or that they are: no other work interrupted the reads, or shared
/// the CPU's core.
pub fn why_busy(report: &Report) -> Fact<()> {
    let gaps = report.findings.iter().find(|finding| finding.id == finding_id::CLOCK_GAPS);
    if let Some(gaps) = gaps.filter(|finding| finding.severity >= Severity::Warning) {
        return Fact::unavailable(format!("busy host: {}", gaps.summary));
    }
    let Some((clock, read)) = report.system().and_then(|clock| Some((clock, clock.read_ns?))) else {
        return Fact::Known(());
    };
    let spread = clock.read_spread_ns.unwrap_or(0.0).max(read - clock.undisturbed_ns.unwrap_or(read));
    if spread <= CHANGING_SPEED * read + READ_NS {
        return Fact::Known(());
    }
    let (read, spread) = (duration(read), duration(spread));
    Fact::unavailable(format!("busy host: a read took {read} +- {spread}, so the CPU's speed changed"))
}

/// Returns whether the check `id` judges this figure.
pub fn judges(id: &str, figure: &str, clock: Option<&str>) -> bool {
    let is_system = clock == Some(SYSTEM);
    let is_cost = COSTS.contains(&figure) || figure == "cost";
    match id {
        finding_id::CLOCK_SLOW => is_cost && is_system,
        finding_id::CLOCK_COARSE => figure == STEP && is_system,
        finding_id::CLOCK_BACKWARD => figure == WENT_BACK,
        finding_id::CPU_SKEW => figure == SKEW,
        finding_id::DRIFT => figure == DRIFT && is_system,
        finding_id::TSC_SLOW => is_cost && (is_system || matches!(clock, Some(COUNTER | PG19))),
        _ => false,
    }
}

/// Returns whether only PostgreSQL 19 can read this clock: the counter.
pub fn needs_postgres_19(clock: &str) -> bool {
    matches!(clock, COUNTER | "rdtscp" | PG19)
}

/// Returns the meaning of an increase for a server that reads the clock. A decrease means the opposite.
fn increase(figure: &str, low: &Measure, high: &Measure) -> Effect {
    match figure {
        // It reads the clock twice.
        TIMED_CALL => more_ns(low, high, 2.0),
        STEP if high.low >= VISIBLE_NS => Effect::Worse,
        // A clock that went back before was wrong before, too.
        WENT_BACK if low.estimate == Some(0.0) => Effect::MuchWorse,
        WENT_BACK | SKEW => Effect::Worse,
        _ if COSTS.contains(&figure) => more_ns(low, high, 1.0),
        _ => Effect::Changed,
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

fn name_of(clock: &str) -> Option<String> {
    (!clock.is_empty()).then(|| clock.into())
}

fn gap(figure: &str, clock: &str, why: String) -> Gap {
    let name = if COSTS.contains(&figure) { "cost" } else { figure };
    Gap { name: name.into(), clock: name_of(clock), alarm: None, why }
}

fn find<'a>(report: &'a Report, clock: &str) -> Option<&'a ClockReport> {
    report.clock(match clock {
        PG19 if report.tsc.used_by_default == Some(true) => COUNTER,
        PG19 => SYSTEM,
        name => name,
    })
}

fn measured(report: &Report, clock: &str, of: impl Fn(&ClockReport) -> Option<Measure>) -> Fact<Measure> {
    find(report, clock).and_then(of).map_or_else(|| missing(report, clock), Fact::Known)
}

/// Returns why the report does not have a figure.
fn missing<T>(report: &Report, clock: &str) -> Fact<T> {
    let not_measured = report.clocks.iter().find(|other| other.name == clock);
    Fact::unavailable(match (not_measured.and_then(|clock| clock.unavailable.as_ref()), report.origin) {
        (Some(why), _) => format!("not measured: {why}"),
        (None, Origin::PgTestTiming) => "not in the output of pg_test_timing".into(),
        (None, _) => "not in the report".into(),
    })
}

fn undisturbed(clock: &ClockReport) -> Option<Measure> {
    let cost = clock.read_ns.and(clock.undisturbed_ns)?;
    Measure::new(cost, cost * UNDISTURBED_SHARE + READ_NS)
}

/// The spread of the buffers is not divided by the root of their number, because what makes a machine slow lasts for many buffers.
fn median(clock: &ClockReport) -> Option<Measure> {
    let cost = clock.read_ns?;
    Measure::new(cost, cost * MEDIAN_SHARE + READ_NS + two_deviations(clock.read_spread_ns.unwrap_or(0.0)))
}

/// The cost of pg_test_timing's loop is that without heavy interruptions.
fn turn_of_loop(clock: &ClockReport, is_output: bool, work: f64) -> Option<Measure> {
    let printed = clock.loop_ns?;
    let cost = clock.undisturbed_ns.filter(|_| is_output).unwrap_or(printed);
    Measure::new(cost, cost * LOOP_SHARE + work)
}

fn timed_call(clock: &ClockReport) -> Option<Measure> {
    let ns = clock.plausible_timed_call_ns()?;
    Measure::new(ns, ns * MEDIAN_SHARE + READ_NS)
}

fn step(clock: &ClockReport) -> Option<Measure> {
    match (clock.granularity_ns, clock.granularity_between_ns) {
        (Some(step), _) => Measure::new(step, step * STEP_SHARE),
        (None, bounds) => bounds.and_then(|(low, high)| Measure::within(None, low, high)),
    }
}

/// Returns the counter's rate in kHz. Without an uncertainty it is PostgreSQL 19's.
fn tsc_rate(report: &Report) -> Fact<Measure> {
    let ppm = report.tsc.uncertainty_ppm.map_or(CALIBRATED_RATE_PPM, |ppm| ppm + RATE_PPM);
    let measure = |khz: f64| Measure::new(khz, khz * ppm / 1e6).map_or_else(|| missing(report, ""), Fact::Known);
    report.tsc.frequency_khz.clone().and_then(measure)
}

/// Returns the largest offset between two CPUs. Its bounds are those of the measurement, so there is no other noise.
fn skew(report: &Report, clock: &str) -> Fact<Measure> {
    let offset = report.cpus.largest_offset(clock).and_then(|(low, high)| Measure::within(None, low, high));
    match &report.cpus.skew_unavailable {
        Some(why) if offset.is_none() => Fact::unavailable(why.as_str()),
        _ => offset.map_or_else(|| missing(report, clock), Fact::Known),
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

impl ComparedFigure {
    /// Returns whether it is the cost of a read or of a loop with one read.
    pub fn is_cost(&self) -> bool {
        COSTS.contains(&self.figure)
    }
}

impl Measure {
    /// Returns a figure with a symmetric noise. `None` for an impossible figure.
    fn new(estimate: f64, noise: f64) -> Option<Measure> {
        Measure::within(Some(estimate), estimate - noise, estimate + noise)
    }

    /// Returns a figure with these bounds. `None` if they are impossible.
    fn within(estimate: Option<f64>, low: f64, high: f64) -> Option<Measure> {
        let possible = |figure: f64| (-MAX..=MAX).contains(&figure);
        let ordered = low <= high && estimate.is_none_or(|estimate| (low..=high).contains(&estimate));
        (possible(low) && possible(high) && ordered).then_some(Measure { estimate, low, high })
    }

    /// Returns whether noise cannot explain the difference: the bounds do not overlap.
    fn differs_from(&self, other: &Measure) -> bool {
        self.low > other.high || other.low > self.high
    }

    /// Returns the difference that noise can explain: the parts of both noises between the two figures.
    fn noise_against(&self, other: &Measure) -> Option<f64> {
        let (a, b) = self.estimate.zip(other.estimate)?;
        let (up, down) = ((self.high - a) + (b - other.low), (a - self.low) + (other.high - b));
        Some(match a.total_cmp(&b) {
            Ordering::Less => up,
            Ordering::Greater => down,
            Ordering::Equal => up.max(down),
        })
    }
}

impl Unit {
    /// Returns a value for the screen. A number without an estimate is a bound.
    pub fn text(self, value: &Compared) -> String {
        match value {
            Compared::Text(text) => text.clone(),
            Compared::Number(Measure { estimate: Some(estimate), .. }) => self.number(*estimate),
            Compared::Number(Measure { low, high, .. }) if *low <= 0.0 => format!("<= {}", self.number(*high)),
            Compared::Number(Measure { low, .. }) => format!(">= {}", self.number(*low)),
        }
    }

    pub fn number(self, number: f64) -> String {
        match self {
            Unit::Khz => format!("{:.4} GHz", number / 1e6),
            Unit::Ppm => format!("{number:+.1} ppm"),
            Unit::PerMillion => match number {
                0.0 => "never".into(),
                rate if rate < 0.01 => "<0.01 per M".into(),
                rate if rate < 9.995 => format!("{rate:.2} per M"),
                rate => format!("{} per M", count(rate.round() as u64)),
            },
            Unit::Ns | Unit::Text => duration(number),
        }
    }
}
