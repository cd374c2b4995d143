//! Compares two reports of a host: what changed beyond noise, and what that means for EXPLAIN ANALYZE.
//!
//! Each figure has a noise: it moves by that much from run to run although the host is the same. A figure changed if the difference
//! exceeds the noise of both reports. What a report does not show, or what load may have changed, is not compared, and the reason
//! is given. The serde names are the JSON contract.

#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;

use super::*;
use crate::human::duration;
use crate::statistics::two_deviations;
use serde::Serialize;

/// The clock that PostgreSQL 19 reads in EXPLAIN ANALYZE, if that is not the same one in both reports.
const PG19: &str = "PG19";
/// The clocks that PostgreSQL reads.
const CLOCKS: [&str; 6] = [SYSTEM, "rdtscp", "rdtsc", "isb_cntvct", "cntvct", PG19];

// Names of figures with a rule of their own.
const READ: &str = "read";
const LOOP: &str = "loop";
const TIMED_CALL: &str = "timed call";
const STEP: &str = "step";
const SKEW: &str = "skew";
const TSC_USABLE: &str = "TSC usable";

/// A fact and how to get it from a report.
type FactOf = (&'static str, fn(&Report) -> Option<String>);

const FACTS: [FactOf; 6] = [
    (TSC_USABLE, |report| report.tsc.usable.map(yes_or_no)),
    ("TSC used by PostgreSQL 19", |report| report.tsc.used_by_default.map(yes_or_no)),
    ("clock source", |report| report.clocksource.current.known().cloned()),
    ("kernel", |report| report.host.kernel.known().cloned()),
    ("CPU model", |report| report.host.cpu_model.known().cloned()),
    ("virtualization", |report| report.host.virtualization.known().cloned()),
];

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
/// Crystals are off by up to 100 ppm and change with the temperature, and NTP corrects that. Each report gets half of it.
const DRIFT_PPM: f64 = 50.0;
/// The probability below which chance does not explain that only one report has backward steps.
const CHANCE: f64 = 0.05;

/// A call of a plan node reads the clock twice, so 5 ns per read are 10 ns per row and node: a tenth of a node that takes
/// 100 ns per row. Runs on a quiet machine differ by 3% anyway.
const MATTERS_NS: f64 = 5.0;
/// Only a factor that everyone notices is much.
const MUCH: f64 = 2.0;

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
/// If noise can explain a larger factor, "same" would be a claim without proof.
const UNCLEAR: f64 = 3.0;

/// The comparison of two reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: &'static str,
    /// source, program and verdict of the report
    pub before: String,
    /// the same of the second report
    pub after: String,
    /// every figure and fact that one of the reports has, and the findings with another severity
    pub changes: Vec<Change>,
    pub verdict: CompareVerdict,
}

/// The worst change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompareVerdict {
    pub effect: Effect,
    pub summary: String,
}

/// A figure, a fact or a finding in both reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// a figure of a clock like `system read`, a fact like `kernel`, or the id of a finding
    pub what: String,
    /// the figure with its unit, the fact, or the finding's severity; `-` if it is missing
    pub before: String,
    pub after: String,
    pub before_ns: Option<f64>,
    pub after_ns: Option<f64>,
    /// the largest difference that counts as the same
    pub noise_ns: Option<f64>,
    pub effect: Effect,
    /// why it was not compared, or the finding's sentence from the report in which it is worse
    pub note: Option<String>,
}

/// The meaning of a change for a reader of EXPLAIN ANALYZE. The order is from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    MuchBetter,
    Better,
    /// no difference beyond the noise
    Same,
    /// different, but neither better nor worse
    Changed,
    /// of the verdict: the read cost of PostgreSQL's clock could not be compared
    NotCompared,
    Worse,
    MuchWorse,
}

impl Effect {
    /// Returns the effect in small letters.
    pub fn word(self) -> &'static str {
        ["much better", "better", "same", "changed", "not compared", "worse", "much worse"][self as usize]
    }

    /// Returns the effect of the opposite change.
    pub fn mirrored(self) -> Effect {
        use Effect::{Better, Changed, MuchBetter, MuchWorse, NotCompared, Same, Worse};
        [MuchWorse, Worse, Same, Changed, NotCompared, Better, MuchBetter][self as usize]
    }

    /// Returns the exit status: 0 same or better, 1 worse, 2 much worse, 3 not compared.
    pub fn exit_status(self) -> u8 {
        [0, 0, 0, 0, 3, 1, 2][self as usize]
    }
}

