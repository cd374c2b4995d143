//! Whether auto_explain.log_timing can be on: the calls of plan nodes per second, and what timing them costs.

use super::advice::CHEAP;
use super::counted_calls;
use super::facts::Facts;
use super::gap::NEEDS_MONITOR;
use super::not_seen;
use crate::human::{count, percent, percent_range};
use crate::report::{LogTimingAnswer, NodeCallsReport, Range};
use crate::server::settings::Server;

/// Below this rate, auto_explain times too few statements to be useful.
const LEAST_SAMPLE_RATE: f64 = 0.0001;

/// Node calls per second. A server with fewer is idle, and its window says nothing about a busy one.
const FEW_PER_S: f64 = 10.0;
/// The longest window that --window accepts, in s.
const LONGEST_WINDOW_S: f64 = 86_400.0;

/// Returns the share of statements that would be timed if auto_explain were on. A rate of 0 is no rate to keep.
fn rate(server: &Server) -> f64 {
    Some(server.sampled_plans()).filter(|rate| *rate > 0.0).unwrap_or(1.0)
}

/// What auto_explain.log_timing costs, or would cost. The table, the explanation and the JSON show this one value.
pub struct LogTiming {
    pub report: NodeCallsReport,
    pub figures: Option<Figures>,
    /// the figures may not contain all timed calls
    is_at_least: bool,
}

/// The figures at the present sample_rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub per_s: f64,
    pub share: Range,
}

/// Why the figures do not give an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doubt {
    /// node calls per second
    Idle(f64),
    /// the longest time of a running statement, in s
    Running(f64),
    HiddenSessions,
}

impl LogTiming {
    pub fn of(facts: &Facts) -> LogTiming {
        let per_s = match counted_calls::per_s(facts) {
            Ok(per_s) => per_s,
            Err(gap) => {
                let (unavailable, hint) = (Some(gap.why), Some(gap.hint));
                let report = NodeCallsReport { unavailable, hint, ..NodeCallsReport::default() };
                return LogTiming { report, figures: None, is_at_least: false };
            }
        };
        let window = counted_calls::period(facts, per_s);
        let report = NodeCallsReport { window: Some(window), ..NodeCallsReport::default() };
        let Some(needed) = window.needed_cores else { return LogTiming { report, figures: None, is_at_least: false } };
        let rate = rate(&facts.server);
        let share = counted_calls::share(facts, needed.times(rate));
        let doubt = doubt(facts, per_s);
        let answer = answer_for(share, doubt);
        let is_at_least = doubt.is_some_and(Doubt::hides_calls);
        let doubt = doubt.filter(|_| answer == LogTimingAnswer::Unknown);
        let report = NodeCallsReport {
            answer,
            doubt: doubt.map(|doubt| doubt.reason(facts)),
            hint: doubt.map(Doubt::hint),
            // No rate is known to be low enough for calls that are not in the figures.
            sample_rate: sample_rate(needed.high).filter(|_| !is_at_least),
            ..report
        };
        LogTiming { report, figures: Some(Figures { per_s: per_s * rate, share }), is_at_least }
    }

    /// Returns the answer in one sentence.
    pub fn summary(&self) -> String {
        let (Some(Figures { per_s, share }), None) = (self.figures, &self.report.doubt) else {
            return format!("not determined: {}", self.report.doubt.as_deref().unwrap_or("there are no figures"));
        };
        let calls = count(per_s.round() as u64);
        if self.is_at_least {
            let share = percent(share.low);
            return format!("no: at least {calls} node calls per second take at least {share} of a core");
        }
        let share = percent_range(share.low, Some(share.high));
        let cost = format!("{calls} node calls per second take {share} of a core");
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

/// Returns the most important reason why the count says too little.
fn doubt(facts: &Facts, per_s: f64) -> Option<Doubt> {
    let sessions = not_seen::sessions(&facts.counts);
    if sessions.running_s > facts.window_s / 2.0 {
        Some(Doubt::Running(sessions.running_s))
    } else if sessions.has_hidden {
        Some(Doubt::HiddenSessions)
    } else {
        (per_s < FEW_PER_S).then_some(Doubt::Idle(per_s))
    }
}

impl Doubt {
    /// Returns whether there can be calls that the figures do not contain.
    fn hides_calls(self) -> bool {
        matches!(self, Doubt::Running(_) | Doubt::HiddenSessions)
    }

    fn reason(self, facts: &Facts) -> String {
        let limit = limit_per_s(facts).map_or(String::new(), |limit| {
            format!("; {} node calls per second would cost 1% of a core", count(limit.round() as u64))
        });
        match self {
            Doubt::Idle(0.0) => format!("nothing ran{limit}"),
            Doubt::Idle(per_s) => format!("almost nothing ran ({per_s:.1} node calls per second){limit}"),
            Doubt::Running(seconds) => {
                format!("a statement has been running for {seconds:.0} s. It is counted only at its end{limit}")
            }
            Doubt::HiddenSessions => {
                format!("other users may run long statements, which this user may not see{limit}")
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
        }
    }
}

/// Returns the answer. A certain cost is a no, whatever else is unknown.
fn answer_for(share: Range, doubt: Option<Doubt>) -> LogTimingAnswer {
    match (share, doubt) {
        (Range { low, .. }, _) if low > CHEAP => LogTimingAnswer::No,
        (_, Some(_)) => LogTimingAnswer::Unknown,
        (Range { high, .. }, None) if high <= CHEAP => LogTimingAnswer::Yes,
        (_, None) => LogTimingAnswer::WithSampleRate,
    }
}

/// Returns the node calls per second that would cost 1% of a core, if a call of a usual node takes most.
pub fn limit_per_s(facts: &Facts) -> Option<f64> {
    let ns = counted_calls::call_ns(&facts.clocks)?.high;
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
        let answer = |low, high, doubt| answer_for(Range::between(low, high), doubt);
        assert_eq!(
            [answer(0.001, 0.01, None), answer(0.011, 0.5, None), answer(0.001, 0.5, None)],
            [LogTimingAnswer::Yes, LogTimingAnswer::No, LogTimingAnswer::WithSampleRate]
        );
        for doubt in [Doubt::Idle(0.0), Doubt::Running(9.0), Doubt::HiddenSessions] {
            assert_eq!(answer(0.0, 0.001, Some(doubt)), LogTimingAnswer::Unknown);
            assert_eq!(answer(0.5, 0.6, Some(doubt)), LogTimingAnswer::No);
        }
    }
}
