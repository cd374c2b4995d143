//! The result of `compare`: the verdict, both reports, what changed, what is the same, and what could not be compared.

use super::host::MAIN;
use super::{Block, Cell, Column, Document, Facts, Row, Table, Verdict};
use crate::human::percent;
use crate::report::compare::{Compared, ComparedFigure, Comparison, Effect, NotCompared, PG19, Unit};
use crate::report::{Severity, finding_id};

/// A longer path is shown without its directories.
const SOURCE: usize = 40;
/// A longer list does not fit into two lines. JSON has all of it.
const LISTED: usize = 8;

pub fn document(comparison: &Comparison) -> Document {
    let Comparison { verdict, before, after, not_compared, .. } = comparison;
    let word = verdict.effect.word().to_ascii_uppercase();
    let verdict = Verdict { severity: severity(verdict.effect), word, summary: verdict.summary.clone() };
    let source = |path: &str| match path.rsplit_once('/') {
        Some((_, name)) if path.chars().count() > SOURCE => name.to_string(),
        _ => path.to_string(),
    };
    let reports = [("before", before), ("after", after)].map(|(name, report)| {
        (name, format!("{}: {}; {}", source(&report.source), report.program, report.severity.word()))
    });
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

/// Returns the changed numbers: a row for each, and one for clocks that PostgreSQL does not read.
fn table(comparison: &Comparison) -> Option<Table> {
    let numbers = comparison.figures.iter().filter(|figure| figure.effect != Effect::Same && figure.unit != Unit::Text);
    let is_main =
        |figure: &&ComparedFigure| figure.clock.as_deref().is_none_or(|clock| clock == PG19 || MAIN.contains(&clock));
    let (main, other): (Vec<_>, Vec<_>) = numbers.partition(is_main);
    let mut rows: Vec<Row> = main.into_iter().map(row).collect();
    if !other.is_empty() {
        let changes = other.iter().map(|figure| format!("{} {}", figure.label(), change(figure)));
        rows.push(Row::wide("other clocks", changes.collect::<Vec<_>>().join(", ")));
    }
    let figures = ["before", "after", "change", "noise"].map(Column::right);
    let columns = [Column::left("what changed")].into_iter().chain(figures).chain([Column::left("")]);
    (!rows.is_empty()).then(|| Table { columns: columns.collect(), rows, ..Table::default() })
}

fn row(figure: &ComparedFigure) -> Row {
    let [before, after] = [&figure.before, &figure.after].map(|value| figure.unit.text(value));
    let word = if figure.effect == Effect::Changed { "" } else { figure.effect.word() };
    let word = Cell { severity: Some(severity(figure.effect)), ..word.into() };
    let noise = figure.noise.map_or("-".into(), |noise| figure.unit.number(noise).trim_start_matches('+').to_string());
    let figures = [figure.label(), before, after, change(figure), noise].map(Cell::from);
    Row::new(figures.into_iter().chain([word]))
}

/// Returns the relative change. From a factor of 2 on, the factor is easier to read. A rate near zero has none.
fn change(figure: &ComparedFigure) -> String {
    let (Compared::Number(before), Compared::Number(after)) = (&figure.before, &figure.after) else {
        return "-".into();
    };
    let factor = before.estimate.zip(after.estimate).map(|(before, after)| after / before);
    let sign = |sign: char, factor: f64| format!("{sign} {factor:.*}", usize::from(factor < 9.95));
    match (factor, figure.unit) {
        (_, Unit::Ppm | Unit::PerMillion) => "-".into(),
        (Some(factor), _) if !factor.is_finite() => "-".into(),
        // PostgreSQL's rate can be wrong by less than 0.1%.
        (Some(factor), Unit::Khz) => format!("{:+.2}%", (factor - 1.0) * 100.0),
        (Some(factor), _) if factor >= 2.0 => sign('x', factor),
        (Some(factor), _) if factor <= 0.5 => sign('/', 1.0 / factor),
        (Some(factor), _) if factor < 1.0 => format!("-{}", percent(1.0 - factor)),
        (Some(factor), _) => format!("+{}", percent(factor - 1.0)),
        (None, _) => "-".into(),
    }
}

/// Returns changed texts and alarms.
fn words(comparison: &Comparison) -> Vec<String> {
    let is_text = |figure: &&ComparedFigure| figure.effect != Effect::Same && figure.unit == Unit::Text;
    let texts = comparison.figures.iter().filter(is_text).map(|figure| {
        let [before, after] = [&figure.before, &figure.after].map(|value| figure.unit.text(value));
        format!("{}: {before} -> {after}", figure.label())
    });
    // The alarm about the TSC explains its consequences, and the verdict lists them.
    let has_cause = comparison.findings.iter().any(|cause| cause.id == finding_id::TSC_DEMOTED);
    let is_explained = |id: &str| has_cause && finding_id::CONSEQUENCES_OF_TSC_DEMOTED.contains(&id);
    let alarms = comparison.findings.iter().filter(|change| !is_explained(&change.id)).map(|change| {
        let note = if change.effect == Effect::Same { ", but the figure changed less than the noise" } else { "" };
        format!("alarm {}{note}: {}", change.label(), change.summary)
    });
    texts.chain(alarms).collect()
}

/// Returns the figures that are the same. If a figure is the same for all clocks, it is named once.
fn same(figures: &[ComparedFigure]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in figures.iter().filter(|figure| figure.effect == Effect::Same) {
        let clocks = || figures.iter().filter(|other| other.figure == figure.figure);
        let name = match clocks().count() {
            many if many > 1 && clocks().all(|other| other.effect == Effect::Same) => {
                format!("{} of {many} clocks", figure.figure)
            }
            _ => figure.label(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn not_compared(group: &NotCompared) -> String {
    let listed = &group.what[..group.what.len().min(LISTED)];
    let more = match group.what.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more, see --format json"),
    };
    format!("{}{more} ({})", listed.join(", "), group.why)
}
