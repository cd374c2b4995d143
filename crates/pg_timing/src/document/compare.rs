//! The result of `compare`: the verdict, both reports, what changed, what is the same, and what could not be compared.

use super::host::MAIN;
use super::{Block, Cell, Column, Document, Facts, Row, Table, Verdict};
use crate::human::{count, duration, percent};
use crate::report::compare::{
    Compared, ComparedFigure, ComparedReport, Comparison, Effect, FigureName, FindingChange, Measure, NotCompared,
    PG19, Unit,
};
use crate::report::{Severity, finding_id};

/// A longer path is shown without its directories.
const SOURCE: usize = 40;
/// A longer list does not fit into two lines. JSON has all of it.
const LISTED: usize = 8;

const KHZ_PER_GHZ: f64 = 1e6;
const KHZ_PER_MHZ: f64 = 1e3;
const PPM_PER_PERCENT: f64 = 1e4;

pub fn document(comparison: &Comparison) -> Document {
    let Comparison { verdict, before, after, not_compared, .. } = comparison;
    let word = verdict.effect.word().to_ascii_uppercase();
    let verdict = Verdict { severity: severity(verdict.effect), word, summary: verdict.summary.clone() };
    let reports = [("before", source(before)), ("after", source(after))];
    let mut rest = Vec::new();
    let same = same(&comparison.figures);
    rest.extend((!same.is_empty()).then(|| ("same", same.join(", "))));
    let names = std::iter::once("not compared").chain(std::iter::repeat(""));
    rest.extend(names.zip(not_compared.iter().map(self::not_compared)));
    let mut blocks = vec![Block::Verdict(verdict), Block::Facts(Facts::new(8, reports))];
    blocks.extend(table(comparison).map(Block::Table));
    blocks.push(Block::Facts(Facts::new(0, words(comparison).into_iter().map(|text| ("", text)))));
    blocks.push(Block::Facts(Facts::new(14, rest).dim()));
    Document::default().with(blocks)
}

/// Returns the severity that decides the color of an effect.
fn severity(effect: Effect) -> Severity {
    match effect {
        Effect::MuchBetter | Effect::Better | Effect::Same => Severity::Ok,
        Effect::Changed | Effect::NotCompared => Severity::Unknown,
        Effect::Worse => Severity::Warning,
        Effect::MuchWorse => Severity::Critical,
    }
}

fn source(report: &ComparedReport) -> String {
    let path = match report.source.rsplit_once('/') {
        Some((_, name)) if report.source.chars().count() > SOURCE => name,
        _ => &report.source,
    };
    let mut parts = vec![report.program.clone()];
    parts.extend([&report.kernel, &report.cpu_model].into_iter().flatten().cloned());
    parts.extend(report.clocksource.as_ref().map(|name| format!("clock source {name}")));
    format!("{path}: {}; {}", parts.join(", "), report.severity.word())
}

/// Returns the changed numbers: a row for each, and one for clocks that PostgreSQL does not read.
fn table(comparison: &Comparison) -> Option<Table> {
    let numbers = comparison.figures.iter().filter_map(|figure| match (&figure.before, &figure.after) {
        (Compared::Number(before), Compared::Number(after)) if figure.effect != Effect::Same => {
            Some((figure, before, after))
        }
        _ => None,
    });
    let is_main =
        |figure: &ComparedFigure| figure.clock.as_deref().is_none_or(|clock| clock == PG19 || MAIN.contains(&clock));
    let (main, other): (Vec<_>, Vec<_>) = numbers.partition(|(figure, ..)| is_main(figure));
    let mut rows: Vec<Row> = main.iter().map(|(figure, before, after)| row(figure, before, after)).collect();
    if !other.is_empty() {
        let changes = other.iter().map(|(figure, ..)| format!("{} {}", figure.label(), change(figure)));
        rows.push(Row::wide("other clocks", changes.collect::<Vec<_>>().join(", ")));
    }
    let figures = ["before", "after", "change", "noise"].map(Column::right);
    let columns = [Column::left("what changed")].into_iter().chain(figures).chain([Column::left("")]);
    (!rows.is_empty()).then(|| Table { columns: columns.collect(), rows, ..Table::default() })
}

fn row(figure: &ComparedFigure, before: &Measure, after: &Measure) -> Row {
    let unit = figure.figure.unit();
    let noise = match figure.noise {
        None => "-".into(),
        Some(noise) if unit == Unit::Khz => format!("{:.2} MHz", noise / KHZ_PER_MHZ),
        Some(noise) => number(unit, noise).trim_start_matches('+').into(),
    };
    let word = if figure.effect == Effect::Changed { "" } else { figure.effect.word() };
    let word = Cell { severity: Some(severity(figure.effect)), ..word.into() };
    let figures = [bounds(unit, before), bounds(unit, after), change(figure), noise].map(Cell::from);
    Row::new([Cell::from(figure.label())].into_iter().chain(figures).chain([word]))
}

/// Returns a number, or its bounds.
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

/// Returns the relative change. From a factor of 2 on, the factor is easier to read. A rate near zero has none.
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

/// Returns changed texts and alarms.
fn words(comparison: &Comparison) -> Vec<String> {
    let changed = comparison.figures.iter().filter(|figure| figure.effect != Effect::Same);
    let text = |figure: &ComparedFigure| match (&figure.before, &figure.after) {
        (Compared::Text(before), Compared::Text(after)) => Some(format!("{}: {before} -> {after}", figure.label())),
        _ => None,
    };
    // The alarm about the TSC explains its consequences, and the verdict lists them.
    let has_cause = comparison.findings.iter().any(|cause| cause.id == finding_id::TSC_DEMOTED);
    let is_explained = |id: &str| has_cause && finding_id::CONSEQUENCES_OF_TSC_DEMOTED.contains(&id);
    let alarms = comparison.findings.iter().filter(|change| !is_explained(&change.id));
    let alarms = alarms.map(|change| format!("{}: {}", alarm(change), change.summary));
    changed.filter_map(text).chain(alarms).collect()
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
