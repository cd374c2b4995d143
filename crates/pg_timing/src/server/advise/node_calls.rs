//! Whether auto_explain.log_timing can be on: the calls of plan nodes per second, and what timing them costs.

use super::advice::CHEAP;
use super::counted_calls;
use super::facts::Facts;
use super::gap::NEEDS_MONITOR;
use crate::error::Error;
use crate::human::{count, count_range, percent, percent_range};
use crate::report::{CallsAre, LogTimingAnswer, NodeCallsReport, PeriodCalls, Range};
use crate::server::planned::{Limits, TimingCost, Workload, unrecorded};
use crate::server::settings::Server;

/// Below this rate, auto_explain times too few statements to be useful.
const LEAST_SAMPLE_RATE: f64 = 0.0001;

/// Node calls per second. A server with fewer is idle, and its window says nothing about a busy one.
const FEW_PER_S: f64 = 10.0;
/// The longest window that --window accepts, in s.
const LONGEST_WINDOW_S: f64 = 86_400.0;
/// If statements without a plan take more than this share of the execution time, the range says little.
const MOSTLY_UNKNOWN: f64 = 0.5;

/// Returns the share of statements that would be timed if auto_explain were on. A rate of 0 is no rate to keep.
pub fn rate(server: &Server) -> f64 {
    Some(server.sampled_plans()).filter(|rate| *rate > 0.0).unwrap_or(1.0)
}

/// What auto_explain.log_timing costs, or would cost. The table, the explanation and the JSON show this one value.
pub struct LogTiming {
    pub report: NodeCallsReport,
    pub figures: Option<Figures>,
    /// the figures may not contain all timed calls
    is_at_least: bool,
}

/// The figures at the present sample_rate, of the period in which timing costs more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub calls_are: CallsAre,
    pub per_s: Range,
    pub share: Range,
}

/// Why the figures do not give an answer.
#[derive(Clone, Debug, PartialEq)]
enum Doubt {
    /// executions per second, if they are known
    Idle(Option<f64>),
    /// the longest time of a running statement, in s
    Running(f64),
    HiddenSessions,
    /// why pg_stat_statements does not record all statements that auto_explain times
    Unrecorded(Error),
    /// share of the execution time in statements that were not planned
    Unplanned(f64),
}

impl LogTiming {
    pub fn of(facts: &Facts) -> LogTiming {
        let cost = TimingCost::of(&facts.clocks);
        let workload = facts.workload.as_ref();
        let estimated = workload.ok().and_then(|workload| workload.window(cost.as_ref()));
        let limits = workload.map_or_else(|_| limits_without_statements(facts), Workload::window_limits);
        let counted = counted_calls::window(facts, estimated.as_ref(), limits, cost.as_ref());
        let report = match workload {
            Ok(workload) => NodeCallsReport {
                since_reset: workload.since_last_reset(cost.as_ref()),
                planned: workload.planned(),
                unknown_time_share: workload.unknown_time_share(),
                skipped: workload.skipped(),
                ..NodeCallsReport::default()
            },
            // Exact counts do not need the statements.
            Err(error) => NodeCallsReport {
                unavailable: counted.is_none().then(|| error.what.clone()),
                hint: Some(error.hint.clone()).filter(|hint| counted.is_none() && !hint.is_empty()),
                ..NodeCallsReport::default()
            },
        };
        let report = NodeCallsReport { window: counted.or(estimated), ..report };
        let rate = rate(&facts.server);
        let at_rate = |period: PeriodCalls, limits: Limits| {
            let needed = period.needed_cores?.times(rate);
            Some((
                needed,
                Figures { calls_are: period.calls_are, per_s: period.per_s.times(rate), share: limits.share(needed) },
            ))
        };
        // An exact count does not need a second, estimated period.
        let since_reset = report.since_reset.filter(|_| counted.is_none()).zip(workload.ok());
        let since_reset = since_reset.and_then(|(period, workload)| at_rate(period, workload.limits_since_reset()));
        let periods = report.window.and_then(|period| at_rate(period, limits)).into_iter().chain(since_reset);
        let Some((needed, figures)) = periods.max_by(|(a, _), (b, _)| a.high.total_cmp(&b.high)) else {
            return LogTiming { report, figures: None, is_at_least: false };
        };
        let doubt = doubt(facts, &report);
        let answer = answer_for(figures.share, doubt.as_ref());
        let is_at_least = doubt.as_ref().is_some_and(Doubt::hides_calls);
        let doubt = doubt.filter(|_| answer == LogTimingAnswer::Unknown);
        let report = NodeCallsReport {
            answer,
            doubt: doubt.as_ref().map(|doubt| doubt.reason(facts)),
            hint: doubt.map(Doubt::hint),
            // No rate is known to be low enough for calls that are not in the figures.
            sample_rate: sample_rate(needed.high / rate).filter(|_| !is_at_least),
            ..report
        };
        LogTiming { report, figures: Some(figures), is_at_least }
    }

