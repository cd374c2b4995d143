//! Bars of the read cost over time: one row in the table of clocks, several rows in the chart.

use super::style::of_figure;
use super::view::View;
use crate::report::{ReadCostLimits, Severity};
use ratatui::style::Style;
use ratatui::text::Span;

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

/// Returns `rows` rows of bars, the highest first, one column per value. A higher value than `full` fills the column.
/// Bars above a limit have the color of its severity.
pub fn bars(
    values: &[Option<f32>],
    rows: usize,
    full: f64,
    limits: Option<ReadCostLimits>,
    view: &View,
) -> Vec<Vec<Span<'static>>> {
    let heights: Vec<Option<usize>> = values.iter().map(|value| value.and_then(|ns| eighths(ns, rows, full))).collect();
    let styles = values.iter().map(|value| of_figure(severity(value.map(f64::from), limits), view));
    let styles: Vec<Style> = styles.collect();
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
        let expected = [Severity::Ok, Severity::Warning, Severity::Critical, Severity::Unknown];
        assert_eq!(styles, expected.map(|severity| of_figure(severity, &view())));
    }
}
