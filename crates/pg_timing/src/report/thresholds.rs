//! The user's thresholds for a monitoring plugin, and their result for a report.

use super::{COUNTER, Report, SYSTEM, Severity};

/// A figure that can have thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// cost of a read of PostgreSQL's clock, in ns
    Read,
    /// time that interruptions took, in percent
    Lost,
    /// offset between the clocks of two CPUs that is certain, in ns
    Skew,
}

impl Watched {
    pub const ALL: [Watched; 3] = [Watched::Read, Watched::Lost, Watched::Skew];

    /// Returns the name in the options.
    pub fn name(self) -> &'static str {
        match self {
            Watched::Read => "read",
            Watched::Lost => "lost",
            Watched::Skew => "skew",
        }
    }
}

/// The largest permitted figures of one severity, in the units of [`Watched`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits([Option<f64>; 3]);

impl Limits {
    pub fn get(&self, figure: Watched) -> Option<f64> {
        self.0[figure as usize]
    }

    pub fn set(&mut self, figure: Watched, limit: f64) {
        self.0[figure as usize] = Some(limit);
    }
}

/// The thresholds for a warning and for critical.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thresholds {
    pub warning: Limits,
    pub critical: Limits,
}

/// The result of one figure's thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    pub figure: Watched,
    /// `Unknown` if the figure was not measured
    pub severity: Severity,
    pub value: Option<f64>,
    /// the exceeded limit
    pub limit: Option<f64>,
}

impl Thresholds {
    /// Returns the first figure whose warning limit is above its critical limit.
    pub fn contradiction(&self) -> Option<Watched> {
        let limits = |figure| self.warning.get(figure).zip(self.critical.get(figure));
        Watched::ALL.into_iter().find(|figure| limits(*figure).is_some_and(|(warning, critical)| warning > critical))
    }

    /// Returns the result of each figure that has a threshold.
    pub fn judge(&self, report: &Report) -> Vec<Judged> {
        let judged = Watched::ALL.into_iter().filter_map(|figure| {
            let (warning, critical) = (self.warning.get(figure), self.critical.get(figure));
            warning.or(critical)?;
            let value = value(report, figure);
            let is_exceeded = |limit: &f64| value.is_some_and(|value| value > *limit);
            let (severity, limit) = match (critical.filter(is_exceeded), warning.filter(is_exceeded), value) {
                (Some(limit), _, _) => (Severity::Critical, Some(limit)),
                (None, Some(limit), _) => (Severity::Warning, Some(limit)),
                (None, None, Some(_)) => (Severity::Ok, None),
                (None, None, None) => (Severity::Unknown, None),
            };
            Some(Judged { figure, severity, value, limit })
        });
        judged.collect()
    }

    /// Returns the severity of the verdict and the thresholds together: the worst alarm. Without an alarm it is unknown if
    /// one of them is.
    pub fn severity(&self, report: &Report) -> Severity {
        let all = || self.judge(report).into_iter().map(|judged| judged.severity).chain([report.verdict.severity]);
        match all().max() {
            Some(worst) if worst >= Severity::Warning => worst,
            _ => all().min().unwrap_or(Severity::Unknown),
        }
    }
}

/// Returns the figure, if the report has it.
pub fn value(report: &Report, figure: Watched) -> Option<f64> {
    match figure {
        Watched::Read => report.system()?.cost_ns(),
        Watched::Lost => report.system()?.gaps.map(|gaps| gaps.share * 100.0),
        Watched::Skew => skew(report),
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

    fn limits(limits: &[(Watched, f64)]) -> Limits {
        let mut all = Limits::default();
        limits.iter().for_each(|(figure, limit)| all.set(*figure, *limit));
        all
    }

    #[test]
    fn the_worst_threshold_counts() {
        let thresholds = |read, lost, critical| Thresholds {
            warning: limits(&[(Watched::Read, read), (Watched::Lost, lost)]),
            critical: limits(&[(Watched::Read, critical)]),
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
        let of = |judged: &Judged| (judged.figure, judged.severity, judged.limit);
        assert_eq!(
            judged.iter().map(of).collect::<Vec<_>>(),
            [(Watched::Read, Severity::Warning, Some(100.0)), (Watched::Lost, Severity::Ok, None)]
        );
    }

    #[test]
    fn a_threshold_of_a_missing_figure_is_unknown() {
        let thresholds = Thresholds { warning: limits(&[(Watched::Skew, 1000.0)]), ..Thresholds::default() };
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
        let skew = |clock: &str, low_ns, high_ns| Skew {
            clock: clock.into(),
            a: 0,
            b: 1,
            low_ns,
            high_ns,
            moving: false,
            passes: 9,
        };
        report.cpus.skew =
            vec![skew(SYSTEM, -900.0, 900.0), skew(COUNTER, 700.0, 900.0), skew(COUNTER, -900.0, -800.0)];
        assert_eq!(value(&report, Watched::Skew), Some(0.0));
        report.tsc.used_by_default = Some(true);
        assert_eq!(value(&report, Watched::Skew), Some(800.0));
    }

    #[test]
    fn a_warning_above_critical_is_a_contradiction() {
        let thresholds = |warning, critical| Thresholds {
            warning: limits(&[(Watched::Read, 1.0), (Watched::Lost, warning)]),
            critical: limits(&[(Watched::Lost, critical)]),
        };
        assert_eq!(thresholds(5.0, 5.0).contradiction(), None);
        assert_eq!(thresholds(5.1, 5.0).contradiction(), Some(Watched::Lost));
    }
}
