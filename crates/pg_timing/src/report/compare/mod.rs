//! Compares two reports of a host: what changed beyond noise, and what that means for EXPLAIN ANALYZE.
//!
//! Each figure has bounds within which noise can move it, see `noise.rs` and `loops.rs`. A figure changed if the bounds of both reports
//! do not overlap. Only backward steps, and offsets that change within milliseconds, have other rules. What only one report shows
//! is not compared, and the reason is given. The serde names are the JSON contract.

mod backward;
mod clocks;
mod cost;
mod effect;
mod findings;
mod host;
mod loops;
mod measure;
mod missing;
mod noise;
mod pairs;
mod program;
#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;
mod tsc;
mod verdict;

pub use effect::Effect;
pub use measure::Measure;
pub use program::Program;

use super::{Report, Severity};
use missing::Missing;
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
    /// the program that measured
    pub program: Program,
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
    /// cost of one read, the median, in ns
    ReadCost,
    /// cost of one read without disturbance by other work on the machine, in ns
    UndisturbedReadCost,
    /// cost of one turn of pg_test_timing's loop, which contains one read, in ns
    LoopCost,
    /// smallest step of the clock's value, in ns
    Step,
    /// backward steps per million reads
    BackwardSteps,
    /// share of the time that interruptions took
    LostTime,
    /// 99.9th percentile of the differences between consecutive readings, in ns
    Tail,
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

/// The report that does not have the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissingIn {
    Before,
    After,
    Both,
    /// both reports have them, but they do not mean the same
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

/// Compares two reports with findings. The sources are file names.
pub fn compare(before: (&str, &Report), after: (&str, &Report)) -> Comparison {
    let pair = pairs::Pair { before: before.1, after: after.1 };
    let mut missing = Missing::default();
    let mut figures = clocks::figures(&pair, &mut missing);
    figures.extend(tsc::figures(&pair, &mut missing));
    figures.extend(host::figures(&pair, &mut missing));
    let (findings, undecided) = findings::changes(&pair, &figures, &mut missing);
    let verdict = verdict::verdict(&pair, &figures, &findings, &undecided);
    Comparison {
        schema_version: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        before: compared(before),
        after: compared(after),
        figures,
        findings,
        not_compared: missing.grouped(),
        verdict,
    }
}

fn compared((source, report): (&str, &Report)) -> ComparedReport {
    ComparedReport {
        source: source.into(),
        program: Program::of(report),
        kernel: report.host.kernel.known().cloned(),
        cpu_model: report.host.cpu_model.known().cloned(),
        clocksource: report.clocksource.current.known().cloned(),
        severity: report.verdict.severity,
    }
}
