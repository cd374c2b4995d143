//! What is wrong: how it is known, why it matters, what to type.

use super::{BOLD, DIM, style, wrapped};
use crate::report::{Finding, Fix, Origin, Report, Severity};
use std::fmt::Write;

/// What follows from a TSC that was given up: said in a line below it, and in full in JSON.
const CONSEQUENCES: &[&str] = &["clocksource-slow", "clock-syscall", "clocksource-changed"];

/// The findings that are not fine, a block each. Advice that more than one gives is shown once.
pub fn bad(report: &Report) -> Vec<String> {
    let bad: Vec<&Finding> = report.findings.iter().filter(|f| f.severity >= Severity::Warning).collect();
    let demoted = bad.iter().any(|f| f.id == "tsc-demoted");
    let (follows, shown): (Vec<&Finding>, Vec<&Finding>) =
        bad.iter().partition(|f| demoted && CONSEQUENCES.contains(&f.id));
    let mut given: Vec<&Fix> = Vec::new();
    shown
        .iter()
        .map(|finding| {
            let fixes: Vec<&Fix> = finding.fix.iter().filter(|fix| !given.contains(fix)).collect();
            given.extend(&fixes);
            let mut block = one(finding, &fixes);
            if finding.id == "tsc-demoted" && !follows.is_empty() {
                let ids: Vec<&str> = follows.iter().map(|f| f.id).collect();
                wrapped(
                    &mut block,
                    "  also   ",
                    &format!("{} follow from it (in full: --format json)", ids.join(", ")),
                );
            }
            block
        })
        .collect()
}

/// Those that could not be told, in a line.
pub fn unknown(report: &Report) -> String {
    let ids: Vec<&str> = report.findings.iter().filter(|f| f.severity == Severity::Unknown).map(|f| f.id).collect();
    if ids.is_empty() || report.origin == Origin::PgTestTiming {
        return String::new();
    }
    let mut line = String::new();
    wrapped(&mut line, "could not be told: ", &ids.join(", "));
    format!("{DIM}{line}{DIM:#}")
}

fn one(finding: &Finding, fixes: &[&Fix]) -> String {
    let mut out = String::new();
    let colour = style(finding.severity);
    let mut head = String::new();
    let label = format!("{}  {}", finding.id, finding.severity.word());
    wrapped(&mut head, &format!("{label}  "), &finding.summary);
    let rest = head.strip_prefix(&label).unwrap_or(&head);
    _ = write!(out, "{colour}{label}{colour:#}{rest}");
    for line in &finding.evidence {
        wrapped(&mut out, "  seen   ", line);
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
    // A line to type is never broken: it is there to be pasted.
    if let Some(command) = &fix.command {
        _ = writeln!(out, "             {BOLD}{command}{BOLD:#}");
    }
    if let Some(undo) = &fix.undo {
        _ = writeln!(out, "         undo: {undo}");
    }
    if let Some(lasting) = &fix.lasting {
        wrapped(out, "         lasting: ", lasting);
    }
    if let Some(risk) = &fix.risk {
        wrapped(out, "         risk: ", risk);
    }
}
