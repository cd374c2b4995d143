//! Compares two reports of a host: what changed beyond noise, and what that means for EXPLAIN ANALYZE.
//!
//! Each figure has bounds within which noise can move it, see `figures.rs`. A figure changed if the bounds of both reports do not
//! overlap. What a report does not show, or what load may have changed, is not compared, and the reason is given. The serde names
//! are the JSON contract.

mod figures;
#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;

pub use figures::{PG19, Unit, why_busy};

use super::{Fact, Finding, Origin, Report, SYSTEM, Severity, finding_id};
use crate::human::duration;
use figures::{Pair, judges, needs_postgres_19};
use serde::Serialize;

/// The comparison of two reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: &'static str,
    pub before: ComparedReport,
    pub after: ComparedReport,
    /// every figure that both reports have, with its change
    pub figures: Vec<ComparedFigure>,
    /// alarms that are new, gone, or have another severity
    pub findings: Vec<FindingChange>,
    pub not_compared: Vec<NotCompared>,
    pub verdict: CompareVerdict,
}

/// One of the two reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedReport {
    /// file name, or `stdin`
    pub source: String,
    /// the program that measured, like `pg_test_timing 9.2 to 18`
    pub program: &'static str,
    /// severity of the report's own verdict
    pub severity: Severity,
}

/// A number with its noise, or a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Compared {
    Number(Measure),
    Text(String),
}

/// A figure and the bounds within which noise can move it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measure {
    /// missing if only the bounds are known
    pub estimate: Option<f64>,
    pub low: f64,
    pub high: f64,
}

/// A figure that both reports have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedFigure {
    /// what is compared, like `undisturbed read`
    pub figure: &'static str,
    /// name of the clock
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    pub unit: Unit,
    pub before: Compared,
    pub after: Compared,
    /// the largest difference between the two figures that counts as the same, in the unit of the figure
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    pub effect: Effect,
}

/// An alarm that is new, gone, or has another severity.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingChange {
    pub id: String,
    pub before: Severity,
    pub after: Severity,
    /// the finding's sentence, from the report in which it is worse
    pub summary: String,
    /// `same`: the figure that the finding judges did not change beyond noise, so the cost is close to a limit
    pub effect: Effect,
}

/// Figures and findings that could not be compared, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotCompared {
    pub what: Vec<String>,
    /// with the report, like `before: not in the report`
    pub why: String,
}

/// The worst change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompareVerdict {
    pub effect: Effect,
    pub summary: String,
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
    /// the read cost of PostgreSQL's clock could not be compared
    NotCompared,
    Worse,
    MuchWorse,
}

/// A figure that was not compared, or a finding.
#[derive(Clone, Debug)]
struct Gap {
    /// name of the figure, or the id of the finding
    name: String,
    clock: Option<String>,
    /// severity of the finding in the report that has it
    alarm: Option<Severity>,
    why: String,
}

/// Compares two reports with findings. The sources are file names.
pub fn compare(before: (&str, &Report), after: (&str, &Report)) -> Comparison {
    let pair = Pair::new([before.1, after.1]);
    let (mut figures, mut gaps) = (Vec::new(), Vec::new());
    for result in pair.figures() {
        match result {
            Ok(figure) => figures.push(figure),
            Err(gap) => gaps.push(gap),
        }
    }
    let findings = findings(&pair, &figures, &mut gaps);
    let verdict = verdict(&pair, &figures, &findings, &gaps);
    let mut not_compared: Vec<NotCompared> = Vec::new();
    for gap in gaps {
        match not_compared.iter_mut().find(|group| group.why == gap.why) {
            Some(group) => group.what.push(gap.label()),
            None => not_compared.push(NotCompared { what: vec![gap.label()], why: gap.why }),
        }
    }
    let [before, after] = [before, after].map(|(source, report)| ComparedReport {
        source: source.into(),
        program: program(report),
        severity: report.verdict.severity,
    });
    let version = env!("CARGO_PKG_VERSION");
    Comparison { schema_version: 1, version, before, after, figures, findings, not_compared, verdict }
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

/// Returns the alarms that are new, gone, or have another severity.
fn findings(pair: &Pair, figures: &[ComparedFigure], gaps: &mut Vec<Gap>) -> Vec<FindingChange> {
    let all = pair.reports.iter().flat_map(|report| &report.findings).map(|finding| finding.id.as_str());
    let mut ids: Vec<&str> = all.collect();
    // Other versions can have other ids.
    ids.sort_by_key(|id| (finding_id::ALL.iter().position(|known| known == id).unwrap_or(usize::MAX), *id));
    ids.dedup();
    let mut changes = Vec::new();
    for id in ids {
        let facts = pair.reports.map(|report| decided(report, id));
        let [before, after] = facts.clone().map(|fact| fact.known().map(|finding| finding.severity));
        if before == after {
            continue;
        }
        match both(facts).and_then(|[before, after]| change(pair, before, after, figures, gaps)) {
            Ok(change) => changes.push(change),
            Err(why) => {
                let alarm = before.max(after).filter(|worst| *worst >= Severity::Warning);
                let name = alarm.map_or(id.into(), |severity| format!("{id} ({})", severity.word()));
                gaps.push(Gap { name, clock: None, alarm, why });
            }
        }
    }
    changes
}

/// Returns the finding, if it was decided.
fn decided<'a>(report: &'a Report, id: &str) -> Fact<&'a Finding> {
    let finding = report.findings.iter().find(|finding| finding.id == id && finding.severity != Severity::Unknown);
    Fact::of(finding, "the check could not decide")
}

