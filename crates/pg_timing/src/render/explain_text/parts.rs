//! The parts of a live statement's overhead. The headline and the facts both use them, so that they agree.

use crate::report::{ExplainReport, LiveRuns};

/// Parts of the reported time, in ms. Their sum is the overhead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    pub clock: f64,
    pub row_counting: f64,
    /// `None` if BUFFERS is off by default
    pub buffer_counting: Option<f64>,
    pub unexplained: f64,
}

impl Parts {
    pub fn of(report: &ExplainReport, runs: &LiveRuns) -> Parts {
        let ms = |share: f64| share * report.reported_ms;
        let counting = ms((report.overhead_share - report.clock_share - report.unexplained_share).max(0.0));
        // The runs' counting includes unexplained time. Buffer counting is assumed to have the same share without that
        // time.
        let buffers_part = runs.without_buffers_ms.map(|without| {
            let all = runs.rows_only_ms - runs.plain_ms;
            if all > 0.0 { ((runs.rows_only_ms - without) / all).clamp(0.0, 1.0) } else { 0.0 }
        });
        Parts {
            clock: ms(report.clock_share),
            row_counting: counting * (1.0 - buffers_part.unwrap_or(0.0)),
            buffer_counting: buffers_part.map(|part| counting * part),
            unexplained: ms(report.unexplained_share),
        }
    }

    /// Returns `50% clock reads, 19% row and buffer counting`, as percentages of the reported time. They add up to
    /// `overhead_percent`.
    pub fn percentages(&self, reported_ms: f64, overhead_percent: f64) -> String {
        let percent = |ms: f64| (100.0 * ms / reported_ms).round();
        let clock = percent(self.clock).min(overhead_percent);
        let unexplained = percent(self.unexplained).min(overhead_percent - clock);
        let counting = overhead_percent - clock - unexplained;
        let counted = if self.buffer_counting.is_some() { "row and buffer counting" } else { "row counting" };
        let parts = [(clock, "clock reads"), (counting, counted), (unexplained, "unexplained")];
        let shown = parts.iter().filter(|(percent, _)| *percent > 0.0);
        shown.map(|(percent, name)| format!("{percent:.0}% {name}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 ms reported, 400 ms baseline: 300 ms clock, 180 ms counting, 120 ms unexplained.
    fn parts(without_buffers_ms: Option<f64>) -> Parts {
        let runs = LiveRuns { plain_ms: 400.0, rows_only_ms: 600.0, without_buffers_ms, ..LiveRuns::default() };
        let report = ExplainReport {
            reported_ms: 1000.0,
            overhead_share: 0.6,
            clock_share: 0.3,
            unexplained_share: 0.12,
            ..Default::default()
        };
        Parts::of(&report, &runs)
    }

    #[test]
    fn parts_add_up_to_the_overhead() {
        let rounded = |ms: f64| (1e6 * ms).round() / 1e6;
        let Parts { clock, row_counting, buffer_counting, unexplained } = parts(Some(550.0));
        assert_eq!([clock, row_counting, unexplained].map(rounded), [300.0, 135.0, 120.0]);
        assert_eq!(buffer_counting.map(rounded), Some(45.0));
        assert_eq!((rounded(parts(None).row_counting), parts(None).buffer_counting), (180.0, None));
        // Noise: the runs without buffers took longer.
        assert_eq!(parts(Some(650.0)).buffer_counting, Some(0.0));
    }

    #[test]
    fn percentages_add_up_to_the_overhead() {
        let text = parts(Some(550.0)).percentages(1000.0, 60.0);
        assert_eq!(text, "30% clock reads, 18% row and buffer counting, 12% unexplained");
        let no_counting = Parts { clock: 595.0, row_counting: 4.0, buffer_counting: None, unexplained: 1.0 };
        assert_eq!(no_counting.percentages(1000.0, 60.0), "60% clock reads");
        let halves = Parts { clock: 305.0, row_counting: 0.0, buffer_counting: None, unexplained: 295.0 };
        assert_eq!(halves.percentages(1000.0, 60.0), "31% clock reads, 29% unexplained");
    }
}
