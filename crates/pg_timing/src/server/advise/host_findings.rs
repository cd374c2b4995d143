//! Findings about the clocks of the server's host that make the server's times wrong or expensive.

use super::facts::Facts;
use crate::host::check;
use crate::report::{Finding, Severity, Verdict, finding_id};

/// These findings affect every time that a server measures, whatever its settings.
const OF_EVERY_SERVER: &[&str] = &[finding_id::CLOCK_BACKWARD, finding_id::CLOCK_COARSE, finding_id::CLOCK_GAPS];

/// Returns the alarms. There are none if the server's host was not measured.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let Some(here) = &facts.clocks.here else { return Vec::new() };
    let general = here.findings.iter().filter(|finding| OF_EVERY_SERVER.contains(&finding.id.as_str())).cloned();
    let all = general.chain([check::tsc_slow_if(here, Some(facts.server.uses_tsc()))]);
    all.filter(|finding| finding.severity >= Severity::Warning).collect()
}

/// Adds the findings to the verdict about the settings.
pub fn add_to(verdict: Verdict, findings: &[Finding]) -> Verdict {
    // The setting timing_clock_source already says that the TSC is slow.
    let new = findings.iter().filter(|finding| finding.id != finding_id::TSC_SLOW);
    let summary = new.fold(verdict.summary, |text, finding| format!("{text} On this host: {}.", finding.summary));
    let worst = findings.iter().map(|finding| finding.severity).chain([verdict.severity]).max();
    Verdict { severity: worst.unwrap_or(verdict.severity), summary }
}
