//! Sentences and figures about all plans of a log, for the screen and for the page.

use super::explain_text::{digits, ms};
use super::plus_minus::plus_minus;
use crate::human::{grouped, percent, seconds};
use crate::report::{LogReport, LogTotal, LoggedStatement, NS_PER_MS, Range};

/// Returns the headline: `Clock reads are 3.9% (2.5 to 5.4%) of all time in these 126 054 plans: 1.05 of 27.1 s.`
pub fn answer(report: &LogReport) -> String {
    let LogTotal { runs, reported_ms, clock_ms, clock_share, overhead_share, .. } = report.total;
    let plans = if runs == 1 { "this plan".into() } else { format!("these {} plans", grouped(runs)) };
    format!(
        "Clock reads are {} ({}) of all time in {plans}: {} of {}. The overhead of timing is {}: it includes the counting of \
         rows and buffers.",
        percent(clock_share.estimate),
        shares(clock_share),
        time(clock_ms.estimate),
        time(reported_ms),
        percent(overhead_share.estimate),
    )
}

/// Returns `2.5% to 5.4%`.
fn shares(share: Range) -> String {
    format!("{} to {}", percent(share.low), percent(share.high))
}

/// Returns a time of some or many plans.
pub fn time(ms: f64) -> String {
    const SECOND: f64 = 1000.0;
    const HOUR: f64 = 3_600_000.0;
    match ms {
        ms if ms < SECOND => self::ms(ms),
        ms if ms < HOUR => seconds(ms * NS_PER_MS),
        ms => format!("{} h", digits(ms / HOUR)),
    }
}

/// Returns the corrected time with its interval: `9.79 ms +-31%`, or `6.71 to 11.2 ms` if its bounds are not at the same
/// distance from the estimate.
pub fn corrected(total: &LogTotal) -> String {
    let Range { low, estimate, high } = total.corrected_ms;
    if high == 0.0 {
        return time(0.0);
    }
    let [below, above] = [estimate - low, high - estimate].map(|margin| margin / estimate);
    // `percent` shows whole numbers from 10% on, and one decimal below.
    let rounding = if below.max(above) < 0.1 { 0.001 } else { 0.01 };
    match low > 0.0 && (below - above).abs() <= rounding {
        true => format!("{} {}{}", time(estimate), plus_minus(), relative_margin(total.corrected_ms)),
        false => interval(low, high),
    }
}

/// Returns two times: `6.71 to 11.2 ms`, or `980 ms to 1.2 s`.
fn interval(low: f64, high: f64) -> String {
    let (low, high) = (time(low), time(high));
    let unit = |time: &str| time.rsplit_once(' ').map(|(_, unit)| unit.to_string());
    let low = match low.rsplit_once(' ') {
        Some((number, _)) if number == "0" || unit(&low) == unit(&high) => number.to_string(),
        _ => low,
    };
    format!("{low} to {high}")
}

/// Returns the half width as a percentage of the estimate.
fn relative_margin(range: Range) -> String {
    match range.estimate > 0.0 {
        true => percent((range.half_width() / range.estimate * 1000.0).round() / 1000.0),
        false => "0%".into(),
    }
}

/// Returns how many nodes have another rank without timing, of how many nodes: `2 of 7`.
pub fn ranks(statement: &LoggedStatement) -> String {
    match statement.nodes {
        0 | 1 => "-".into(),
        nodes => format!("{} of {nodes}", statement.rank_changes.len()),
    }
}

/// Returns the statement in one line. Nested statements are marked.
pub fn title(statement: &LoggedStatement) -> String {
    let text = match (&statement.statement, statement.query_id) {
        (Some(text), _) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        (None, Some(id)) => format!("(query {id})"),
        (None, None) => "(other statements, or plans without a statement)".into(),
    };
    let nested_runs = statement.total.nested_runs;
    if nested_runs == 0 { text } else { format!("(nested) {text}") }
}

/// Returns the facts below the table. `shown` statements are in it.
pub fn facts(report: &LogReport, shown: usize) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(rest) = report.statements.get(shown..).filter(|rest| !rest.is_empty()) {
        let lost: f64 = rest.iter().map(|statement| statement.total.overhead_ms().estimate).sum();
        facts.push((
            "more",
            format!(
                "{} more statements lost {} together; --format json shows all",
                grouped(rest.len() as u64),
                time(lost)
            ),
        ));
    }
    facts.push((
        "columns",
        "lost: time of the overhead. share: lost / reported. corrected: time without overhead, with its 92% interval. \
         ranks: nodes whose rank by self time changes without timing, if the change is larger than the errors"
            .into(),
    ));
    if report.total.nested_runs > 0 {
        facts.push((
            "nested",
            format!(
                "plans of statements in functions and triggers: {}, {}. Their rows are marked. The first line does not include \
                 them, because their time is also in the time of the statements that executed them",
                grouped(report.total.nested_runs),
                time(report.nested_ms)
            ),
        ));
    }
    if let Some(change) =
        report.statements.iter().find_map(|statement| statement.rank_changes.first().map(|c| (statement, c)))
    {
        facts.push(rank_example(change.0, change.1));
    }
    for skipped in &report.skipped {
        let plans = if skipped.plans == 1 { "1 plan".into() } else { format!("{} plans", grouped(skipped.plans)) };
        facts.push((
            "skipped",
            format!("{plans}: {} (first: {} line {})", skipped.reason, skipped.first.file, skipped.first.line),
        ));
    }
    facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
    if report.is_incomplete {
        facts.push(("incomplete", "a part of the input was not read, so these figures are those of the rest".into()));
    }
    facts
}

fn rank_example(statement: &LoggedStatement, change: &crate::report::RankChange) -> (&'static str, String) {
    let where_it_is = format!("{} line {}", statement.slowest.file, statement.slowest.line);
    (
        "ranks",
        format!(
            "for example, {} has rank {} by its reported self time ({}) and rank {} without timing ({}). Its slowest plan: \
             {where_it_is}",
            change.title,
            change.rank,
            time(change.reported_self_ms),
            change.corrected_rank,
            time(change.corrected_self_ms),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!([0.0123, 999.0, 12_345.0, 7_200_000.0].map(time), ["0.012 ms", "999 ms", "12.3 s", "2.00 h"]);
    }

    #[test]
    fn an_interval_that_is_not_symmetric_shows_its_bounds() {
        let cell = |low: f64, estimate: f64, high: f64| {
            corrected(&LogTotal { corrected_ms: Range { low, estimate, high }, ..LogTotal::default() })
        };
        assert_eq!(cell(6.9, 10.0, 13.1), "10.0 ms +-31%");
        assert_eq!(cell(6.86, 10.0, 13.16), "10.0 ms +-32%");
        assert_eq!(cell(9.004, 10.0, 10.99), "10.0 ms +-10%");
        assert_eq!(cell(6.0, 10.0, 13.1), "6.00 to 13.1 ms");
        assert_eq!(cell(980.0, 1100.0, 1200.0), "980 ms to 1.2 s");
        assert_eq!((cell(0.0, 1.0, 2.0), cell(0.0, 0.0, 0.0)), ("0 to 2.00 ms".into(), "0 ms".into()));
    }

    #[test]
    fn nested_statements_are_marked() {
        let row = |nested_runs| {
            let total = LogTotal { runs: 2000, nested_runs, ..LogTotal::default() };
            title(&LoggedStatement { statement: Some("select  1".into()), total, ..LoggedStatement::default() })
        };
        assert_eq!([0, 2000].map(row), ["select 1", "(nested) select 1"]);
    }
}