    /// Returns the answer in one sentence.
    pub fn summary(&self) -> String {
        let (Some(Figures { per_s, share, .. }), None) = (self.figures, &self.report.doubt) else {
            return format!("not determined: {}", self.report.doubt.as_deref().unwrap_or("there are no figures"));
        };
        if self.is_at_least {
            let (calls, share) = (count(per_s.low.round() as u64), percent(share.low));
            return format!("no: at least {calls} node calls per second take at least {share} of a core");
        }
        let cost = format!(
            "{} node calls per second take {} of a core",
            count_range(per_s.low, per_s.high),
            percent_range(share.low, Some(share.high))
        );
        let with_rate = self.report.sample_rate.map_or("also with the lowest useful sample_rate".to_string(), |rate| {
            format!("with auto_explain.sample_rate = {} at most 1%", decimal(rate))
        });
        match self.report.answer {
            LogTimingAnswer::Yes => format!("yes: {cost}"),
            LogTimingAnswer::No => format!("no: {cost}; {with_rate}"),
            _ => format!("no, or only with a lower sample_rate: {cost}; {with_rate}"),
        }
    }
}

/// Returns what limits the time of clock reads if the statements are unknown.
fn limits_without_statements(facts: &Facts) -> Limits {
    Limits { cpus: facts.clocks.cpus(), is_timed: facts.server.reads_clock_for_plans(), ..Limits::default() }
}

/// Returns the most important reason why the figures say too little.
fn doubt(facts: &Facts, report: &NodeCallsReport) -> Option<Doubt> {
    let (activity, window) = (&facts.activity, report.window);
    let unknown = report.unknown_time_share;
    let longest = activity.longer_than_half(facts.window_s).reduce(f64::max);
    let idle = window.filter(|window| window.per_s.high < FEW_PER_S).map(|window| Doubt::Idle(window.executions_per_s));
    let hidden = (!facts.server.monitor && activity.has_hidden).then_some(Doubt::HiddenSessions);
    let is_estimated = window.is_none_or(|window| window.calls_are == CallsAre::Estimated);
    let unplanned = (is_estimated && unknown > MOSTLY_UNKNOWN).then_some(Doubt::Unplanned(unknown));
    let unrecorded = unrecorded(&facts.server).filter(|_| is_estimated).map(Doubt::Unrecorded);
    longest.map(Doubt::Running).or(hidden).or(unrecorded).or(idle).or(unplanned)
}

impl Doubt {
    /// Returns whether there can be calls that the figures do not contain.
    fn hides_calls(&self) -> bool {
        matches!(self, Doubt::Running(_) | Doubt::HiddenSessions | Doubt::Unrecorded(_))
    }

    fn reason(&self, facts: &Facts) -> String {
        let limit = limit_per_s(facts).map_or(String::new(), |limit| {
            format!("; {} node calls per second would cost 1% of a core", count(limit.round() as u64))
        });
        match self {
            Doubt::Idle(Some(0.0)) => format!("nothing ran{limit}"),
            Doubt::Idle(None) => format!("almost nothing ran{limit}"),
            Doubt::Idle(Some(per_s)) => format!("almost nothing ran ({per_s:.1} executions per second){limit}"),
            Doubt::Running(seconds) => {
                format!("a statement has been running for {seconds:.0} s. It is counted only at its end{limit}")
            }
            Doubt::HiddenSessions => {
                format!("other users may run long statements, which this user may not see{limit}")
            }
            Doubt::Unrecorded(error) => format!("{}{limit}", error.what),
            Doubt::Unplanned(share) => {
                format!("statements that were not planned take {} of the execution time{limit}", percent(*share))
            }
        }
    }

