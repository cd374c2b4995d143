//! The screen of `explain --top`: two lines per statement, the figures and the text.

use super::advise::read;
use super::table::{Align, Table};
use super::{BOLD, DIM, WIDTH, wrapped};
use crate::render::columns::cut;
use crate::render::top_text::{
    added, executions, headline, legend, mean, node_calls, one_line, period, share, skipped,
};
use crate::report::{TopReport, TopStatement};

const COLUMNS: [&str; 5] = ["executions", "mean", "node calls", "timing adds", "share"];

pub fn text(report: &TopReport) -> String {
    let mut out = String::new();
    let mut line = |first: &str, text: &str| wrapped(&mut out, first, text);
    line("", &headline(report));
    line("clock      ", &read(&report.read));
    line("counted    ", &period(report));
    out.push('\n');
    if report.statements.is_empty() {
        out.push_str("No statement could be planned.\n");
    } else {
        let rows: Vec<[String; 5]> = report.statements.iter().map(cells).collect();
        let table = Table::new([Align::Right; 5], &COLUMNS, &rows);
        out.push_str(&format!("{BOLD}{}{BOLD:#}\n", table.line(&COLUMNS)));
        for (statement, row) in report.statements.iter().zip(&rows) {
            out.push_str(&table.line(row));
            out.push_str(&format!("\n    {}\n", cut(&one_line(statement), WIDTH - 4)));
        }
        let mut words = String::new();
        wrapped(&mut words, "", legend());
        out.push_str(&format!("{DIM}{}{DIM:#}\n", words.trim_end()));
    }
    if !report.skipped.is_empty() || report.unrecorded.is_some() {
        out.push('\n');
    }
    for entry in &report.skipped {
        wrapped(&mut out, "skipped  ", &skipped(entry));
    }
    if let Some(why) = &report.unrecorded {
        wrapped(&mut out, "missing  ", why);
    }
    if report.interrupted {
        out.push_str("Stopped early: some statements are missing.\n");
    }
    out
}

fn cells(statement: &TopStatement) -> [String; 5] {
    [executions(statement), mean(statement), node_calls(statement), added(statement), share(statement)]
}
