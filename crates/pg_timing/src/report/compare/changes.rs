//! What changed between two reports: one rule for all figures, the effect of load, and the alarms.

use super::figures::{PG19, READ_NS, Subject, TABLE, needs_postgres_19};
use super::{Compared, ComparedFigure, Effect, FigureName, FindingChange, Gap, Measure, MissingIn, Pair, Reason};
use crate::human::duration;
use crate::report::{COUNTER, Fact, Finding, Report, SYSTEM, Severity, finding_id};

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

impl<'a> Pair<'a> {
    pub fn new(before: &'a Report, after: &'a Report) -> Pair<'a> {
        let load = [before, after].map(why_busy);
        let mut pair = Pair { before, after, load, other_speed: None };
        pair.other_speed = pair.other_speed();
        pair
    }

    /// Returns the figures that both reports have, and the other ones with the reason.
    pub fn figures(&self) -> (Vec<ComparedFigure>, Vec<Gap>) {
        let (mut figures, mut gaps) = (Vec::new(), Vec::new());
        let mut add = |result| match result {
            Ok(figure) => figures.push(figure),
            Err(gap) => gaps.push(gap),
        };
        let has_clock = |clock: &str| [self.before, self.after].iter().all(|report| report.clock(clock).is_some());
        for (name, ..) in TABLE {
            for clock in self.clocks(name) {
                match name {
                    FigureName::UndisturbedReadCost => add(self.cost(clock)),
                    FigureName::ReadCost | FigureName::LoopCost => {}
                    // The missing cost names a clock that one report does not have.
                    FigureName::TimedCall | FigureName::Step | FigureName::BackwardSteps if !has_clock(clock) => {}
                    _ => add(self.figure(name, clock)),
                }
            }
        }
        (figures, gaps)
    }

    /// Returns the clocks of both reports that can have the figure, without duplicates.
    fn clocks(&self, name: FigureName) -> Vec<&str> {
        let mut clocks: Vec<&str> = Vec::new();
        for clock in name.clocks(self.before).into_iter().chain(name.clocks(self.after)) {
            if clocks.len() < MAX_CLOCKS && !clocks.contains(&clock) {
                clocks.push(clock);
            }
        }
        let defaults = self.before.tsc.used_by_default.zip(self.after.tsc.used_by_default);
        if name.is_cost() && defaults.is_some_and(|(before, after)| before != after) {
            clocks.push(PG19);
        }
        clocks
    }

    /// Compares the undisturbed read, or the median read, or the loop: the first of them that both reports have.
    fn cost(&self, clock: &str) -> Result<ComparedFigure, Gap> {
        let precise = [FigureName::UndisturbedReadCost, FigureName::ReadCost];
        let first = precise.into_iter().find(|name| self.values(*name, clock).is_ok());
        self.figure(first.unwrap_or(FigureName::LoopCost), clock)
    }

    fn values(&self, name: FigureName, clock: &str) -> Result<(Compared, Compared), Reason> {
        let before = Subject { report: self.before, other: self.after, clock }.get(name);
        both(before, Subject { report: self.after, other: self.before, clock }.get(name))
    }

    fn figure(&self, name: FigureName, clock: &str) -> Result<ComparedFigure, Gap> {
        let words = if name.is_cost() { "cost" } else { name.words() };
        let gap = |reason| Gap {
            figure: Some((name, clock.into())),
            alarm: None,
            what: format!("{clock} {words}").trim_start().into(),
            reason,
        };
        let (mut before, mut after) = self.values(name, clock).map_err(gap)?;
        let (mut relative_change, mut noise) = (None, None);
        let effect =
            match (&mut before, &mut after) {
                (Compared::Number(before), Compared::Number(after)) => {
                    if name.is_cost() || name == FigureName::TimedCall {
                        self.add_load(before, after).map_err(gap)?;
                    }
                    let estimates = before.estimate.zip(after.estimate);
                    relative_change = estimates.map(|(a, b)| (b - a) / a).filter(|change| change.is_finite());
                    noise = before.noise_against(after);
                    match () {
                        () if !before.differs_from(after) => Effect::Same,
                        () if !self.is_read(clock) => Effect::Changed,
                        () if after.low > before.high => name.increase(before, after),
                        () => name.increase(after, before).mirrored(),
                    }
                }
                (before, after) if before == after => Effect::Same,
                (Compared::Text(before), _) if name == FigureName::TscUsable && self.is_read(COUNTER) => {
                    if before == "no" { Effect::Better } else { Effect::Worse }
                }
                _ => Effect::Changed,
            };
        let clock = (!clock.is_empty()).then(|| clock.into());
        Ok(ComparedFigure { figure: name, clock, before, after, relative_change, noise, effect })
    }

    /// Returns whether PostgreSQL reads this clock before and after: the system clock, and the counter if PostgreSQL 19 uses
    /// it by default. A figure without a clock concerns the whole host.
    fn is_read(&self, clock: &str) -> bool {
        let uses_tsc = [self.before, self.after].iter().all(|report| report.tsc.used_by_default == Some(true));
        matches!(clock, "" | SYSTEM | PG19) || uses_tsc && needs_postgres_19(clock)
    }

    /// Adds the effect of load to the bounds of a time: a busy host makes it longer, and never shorter. Returns the reason if
    /// load, or other noise, can explain a difference by a large factor.
    fn add_load(&self, before: &mut Measure, after: &mut Measure) -> Result<(), Reason> {
        for (measure, load) in [&mut *before, &mut *after].into_iter().zip(&self.load) {
            if load.known().is_none() || self.other_speed.is_some() {
                measure.low = measure.low.min(measure.low / SLOW_FACTOR);
            }
        }
        if before.differs_from(after) {
            return Ok(());
        }
        let [load_before, load_after] = self.load.clone();
        both(load_before, load_after)?;
        let (a, b) = before.estimate.zip(after.estimate).unwrap_or_default();
        match &self.other_speed {
            Some(why) => Err((MissingIn::Neither, why.clone())),
            None if a.min(b) > 0.0 && a.max(b) >= UNCLEAR * a.min(b) => {
                Err((MissingIn::Neither, "noise can explain even a factor of three between these reports".into()))
            }
            None => Ok(()),
        }
    }

    /// Returns a sentence if the clocks of one CPU model differ in one direction by a factor that a shared core explains: the
    /// CPU's speed changed, and no clock.
    fn other_speed(&self) -> Option<String> {
        let cost =
            |report: &Report, clock: &str| report.clock(clock).and_then(|clock| clock.undisturbed_ns.or(clock.read_ns));
        let ratio = |name: &str| Some(cost(self.after, name)? / cost(self.before, name)?);
        let ratios: Vec<f64> = self.clocks(FigureName::UndisturbedReadCost).into_iter().filter_map(ratio).collect();
        let lie = |low: f64, high: f64| ratios.iter().all(|ratio| (low..=high).contains(ratio));
        let is_other = lie(OTHER_SPEED, SLOW_FACTOR) || lie(1.0 / SLOW_FACTOR, 1.0 / OTHER_SPEED);
        let is_same_model = self.before.host.cpu_model.known() == self.after.host.cpu_model.known();
        (is_other && is_same_model && ratios.len() >= CLOCKS_OF_ONE_SPEED)
            .then(|| "all clocks differ alike: the CPU's speed changed, and not the clock".into())
    }

    /// Returns the alarms that are new, gone, or have another severity.
    pub fn findings(&self, figures: &[ComparedFigure], gaps: &mut Vec<Gap>) -> Vec<FindingChange> {
        let all = self.before.findings.iter().chain(&self.after.findings).map(|finding| finding.id.as_str());
        let mut ids: Vec<&str> = all.collect();
        // Other versions can have other ids.
        ids.sort_by_key(|id| (finding_id::ALL.iter().position(|known| known == id).unwrap_or(usize::MAX), *id));
        ids.dedup();
        let mut changes = Vec::new();
        for id in ids {
            let (before, after) = (finding(self.before, id), finding(self.after, id));
            let severities = [&before, &after].map(|fact| fact.known().map(|finding| finding.severity));
            if severities[0] == severities[1] {
                continue;
            }
            match both(before, after).and_then(|pair| self.why_not_judged(id, figures, gaps).map_or(Ok(pair), Err)) {
                Ok((before, after)) => changes.push(self.finding_change(before, after, figures)),
                Err(reason) => {
                    let alarm = severities.into_iter().flatten().max().filter(|worst| *worst >= Severity::Warning);
                    let what = alarm.map_or(id.into(), |severity| format!("{id} ({})", severity.word()));
                    gaps.push(Gap { figure: None, alarm, what, reason });
                }
            }
        }
        changes
    }

    /// Returns the reason if a figure that the finding judges was not compared, and no other figure explains the finding.
    fn why_not_judged(&self, id: &str, figures: &[ComparedFigure], gaps: &[Gap]) -> Option<Reason> {
        // pg_test_timing stops at the first step, and does not show how often it read. A sound clock never goes back, so it
        // counts.
        let mut clocks = self.before.clocks.iter().chain(&self.after.clocks);
        if id == finding_id::CLOCK_BACKWARD && clocks.any(|clock| clock.backward_steps > 0 && clock.reads == 0) {
            return None;
        }
        let is_judged = |gap: &&Gap| gap.figure.as_ref().is_some_and(|(name, clock)| judges(id, *name, Some(clock)));
        let gap = gaps.iter().find(is_judged)?;
        let is_explained = judged(id, figures).any(|figure| figure.effect != Effect::Same);
        (!is_explained).then(|| gap.reason.clone())
    }

    fn finding_change(&self, before: &Finding, after: &Finding, figures: &[ComparedFigure]) -> FindingChange {
        let worse = if before.severity > after.severity { before } else { after };
        let id = worse.id.as_str();
        // No figure shows a jump, or a change of the rate, or an offset that changes within milliseconds.
        let mut reports = [self.before, self.after].into_iter();
        let is_unsteady = match id {
            finding_id::DRIFT => reports.any(|report| report.drift.iter().any(|drift| !drift.has_constant_rate())),
            finding_id::CPU_SKEW => reports.any(|report| report.cpus.skew.iter().any(|skew| skew.moving)),
            _ => false,
        };
        let mut judged = judged(id, figures).peekable();
        let is_noise = !is_unsteady && judged.peek().is_some() && judged.all(|figure| figure.effect == Effect::Same);
        let effect = match worse.severity {
            _ if is_noise => Effect::Same,
            // They warn about the next restart, and about other programs. The clock is as before.
            _ if matches!(id, finding_id::CLOCKSOURCE_NOT_PERSISTENT | finding_id::CLOCK_GAPS) => Effect::Changed,
            Severity::Critical => Effect::MuchWorse,
            _ => Effect::Worse,
        };
        FindingChange {
            id: id.into(),
            before: before.severity,
            after: after.severity,
            summary: worse.summary.clone(),
            effect: if worse.severity == after.severity { effect } else { effect.mirrored() },
        }
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

/// Returns both values, or the reason of the report that has no value. One reason of both is enough; the smaller one does not
/// depend on their order.
fn both<T>(before: Fact<T>, after: Fact<T>) -> Result<(T, T), Reason> {
    Err(match (before, after) {
        (Fact::Known(before), Fact::Known(after)) => return Ok((before, after)),
        (Fact::Unavailable { unavailable }, Fact::Known(_)) => (MissingIn::Before, unavailable),
        (Fact::Known(_), Fact::Unavailable { unavailable }) => (MissingIn::After, unavailable),
        (Fact::Unavailable { unavailable: a }, Fact::Unavailable { unavailable: b }) => (MissingIn::Both, a.min(b)),
    })
}

/// Returns the finding, if it was decided.
fn finding<'a>(report: &'a Report, id: &str) -> Fact<&'a Finding> {
    match report.findings.iter().find(|finding| finding.id == id && finding.severity != Severity::Unknown) {
        Some(finding) => Fact::Known(finding),
        None => Fact::unavailable("the check could not decide"),
    }
}

