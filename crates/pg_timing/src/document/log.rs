//! The result of `explain --plan LOG --all`: how much of all time is the clock, and the statements that lost the most.

use super::{Bar, Block, Cell, Column, Document, Facts, Position, Row, Table, fraction, without_line_ends};
use crate::human::{digits, grouped, ms, percent, seconds};
use crate::report::{LogPlace, LogReport, LogTotal, LoggedStatement, NS_PER_MS, SkippedPlans};

pub const TITLE: &str = "Overhead of timing in a log";

/// Statements on the screen. Each takes two lines.
const MOST_STATEMENTS: usize = 10;
/// The names of facts and a space.
const NAMES: usize = 12;

const COLUMNS: &str =
    "lost: time of the overhead. share: lost / reported. corrected: 92% interval of the time without overhead";
const NESTED: &str = "Their rows are marked. The first line does not include them, because their time is also in the time of the \
    statements that executed them. If CALL or DO executed them, it is missing there: these have no plan";

pub fn document(report: &LogReport) -> Document {
    let table = |shown| Block::Table(table(&report.statements[..report.statements.len().min(shown)]));
    let facts = |shown| Block::Facts(Facts::new(NAMES, facts(report, shown)));
    let limits = Block::Part("How to read these figures, and their limits", vec![facts(usize::MAX)]);
    let blocks = vec![
        Block::Screen(vec![table(MOST_STATEMENTS), facts(MOST_STATEMENTS)]),
        Block::Page(vec![Block::Part("Statements", vec![table(usize::MAX)]), limits]),
    ];
    Document::answer(&answer(report)).with(blocks)
}

/// Returns the table of these statements. `lost` is the time of the overhead.
fn table(statements: &[LoggedStatement]) -> Table {
    let longest_ms = statements.iter().map(|statement| statement.total.reported_ms).fold(0.0, f64::max);
    let bars = Column { keys: &[("", "corrected"), ("reported", "lost")], ..Column::left("time").at(Position::Page) };
    let [lost, share, reported, corrected, runs] =
        ["lost", "share", "reported", "corrected", "runs"].map(Column::right);
    let statement = Column::left("statement").at(Position::Below);
    let columns = [lost, share, reported, corrected, runs, bars, statement];
    Table::new("statements", columns, statements.iter().map(|statement| row(statement, longest_ms)))
}

fn row(statement: &LoggedStatement, longest_ms: f64) -> Row {
    let total = &statement.total;
    let lost_ms = total.overhead_ms().estimate;
    let at = |ms: f64| fraction(ms, longest_ms);
    let end = at(total.corrected_ms.estimate);
    let bars = vec![
        Bar { class: "", start: 0.0, end },
        Bar { class: "reported", start: end, end: at(total.corrected_ms.estimate + lost_ms) },
    ];
    Row::new([
        time(lost_ms).into(),
        percent(total.overhead_share.estimate).into(),
        time(total.reported_ms).into(),
        format!("{} to {}", time(total.corrected_ms.low), time(total.corrected_ms.high)).into(),
        grouped(total.runs).into(),
        Cell { bars: vec![bars], ..Cell::default() },
        title(statement).into(),
    ])
}

/// Returns the headline: `Clock reads are 3.9% (2.5 to 5.4%) of all time in these 126 054 plans: 1.05 of 27.1 s.`
fn answer(report: &LogReport) -> String {
    let LogTotal { runs, reported_ms, clock_ms, clock_share, overhead_share, .. } = report.total;
    if runs == 0 {
        return format!(
            "The overhead of timing is not determined: all {} plans are of statements in functions, procedures or DO blocks, and the log has \
             no plan of the statements that executed them.",
            grouped(report.total.nested_runs)
        );
    }
    let plans = if runs == 1 { "this plan".into() } else { format!("these {} plans", grouped(runs)) };
    let [low, share, high, overhead] =
        [clock_share.low, clock_share.estimate, clock_share.high, overhead_share.estimate].map(percent);
    let [clock, all] = [clock_ms.estimate, reported_ms].map(time);
    format!(
        "Clock reads are {share} ({low} to {high}) of all time in {plans}: {clock} of {all}. The overhead of timing is {overhead}: \
         it includes the counting of rows and buffers."
    )
}

/// Returns a time of some or many plans.
fn time(ms: f64) -> String {
    const SECOND: f64 = 1000.0;
    const HOUR: f64 = 3_600_000.0;
    match ms {
        ms if ms < SECOND => self::ms(ms),
        ms if ms < HOUR => seconds(ms * NS_PER_MS),
        ms => format!("{} h", digits(ms / HOUR)),
    }
}

/// Returns the statement in one line. Nested statements are marked.
fn title(statement: &LoggedStatement) -> String {
    let text = match (&statement.statement, statement.query_id) {
        (Some(text), _) => without_line_ends(text),
        (None, Some(id)) => format!("(query {id})"),
        (None, None) => "(other statements, or plans without a statement)".into(),
    };
    if statement.total.nested_runs == 0 { text } else { format!("(nested) {text}") }
}

/// Returns the facts below the table. `shown` statements are in it.
fn facts(report: &LogReport, shown: usize) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(rest) = report.statements.get(shown..).filter(|rest| !rest.is_empty()) {
        let lost = time(rest.iter().map(|statement| statement.total.overhead_ms().estimate).sum());
        let more = grouped(rest.len() as u64);
        facts.push(("more", format!("{more} more statements lost {lost} together; --format json shows all")));
    }
    facts.push(("columns", COLUMNS.into()));
    if report.total.nested_runs > 0 {
        let (runs, time) = (grouped(report.total.nested_runs), time(report.nested_ms));
        facts.push(("nested", format!("plans of statements in functions and triggers: {runs}, {time}. {NESTED}")));
    }
    for SkippedPlans { plans, reason, first: LogPlace { file, line }, .. } in &report.skipped {
        let plans = if *plans == 1 { "1 plan".into() } else { format!("{} plans", grouped(*plans)) };
        facts.push(("skipped", format!("{plans}: {reason} (first: {file} line {line})")));
    }
    facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
    if report.is_incomplete {
        facts.push(("incomplete", "a part of the input was not read, so these figures are those of the rest".into()));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!([0.0123, 999.0, 12_345.0, 7_200_000.0].map(time), ["0.012 ms", "999 ms", "12.3 s", "2.00 h"]);
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
