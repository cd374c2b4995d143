//! The screen of `advise`: the verdict, one line per setting, and the lines for postgresql.conf.

use super::lines::verdict;
use super::table::{Align, Table};
use super::{BOLD, DIM, findings, wrapped};
use crate::human::{count, duration, percent_range};
use crate::render::columns::columns;
use crate::render::plus_minus::plus_minus;
use crate::report::{Action, AdviseReport, EventsAre, ReadCost, SettingAdvice};

/// Widths of the columns. A longer name has its own line, and a longer value is cut.
const NAME: usize = 26;
const VALUE: usize = 10;

pub fn text(report: &AdviseReport) -> String {
    let mut rest = String::new();
    for line in &report.not_seen {
        wrapped(&mut rest, "not counted  ", line);
    }
    if report.interrupted {
        rest.push_str(&format!("Stopped after {:.1} s. The figures are from this time.\n", report.window_s));
    }
    let mut blocks = vec![verdict(&report.verdict), headline(report), table(report), notes(report)];
    blocks.extend(findings::blocks(&report.findings));
    blocks.extend([lines(report), rest]);
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

fn headline(report: &AdviseReport) -> String {
    let mut out = format!(
        "{BOLD}PostgreSQL {}{BOLD:#}, {}: observed for {:.1} s\n",
        report.server_version, report.server, report.window_s
    );
    wrapped(&mut out, "clock      ", &read(&report.read));
    if let Some(node) = &report.node_read {
        wrapped(&mut out, "           ", &format!("plan nodes: {}", read(node)));
    }
    out
}

pub fn read(read: &ReadCost) -> String {
    let cost = match (read.ns, read.low_ns, read.high_ns) {
        (Some(ns), _, Some(high)) => format!("one read {} {} {}", duration(ns), plus_minus(), duration(high - ns)),
        (None, Some(low), Some(high)) => format!("one read {} to {}", duration(low), duration(high)),
        _ => "read cost not determined".into(),
    };
    format!("{}: {cost}; {}", read.clock, read.how)
}

pub(in crate::render) const COLUMNS: [&str; 5] = ["setting", "now", "per s", "of a core", "advice"];
const ALIGNED: [Align; 5] = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Left];

fn table(report: &AdviseReport) -> String {
    let rows: Vec<[String; 5]> = report.settings.iter().map(cells).collect();
    let table = table_of(&rows);
    let mut out = format!("{BOLD}{}{BOLD:#}\n", table.line(&COLUMNS));
    for (setting, row) in report.settings.iter().zip(&rows) {
        if row[0].is_empty() {
            out.push_str(&format!("{}\n", setting.name));
        }
        out.push_str(&table.line(row));
        out.push('\n');
    }
    let mut legend = String::new();
    wrapped(&mut legend, "", LEGEND);
    out + &format!("{DIM}{}{DIM:#}\n", legend.trim_end())
}

const LEGEND: &str =
    "of a core: time for clock reads with the present executions and CPUs; for a setting that is off: if it were on";

/// Returns the widths of the table of settings.
pub(in crate::render) fn table_of(rows: &[[String; 5]]) -> Table<5> {
    Table::new(ALIGNED, &COLUMNS, rows)
}

/// Returns a row. The name is empty if it needs its own line.
fn cells(setting: &SettingAdvice) -> [String; 5] {
    let mut cells = full_cells(setting);
    if columns(&cells[0]) > NAME {
        cells[0].clear();
    }
    cells
}

/// Returns a row with its name.
pub(in crate::render) fn full_cells(setting: &SettingAdvice) -> [String; 5] {
    let share = setting.core_share.map_or_else(|| "-".into(), |share| percent_range(share.low, share.high));
    [setting.name.clone(), value(setting), events(setting), share, advice(setting).into()]
}

/// Returns the value without the part in parentheses, if it is too long. A note has the whole value.
fn value(setting: &SettingAdvice) -> String {
    match is_cut(setting) {
        true => setting.value.split(" (").next().unwrap_or_default().chars().take(VALUE).collect(),
        false => setting.value.clone(),
    }
}

fn is_cut(setting: &SettingAdvice) -> bool {
    columns(&setting.value) > VALUE
}

fn advice(setting: &SettingAdvice) -> &'static str {
    match setting.advice {
        Action::Keep => "leave it on",
        // A library needs an installation, which the notes describe.
        Action::TurnOn if setting.line.is_none() => "see below",
        Action::TurnOn => "can be on",
        Action::TurnOff => "turn it off",
        Action::None if setting.core_share.is_some() && !setting.on => "leave it off",
        Action::None => "nothing to do",
        Action::SampleLess => "sample less",
        Action::Unknown => "not determined",
    }
}

/// Renders what the table does not show: why an advice was not determined, advice without figures, a lower sample_rate, and
/// advice for a busy server where the observed server was idle.
fn notes(report: &AdviseReport) -> String {
    let mut out = String::new();
    for setting in &report.settings {
        let is_clear = matches!(setting.advice, Action::Keep | Action::TurnOn | Action::TurnOff);
        let has_rate = setting.name == "auto_explain.log_timing" && report.node_calls.sample_rate.is_some();
        if !is_clear || has_rate || setting.core_share.is_none() || setting.extrapolated || is_cut(setting) {
            let text = setting.summary.strip_prefix("not determined: ").unwrap_or(&setting.summary);
            let value = if is_cut(setting) { format!(" = {}", setting.value) } else { String::new() };
            wrapped(&mut out, "- ", &format!("{}{value}: {text}", setting.name));
            if let Some(hint) = &setting.hint {
                wrapped(&mut out, "  hint: ", hint);
            }
        }
    }
    out
}

fn events(setting: &SettingAdvice) -> String {
    match (setting.events_per_s, setting.events_are) {
        (Some(per_s), EventsAre::AtLeast) => format!(">= {}", number(per_s)),
        (Some(per_s), _) => number(per_s),
        (None, _) => "-".into(),
    }
}

fn number(per_s: f64) -> String {
    match per_s {
        n if n > 0.0 && n < 9.95 => format!("{n:.1}"),
        n => count(n.round() as u64),
    }
}

const LINES: [(Action, &str); 3] =
    [(Action::TurnOff, "turn off   "), (Action::SampleLess, "sample     "), (Action::TurnOn, "turn on    ")];

/// Renders the lines for postgresql.conf, each with its undo.
fn lines(report: &AdviseReport) -> String {
    let mut out = String::new();
    for (action, label) in LINES {
        for setting in report.settings.iter().filter(|setting| setting.advice == action) {
            let (Some(line), Some(undo)) = (&setting.line, &setting.undo) else { continue };
            out.push_str(&format!("{label}{line}    undo: {undo}\n"));
        }
    }
    match out.is_empty() {
        true => out,
        false => format!("for postgresql.conf (or ALTER SYSTEM SET), then SELECT pg_reload_conf():\n{out}"),
    }
}
