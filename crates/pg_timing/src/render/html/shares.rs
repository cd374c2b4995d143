//! Where the reported time of a statement goes: one bar, with the interval of the corrected time below it.

use super::page::{extent, fraction, signed};
use crate::human::percent;
use crate::render::explain_text::{Parts, counting_name, interval, ms};
use crate::report::ExplainReport;
use maud::{Markup, html};

/// A part of the reported time: its class in the style sheet, its name, and its time.
struct Part {
    class: &'static str,
    name: &'static str,
    ms: f64,
}

/// Returns the parts in the order of the bar. Their sum is the reported time.
fn parts(report: &ExplainReport) -> Vec<Part> {
    let Parts { rest, clock, counting, unexplained } = Parts::of(report);
    let parts = [
        Part { class: "", name: "without overhead", ms: rest },
        Part { class: "reported", name: "clock reads", ms: clock },
        Part { class: "counting", name: counting_name(report), ms: counting },
        Part { class: "unexplained", name: "unexplained", ms: unexplained },
    ];
    // Below 1 us it is a rounding error.
    parts.into_iter().filter(|part| part.ms > 0.001).collect()
}

pub fn shares(report: &ExplainReport) -> Markup {
    let parts = parts(report);
    // The parts of runs at different times can exceed the reported time.
    let sum = parts.iter().map(|part| part.ms).sum::<f64>().max(report.reported_ms);
    let range = report.corrected_ms;
    html! {
        div.shares aria-hidden="true" {
            @for part in &parts {
                i class=(part.class) style=(format!("width: {:.2}%", 100.0 * fraction(part.ms, sum).clamp(0.0, 1.0))) {}
            }
        }
        div.interval aria-hidden="true" { i style=(extent(fraction(range.low, sum), fraction(range.high, sum))) {} }
        ul.legend {
            @for part in &parts {
                li {
                    span class={ "key " (part.class) } {}
                    (part.name) " " b { (ms(part.ms)) } " (" (percent(fraction(part.ms, report.reported_ms))) ")"
                    @if part.class.is_empty() { ", interval " (signed(&interval(range))) " ms" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Range;

    fn report(reported_ms: f64, corrected: f64) -> ExplainReport {
        let corrected_ms = Range { low: corrected / 2.0, estimate: corrected, high: corrected * 2.0 };
        ExplainReport { reported_ms, corrected_ms, clock_share: 0.5, unexplained_share: 0.125, ..Default::default() }
    }

    #[test]
    fn the_parts_add_up_to_the_reported_time() {
        let parts = parts(&report(1000.0, 250.0));
        assert_eq!(parts.iter().map(|part| part.ms).collect::<Vec<_>>(), [250.0, 500.0, 125.0, 125.0]);
        let text = shares(&report(1000.0, 250.0)).into_string();
        assert!(
            text.contains("left: 12.50%; width: 37.50%") && text.contains("clock reads <b>500 ms</b> (50%)"),
            "{text}"
        );
    }

    #[test]
    fn impossible_times_do_not_leave_the_bar() {
        for (reported, corrected) in [(0.0, 0.0), (1.0, 1e300), (1e-9, 1.0), (-5.0, 3.0)] {
            let text = shares(&report(reported, corrected)).into_string();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