/// Returns the change of a finding, or why it was not compared: a figure that the finding judges was not, and no other one explains
/// the finding.
fn change(
    pair: &Pair,
    before: &Finding,
    after: &Finding,
    figures: &[ComparedFigure],
    gaps: &[Gap],
) -> Result<FindingChange, String> {
    let worse = if before.severity > after.severity { before } else { after };
    let id = worse.id.as_str();
    // No figure shows these: a jump, a changing rate, an offset that changes within milliseconds, and the step at which
    // pg_test_timing stops without its number of reads.
    let has_no_figure = pair.reports.iter().any(|report| match id {
        finding_id::DRIFT => report.drift.iter().any(|drift| !drift.has_constant_rate()),
        finding_id::CPU_SKEW => report.cpus.skew.iter().any(|skew| skew.moving),
        finding_id::CLOCK_BACKWARD => report.clocks.iter().any(|clock| clock.backward_steps > 0 && clock.reads == 0),
        _ => false,
    });
    let judged: Vec<&ComparedFigure> =
        figures.iter().filter(|figure| judges(id, figure.figure, figure.clock.as_deref())).collect();
    let is_explained = has_no_figure || judged.iter().any(|figure| figure.effect != Effect::Same);
    if !is_explained && let Some(gap) = gaps.iter().find(|gap| judges(id, &gap.name, gap.clock.as_deref())) {
        return Err(gap.why.clone());
    }
    let effect = match worse.severity {
        _ if !is_explained && !judged.is_empty() => Effect::Same,
        // They warn about the next restart, and about other programs. The clock is as before.
        _ if matches!(id, finding_id::CLOCKSOURCE_NOT_PERSISTENT | finding_id::CLOCK_GAPS) => Effect::Changed,
        Severity::Critical => Effect::MuchWorse,
        _ => Effect::Worse,
    };
    Ok(FindingChange {
        id: id.into(),
        before: before.severity,
        after: after.severity,
        summary: worse.summary.clone(),
        effect: if worse.severity == after.severity { effect } else { effect.mirrored() },
    })
}

/// Returns the verdict. The worst change counts, then a missing comparison, then the best change. The first sentence is its reason.
fn verdict(pair: &Pair, figures: &[ComparedFigure], findings: &[FindingChange], gaps: &[Gap]) -> CompareVerdict {
    let effects = || figures.iter().map(|figure| figure.effect).chain(findings.iter().map(|change| change.effect));
    let worst = effects().max().unwrap_or(Effect::Same);
    let best = effects().min().unwrap_or(Effect::Same);
    let cost = figures.iter().find(|figure| figure.is_cost() && figure.clock.as_deref() == Some(SYSTEM));
    let has_cost = cost.is_some();
    // It is unknown whether it is new, or gone.
    let has_unknown_fault = gaps.iter().any(|gap| gap.alarm == Some(Severity::Critical));
    let effect = match () {
        () if worst >= Effect::Worse => worst,
        () if !has_cost || has_unknown_fault => Effect::NotCompared,
        () if best <= Effect::Better => best,
        () => worst,
    };
    let mut sentences = Vec::new();
    for level in [Effect::MuchWorse, Effect::Worse, Effect::MuchBetter, Effect::Better] {
        let labels = figures.iter().filter(|figure| figure.effect == level).map(ComparedFigure::change);
        sentences.extend(list(&format!("Now {}", level.word()), labels));
        let alarms = findings.iter().filter(|change| change.effect == level).map(FindingChange::label);
        sentences.extend(list("Alarm", alarms));
    }
    if let Some([before, after]) = cost.filter(|cost| cost.effect.matters()).and_then(|_| overhead(pair)) {
        sentences.push(format!(
            "EXPLAIN ANALYZE now adds up to about {after} per row and plan node; before, up to about {before}."
        ));
    }
    if !has_cost {
        let gap = gaps.iter().find(|gap| gap.name == "cost" && gap.clock.as_deref() == Some(SYSTEM));
        let why = gap.map_or(String::new(), |gap| format!(" ({})", gap.why));
        sentences.push(format!("The read cost of PostgreSQL's clock could not be compared{why}."));
    }
    match effect {
        Effect::Same => {
            sentences.push("No figure changed by more than the noise.".into());
            // Between different programs the noise is several times the cost, and "same" alone would hide that.
            sentences.extend(cost.and_then(|cost| {
                let noise = duration(cost.noise?);
                Some(format!("Read cost: {}; noise can explain a difference of {noise}.", cost.change()))
            }));
        }
        Effect::Changed => {
            let labels = figures.iter().filter(|figure| figure.effect == effect).map(ComparedFigure::label);
            let alarms = findings.iter().filter(|change| change.effect == effect).map(FindingChange::label);
            sentences.extend(list("Different, but neither better nor worse", labels.chain(alarms)));
        }
        _ => {}
    }
    let unknown = gaps.iter().filter(|gap| gap.alarm.is_some()).map(|gap| gap.name.clone());
    sentences.extend(list("Alarms that only one of the reports can show", unknown));
    CompareVerdict { effect, summary: sentences.join(" ") }
}

