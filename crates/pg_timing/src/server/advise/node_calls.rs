//! Whether auto_explain.log_timing can be on: the calls of plan nodes per second, and what timing them costs.

use super::advice::CHEAP;
use super::facts::Facts;
use crate::human::{count, percent};
use crate::report::{LogTimingAnswer, NodeCallsReport, PeriodCalls, Range};
use crate::server::planned::TimingCost;
use crate::server::settings::Server;

/// Below this rate, auto_explain times too few statements to be useful.
const LEAST_SAMPLE_RATE: f64 = 0.0001;

/// If statements without a plan take more than this share of the execution time, the range says little.
const MOSTLY_UNKNOWN: f64 = 0.5;

/// Returns the share of statements that are timed.
pub fn sampled(server: &Server) -> f64 {
    server.number_in("auto_explain.sample_rate").unwrap_or(1.0)
}

/// Returns the share of statements that would be timed if auto_explain were on. A rate of 0 is no rate to keep.
pub fn rate(server: &Server) -> f64 {
    Some(sampled(server)).filter(|rate| *rate > 0.0).unwrap_or(1.0)
}

/// Returns the calls with the answer.
pub fn report(facts: &Facts) -> NodeCallsReport {
    let workload = match &facts.workload {
        Ok(workload) => workload,
        Err(error) => {
            return NodeCallsReport {
                unavailable: Some(error.what.clone()),
                hint: Some(error.hint.clone()).filter(|hint| !hint.is_empty()),
                ..NodeCallsReport::default()
            };
        }
    };
    let cost = TimingCost::of(&facts.clocks);
    let mut report = NodeCallsReport {
        window: workload.window(cost.as_ref()),
        since_reset: workload.since_last_reset(cost.as_ref()),
        planned: workload.planned(),
        unknown_time_share: workload.unknown_time_share(),
        skipped: workload.skipped(),
        ..NodeCallsReport::default()
    };
    if let Some(share) = busier(&report).and_then(|period| period.core_share) {
        report.answer = answer_for(share.times(rate(&facts.server)), report.unknown_time_share);
        report.sample_rate = sample_rate(share.high);
    }
    report
}

/// Returns the period in which timing costs more.
pub fn busier(report: &NodeCallsReport) -> Option<PeriodCalls> {
    let cost = |period: &PeriodCalls| period.core_share.map_or(period.per_s.high, |share| share.high);
    report.window.into_iter().chain(report.since_reset).max_by(|a, b| cost(a).total_cmp(&cost(b)))
}

/// Returns the answer. A wide range that comes from statements without a plan gives none.
fn answer_for(share: Range, unknown_time_share: f64) -> LogTimingAnswer {
    match share {
        Range { high, .. } if high <= CHEAP => LogTimingAnswer::Yes,
        Range { low, .. } if low > CHEAP => LogTimingAnswer::No,
        _ if unknown_time_share > MOSTLY_UNKNOWN => LogTimingAnswer::Unknown,
        _ => LogTimingAnswer::WithSampleRate,
    }
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

/// Returns the answer in one sentence. `sample_rate` is the present one.
pub fn answer(report: &NodeCallsReport, sample_rate: f64) -> String {
    let Some(PeriodCalls { per_s, core_share: Some(share), .. }) = busier(report) else {
        return "not determined".into();
    };
    let calls = between(per_s.times(sample_rate), |calls| count(calls.round() as u64));
    let cost = format!("{calls} node calls per second take {} of a core", between(share.times(sample_rate), percent));
    let with_rate = report.sample_rate.map_or("also with the lowest useful sample_rate".to_string(), |rate| {
        format!("with auto_explain.sample_rate = {} at most 1%", decimal(rate))
    });
    match answer_for(share.times(sample_rate), report.unknown_time_share) {
        LogTimingAnswer::Unknown => format!(
            "not determined: statements that were not planned take {} of the execution time; {cost}",
            percent(report.unknown_time_share)
        ),
        LogTimingAnswer::Yes => format!("yes: {cost}"),
        LogTimingAnswer::No => format!("no: {cost}; {with_rate}"),
        _ => format!("no, or only with a lower sample_rate: {cost}; {with_rate}"),
    }
}

fn decimal(rate: f64) -> String {
    format!("{rate:.4}").trim_end_matches('0').to_string()
}

fn between(range: Range, text: impl Fn(f64) -> String) -> String {
    let (low, high) = (text(range.low), text(range.high));
    if low == high { low } else { format!("{low} to {high}") }
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
        let answer = |low, high| answer_for(Range::between(low, high), 0.4);
        assert_eq!(
            [answer(0.001, 0.01), answer(0.011, 0.5), answer(0.001, 0.5)],
            [LogTimingAnswer::Yes, LogTimingAnswer::No, LogTimingAnswer::WithSampleRate]
        );
        assert_eq!(answer_for(Range::between(0.0, 0.5), 0.6), LogTimingAnswer::Unknown);
    }
}