    fn hint(self) -> String {
        match self {
            Doubt::Idle(_) => "run it while the server is busy: pg_timing advise --window 60".into(),
            Doubt::Running(seconds) => {
                // So long that a statement of the same length is likely to begin and end in it.
                let window = (2.0 * seconds).ceil().clamp(60.0, LONGEST_WINDOW_S);
                format!("use a window in which the statement ends: pg_timing advise --window {window:.0}")
            }
            Doubt::HiddenSessions => NEEDS_MONITOR.into(),
            Doubt::Unrecorded(error) => error.hint,
            Doubt::Unplanned(_) => {
                "connect as the role, and to the database, of these statements (pg_timing advise -U ROLE -d DATABASE). \
                 Statements within CALL, DO and cursors can only be counted: load pg_fast_timing with shared_preload_libraries, \
                 and set pg_fast_timing.count_calls"
                    .into()
            }
        }
    }
}

/// Returns the answer. A certain cost is a no, whatever else is unknown. A wide range that comes from statements without a plan
/// gives no answer.
fn answer_for(share: Range, doubt: Option<&Doubt>) -> LogTimingAnswer {
    match (share, doubt) {
        (Range { low, .. }, _) if low > CHEAP => LogTimingAnswer::No,
        (_, Some(Doubt::Idle(_) | Doubt::Running(_) | Doubt::HiddenSessions | Doubt::Unrecorded(_))) => {
            LogTimingAnswer::Unknown
        }
        (Range { high, .. }, _) if high <= CHEAP => LogTimingAnswer::Yes,
        (_, Some(Doubt::Unplanned(_))) => LogTimingAnswer::Unknown,
        (_, None) => LogTimingAnswer::WithSampleRate,
    }
}

/// Returns the node calls per second that would cost 1% of a core, if a call of a usual node takes most.
pub fn limit_per_s(facts: &Facts) -> Option<f64> {
    let ns = TimingCost::of(&facts.clocks)?.usual_clock_ns().high;
    (ns > 0.0).then(|| CHEAP * 1e9 / ns)
}

/// Returns the rate with which at most 1% of a core is used, rounded down to one digit.
fn sample_rate(share: f64) -> Option<f64> {
    if share <= CHEAP {
        return None;
    }
    let rate = CHEAP / share;
    let unit = 10f64.powf(rate.log10().floor());
    // Without the small addition, an error of the division could lower a rate that has one digit.
    let rounded = (rate / unit + 1e-9).floor() * unit;
    (rounded >= LEAST_SAMPLE_RATE).then_some(rounded)
}

pub fn decimal(rate: f64) -> String {
    format!("{rate:.4}").trim_end_matches('0').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_rate_is_rounded_down() {
        for (share, rate) in [(0.01, None), (0.02, Some(0.5)), (0.1, Some(0.1)), (0.27, Some(0.03)), (900.0, None)] {
            let found = sample_rate(share);
            assert!(found == rate || (found.unwrap() - rate.unwrap()).abs() < 1e-12, "{share}: {found:?}");
        }
        assert_eq!([decimal(0.5), decimal(0.03), decimal(0.0001)], ["0.5", "0.03", "0.0001"]);
    }

    #[test]
    fn the_answer_depends_on_both_bounds() {
        let answer = |low, high, doubt: Option<Doubt>| answer_for(Range::between(low, high), doubt.as_ref());
        assert_eq!(
            [answer(0.001, 0.01, None), answer(0.011, 0.5, None), answer(0.001, 0.5, None)],
            [LogTimingAnswer::Yes, LogTimingAnswer::No, LogTimingAnswer::WithSampleRate]
        );
        let unplanned = || Some(Doubt::Unplanned(0.6));
        assert_eq!(answer(0.0, 0.5, unplanned()), LogTimingAnswer::Unknown);
        assert_eq!(answer(0.0, 0.001, unplanned()), LogTimingAnswer::Yes);
        let unrecorded = Doubt::Unrecorded(Error::new("", ""));
        for doubt in [Doubt::Idle(Some(0.0)), Doubt::Idle(None), Doubt::Running(9.0), Doubt::HiddenSessions, unrecorded]
        {
            assert_eq!(answer(0.0, 0.001, Some(doubt.clone())), LogTimingAnswer::Unknown);
            assert_eq!(answer(0.5, 0.6, Some(doubt)), LogTimingAnswer::No);
        }
    }
}
