//! The headline, the lines about the TSC and the CPUs, and the verdict.

use super::{BOLD, kernel, style, wrapped};
use crate::render::host_text;
use crate::report::{Report, Verdict};

pub fn headline(report: &Report) -> String {
    let facts = host_text::host_facts(report).join(", ");
    let name = host_text::name(report);
    let tail = if facts.is_empty() { String::new() } else { format!(": {facts}") };
    let mut out = String::new();
    wrapped(&mut out, "", &format!("{name}{tail}"));
    match out.strip_prefix(name) {
        Some(rest) => format!("{BOLD}{name}{BOLD:#}{rest}"),
        None => out,
    }
}

/// Renders the lines about the counter, the CPUs and the kernel log.
pub fn facts(report: &Report) -> String {
    let mut out = String::new();
    if let Some(tsc) = host_text::tsc(report) {
        wrapped(&mut out, &format!("{:<11}", host_text::counter(report)), &tsc);
        if let Some(claims) = host_text::claims(report) {
            wrapped(&mut out, "           ", &claims);
        }
    }
    if let Some(cpus) = host_text::cpus(report) {
        wrapped(&mut out, "CPUs       ", cpus);
    }
    kernel::line(&mut out, report);
    out
}

pub fn verdict(verdict: &Verdict) -> String {
    let severity = verdict.severity;
    let word = severity.word();
    let mut block = String::new();
    wrapped(&mut block, &format!("{word}  "), &verdict.summary);
    let color = style(severity);
    let rest = block.strip_prefix(word).unwrap_or(&block);
    format!("{color}{word}{color:#}{rest}")
}

pub fn interrupted(report: &Report) -> String {
    host_text::interrupted(report).map_or(String::new(), |sentence| sentence + "\n")
}