impl Change {
    /// Returns what changed, like `system step 70 ns (before 1 ns)`.
    fn text(&self) -> String {
        let is_of_19 = self.what == TSC_USABLE || self.what.split(' ').next().is_some_and(needs_postgres_19);
        let whose = if is_of_19 { "; only PostgreSQL 19 reads it" } else { "" };
        format!("{} {} (before {}{whose})", self.what, self.after, self.before)
    }

    /// Returns whether one of the reports cannot show this severity.
    fn hides(&self, severity: Severity) -> bool {
        self.effect == Effect::NotCompared && [&self.before, &self.after].contains(&&severity.word().to_string())
    }
}

/// A figure of one report in ns. Noise moves it by at most `noise`.
#[derive(Clone, Copy, Debug)]
struct Measure {
    value: f64,
    noise: f64,
    /// what is known if the figure itself is not
    bounds: Option<(f64, f64)>,
}

impl Measure {
    /// Returns a figure with a noise in proportion to it.
    fn new(value: f64, share: f64, noise: f64) -> Measure {
        Measure { value, noise: value.abs() * share + noise, bounds: None }
    }

    /// Returns the middle of two bounds, which are its noise.
    fn between((low, high): (f64, f64)) -> Measure {
        Measure { value: low / 2.0 + high / 2.0, noise: (high - low).abs() / 2.0, bounds: Some((low, high)) }
    }

    fn text(self) -> String {
        match self.bounds {
            None => duration(self.value),
            Some((low, high)) if low <= 0.0 => format!("<= {}", duration(high)),
            Some((low, high)) => format!("{} to {}", duration(low), duration(high)),
        }
    }
}

/// The two reports, before and after, and what was compared so far.
struct Pair<'a> {
    reports: [&'a Report; 2],
    /// why load may have made times longer
    load: Option<String>,
    /// whether load may have made the times of this report longer
    is_slowed: [bool; 2],
    changes: Vec<Change>,
}

/// Compares two reports with findings. The sources are paths.
pub fn compare(before: (&str, &Report), after: (&str, &Report)) -> Comparison {
    let reports = [before.1, after.1];
    let (busy, other_speed) = (reports.map(why_busy), other_speed(reports));
    let is_slowed = busy.each_ref().map(|why| why.is_some() || other_speed.is_some());
    let mut pair = Pair { reports, load: both(busy).or(other_speed), is_slowed, changes: Vec::new() };
    pair.compare_clocks();
    pair.compare_facts();
    // Both reports were judged by this program, so both have all findings in the same order.
    for (before, after) in reports[0].findings.iter().zip(&reports[1].findings) {
        pair.compare_finding(before, after);
    }
    let [before, after] = [before, after]
        .map(|(source, report)| format!("{source}: {}; {}", program(report), report.verdict.severity.word()));
    let verdict = pair.verdict();
    Comparison { schema_version: 1, version: env!("CARGO_PKG_VERSION"), before, after, changes: pair.changes, verdict }
}

