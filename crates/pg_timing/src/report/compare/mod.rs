//! Compares two reports of a host: what changed beyond noise, and what that means for EXPLAIN ANALYZE.
//!
//! Each figure has bounds within which noise can move it, see the table in `figures.rs`. A figure changed if the bounds of both
//! reports do not overlap. What a report does not show, or what load may have changed, is not compared, and the reason is given.
//! The serde names are the JSON contract.

mod changes;
mod figures;
#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;
mod verdict;

pub use changes::why_busy;
pub use figures::{PG19, Unit};

use super::{Fact, Origin, Report, Severity};
use serde::{Deserialize, Serialize};

/// The comparison of two reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// version of this JSON format
    pub schema_version: u32,
    /// version of pg_timing
    pub version: String,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedReport {
    /// file name, or `stdin`
    pub source: String,
    /// the program that measured, like `pg_test_timing 9.2 to 18`
    pub program: String,
    /// like `Linux 6.18.44`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// severity of the report's own verdict
    pub severity: Severity,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FigureName {
    /// cost of one read without disturbance by other work on the machine, in ns
    UndisturbedReadCost,
    /// cost of one read, the median, in ns
    ReadCost,
    /// cost of one turn of pg_test_timing's loop, which contains one read, in ns
    LoopCost,
    /// what timing adds to a short function call, in ns
    TimedCall,
    /// smallest step of the clock's value, in ns
    Step,
    /// backward steps per million reads
    BackwardSteps,
    /// rate of the CPU's counter, in kHz
    TscRate,
    /// whether the counter is safe to use
    TscUsable,
    /// whether PostgreSQL 19 uses the counter by default
    TscUsedByDefault,
    /// the largest offset between the clocks of two CPUs, in ns
    Skew,
    /// relative rate of the clock against the reference clock, in ppm
    Drift,
    /// the kernel's clock source
    ClockSource,
    Kernel,
    CpuModel,
    Virtualization,
}

/// A number with its noise, or a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Compared {
    Number(Measure),
    Text(String),
}

/// A figure and the bounds within which noise can move it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measure {
    /// missing if only the bounds are known
    pub estimate: Option<f64>,
    pub low: f64,
    pub high: f64,
}

/// A figure that both reports have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedFigure {
    pub figure: FigureName,
    /// name of the clock
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    pub before: Compared,
    pub after: Compared,
    /// (after - before) / before
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_change: Option<f64>,
    /// the largest difference between the two figures that counts as the same, in the unit of the figure
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    pub effect: Effect,
}

/// An alarm that is new, gone, or has another severity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// The report because of which figures are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissingIn {
    Before,
    After,
    Both,
    /// both reports have them, but their difference has no meaning
    Neither,
}

/// Figures that could not be compared, for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotCompared {
    pub what: Vec<String>,
    pub missing_in: MissingIn,
    pub why: String,
}

/// The worst change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompareVerdict {
    pub effect: Effect,
    pub summary: String,
}

/// The meaning of a change for a reader of EXPLAIN ANALYZE. The order is from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// The two reports.
struct Pair<'a> {
    before: &'a Report,
    after: &'a Report,
    /// why the times of each report are not comparable
    load: [Fact<()>; 2],
    /// why no times of the two are comparable
    other_speed: Option<String>,
}

/// A figure or a finding that was not compared.
struct Gap {
    /// the figure and its clock; missing for a finding
    figure: Option<(FigureName, String)>,
    /// severity of the finding in the report that has it
    alarm: Option<Severity>,
    what: String,
    reason: Reason,
}

/// Why something was not compared.
type Reason = (MissingIn, String);

/// Compares two reports with findings. The sources are file names.
pub fn compare(before: (&str, &Report), after: (&str, &Report)) -> Comparison {
    let pair = Pair::new(before.1, after.1);
    let (figures, mut gaps) = pair.figures();
    let findings = pair.findings(&figures, &mut gaps);
    let verdict = pair.verdict(&figures, &findings, &gaps);
    Comparison {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        before: compared(before),
        after: compared(after),
        figures,
        findings,
        not_compared: grouped(gaps),
        verdict,
    }
}

fn compared((source, report): (&str, &Report)) -> ComparedReport {
    ComparedReport {
        source: source.into(),
        program: program(report).into(),
        kernel: report.host.kernel.known().cloned(),
        cpu_model: report.host.cpu_model.known().cloned(),
        clocksource: report.clocksource.current.known().cloned(),
        severity: report.verdict.severity,
    }
}

/// Returns what was not compared, grouped by reason, in the order of the table.
fn grouped(gaps: Vec<Gap>) -> Vec<NotCompared> {
    let mut groups: Vec<NotCompared> = Vec::new();
    for Gap { what, reason: (missing_in, why), .. } in gaps {
        match groups.iter_mut().find(|group| group.missing_in == missing_in && group.why == why) {
            Some(group) => group.what.push(what),
            None => groups.push(NotCompared { what: vec![what], missing_in, why }),
        }
    }
    groups
}

impl MissingIn {
    /// Returns what precedes the reason on the screen.
    pub fn prefix(self) -> &'static str {
        match self {
            MissingIn::Before => "before: ",
            MissingIn::After => "after: ",
            MissingIn::Both => "both: ",
            MissingIn::Neither => "",
        }
    }
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
    pub fn matters(self) -> bool {
        self >= Effect::Worse || self <= Effect::Better
    }
}
