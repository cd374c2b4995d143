//! The clocks of a host: their figures as a table, and their histograms.

use super::histogram::{self, Axes};
use super::page::{scrolling, signed};
use crate::human::duration;
use crate::render::host_text::{MAIN, access, loop_words, not_measured, one_read, step, went_back};
use crate::report::{ClockReport, Origin, Report};
use maud::{Markup, html};

pub fn clocks(report: &Report) -> Markup {
    let is_main = |clock: &&ClockReport| MAIN.contains(&clock.name.as_str()) || clock.backward_steps > 0;
    let (main, others): (Vec<&ClockReport>, Vec<&ClockReport>) = match report.origin {
        Origin::PgTestTiming => (report.clocks.iter().collect(), Vec::new()),
        _ => report.clocks.iter().partition(is_main),
    };
    let axes = Axes::of(&report.clocks);
    html! {
        @if report.origin == Origin::PgTestTiming { (loops(&main)) } @else { (table("clocks", &main)) }
        (histograms(&main, &axes))
        @if !others.is_empty() {
            details {
                summary { "clocks that PostgreSQL does not read" }
                (table("other clocks", &others))
                (histograms(&others, &axes))
            }
        }
    }
}

fn table(label: &str, clocks: &[&ClockReport]) -> Markup {
    scrolling(
        label,
        html! {
            table {
                thead {
                    tr {
                        th scope="col" { "clock" }
                        th.number scope="col" { "one read" }
                        th.number scope="col" { "step" }
                        th.number scope="col" { "99.9%" }
                        th.number scope="col" { "worst" }
                        th scope="col" { "went back" }
                        th scope="col" { "access" }
                    }
                }
                tbody { @for clock in clocks { (row(clock)) } }
            }
        },
    )
}

fn row(clock: &ClockReport) -> Markup {
    let or_dash = |ns: Option<f64>| ns.map_or("-".into(), duration);
    let percentiles = clock.percentiles;
    html! {
        tr {
            th scope="row" { (clock.name) }
            @match not_measured(clock) {
                Some(why) => td.text colspan="6" { (why) },
                None => {
                    td.number { (signed(&one_read(clock))) }
                    td.number { (step(clock)) }
                    td.number { (or_dash(percentiles.map(|p| p.p99_9_ns))) }
                    td.number { (or_dash(percentiles.map(|p| p.max_ns))) }
                    td { (went_back(clock)) }
                    td { (clock.access_path.map_or("-", access)) }
                }
            }
        }
    }
}

/// Returns the clocks of a pg_test_timing output.
fn loops(clocks: &[&ClockReport]) -> Markup {
    scrolling(
        "clocks",
        html! {
            table {
                thead { tr { th scope="col" { "clock" } th.number scope="col" { "loop" } th scope="col" { "reads" } } }
                tbody {
                    @for clock in clocks {
                        @let (looped, words) = loop_words(clock);
                        tr { th scope="row" { (clock.name) } td.number { (looped) } td.text { (words) } }
                    }
                }
            }
        },
    )
}

fn histograms(clocks: &[&ClockReport], axes: &Axes) -> Markup {
    let figures: Vec<Markup> = clocks.iter().filter_map(|clock| histogram::figure(clock, axes)).collect();
    let has_gaps = clocks.iter().any(|clock| clock.gaps.is_some_and(|gaps| gaps.count > 0));
    html! {
        @if !figures.is_empty() {
            p.muted {
                "Number of reads by the time from one reading to the next. Both axes are logarithmic."
                @if has_gaps { " " span.key.reported {} "Interruptions: the system did other work." }
            }
            div.histograms { @for figure in &figures { (figure) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_shown_as_missing() {
        let mut report = Report::empty(Origin::Measured, "x");
        let main = ClockReport { name: "system".into(), ..ClockReport::default() };
        report.clocks =
            vec![main, ClockReport::unavailable("rdtsc", "<denied>"), ClockReport::unavailable("x&y", "no")];
        let text = clocks(&report).into_string();
        assert!(text.contains("<td class=\"number\">-</td>"), "{text}");
        assert!(text.contains("not measured: &lt;denied&gt;") && text.contains("x&amp;y"), "{text}");
        assert!(text.contains("clocks that PostgreSQL does not read") && !text.contains("<figure"), "{text}");
    }
}
