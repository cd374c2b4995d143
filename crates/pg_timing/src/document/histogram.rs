//! The histogram of one clock. Both axes are logarithmic: the rows are powers of two, and rare long reads stay visible.

use super::Block;
use crate::human::{count, duration};
use crate::report::{Bin, ClockReport};
use maud::{Markup, html};

/// The size of the picture and its plot, in pixels of a screen that shows it without scaling.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 132.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = 308.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 108.0;
/// The height of a row with one read, in powers of ten: log(1) alone would be 0.
const ONE_READ: f64 = 0.5;
/// The end of the axis of times: 1 s. Longer times are shown there. All pictures have this axis, so that a reader can compare
/// hosts.
const LONGEST_NS: f64 = 1e9;
/// The labeled times. Their distance is wider than a label like `100 ns`, which takes about 38 pixels.
const TIMES_NS: [f64; 5] = [1.0, 1e2, 1e4, 1e6, 1e8];
/// The labeled counts.
const COUNTS: [(u64, &str); 4] =
    [(1_000, "1 k"), (1_000_000, "1 M"), (1_000_000_000, "1 G"), (1_000_000_000_000, "1 T")];

fn x(ns: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (ns.max(1.0).ln() / LONGEST_NS.ln()).min(1.0)
}

/// A row with reads.
struct Row {
    start_ns: f64,
    end_ns: f64,
    count: u64,
    /// the system did other work
    is_gap: bool,
}

/// Returns the rows with reads, one after the other. In outputs of PostgreSQL before 19 rows overlap; each then starts where
/// the previous one ends.
fn rows(clock: &ClockReport) -> impl Iterator<Item = Row> {
    let threshold = clock.gaps.map_or(f64::INFINITY, |gaps| gaps.threshold_ns);
    let before = clock.histogram.iter().map(|row| row.le_ns as f64 + 1.0);
    let starts = std::iter::once(0.0).chain(before);
    let rows = clock.histogram.iter().zip(starts).filter(|(row, start)| row.count > 0 && row.le_ns as f64 >= *start);
    rows.map(move |(Bin { le_ns, count, .. }, start_ns)| Row {
        start_ns,
        end_ns: *le_ns as f64 + 1.0,
        count: *count,
        is_gap: start_ns >= threshold,
    })
}

/// The histogram of a clock.
#[derive(Clone, Debug)]
pub struct Histogram {
    clock: ClockReport,
    /// the highest count of all clocks of the host, so that a reader can compare them
    most: u64,
}

impl Histogram {
    /// Returns the histograms of some clocks of a host.
    pub fn all(clocks: &[&ClockReport], of_host: &[ClockReport]) -> Option<Block> {
        let most = of_host.iter().flat_map(rows).map(|row| row.count).fold(1, u64::max);
        let shown = clocks.iter().filter(|clock| rows(clock).next().is_some());
        let shown: Vec<_> = shown.map(|clock| Histogram { clock: (*clock).clone(), most }).collect();
        (!shown.is_empty()).then_some(Block::Histograms(shown))
    }

    pub fn has_gaps(&self) -> bool {
        rows(&self.clock).any(|row| row.is_gap)
    }

    fn y(&self, count: u64) -> f64 {
        let height = |count: u64| (count as f64).log10() + ONE_READ;
        BOTTOM - (BOTTOM - TOP) * height(count) / height(self.most)
    }

    /// Returns the picture with its caption.
    pub fn figure(&self) -> Markup {
        let Histogram { clock: ClockReport { name, percentiles, .. }, most } = self;
        html! {
            figure {
                figcaption { b { (name) } @if let Some(p) = percentiles { ": median " (duration(p.p50_ns)) } }
                svg role="img" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) {
                    title { "Times of " (name) " from one reading to the next" }
                    desc { (described(&self.clock)) }
                    @for (labeled, label) in COUNTS.iter().filter(|(labeled, _)| labeled <= most) {
                        @let y = self.y(*labeled);
                        line.grid x1=(LEFT) x2=(RIGHT) y1=(pixels(y)) y2=(pixels(y)) {}
                        text x=(LEFT - 5.0) y=(pixels(y + 4.0)) text-anchor="end" { (label) }
                    }
                    @for row in rows(&self.clock) {
                        @let (left, y) = (x(row.start_ns), self.y(row.count));
                        rect class=(if row.is_gap { "gap" } else { "bin" }) x=(pixels(left)) y=(pixels(y))
                            // A pixel remains free between two rows.
                            width=(pixels((x(row.end_ns) - left - 1.0).max(1.0))) height=(pixels(BOTTOM - y)) {}
                    }
                    line.axis x1=(LEFT) x2=(RIGHT) y1=(BOTTOM) y2=(BOTTOM) {}
                    @for ns in TIMES_NS {
                        @let x = pixels(x(ns));
                        line.axis x1=(x) x2=(x) y1=(BOTTOM) y2=(BOTTOM + 4.0) {}
                        text x=(x) y=(BOTTOM + 17.0) text-anchor="middle" { (duration(ns)) }
                    }
                }
            }
        }
    }
}

fn pixels(length: f64) -> String {
    format!("{length:.1}")
}

/// Returns the rows as text, for people who cannot see the picture.
fn described(clock: &ClockReport) -> String {
    let row = |row: Row| format!("{} below {}", count(row.count), duration(row.end_ns));
    format!("Number of reads: {}", rows(clock).map(row).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Gaps;

    fn clock(rows: &[(u64, u64)]) -> ClockReport {
        let histogram = rows.iter().map(|&(le_ns, count)| Bin { le_ns, ge_ns: None, count }).collect();
        ClockReport { name: "a<b".into(), histogram, reads: 1, ..ClockReport::default() }
    }

    #[test]
    fn rows_without_reads_are_left_out_and_described() {
        let gaps = Gaps { threshold_ns: 1000.0, count: 1, total_ns: 5000.0, largest_ns: 5000.0, share: 0.1 };
        let clock = ClockReport { gaps: Some(gaps), ..clock(&[(0, 0), (1, 0), (31, 2_000_000), (4095, 0), (8191, 1)]) };
        let Some(Block::Histograms(pictures)) = Histogram::all(&[&clock], std::slice::from_ref(&clock)) else {
            panic!()
        };
        let text = pictures[0].figure().into_string();
        assert!(text.contains("Number of reads: 2 M below 32 ns, 1 below 8.2 us"), "{text}");
        assert_eq!((text.matches("\"bin\"").count(), text.matches("\"gap\"").count()), (1, 1), "{text}");
        assert!(text.contains("a&lt;b") && !text.contains("NaN"), "{text}");
        assert!(Histogram::all(&[&super::tests::clock(&[(0, 0)])], &[]).is_none());
    }

    /// A report can contain any numbers.
    #[test]
    fn the_picture_stays_in_its_frame() {
        for rows in [&[(0, 1)][..], &[(u64::MAX, u64::MAX)], &[(7, 1), (3, 5), (7, 2)], &[(1, u64::MAX), (u64::MAX, 1)]]
        {
            let clock = clock(rows);
            let Some(Block::Histograms(pictures)) = Histogram::all(&[&clock], std::slice::from_ref(&clock)) else {
                panic!()
            };
            for row in super::rows(&pictures[0].clock) {
                let (x, y) = (x(row.end_ns), pictures[0].y(row.count));
                assert!((LEFT..=RIGHT).contains(&x) && (TOP - 0.01..=BOTTOM).contains(&y), "{rows:?}: {x}, {y}");
            }
        }
    }
}
