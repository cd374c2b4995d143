//! The screen of `compare`: both reports, what changed, what is the same, what could not be compared, and the verdict.

mod figures;

use super::{BOLD, DIM, wrapped};
use crate::render::columns::cut;
use crate::report::compare::{
    Compared, ComparedFigure, ComparedReport, Comparison, Effect, FindingChange, MissingIn, NotCompared,
};
use crate::report::{Severity, finding_id};
use anstyle::{AnsiColor, Style};

/// A longer path is shown without its directories.
const SOURCE: usize = 40;
/// A longer list does not fit into two lines. JSON has all of it.
const LISTED: usize = 8;

pub fn text(comparison: &Comparison) -> String {
    let mut blocks = vec![header(comparison), figures::table(&comparison.figures), words(comparison), rest(comparison)];
    blocks.push(verdict(comparison));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

fn header(comparison: &Comparison) -> String {
    let mut out = String::new();
    for (label, report) in [("before  ", &comparison.before), ("after   ", &comparison.after)] {
        wrapped(&mut out, label, &source(report));
    }
    out
}

fn source(report: &ComparedReport) -> String {
    let path = match report.source.rsplit_once('/') {
        Some((_, name)) if report.source.chars().count() > SOURCE => name,
        _ => &report.source,
    };
    let mut parts = vec![report.program.name().to_string()];
    parts.extend([&report.kernel, &report.cpu_model].into_iter().flatten().cloned());
    parts.extend(report.clocksource.as_ref().map(|name| format!("clock source {name}")));
    format!("{}: {}; {}", cut(path, SOURCE), parts.join(", "), report.severity.word())
}

/// Renders changed texts and alarms.
fn words(comparison: &Comparison) -> String {
    let mut out = String::new();
    for figure in comparison.figures.iter().filter(|figure| figure.effect != Effect::Same) {
        if let (Compared::Text(before), Compared::Text(after)) = (&figure.before, &figure.after) {
            wrapped(&mut out, &format!("{}  ", figure.label()), &format!("{before} -> {after}{}", meaning(figure)));
        }
    }
    // The alarm about the TSC explains its consequences, and the verdict lists them.
    let is_explained = |change: &FindingChange| {
        let has_cause = comparison.findings.iter().any(|cause| cause.id == finding_id::TSC_DEMOTED);
        has_cause && finding_id::CONSEQUENCES_OF_TSC_DEMOTED.contains(&change.id.as_str())
    };
    for change in comparison.findings.iter().filter(|change| !is_explained(change)) {
        wrapped(&mut out, "", &format!("{}: {}", alarm(change), change.summary));
    }
    out
}

/// Returns whether a changed text is better or worse, and for which servers.
fn meaning(figure: &ComparedFigure) -> String {
    let servers = if figure.needs_postgres_19() { " for PostgreSQL 19" } else { "" };
    match figure.effect {
        Effect::Same | Effect::Changed | Effect::NotCompared => String::new(),
        effect => format!(" ({}{servers})", effect.word()),
    }
}

fn alarm(change: &FindingChange) -> String {
    let word = |severity: Severity| severity.word().to_ascii_lowercase();
    let note = if change.effect == Effect::Same { ", but the figure changed less than the noise" } else { "" };
    match (change.before, change.after) {
        (Severity::Ok, after) => format!("new alarm {} ({}{note})", change.id, word(after)),
        (before, Severity::Ok) => format!("alarm gone {} ({}{note})", change.id, word(before)),
        (before, after) => format!("changed alarm {} ({}, before {}{note})", change.id, word(after), word(before)),
    }
}

/// Renders what is the same, and what could not be compared.
fn rest(comparison: &Comparison) -> String {
    let mut out = String::new();
    let same = figures::same(&comparison.figures);
    if !same.is_empty() {
        wrapped(&mut out, "same          ", &same.join(", "));
    }
    for (nth, group) in comparison.not_compared.iter().enumerate() {
        let label = if nth == 0 { "not compared  " } else { "              " };
        wrapped(&mut out, label, &not_compared(group));
    }
    if out.is_empty() { out } else { format!("{DIM}{out}{DIM:#}") }
}

fn not_compared(group: &NotCompared) -> String {
    let missing = match group.missing_in {
        MissingIn::Before => "before: ",
        MissingIn::After => "after: ",
        MissingIn::Both => "both: ",
        MissingIn::Neither => "",
    };
    let listed = &group.what[..group.what.len().min(LISTED)];
    let more = match group.what.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more, see --format json"),
    };
    format!("{}{more} ({missing}{})", listed.join(", "), group.why)
}

fn verdict(comparison: &Comparison) -> String {
    let effect = comparison.verdict.effect;
    let word = effect.word().to_ascii_uppercase();
    let mut block = String::new();
    wrapped(&mut block, &format!("{word}  "), &comparison.verdict.summary);
    let color = style(effect);
    let rest = block.strip_prefix(&word).unwrap_or(&block);
    format!("{color}{word}{color:#}{rest}")
}

fn style(effect: Effect) -> Style {
    let color = match effect {
        Effect::MuchBetter | Effect::Better | Effect::Same => AnsiColor::Green,
        Effect::Changed | Effect::NotCompared => AnsiColor::Cyan,
        Effect::Worse => AnsiColor::Yellow,
        Effect::MuchWorse => AnsiColor::Red,
    };
    Style::new().bold().fg_color(Some(color.into()))
}

/// Returns the figures with this figure's name, which are of several clocks.
fn of_same_name<'a>(
    figures: &'a [ComparedFigure],
    figure: &'a ComparedFigure,
) -> impl Iterator<Item = &'a ComparedFigure> {
    figures.iter().filter(|other| other.figure == figure.figure)
}
