//! Bars of the read cost over time: one row in the table of clocks, several rows in the chart.

use super::style::{DIM, of_severity};
use super::view::View;
use crate::report::{ReadCostLimits, Severity};
use ratatui::style::Style;
use ratatui::text::Span;
use std::collections::VecDeque;

/// Characters for one to eight eighths of a row.
const UNICODE: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII: [&str; 8] = ["_", "_", ".", "-", "=", "+", "*", "#"];
/// A sample without a figure.
const ABSENT: [&str; 2] = ["?", "·"];

/// The value of a full bar: twice the median, so that usual values fill half of the height and small variations stay small.
pub fn usual_scale(history: impl Iterator<Item = Option<f32>>) -> f64 {
    let mut values: Vec<f32> = history.flatten().filter(|ns| ns.is_finite() && *ns >= 0.0).collect();
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).map_or(1.0, |median| f64::from(*median) * 2.0)
}

/// The history in the width of a screen: each value is the highest read cost of one or more samples.
pub struct Shown {
    pub values: Vec<Option<f32>>,
    /// number of samples that the values stand for
    pub samples: usize,
}

/// Returns the whole history in at most `width` values. `samples` is the number of samples since the start: a sample stays
/// with the same neighbors when newer ones come.
pub fn fitted(history: &VecDeque<Option<f32>>, samples: u64, width: usize) -> Shown {
    if width == 0 {
        return Shown { values: Vec::new(), samples: 0 };
    }
    // Usually the oldest and the newest value stand for fewer samples than the others, so that there is one value more.
    let per_value = match history.len() {
        all if all <= width => 1,
        all => all.div_ceil(width.saturating_sub(1).max(1)),
    };
    let first = samples.wrapping_sub(history.len() as u64);
    let mut values: Vec<Option<f32>> = Vec::new();
    for (nth, value) in history.iter().enumerate() {
        let starts = first.wrapping_add(nth as u64).is_multiple_of(per_value as u64);
        match values.last_mut() {
            Some(last) if !starts => *last = highest(*last, *value),
            _ => values.push(*value),
        }
    }
    let skipped = values.len().saturating_sub(width);
    values.drain(..skipped);
    Shown { values, samples: history.len() }
}

/// Returns the higher one of two read costs. A missing one does not count.
fn highest(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}

/// Returns `rows` rows of bars, the highest first, one column per value. A higher value than `full` fills the column.
/// Bars above a limit have the color of its severity. Other bars are dim, because a large chart is bright.
pub fn bars(
    values: &[Option<f32>],
    rows: usize,
    full: f64,
    limits: Option<ReadCostLimits>,
    view: &View,
) -> Vec<Vec<Span<'static>>> {
    let heights: Vec<Option<usize>> = values.iter().map(|value| value.and_then(|ns| eighths(ns, rows, full))).collect();
    let style = |value: &Option<f32>| match severity(value.map(f64::from), limits) {
        alarm if alarm >= Severity::Warning => of_severity(alarm, view),
        _ => DIM,
    };
    let styles: Vec<Style> = values.iter().map(style).collect();
    (0..rows)
        .rev()
        .map(|row| joined(heights.iter().map(|height| symbol(*height, row, view.unicode)).zip(styles.iter().copied())))
        .collect()
}

/// Returns the severity of a read cost of PostgreSQL's clock.
pub fn severity(ns: Option<f64>, limits: Option<ReadCostLimits>) -> Severity {
    match (ns, limits) {
        (Some(ns), Some(limits)) if ns > limits.critical => Severity::Critical,
        (Some(ns), Some(limits)) if ns > limits.warning => Severity::Warning,
        (Some(_), Some(_)) => Severity::Ok,
        _ => Severity::Unknown,
    }
}

/// Returns the height of a bar in eighths of a row, at least one: a read that took 0 ns was measured.
fn eighths(ns: f32, rows: usize, full: f64) -> Option<usize> {
    let most = rows * UNICODE.len();
    let share = f64::from(ns) / full;
    ns.is_finite().then(|| ((share * most as f64).round() as usize).clamp(1, most))
}

fn symbol(height: Option<usize>, row: usize, unicode: bool) -> &'static str {
    let below = row * UNICODE.len();
    match height {
        None if row == 0 => ABSENT[usize::from(unicode)],
        Some(height) if height > below => {
            let level = (height - below).min(UNICODE.len()) - 1;
            if unicode { UNICODE[level] } else { ASCII[level] }
        }
        _ => " ",
    }
}

/// Returns spans of neighbors with the same style.
fn joined(symbols: impl Iterator<Item = (&'static str, Style)>) -> Vec<Span<'static>> {
    let mut spans: Vec<Span> = Vec::new();
    for (symbol, style) in symbols {
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(symbol),
            _ => spans.push(Span::styled(symbol, style)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::samples::view;

    fn text(values: &[Option<f32>], rows: usize, full: f64, view: &View) -> Vec<String> {
        let rows = bars(values, rows, full, None, view);
        rows.iter().map(|spans| spans.iter().map(|span| span.content.as_ref()).collect()).collect()
    }

    #[test]
    fn a_missing_value_differs_from_zero() {
        let values = [Some(0.0), None, Some(10.0), Some(20.0), Some(900.0), Some(f32::NAN)];
        assert_eq!(text(&values, 1, 20.0, &view()), ["▁·▄██·"]);
        assert_eq!(text(&values, 1, 20.0, &View { unicode: false, ..view() }), ["_?-##?"]);
        assert_eq!(text(&values, 2, 20.0, &view()), ["   ██ ", "▁·███·"]);
    }

    #[test]
    fn the_whole_history_is_shown_by_its_highest_values() {
        let history: VecDeque<_> = [1.0, 5.0, 2.0, 3.0, 4.0, 0.0].map(Some).into();
        let values = |samples, width| fitted(&history, samples, width).values;
        assert_eq!(values(6, 6), [1.0, 5.0, 2.0, 3.0, 4.0, 0.0].map(Some));
        assert_eq!(values(6, 4), [5.0, 3.0, 4.0].map(Some));
        // One sample later, the same samples are together. The oldest one has left the history.
        assert_eq!(values(7, 4), [1.0, 5.0, 4.0, 0.0].map(Some));
        assert_eq!((values(6, 0), values(6, 1)), (vec![], vec![Some(5.0)]));
        let missing: VecDeque<_> = [None, Some(2.0), None, None].into();
        assert_eq!(fitted(&missing, 4, 3).values, [Some(2.0), None]);
    }

    #[test]
    fn usual_values_fill_half_of_the_height() {
        let history = [Some(20.0), None, Some(21.0), Some(900.0), Some(f32::NAN)];
        assert_eq!(usual_scale(history.into_iter()), 42.0);
        assert_eq!(usual_scale([None].into_iter()), 1.0);
    }

    #[test]
    fn bars_above_a_limit_have_its_color() {
        let limits = Some(ReadCostLimits { warning: 100.0, critical: 500.0 });
        let rows = bars(&[Some(20.0), Some(101.0), Some(501.0), None], 1, 40.0, limits, &view());
        let styles: Vec<Style> = rows[0].iter().map(|span| span.style).collect();
        let alarms = [Severity::Warning, Severity::Critical].map(|severity| of_severity(severity, &view()));
        assert_eq!(styles, [DIM, alarms[0], alarms[1], DIM]);
    }
}
