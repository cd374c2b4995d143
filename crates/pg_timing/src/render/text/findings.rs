//! The findings: evidence, reason, and what to type.

use super::{BOLD, DIM, style, wrapped};
use crate::render::host_text::{Alarm, Alarms};
use crate::render::plus_minus::with_sign;
use crate::report::{Finding, Fix, Origin, Report, Severity, finding_id};
use std::fmt::Write;

/// Renders each warning and critical finding as a block.
pub fn alarms(report: &Report) -> Vec<String> {
    let Alarms { shown, consequences } = Alarms::of(report);
    shown
        .iter()
        .map(|Alarm { finding, fixes }| {
            let mut block = finding_block(finding, fixes);
            if finding.id == finding_id::TSC_DEMOTED && !consequences.is_empty() {
                let ids: Vec<&str> = consequences.iter().map(|f| f.id.as_str()).collect();
                wrapped(&mut block, "  also   ", &format!("consequence: {} (details: --format json)", ids.join(", ")));
            }
            block
        })
        .collect()
}

/// Renders each finding as a block with all its fixes.
pub fn blocks(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| finding_block(finding, &finding.fix.iter().collect::<Vec<_>>())).collect()
}

/// Renders a line with the checks that were not possible.
pub fn not_determined(report: &Report) -> String {
    let ids: Vec<&str> =
        report.findings.iter().filter(|f| f.severity == Severity::Unknown).map(|f| f.id.as_str()).collect();
    if ids.is_empty() || report.origin == Origin::PgTestTiming {
        return String::new();
    }
    let mut line = String::new();
    wrapped(&mut line, "not determined: ", &ids.join(", "));
    format!("{DIM}{line}{DIM:#}")
}

fn finding_block(finding: &Finding, fixes: &[&Fix]) -> String {
    let mut out = String::new();
    let color = style(finding.severity);
    let mut head = String::new();
    let label = format!("{}  {}", finding.id, finding.severity.word());
    wrapped(&mut head, &format!("{label}  "), &finding.summary);
    let rest = head.strip_prefix(&label).unwrap_or(&head);
    _ = write!(out, "{color}{label}{color:#}{rest}");
    for line in &finding.evidence {
        wrapped(&mut out, "  seen   ", &with_sign(line));
    }
    if !finding.why.is_empty() {
        wrapped(&mut out, "  why    ", &finding.why);
    }
    for fix in fixes {
        self::fix(&mut out, fix);
    }
    out
}

fn fix(out: &mut String, fix: &Fix) {
    wrapped(out, "  do     ", &fix.what);
    // Never wrap a command: users paste it.
    if let Some(command) = &fix.command {
        _ = writeln!(out, "             {BOLD}{command}{BOLD:#}");
    }
    if let Some(undo) = &fix.undo {
        _ = writeln!(out, "         undo: {undo}");
    }
    if let Some(lasting) = &fix.lasting {
        wrapped(out, "         permanent: ", lasting);
    }
    if let Some(risk) = &fix.risk {
        wrapped(out, "         risk: ", risk);
    }
}
