//! The table of changed numbers, and the list of figures that are the same.

use super::{BOLD, of_same_name, style};
use crate::human::{count, duration, percent};
use crate::render::columns::cut;
use crate::render::host_text::MAIN;
use crate::render::text::table::{Align, Table};
use crate::render::text::wrapped;
use crate::report::compare::{Compared, ComparedFigure, Effect, FigureName, Measure};

const KHZ_PER_GHZ: f64 = 1e6;
const KHZ_PER_MHZ: f64 = 1e3;
const PPM_PER_PERCENT: f64 = 1e4;
/// The other columns need up to 57 columns.
const LABEL: usize = 23;

const COLUMNS: [&str; 6] = ["what changed", "before", "after", "change", "noise", ""];
const ALIGNED: [Align; 6] = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];

/// Renders the changed numbers: a row for each, and a line for clocks that PostgreSQL does not read.
pub fn table(figures: &[ComparedFigure]) -> String {
    let is_main = |figure: &&ComparedFigure| figure.clock.as_deref().is_none_or(|clock| MAIN.contains(&clock));
    let changed = figures.iter().filter(|figure| figure.effect != Effect::Same && !is_text(figure));
    let (main, other): (Vec<_>, Vec<_>) = changed.partition(is_main);
    let rows: Vec<[String; 6]> = main.iter().map(|figure| cells(figure)).collect();
    let table = Table::new(ALIGNED, &COLUMNS, &rows);
    let mut out = String::new();
    if !rows.is_empty() {
        out.push_str(&format!("{BOLD}{}{BOLD:#}\n", table.line(&COLUMNS)));
    }
    for (figure, row) in main.iter().zip(&rows) {
        let line = table.line(row);
        let (numbers, word) = line.split_at(line.len() - row[5].len());
        let color = style(figure.effect);
        out.push_str(&format!("{numbers}{color}{word}{color:#}\n"));
    }
    let others: Vec<String> = other.iter().map(|figure| format!("{} {}", figure.label(), change(figure))).collect();
    if !others.is_empty() {
        wrapped(&mut out, "other clocks  ", &others.join(", "));
    }
    out
}

fn is_text(figure: &ComparedFigure) -> bool {
    matches!(figure.before, Compared::Text(_))
}

fn cells(figure: &ComparedFigure) -> [String; 6] {
    let value = |value: &Compared| match value {
        Compared::Number(measure) => bounds(figure.figure, measure),
        Compared::Text(text) => text.clone(),
    };
    let word = if figure.effect == Effect::Changed { "" } else { figure.effect.word() };
    [
        cut(&figure.label(), LABEL),
        value(&figure.before),
        value(&figure.after),
        change(figure),
        noise(figure),
        word.into(),
    ]
}

/// Renders a number, or its bounds.
fn bounds(name: FigureName, measure: &Measure) -> String {
    match measure.estimate {
        Some(estimate) => number(name, estimate),
        None if measure.low <= 0.0 => format!("<= {}", number(name, measure.high)),
        None => format!(">= {}", number(name, measure.low)),
    }
}

fn number(name: FigureName, number: f64) -> String {
    match name {
        FigureName::LostTime => percent(number),
        FigureName::TscRate => format!("{:.4} GHz", number / KHZ_PER_GHZ),
        FigureName::Drift if number.abs() < 999.95 => format!("{number:+.1} ppm"),
        FigureName::Drift => format!("{:+.1}%", number / PPM_PER_PERCENT),
        FigureName::BackwardSteps => match number {
            0.0 => "never".into(),
            rate if rate < 0.01 => "<0.01 per M".into(),
            rate if rate < 9.995 => format!("{rate:.2} per M"),
            rate => format!("{} per M", count(rate.round() as u64)),
        },
        _ => duration(number),
    }
}

/// Renders the relative change. From a factor of 2 on, the factor is easier to read.
fn change(figure: &ComparedFigure) -> String {
    match figure.relative_change {
        _ if has_small_numbers(figure.figure) => "-".into(),
        None => "-".into(),
        // PostgreSQL's rate can be wrong by less than 0.1%.
        Some(change) if figure.figure == FigureName::TscRate => format!("{:+.2}%", change * 100.0),
        Some(change) if change >= 9.0 => format!("x {:.0}", change + 1.0),
        Some(change) if change >= 1.0 => format!("x {:.1}", change + 1.0),
        Some(change) if change <= -0.9 => format!("/ {:.0}", 1.0 / (change + 1.0)),
        Some(change) if change <= -0.5 => format!("/ {:.1}", 1.0 / (change + 1.0)),
        Some(change) if change < 0.0 => format!("-{}", percent(-change)),
        Some(change) => format!("+{}", percent(change)),
    }
}

/// Renders the noise in the unit of the figure. A difference above it is a change. The bounds of a figure without an estimate
/// contain its noise.
fn noise(figure: &ComparedFigure) -> String {
    match (figure.noise, figure.figure) {
        (None, _) => "-".into(),
        (Some(noise), FigureName::TscRate) => format!("{:.2} MHz", noise / KHZ_PER_MHZ),
        (Some(noise), name) => number(name, noise).trim_start_matches('+').into(),
    }
}

/// Returns whether a relative change would say nothing: the number can be 0, or is a share already.
fn has_small_numbers(name: FigureName) -> bool {
    matches!(name, FigureName::Drift | FigureName::LostTime | FigureName::BackwardSteps)
}

/// Returns the figures that are the same. If a figure is the same for all clocks, it is named once.
pub fn same(figures: &[ComparedFigure]) -> Vec<String> {
    let mut names = Vec::new();
    for figure in figures.iter().filter(|figure| figure.effect == Effect::Same) {
        let clocks = of_same_name(figures, figure).count();
        let name = match of_same_name(figures, figure).all(|other| other.effect == Effect::Same) {
            true if clocks > 1 => {
                let label = figure.label();
                let figure =
                    figure.clock.as_ref().and_then(|clock| label.strip_prefix(clock.as_str())).unwrap_or(&label);
                format!("{} of {clocks} clocks", figure.trim_start())
            }
            _ => figure.label(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
