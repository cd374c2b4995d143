//! The screen of `explain --plan LOG --all`: how much of all time is the clock, and the statements that lost the most.

use super::BOLD;
use super::explain::fact;
use super::table::{Align, Table};
use super::{WIDTH, wrapped};
use crate::human::{grouped, percent};
use crate::render::columns::cut;
use crate::render::explain_text::digits;
use crate::render::log_text::{self, answer, ranks, time};
use crate::report::{LogReport, LoggedStatement};

/// Statements on the screen. Each takes two lines.
const MAX_STATEMENTS: usize = 10;

pub fn text(report: &LogReport) -> String {
    let mut out = String::new();
    wrapped(&mut out, "", &answer(report));
    out.push('\n');
    out.push_str(&table(report));
    for (name, text) in log_text::facts(report, MAX_STATEMENTS) {
        fact(&mut out, name, &text);
    }
    out
}

/// The names of the columns. `lost` is the time of the overhead.
const COLUMNS: [&str; 6] = ["lost", "share", "reported", "corrected", "runs", "ranks"];

fn table(report: &LogReport) -> String {
    let shown: Vec<&LoggedStatement> = report.statements.iter().take(MAX_STATEMENTS).collect();
    let rows: Vec<[String; 6]> = shown.iter().map(|statement| cells(statement)).collect();
    let table = Table::new([Align::Right; 6], &COLUMNS, &rows);
    let mut out = format!("{BOLD}{}{BOLD:#}\n", table.line(&COLUMNS));
    for (statement, row) in shown.into_iter().zip(&rows) {
        out.push_str(&table.line(row));
        out.push('\n');
        out.push_str(&title(statement));
        out.push('\n');
    }
    out + "\n"
}

fn cells(statement: &LoggedStatement) -> [String; 6] {
    let total = &statement.total;
    [
        time(total.overhead_ms().estimate),
        percent_of(total.overhead_share.estimate),
        time(total.reported_ms),
        log_text::corrected(total),
        grouped(total.runs),
        ranks(statement),
    ]
}

fn percent_of(share: f64) -> String {
    if share < 0.1 { percent(share) } else { format!("{}%", digits(100.0 * share).trim_end_matches(".0")) }
}

/// Returns one line with the statement.
fn title(statement: &LoggedStatement) -> String {
    const INDENT: &str = "    ";
    format!("{INDENT}{}", cut(&log_text::title(statement), WIDTH - INDENT.len()))
}
