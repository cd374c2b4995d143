//! The screen of `compare`: the verdict, both reports, what changed, what is the same, and what could not be compared.

use super::table::{Align, Table};
use super::{BOLD, DIM, wrapped};
use crate::human::{count, duration, percent};
use crate::render::columns::cut;
use crate::render::host_text::MAIN;
use crate::report::compare::{
    Compared, ComparedFigure, ComparedReport, Comparison, Effect, FigureName, FindingChange, Measure, NotCompared,
    PG19, Unit,
};
use crate::report::{Severity, finding_id};
use anstyle::{AnsiColor, Style};

/// A longer path is shown without its directories.
const SOURCE: usize = 40;
/// A longer list does not fit into two lines. JSON has all of it.
const LISTED: usize = 8;
/// The other columns need up to 57 columns.
const LABEL: usize = 23;

const KHZ_PER_GHZ: f64 = 1e6;
const KHZ_PER_MHZ: f64 = 1e3;
const PPM_PER_PERCENT: f64 = 1e4;

const COLUMNS: [&str; 6] = ["what changed", "before", "after", "change", "noise", ""];
const ALIGNED: [Align; 6] = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];

pub fn text(comparison: &Comparison) -> String {
    let blocks = [verdict(comparison), header(comparison), table(comparison), words(comparison), rest(comparison)];
    blocks.into_iter().filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n")
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
    let mut parts = vec![report.program.clone()];
    parts.extend([&report.kernel, &report.cpu_model].into_iter().flatten().cloned());
    parts.extend(report.clocksource.as_ref().map(|name| format!("clock source {name}")));
    format!("{}: {}; {}", cut(path, SOURCE), parts.join(", "), report.severity.word())
}

/// Renders the changed numbers: a row for each, and a line for clocks that PostgreSQL does not read.
fn table(comparison: &Comparison) -> String {
    let numbers = comparison.figures.iter().filter_map(|figure| match (&figure.before, &figure.after) {
        (Compared::Number(before), Compared::Number(after)) if figure.effect != Effect::Same => {
            Some((figure, before, after))
        }
        _ => None,
    });
    let is_main =
        |figure: &ComparedFigure| figure.clock.as_deref().is_none_or(|clock| clock == PG19 || MAIN.contains(&clock));
    let (main, other): (Vec<_>, Vec<_>) = numbers.partition(|(figure, ..)| is_main(figure));
    let rows: Vec<[String; 6]> = main.iter().map(|(figure, before, after)| cells(figure, before, after)).collect();
    let table = Table::new(ALIGNED, &COLUMNS, &rows);
    let mut out = String::new();
    if !rows.is_empty() {
        out.push_str(&format!("{BOLD}{}{BOLD:#}\n", table.line(&COLUMNS)));
    }
    for ((figure, ..), row) in main.iter().zip(&rows) {
        let line = table.line(row);
        let (numbers, word) = line.split_at(line.len() - row[5].len());
        let color = style(figure.effect);
        out.push_str(&format!("{numbers}{color}{word}{color:#}\n"));
    }
    let others: Vec<String> =
        other.iter().map(|(figure, ..)| format!("{} {}", figure.label(), change(figure))).collect();
    if !others.is_empty() {
        wrapped(&mut out, "other clocks  ", &others.join(", "));
    }
    out
}

fn cells(figure: &ComparedFigure, before: &Measure, after: &Measure) -> [String; 6] {
    let unit = figure.figure.unit();
    let noise = match figure.noise {
        None => "-".into(),
        Some(noise) if unit == Unit::Khz => format!("{:.2} MHz", noise / KHZ_PER_MHZ),
        Some(noise) => number(unit, noise).trim_start_matches('+').into(),
    };
    let word = if figure.effect == Effect::Changed { "" } else { figure.effect.word() };
    let label = cut(&figure.label(), LABEL);
    [label, bounds(unit, before), bounds(unit, after), change(figure), noise, word.into()]
}

/// Renders a number, or its bounds.
fn bounds(unit: Unit, measure: &Measure) -> String {
    match measure.estimate {
        Some(estimate) => number(unit, estimate),
        None if measure.low <= 0.0 => format!("<= {}", number(unit, measure.high)),
        None => format!(">= {}", number(unit, measure.low)),
    }
}

