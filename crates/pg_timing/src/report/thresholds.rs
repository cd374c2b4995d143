//! The user's thresholds for a monitoring plugin, and their result for a report.

use super::{COUNTER, Report, SYSTEM, Severity};
use crate::human::{duration, percent};

/// A figure that can have thresholds.
#[derive(Debug)]
pub struct Watched {
    /// in the options
    pub name: &'static str,
    /// what an exceeded threshold says before the value
    pub what: &'static str,
    pub text: fn(f64) -> String,
    /// of a limit; the first one is that of the figure
    pub units: &'static str,
    /// the largest possible limit, and the range as text
    pub most: (f64, &'static str),
    /// returns the figure, if the report has it
    pub value: fn(&Report) -> Option<f64>,
}

/// Limits in the order of [`Watched::ALL`].
pub type Limits = [Option<f64>; 3];

impl Watched {
    pub const ALL: [Watched; 3] = [
        Watched::time("read", "a read of PostgreSQL's clock costs", |report| report.system()?.cost_ns()),
        Watched {
            name: "lost",
            what: "interruptions took",
            text: |lost| percent(lost / 100.0),
            units: "%",
            most: (100.0, "0% and 100%"),
            value: |report| report.system()?.gaps.map(|gaps| gaps.share * 100.0),
        },
        Watched::time("skew", "the clocks of two CPUs differ by at least", skew),
    ];

    /// Returns a figure in ns. No read and no skew takes longer than 1000 s.
    const fn time(name: &'static str, what: &'static str, value: fn(&Report) -> Option<f64>) -> Watched {
        Watched { name, what, text: duration, units: "ns, us, ms or s", most: (1e12, "0 and 1000 s"), value }
    }
}

/// The largest permitted figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    pub warning: Limits,
    pub critical: Limits,
}

/// The result of one figure's thresholds.
#[derive(Debug)]
pub struct Judged {
    pub figure: Watched,
    /// `Unknown` if the figure was not measured
    pub severity: Severity,
    pub value: Option<f64>,
    /// the exceeded limit
    pub limit: Option<f64>,
}

impl Thresholds {
    /// Returns each figure with its limits for a warning and for critical.
    pub fn figures(&self) -> impl Iterator<Item = (Watched, [Option<f64>; 2])> {
        Watched::ALL.into_iter().zip(self.warning.into_iter().zip(self.critical).map(<[_; 2]>::from))
    }

    /// Returns the result of each figure that has a threshold.
    pub fn judge(&self, report: &Report) -> Vec<Judged> {
        let judged = self.figures().filter(|(_, limits)| *limits != [None; 2]).map(|(figure, limits)| {
            let value = (figure.value)(report);
            let exceeded = limits.map(|limit| limit.filter(|limit| value.is_some_and(|value| value > *limit)));
            let (severity, limit) = match exceeded {
                [_, Some(limit)] => (Severity::Critical, Some(limit)),
                [Some(limit), None] => (Severity::Warning, Some(limit)),
                [None, None] => (if value.is_some() { Severity::Ok } else { Severity::Unknown }, None),
            };
            Judged { figure, severity, value, limit }
        });
        judged.collect()
    }

    /// Returns the severity of the verdict and the thresholds together: the worst alarm. Without an alarm it is unknown if
    /// one of them is.
    pub fn severity(&self, report: &Report) -> Severity {
        let all = || self.judge(report).into_iter().map(|judged| judged.severity).chain([report.verdict.severity]);
        all().max().filter(|worst| worst.is_alarm()).or(all().min()).unwrap_or(Severity::Unknown)
    }
}

/// Returns the largest certain offset between two CPUs, of the clocks that PostgreSQL reads.
fn skew(report: &Report) -> Option<f64> {
    let reads_counter = report.tsc.used_by_default == Some(true) && report.tsc.usable != Some(false);
    let clocks = [SYSTEM].into_iter().chain(reads_counter.then_some(COUNTER));
    let offsets = clocks.filter_map(|clock| report.cpus.largest_offset(clock)).map(|(certain, _)| certain);
    // A single CPU has no other one to differ from.
    let single = report.cpus.online.known().is_some_and(|cpus| cpus.len() == 1).then_some(0.0);
    offsets.reduce(f64::max).or(single)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ClockReport, Fact, Gaps, Origin, Skew};

    fn report(severity: Severity) -> Report {
        let mut report = Report::empty(Origin::Measured, "");
        let gaps = Gaps { threshold_ns: 1000.0, count: 9, total_ns: 1e8, largest_ns: 1e8, share: 0.08 };
        report.clocks =
            vec![ClockReport { name: SYSTEM.into(), read_ns: Some(120.0), gaps: Some(gaps), ..ClockReport::default() }];
        report.verdict.severity = severity;
        report
    }

    #[test]
    fn the_worst_threshold_counts() {
        let thresholds = |read, lost, critical| Thresholds {
            warning: [Some(read), Some(lost), None],
            critical: [Some(critical), None, None],
        };
        for (thresholds, verdict, severity) in [
            (thresholds(120.0, 8.0, 500.0), Severity::Ok, Severity::Ok),
            (thresholds(119.0, 8.0, 500.0), Severity::Ok, Severity::Warning),
            (thresholds(500.0, 7.9, 500.0), Severity::Ok, Severity::Warning),
            (thresholds(100.0, 8.0, 119.0), Severity::Warning, Severity::Critical),
            (thresholds(500.0, 50.0, 900.0), Severity::Critical, Severity::Critical),
            (thresholds(500.0, 50.0, 900.0), Severity::Unknown, Severity::Unknown),
            (thresholds(100.0, 50.0, 900.0), Severity::Unknown, Severity::Warning),
        ] {
            assert_eq!(thresholds.severity(&report(verdict)), severity, "{thresholds:?}");
        }
        assert_eq!(Thresholds::default().severity(&report(Severity::Ok)), Severity::Ok);
        let judged = thresholds(100.0, 50.0, 900.0).judge(&report(Severity::Ok));
        let of = |judged: &Judged| (judged.figure.name, judged.severity, judged.limit);
        assert_eq!(
            judged.iter().map(of).collect::<Vec<_>>(),
            [("read", Severity::Warning, Some(100.0)), ("lost", Severity::Ok, None)]
        );
    }

    #[test]
    fn a_threshold_of_a_missing_figure_is_unknown() {
        let thresholds = Thresholds { warning: [None, None, Some(1000.0)], ..Thresholds::default() };
        let mut report = report(Severity::Ok);
        assert_eq!(thresholds.severity(&report), Severity::Unknown);
        report.verdict.severity = Severity::Warning;
        assert_eq!(thresholds.severity(&report), Severity::Warning);
        report.cpus.online = Fact::Known(vec![0]);
        report.verdict.severity = Severity::Ok;
        assert_eq!(thresholds.severity(&report), Severity::Ok, "one CPU");
    }

    #[test]
    fn only_a_certain_offset_of_postgresqls_clocks_counts() {
        let mut report = report(Severity::Ok);
        let of = |clock: &str, low_ns, high_ns| Skew {
            clock: clock.into(),
            a: 0,
            b: 1,
            low_ns,
            high_ns,
            moving: false,
            passes: 9,
        };
        report.cpus.skew = vec![of(SYSTEM, -900.0, 900.0), of(COUNTER, 700.0, 900.0), of(COUNTER, -900.0, -800.0)];
        assert_eq!(skew(&report), Some(0.0));
        report.tsc.used_by_default = Some(true);
        assert_eq!(skew(&report), Some(800.0));
    }
}