impl Pair<'_> {
    fn compare_clocks(&mut self) {
        let is_output = |report: &Report| report.origin == Origin::PgTestTiming;
        let has_loop = self.reports.into_iter().any(is_output);
        // Another program's loop contains other work.
        let work = if program(self.reports[0]) == program(self.reports[1]) { 0.0 } else { LOOP_WORK_NS };
        let [before, after] = self.reports.map(|report| report.tsc.used_by_default);
        let has_other_default = before.zip(after).is_some_and(|(before, after)| before != after);
        for clock in CLOCKS.into_iter().filter(|clock| *clock != PG19 || has_other_default) {
            let is_undisturbed = |report| find(report, clock).is_some_and(|clock| clock.undisturbed_ns.is_some());
            let has_undisturbed = self.reports.into_iter().all(is_undisturbed);
            match has_loop {
                true => self.number(LOOP, clock, |report, clock| loop_cost(clock, is_output(report), work)),
                false => self.number(READ, clock, |_, clock| read_cost(clock, has_undisturbed)),
            }
            // The missing cost names a clock that one report does not have.
            if clock == PG19 || self.reports.iter().any(|report| report.clock(clock).is_none()) {
                continue;
            }
            let timed_call = |ns| Measure::new(ns, MEDIAN_SHARE, READ_NS);
            self.number(TIMED_CALL, clock, |_, clock| clock.plausible_timed_call_ns().map(timed_call));
            self.number(STEP, clock, |_, clock| {
                let step = clock.granularity_ns.map(|ns| Measure::new(ns, STEP_SHARE, 0.0));
                step.or_else(|| clock.granularity_between_ns.map(Measure::between))
            });
            self.number(SKEW, clock, |report, clock| report.cpus.largest_offset(&clock.name).map(Measure::between));
        }
    }

    fn compare_facts(&mut self) {
        for (what, of) in FACTS {
            let values = self.reports.map(of);
            let effect = match &values {
                [None, None] => continue,
                [Some(before), Some(after)] if before == after => Ok(Effect::Same),
                [Some(before), Some(_)] if what == TSC_USABLE && self.is_read(COUNTER) => {
                    Ok(if before == "no" { Effect::Better } else { Effect::Worse })
                }
                [Some(_), Some(_)] => Ok(Effect::Changed),
                values => Err(self.why_missing(values, "")),
            };
            self.add(what.into(), values.map(|value| value.unwrap_or("-".into())), effect);
        }
    }

    /// Compares a figure of a clock. A figure that neither report has is left out, except the cost of PostgreSQL's clock.
    fn number(&mut self, figure: &str, clock: &str, of: impl Fn(&Report, &ClockReport) -> Option<Measure>) {
        let values = self.reports.map(|report| find(report, clock).and_then(|clock| of(report, clock)));
        let effect = match values {
            [None, None] if clock != SYSTEM || ![READ, LOOP].contains(&figure) => return,
            [Some(before), Some(after)] => self.effect(figure, clock, before, after),
            values => Err(self.why_missing(&values, clock)),
        };
        let texts = values.map(|value| value.map_or("-".into(), Measure::text));
        let change = self.add(format!("{clock} {figure}"), texts, effect);
        [change.before_ns, change.after_ns] =
            values.map(|value| value.filter(|value| value.bounds.is_none()).map(|value| value.value));
        change.noise_ns = values[0].zip(values[1]).map(|(before, after)| before.noise + after.noise);
    }

    /// Returns why the reports without a value do not have it.
    fn why_missing<T>(&self, values: &[Option<T>; 2], clock: &str) -> String {
        let why = |report: &Report| {
            let not_measured = report.clocks.iter().find(|other| other.name == clock);
            match (not_measured.and_then(|clock| clock.unavailable.as_ref()), report.origin) {
                (Some(why), _) => format!("not measured: {why}"),
                (None, Origin::PgTestTiming) => "not in the output of pg_test_timing".into(),
                (None, _) => "not in the report".into(),
            }
        };
        both([0, 1].map(|nth| values[nth].is_none().then(|| why(self.reports[nth])))).unwrap_or_default()
    }

    /// Adds a change, or the reason why there was no comparison.
    fn add(&mut self, what: String, [before, after]: [String; 2], effect: Result<Effect, String>) -> &mut Change {
        let note = effect.as_ref().err().cloned();
        let effect = effect.unwrap_or(Effect::NotCompared);
        let (before_ns, after_ns, noise_ns) = (None, None, None);
        self.changes.push(Change { what, before, after, before_ns, after_ns, noise_ns, effect, note });
        self.changes.last_mut().expect("it was added")
    }

    /// Returns whether PostgreSQL reads this clock before and after: the system clock, and the counter if PostgreSQL 19 uses
    /// it by default.
    fn is_read(&self, clock: &str) -> bool {
        let uses_tsc = self.reports.iter().all(|report| report.tsc.used_by_default == Some(true));
        matches!(clock, SYSTEM | PG19) || uses_tsc && needs_postgres_19(clock)
    }

    /// Returns the effect of a change on a server that reads the clock, or why it is not compared.
    fn effect(&self, figure: &str, clock: &str, before: Measure, after: Measure) -> Result<Effect, String> {
        let (low, high) = if before.value < after.value { (before, after) } else { (after, before) };
        let is_time = [READ, LOOP, TIMED_CALL].contains(&figure);
        let load = self.load.as_ref().filter(|_| is_time);
        // Load makes a time longer, and never shorter.
        let is_slowed = self.is_slowed[usize::from(before.value < after.value)];
        let least = if load.is_some() && is_slowed { high.value.min(high.value / SLOW_FACTOR) } else { high.value };
        // Figures of a damaged report may have no difference.
        let is_beyond_noise = least - low.value > low.noise + high.noise;
        let is_unclear = is_time && low.value > 0.0 && high.value >= UNCLEAR * low.value;
        if !is_beyond_noise {
            return match load {
                Some(why) => Err(why.clone()),
                None if is_unclear => Err("noise can explain even a factor of three between these reports".into()),
                None => Ok(Effect::Same),
            };
        }
        // A timed call reads the clock twice.
        let reads = if figure == TIMED_CALL { 2.0 } else { 1.0 };
        let is_much = least - high.noise >= MUCH * (low.value + low.noise) && high.value > reads * GOOD_READ_NS;
        let increase = match figure {
            _ if !self.is_read(clock) => Effect::Changed,
            SKEW => Effect::Worse,
            STEP if high.value - high.noise >= VISIBLE_NS => Effect::Worse,
            _ if !is_time || high.value - low.value <= reads * MATTERS_NS => Effect::Changed,
            _ if is_much => Effect::MuchWorse,
            _ => Effect::Worse,
        };
        Ok(if before.value < after.value { increase } else { increase.mirrored() })
    }

    /// Compares a finding, if its severity differs.
    fn compare_finding(&mut self, before: &Finding, after: &Finding) {
        if before.severity == after.severity {
            return;
        }
        let undecided = |f: &Finding| (f.severity == Severity::Unknown).then(|| "the check could not decide".into());
        let worse = if before.severity > after.severity { before } else { after };
        let effect = both([before, after].map(undecided)).map_or_else(|| self.effect_of_alarm(worse), Err);
        let effect = effect.map(|effect| if worse.severity == after.severity { effect } else { effect.mirrored() });
        let change = self.add(worse.id.clone(), [before, after].map(|finding| finding.severity.word().into()), effect);
        let is_same = change.effect == Effect::Same;
        let sentence = || format!("{}{}", if is_same { "within the noise: " } else { "" }, worse.summary);
        change.note.get_or_insert_with(sentence);
    }

    /// Returns the effect of an alarm, or why it is not compared. An alarm follows the figure that it judges: it counts only if that
    /// one changed.
    fn effect_of_alarm(&self, alarm: &Finding) -> Result<Effect, String> {
        let id = alarm.id.as_str();
        let is_moving = || self.reports.iter().any(|report| report.cpus.skew.iter().any(|skew| skew.moving));
        let is_judged = |change: &&Change| match (id, change.what.as_str()) {
            (finding_id::CLOCK_SLOW, "system read" | "system loop") => true,
            (finding_id::TSC_SLOW, what) => what.ends_with(READ) || what.ends_with(LOOP),
            (finding_id::CLOCK_COARSE, "system step") => true,
            // An offset that changes within milliseconds is a fault, whatever its size.
            (finding_id::CPU_SKEW, what) => what.ends_with(SKEW) && !is_moving(),
            _ => false,
        };
        let judged: Vec<&Change> = self.changes.iter().filter(is_judged).collect();
        let is_change = |change: &&Change| !matches!(change.effect, Effect::Same | Effect::NotCompared);
        if !judged.is_empty() && !judged.iter().any(is_change) {
            return judged.iter().find_map(|change| change.note.clone()).map_or(Ok(Effect::Same), Err);
        }
        match (id, alarm.severity) {
            (finding_id::CLOCK_BACKWARD, _) if self.steps_can_be_chance() => {
                Err("too few reads to see steps as rare as in the other report".into())
            }
            (finding_id::DRIFT, _) if self.has_same_drift() => Ok(Effect::Same),
            // They warn about the next restart, and about other programs. The clock is as before.
            (finding_id::CLOCKSOURCE_NOT_PERSISTENT | finding_id::CLOCK_GAPS, _) => Ok(Effect::Changed),
            (_, Severity::Critical) => Ok(Effect::MuchWorse),
            _ => Ok(Effect::Worse),
        }
    }

    /// Returns whether chance explains that only one report has backward steps. If they are as frequent in both reports, the
    /// probability that all of them are in this report is its share of all reads, to the power of their number.
    fn steps_can_be_chance(&self) -> bool {
        let sum = |of: fn(&ClockReport) -> u64| {
            self.reports.map(|report| {
                let clocks = report.clocks.iter().filter(|clock| clock.name != SETTABLE_CLOCK);
                clocks.map(of).fold(0, u64::saturating_add) as f64
            })
        };
        let [reads, steps] = [sum(|clock| clock.reads), sum(|clock| clock.backward_steps)];
        // pg_test_timing stops at the first step, and does not print how often it read.
        let with_steps = if steps[0] > 0.0 { reads[0] } else { reads[1] };
        let is_in_both = steps[0] > 0.0 && steps[1] > 0.0;
        !is_in_both && (with_steps / (reads[0] + reads[1])).powf(steps[0] + steps[1]) >= CHANCE
    }

    /// Returns whether the system clock has the same rate in both reports, and no clock jumped or changed its rate.
    fn has_same_drift(&self) -> bool {
        let is_constant = |drift: &Drift| drift.steps.is_empty() && drift.bend_ppm <= QUARTZ_PPM;
        let rates = self.reports.map(|report| {
            let system = report.drift.iter().find(|drift| drift.clock == SYSTEM)?;
            report.drift.iter().all(is_constant).then_some((system.rate_ppm, system.uncertainty_ppm))
        });
        let [Some((before, error_before)), Some((after, error_after))] = rates else { return false };
        (after - before).abs() <= error_before + error_after + 2.0 * DRIFT_PPM
    }

    /// Returns the verdict. The worst change counts, then a missing comparison, then the best change. The first sentence is its
    /// reason.
    fn verdict(&self) -> CompareVerdict {
        // The first comparison is that of the read cost of PostgreSQL's clock.
        let has_cost = self.changes.first().is_some_and(|cost| cost.note.is_none());
        // Without it, and with an alarm that may be new or gone, nothing can be called the same or better.
        let is_unknown = !has_cost || self.changes.iter().any(|change| change.hides(Severity::Critical));
        let compared = self.changes.iter().map(|change| change.effect).filter(|effect| *effect != Effect::NotCompared);
        let effects = compared.chain(is_unknown.then_some(Effect::NotCompared));
        let best = effects.clone().min().unwrap_or(Effect::Same);
        let worst = effects.max().unwrap_or(Effect::Same);
        let effect = if worst >= Effect::NotCompared || best > Effect::Better { worst } else { best };
        let list = |head: &str, is_listed: &dyn Fn(&Change) -> bool| {
            let texts: Vec<String> = self.changes.iter().filter(|change| is_listed(change)).map(Change::text).collect();
            (!texts.is_empty()).then(|| format!("{head}: {}.", texts.join(", ")))
        };
        let all_of = |head: &str, effect: Effect| list(head, &|change| change.effect == effect);
        let now = |effect: Effect| all_of(&format!("Now {}", effect.word()), effect);
        let levels = [Effect::MuchWorse, Effect::Worse, Effect::MuchBetter, Effect::Better];
        let mut sentences: Vec<String> = levels.into_iter().filter_map(now).collect();
        sentences.extend(match effect {
            Effect::Same => Some("No figure changed by more than the noise.".into()),
            Effect::Changed => all_of("Different, but neither better nor worse", effect),
            _ => None,
        });
        sentences.extend(self.meaning(effect));
        sentences.extend(list("Alarms that only one of the reports can show", &|change| {
            change.hides(Severity::Warning) || change.hides(Severity::Critical)
        }));
        CompareVerdict { effect, summary: sentences.join(" ") }
    }

    /// Returns a sentence about the read cost of PostgreSQL's clock.
    fn meaning(&self, verdict: Effect) -> Option<String> {
        let cost = self.changes.first()?;
        if let Some(why) = &cost.note {
            return Some(format!("The read cost of PostgreSQL's clock could not be compared ({why})."));
        }
        if verdict == Effect::Same {
            // Between different programs the noise is several times the cost, and "same" alone would hide that.
            let noise = duration(cost.noise_ns?);
            return Some(format!("Read cost: {}; noise can explain a difference of {noise}.", cost.text()));
        }
        let is_comparable = program(self.reports[0]) == program(self.reports[1]);
        if !is_comparable || matches!(cost.effect, Effect::Same | Effect::Changed) {
            return None;
        }
        let [before, after] = self.reports.map(|report| report.system()?.overhead_per_node_ns().map(duration));
        let (before, after) = before.zip(after)?;
        Some(format!(
            "EXPLAIN ANALYZE now adds up to about {after} per row and plan node; before, up to about {before}."
        ))
    }
}

