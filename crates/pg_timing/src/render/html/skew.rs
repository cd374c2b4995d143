//! The offsets between CPUs' clocks: one row per pair of CPUs, one column per clock.

use super::page::{extent, scrolling};
use super::skew_matrix;
use crate::human::duration;
use crate::report::{Report, Skew};
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the table of offsets, and the matrix of all pairs. `None` if none were measured.
pub fn offsets(report: &Report) -> Option<Markup> {
    let skew = &report.cpus.skew;
    let largest = skew.iter().map(|s| s.low_ns.abs().max(s.high_ns.abs())).fold(0.0, f64::max);
    let clocks: BTreeSet<&str> = skew.iter().map(|s| s.clock.as_str()).collect();
    let pairs: BTreeSet<(usize, usize)> = skew.iter().map(|s| (s.a, s.b)).collect();
    let cells: BTreeMap<_, _> = skew.iter().map(|s| ((s.clock.as_str(), (s.a, s.b)), s)).collect();
    let table = html! {
        table.skew {
            thead {
                tr {
                    th scope="col" { "CPUs" }
                    @for clock in &clocks { th.wide scope="col" { (clock) } }
                }
            }
            tbody {
                @for pair in &pairs {
                    tr {
                        th scope="row" { (pair.0) " and " (pair.1) }
                        @for clock in &clocks { td { @if let Some(skew) = cells.get(&(*clock, *pair)) { (cell(skew, largest)) } @else { "-" } } }
                    }
                }
            }
        }
    };
    (!skew.is_empty()).then(|| {
        html! {
            p.muted {
                "Bounds of the second CPU's reading minus the first CPU's reading at the same instant. The clocks agree if the bounds \
                 include zero, which is the middle of each line. The ends of a line are -" (duration(largest)) " and " (duration(largest)) "."
            }
            (scrolling("offsets between CPUs", table))
            (skew_matrix::matrices(skew))
        }
    })
}

fn cell(skew: &Skew, largest: f64) -> Markup {
    let differs = skew.low_ns > 0.0 || skew.high_ns < 0.0;
    let position = |ns: f64| if largest > 0.0 { (ns / largest + 1.0) / 2.0 } else { 0.5 };
    html! {
        (duration(skew.low_ns)) " to " (duration(skew.high_ns))
        @if differs { " " span.differs { "differ" } }
        @if skew.moving { " " span.differs { "changes" } }
        div.track.range aria-hidden="true" {
            i.differs[differs] style=(extent(position(skew.low_ns), position(skew.high_ns))) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;

    #[test]
    fn bounds_without_zero_differ() {
        let skew = |clock: &str, b, low_ns, high_ns| Skew {
            clock: clock.into(),
            a: 0,
            b,
            low_ns,
            high_ns,
            moving: false,
            passes: 9,
        };
        let mut report = Report::empty(Origin::Measured, "x");
        assert!(offsets(&report).is_none());
        report.cpus.skew =
            vec![skew("system", 1, -20.0, 30.0), skew("system", 2, 50.0, 100.0), skew("<r>", 1, 0.0, 0.0)];
        let text = offsets(&report).unwrap().into_string();
        assert!(
            text.contains("-20 ns to 30 ns") && text.contains("50 ns to 100 ns <span class=\"differs\">differ"),
            "{text}"
        );
        assert!(text.contains("left: 40.00%; width: 25.00%") && text.contains("left: 75.00%; width: 25.00%"), "{text}");
        assert!(text.contains("&lt;r&gt;") && text.contains("<td>-</td>") && !text.contains("NaN"), "{text}");
    }
}
