//! The line of `advise`.

use super::perfdata::{Datum, Unit};
use crate::report::{AdviseReport, SettingAdvice, Severity};

const SERVICE: &str = "TIMING COST";

/// Returns the line: the verdict, and the share of a core that each setting takes.
pub fn line(report: &AdviseReport) -> String {
    let verdict = &report.verdict;
    let data: Vec<Datum> = report.settings.iter().filter_map(|setting| datum(report, setting)).collect();
    super::line(SERVICE, verdict.severity, &verdict.summary, &data)
}

/// Returns the line if there is no report. Monitoring servers show stdout, and most of them hide stderr.
pub fn failed(why: &str) -> String {
    super::line(SERVICE, Severity::Unknown, why, &[])
}

/// Returns the certain cost of a setting. Only a setting that is on has limits.
fn datum(report: &AdviseReport, setting: &SettingAdvice) -> Option<Datum> {
    let percent = setting.core_share?.low * 100.0;
    let limits = report.core_share_limits.filter(|_| setting.on);
    let label = if setting.on { setting.name.clone() } else { format!("{}_if_on", setting.name) };
    Some(Datum {
        warning: limits.map(|limits| limits.warning * 100.0),
        critical: limits.map(|limits| limits.critical * 100.0),
        ..Datum::new(label, percent, Unit::Percent)
    })
}
