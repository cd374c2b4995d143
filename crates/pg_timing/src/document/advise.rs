//! The result of `advise`: the verdict, one row per setting, and the lines for postgresql.conf.

use super::{Block, Column, Document, Facts, Place, Row, Table, Verdict};
use crate::document::columns::columns;
use crate::human::{PLUS_MINUS, count, duration, percent_range};
use crate::report::{Action, AdviseReport, EventsAre, ReadCost, SettingAdvice};

/// Columns of the screen. A longer name has its own line, and a longer value is cut.
const NAME: usize = 26;
const VALUE: usize = 10;

const LEGEND: &str =
    "of a core: time for clock reads with the present executions and CPUs; for a setting that is off: if it were on";

pub fn document(report: &AdviseReport) -> Document {
    let mut clocks = vec![("clock", read(&report.read))];
    clocks.extend(report.node_read.as_ref().map(|node| ("", format!("plan nodes: {}", read(node)))));
    let [name, now, advice] = ["setting", "now", "advice"].map(Column::left);
    let [per_s, share] = ["per s", "of a core"].map(Column::right);
    let table = Table {
        columns: vec![name.at(Place::Name(NAME)), now, per_s, share, advice],
        rows: report.settings.iter().map(row).collect(),
        note: LEGEND.into(),
        ..Table::default()
    };
    let server =
        format!("PostgreSQL {}, {}: observed for {:.1} s", report.server_version, report.server, report.window_s);
    let mut blocks = vec![
        Block::Verdict(Verdict::from(&report.verdict)),
        Block::Text(server),
        Block::Facts(Facts::new(11, clocks)),
        Block::Table(table),
        Block::Facts(Facts::new(2, report.settings.iter().flat_map(notes))),
    ];
    blocks.extend(report.findings.iter().map(|finding| Block::Finding(finding.clone(), Vec::new())));
    let lines = lines(report);
    if !lines.is_empty() {
        let how = "for postgresql.conf (or ALTER SYSTEM SET), then SELECT pg_reload_conf():";
        blocks.extend([Block::Text(how.into()), Block::Facts(Facts::new(11, lines))]);
    }
    blocks.push(Block::Facts(Facts::new(13, report.not_seen.iter().map(|line| ("not counted", line)))));
    if report.interrupted {
        blocks.push(Block::Text(format!("Stopped after {:.1} s. The figures are from this time.", report.window_s)));
    }
    Document::default().with(blocks)
}

fn read(read: &ReadCost) -> String {
    let cost = match (read.ns, read.low_ns, read.high_ns) {
        (Some(ns), _, Some(high)) => format!("one read {} {} {}", duration(ns), PLUS_MINUS, duration(high - ns)),
        (None, Some(low), Some(high)) => format!("one read {} to {}", duration(low), duration(high)),
        _ => "read cost not determined".into(),
    };
    format!("{}: {cost}; {}", read.clock, read.how)
}

fn row(setting: &SettingAdvice) -> Row {
    let share = setting.core_share.map_or_else(|| "-".into(), |share| percent_range(share.low, share.high));
    Row::new([setting.name.clone(), value(setting), events(setting), share, advice(setting).into()])
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

/// Returns what the table does not show: why an advice was not determined, advice without figures, and the answer about log_timing.
fn notes(setting: &SettingAdvice) -> Vec<(&'static str, String)> {
    let is_clear = matches!(setting.advice, Action::Keep | Action::TurnOn | Action::TurnOff);
    let has_more = is_cut(setting) || setting.name == "auto_explain.log_timing";
    if is_clear && !has_more && setting.core_share.is_some() {
        return Vec::new();
    }
    let text = setting.summary.strip_prefix("not determined: ").unwrap_or(&setting.summary);
    let value = if is_cut(setting) { format!(" = {}", setting.value) } else { String::new() };
    let note = ("-", format!("{}{value}: {text}", setting.name));
    [note].into_iter().chain(setting.hint.iter().map(|hint| ("  hint:", hint.clone()))).collect()
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

/// Returns the lines for postgresql.conf, each with its undo.
fn lines(report: &AdviseReport) -> Vec<(&'static str, String)> {
    let actions = [(Action::TurnOff, "turn off"), (Action::SampleLess, "sample"), (Action::TurnOn, "turn on")];
    let of = |(action, label): (Action, &'static str)| {
        let settings = report.settings.iter().filter(move |setting| setting.advice == action);
        settings.filter_map(move |setting| {
            let (line, undo) = (setting.line.as_ref()?, setting.undo.as_ref()?);
            Some([(label, line.clone()), ("undo", undo.clone())])
        })
    };
    actions.into_iter().flat_map(of).flatten().collect()
}