fn number(unit: Unit, number: f64) -> String {
    match unit {
        Unit::Khz => format!("{:.4} GHz", number / KHZ_PER_GHZ),
        Unit::Ppm if number.abs() < 999.95 => format!("{number:+.1} ppm"),
        Unit::Ppm => format!("{:+.1}%", number / PPM_PER_PERCENT),
        Unit::PerMillion => match number {
            0.0 => "never".into(),
            rate if rate < 0.01 => "<0.01 per M".into(),
            rate if rate < 9.995 => format!("{rate:.2} per M"),
            rate => format!("{} per M", count(rate.round() as u64)),
        },
        Unit::Ns | Unit::Text => duration(number),
    }
}

/// Renders the relative change. From a factor of 2 on, the factor is easier to read. A rate near zero has none.
fn change(figure: &ComparedFigure) -> String {
    match (figure.relative_change, figure.figure.unit()) {
        (None, _) | (_, Unit::Ppm | Unit::PerMillion) => "-".into(),
        // PostgreSQL's rate can be wrong by less than 0.1%.
        (Some(change), Unit::Khz) => format!("{:+.2}%", change * 100.0),
        (Some(change), _) if change >= 9.0 => format!("x {:.0}", change + 1.0),
        (Some(change), _) if change >= 1.0 => format!("x {:.1}", change + 1.0),
        (Some(change), _) if change <= -0.9 => format!("/ {:.0}", 1.0 / (change + 1.0)),
        (Some(change), _) if change <= -0.5 => format!("/ {:.1}", 1.0 / (change + 1.0)),
        (Some(change), _) if change < 0.0 => format!("-{}", percent(-change)),
        (Some(change), _) => format!("+{}", percent(change)),
    }
}

/// Renders changed texts and alarms.
fn words(comparison: &Comparison) -> String {
    let mut out = String::new();
    for figure in comparison.figures.iter().filter(|figure| figure.effect != Effect::Same) {
        if let (Compared::Text(before), Compared::Text(after)) = (&figure.before, &figure.after) {
            wrapped(&mut out, &format!("{}  ", figure.label()), &format!("{before} -> {after}"));
        }
    }
    // The alarm about the TSC explains its consequences, and the verdict lists them.
    let has_cause = comparison.findings.iter().any(|cause| cause.id == finding_id::TSC_DEMOTED);
    let is_explained = |id: &str| has_cause && finding_id::CONSEQUENCES_OF_TSC_DEMOTED.contains(&id);
    for change in comparison.findings.iter().filter(|change| !is_explained(&change.id)) {
        wrapped(&mut out, "", &format!("{}: {}", alarm(change), change.summary));
    }
    out
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
    let same = same(&comparison.figures);
    if !same.is_empty() {
        wrapped(&mut out, "same          ", &same.join(", "));
    }
    for (nth, group) in comparison.not_compared.iter().enumerate() {
        let label = if nth == 0 { "not compared  " } else { "              " };
        wrapped(&mut out, label, &not_compared(group));
    }
    if out.is_empty() { out } else { format!("{DIM}{out}{DIM:#}") }
}

/// Returns the figures that are the same. If a figure is the same for all clocks, it is named once.
fn same(figures: &[ComparedFigure]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in figures.iter().filter(|figure| figure.effect == Effect::Same) {
        let clocks = || of_name(figures, figure.figure);
        let name = match clocks().count() {
            many if many > 1 && clocks().all(|other| other.effect == Effect::Same) => {
                format!("{} of {many} clocks", figure.figure.words())
            }
            _ => figure.label(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn of_name(figures: &[ComparedFigure], name: FigureName) -> impl Iterator<Item = &ComparedFigure> {
    figures.iter().filter(move |figure| figure.figure == name)
}

fn not_compared(group: &NotCompared) -> String {
    let listed = &group.what[..group.what.len().min(LISTED)];
    let more = match group.what.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more, see --format json"),
    };
    format!("{}{more} ({}{})", listed.join(", "), group.missing_in.prefix(), group.why)
}
