//! The result of `compare`: the verdict, both reports, what changed, what is the same, and what could not be compared.

use super::{Block, Cell, Column, Document, Facts, Row, Table};
use crate::human::{duration, percent};
use crate::report::Severity;
use crate::report::compare::{Change, Comparison, Effect};
use std::collections::BTreeMap;

pub fn document(comparison: &Comparison) -> Document {
    let Comparison { verdict, before, after, changes, .. } = comparison;
    // An alarm whose figure changed by less than the noise is the same, and needs an explanation.
    let is_same = |change: &&Change| {
        change.effect == Effect::Same && (change.noise_ns.is_some() || change.before == change.after)
    };
    let is_shown = |change: &&Change| !is_same(change) && change.effect != Effect::NotCompared;
    let (figures, others): (Vec<&Change>, Vec<&Change>) =
        changes.iter().filter(is_shown).partition(|change| change.noise_ns.is_some());
    let names = ["before", "after", "change", "noise"].map(Column::right);
    let columns = [Column::left("what changed")].into_iter().chain(names).chain([Column::left("")]);
    let table = Table::new("", columns, figures.into_iter().map(row));
    let line = |change: &Change| {
        let note = change.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
        ("", format!("{}: {} -> {}{note}", change.what, change.before, change.after))
    };
    let same: Vec<&str> = changes.iter().filter(is_same).map(|change| change.what.as_str()).collect();
    let mut rest = vec![("same", same.join(", "))];
    let mut gaps: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.effect == Effect::NotCompared) {
        gaps.entry(change.note.as_deref().unwrap_or_default()).or_default().push(&change.what);
    }
    let gaps = gaps.iter().map(|(why, what)| format!("{} ({why})", what.join(", ")));
    rest.extend(["not compared"].into_iter().chain(std::iter::repeat("")).zip(gaps));
    rest.retain(|(_, text)| !text.is_empty());
    let (severity, word) = (severity(verdict.effect), verdict.effect.word().to_ascii_uppercase());
    let mut blocks = vec![
        Block::Verdict { severity, word, summary: verdict.summary.clone() },
        Block::Facts(Facts::new(8, [("before", before), ("after", after)])),
    ];
    blocks.extend((!table.rows.is_empty()).then_some(Block::Table(table)));
    blocks.push(Block::Facts(Facts::new(0, others.into_iter().map(line))));
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

fn row(change: &Change) -> Row {
    let effect = if change.effect == Effect::Changed { "" } else { change.effect.word() };
    let effect = Cell { severity: Some(severity(change.effect)), ..effect.into() };
    // From a factor of 2 on, the factor is easier to read.
    let factor = match change.before_ns.zip(change.after_ns).map_or(f64::NAN, |(before, after)| after / before) {
        factor if !factor.is_finite() => "-".into(),
        factor if factor >= 2.0 => format!("x {factor:.1}"),
        factor if factor < 1.0 => format!("-{}", percent(1.0 - factor)),
        factor => format!("+{}", percent(factor - 1.0)),
    };
    let noise = change.noise_ns.map_or("-".into(), duration);
    let cells = [change.what.clone(), change.before.clone(), change.after.clone(), factor, noise].map(Cell::from);
    Row::new(cells.into_iter().chain([effect]))
}