/// Returns why the times in this report are not comparable: other work interrupted the reads, or shared the CPU's core.
pub fn why_busy(report: &Report) -> Option<String> {
    let gaps = report.findings.iter().find(|finding| finding.id == finding_id::CLOCK_GAPS);
    if let Some(gaps) = gaps.filter(|finding| finding.severity >= Severity::Warning) {
        return Some(format!("busy host: {}", gaps.summary));
    }
    let clock = report.system()?;
    let read = clock.read_ns?;
    let spread = clock.read_spread_ns.unwrap_or(0.0).max(read - clock.undisturbed_ns.unwrap_or(read));
    (spread > CHANGING_SPEED * read + READ_NS).then(|| {
        let (read, spread) = (duration(read), duration(spread));
        format!("busy host: a read took {read} +- {spread}, so the CPU's speed changed")
    })
}

/// Returns the reason not to compare times if the clocks of one CPU model differ in one direction by a factor that a shared core
/// explains.
fn other_speed(reports: [&Report; 2]) -> Option<String> {
    let cost = |clock: &ClockReport| clock.undisturbed_ns.or(clock.read_ns);
    let ratio = |before: &ClockReport| Some(cost(reports[1].clock(&before.name)?)? / cost(before)?);
    let ratios: Vec<f64> = reports[0].clocks.iter().take(MAX_CLOCKS).filter_map(ratio).collect();
    let lie = |low: f64, high: f64| ratios.iter().all(|ratio| (low..=high).contains(ratio));
    let is_other = lie(OTHER_SPEED, SLOW_FACTOR) || lie(1.0 / SLOW_FACTOR, 1.0 / OTHER_SPEED);
    let [before, after] = reports.map(|report| report.host.cpu_model.known());
    (is_other && before == after && ratios.len() >= CLOCKS_OF_ONE_SPEED)
        .then(|| "all clocks differ alike: the CPU's speed changed, and not the clock".into())
}