/// Returns the overhead of EXPLAIN ANALYZE, if both figures are from the same kind of measurement.
fn overhead(pair: &Pair) -> Option<[String; 2]> {
    let [before, after] = pair.reports.map(|report| report.system()?.overhead_per_node_ns());
    (program(pair.reports[0]) == program(pair.reports[1])).then_some([duration(before?), duration(after?)])
}

fn list(head: &str, items: impl Iterator<Item = String>) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| format!("{head}: {}.", items.join(", ")))
}

/// Returns both values, or the reason of the report that has no value. One reason of both is enough; the smaller one does not
/// depend on their order.
fn both<T>(values: [Fact<T>; 2]) -> Result<[T; 2], String> {
    Err(match values {
        [Fact::Known(before), Fact::Known(after)] => return Ok([before, after]),
        [Fact::Unavailable { unavailable }, Fact::Known(_)] => format!("before: {unavailable}"),
        [Fact::Known(_), Fact::Unavailable { unavailable }] => format!("after: {unavailable}"),
        [Fact::Unavailable { unavailable: a }, Fact::Unavailable { unavailable: b }] => format!("both: {}", a.min(b)),
    })
}

impl Gap {
    /// Returns the name for the screen.
    fn label(&self) -> String {
        self.clock.iter().chain([&self.name]).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl FindingChange {
    /// Returns the id with both severities, like `clock-slow (OK -> CRITICAL)`.
    pub fn label(&self) -> String {
        format!("{} ({} -> {})", self.id, self.before.word(), self.after.word())
    }
}

impl ComparedFigure {
    /// Returns the name for the screen, like `system step`.
    pub fn label(&self) -> String {
        self.clock.as_deref().into_iter().chain([self.figure]).collect::<Vec<_>>().join(" ")
    }

    /// Returns both values with the name, like `system step 70 ns (before 1 ns)`.
    fn change(&self) -> String {
        let [before, after] = [&self.before, &self.after].map(|value| self.unit.text(value));
        let is_of_19 = self.clock.as_deref().is_some_and(needs_postgres_19) || self.figure == figures::TSC_USABLE;
        let whose = if is_of_19 { "; only PostgreSQL 19 reads it" } else { "" };
        format!("{} {after} (before {before}{whose})", self.label())
    }
}

impl Effect {
    /// Returns the effect of the opposite change.
    pub fn mirrored(self) -> Effect {
        match self {
            Effect::MuchBetter => Effect::MuchWorse,
            Effect::Better => Effect::Worse,
            Effect::Worse => Effect::Better,
            Effect::MuchWorse => Effect::MuchBetter,
            Effect::Same | Effect::Changed | Effect::NotCompared => self,
        }
    }

    /// Returns the exit status: 0 same or better, 1 worse, 2 much worse, 3 not compared.
    pub fn exit_status(self) -> u8 {
        match self {
            Effect::MuchBetter | Effect::Better | Effect::Same | Effect::Changed => 0,
            Effect::Worse => 1,
            Effect::MuchWorse => 2,
            Effect::NotCompared => 3,
        }
    }

    /// Returns the effect in small letters.
    pub fn word(self) -> &'static str {
        match self {
            Effect::MuchBetter => "much better",
            Effect::Better => "better",
            Effect::Same => "same",
            Effect::Changed => "changed",
            Effect::NotCompared => "not compared",
            Effect::Worse => "worse",
            Effect::MuchWorse => "much worse",
        }
    }

    /// Returns whether it is better or worse.
    fn matters(self) -> bool {
        self >= Effect::Worse || self <= Effect::Better
    }
}