fn judged<'a>(id: &'a str, figures: &'a [ComparedFigure]) -> impl Iterator<Item = &'a ComparedFigure> {
    figures.iter().filter(move |figure| judges(id, figure.figure, figure.clock.as_deref()))
}

/// Returns whether the check `id` judges this figure.
fn judges(id: &str, figure: FigureName, clock: Option<&str>) -> bool {
    let is_system = clock == Some(SYSTEM);
    match id {
        finding_id::CLOCK_SLOW => figure.is_cost() && is_system,
        finding_id::CLOCK_COARSE => figure == FigureName::Step && is_system,
        finding_id::CLOCK_BACKWARD => figure == FigureName::BackwardSteps,
        finding_id::CPU_SKEW => figure == FigureName::Skew,
        finding_id::DRIFT => figure == FigureName::Drift && is_system,
        finding_id::TSC_SLOW => figure.is_cost() && (is_system || matches!(clock, Some(COUNTER | PG19))),
        _ => false,
    }
}

impl Measure {
    /// Returns the difference that noise can explain: the parts of both noises between the two figures.
    fn noise_against(&self, other: &Measure) -> Option<f64> {
        let (a, b) = self.estimate.zip(other.estimate)?;
        let (up, down) = ((self.high - a) + (b - other.low), (a - self.low) + (other.high - b));
        Some(if a < b {
            up
        } else if b < a {
            down
        } else {
            up.max(down)
        })
    }
}