/// Returns the program that measured. It decides what its figures mean. An output without a table does not show the version.
fn program(report: &Report) -> &'static str {
    let rows = || report.clocks.iter().flat_map(|clock| &clock.histogram);
    match report.origin {
        Origin::Measured | Origin::Captured => "pg_timing check",
        Origin::PgTestTiming if rows().any(|row| row.ge_ns.is_some()) => "pg_test_timing 9.2 to 18",
        Origin::PgTestTiming if rows().next().is_some() => "pg_test_timing 19",
        Origin::PgTestTiming => "pg_test_timing",
    }
}

/// Returns whether only PostgreSQL 19 can read this clock: the counter.
fn needs_postgres_19(clock: &str) -> bool {
    matches!(clock, COUNTER | "rdtscp" | PG19)
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.into()
}

fn find<'a>(report: &'a Report, clock: &str) -> Option<&'a ClockReport> {
    report.clock(match clock {
        PG19 if report.tsc.used_by_default == Some(true) => COUNTER,
        PG19 => SYSTEM,
        name => name,
    })
}

/// Returns the undisturbed read cost if both reports have it, or else the median. The spread of the buffers is not divided by the root of their number,
/// because what makes a machine slow lasts for many buffers.
fn read_cost(clock: &ClockReport, has_undisturbed: bool) -> Option<Measure> {
    let median = clock.read_ns?;
    let spread = two_deviations(clock.read_spread_ns.unwrap_or(0.0));
    let low = clock.undisturbed_ns.filter(|_| has_undisturbed).map(|ns| Measure::new(ns, UNDISTURBED_SHARE, READ_NS));
    Some(low.unwrap_or(Measure::new(median, MEDIAN_SHARE, READ_NS + spread)))
}

/// The cost of pg_test_timing's loop is that without heavy interruptions.
fn loop_cost(clock: &ClockReport, is_output: bool, work: f64) -> Option<Measure> {
    let printed = clock.loop_ns?;
    Some(Measure::new(clock.undisturbed_ns.filter(|_| is_output).unwrap_or(printed), LOOP_SHARE, work))
}

/// Returns the reason with the report that it is about. One reason of both is enough; the smaller one does not depend on their
/// order.
fn both(reasons: [Option<String>; 2]) -> Option<String> {
    match reasons {
        [None, None] => None,
        [Some(before), None] => Some(format!("before: {before}")),
        [None, Some(after)] => Some(format!("after: {after}")),
        [Some(before), Some(after)] => Some(format!("both: {}", before.min(after))),
    }
}
