//! The result of `advise`: the verdict, one row per setting, and the lines for postgresql.conf.

use super::{Block, Column, Document, Facts, Position, Row, Table};
use crate::human::{PLUS_MINUS, count, duration, percent_range};
use crate::report::{Action, AdviseReport, EventsAre, ReadCost, SettingAdvice};

const LEGEND: &str =
    "of a core: time for clock reads with the present executions and CPUs; for a setting that is off: if it were on";

pub fn document(report: &AdviseReport) -> Document {
    let mut clocks = vec![("clock", read(&report.read))];
    clocks.extend(report.node_read.as_ref().map(|node| ("", format!("plan nodes: {}", read(node)))));
    let [advice, setting] = ["advice", "setting"].map(Column::left);
    let [per_s, share] = ["per s", "of a core"].map(Column::right);
    let columns = [per_s, share, advice, setting.at(Position::Tree)];
    let table = Table { note: LEGEND.into(), ..Table::new("", columns, report.settings.iter().map(row)) };
    let server =
        format!("PostgreSQL {}, {}: observed for {:.1} s", report.server_version, report.server, report.window_s);
    let mut blocks = vec![
        Block::from(&report.verdict),
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
    let per_s = setting.events_per_s.map_or("-".into(), |per_s| {
        let least = if setting.events_are == EventsAre::AtLeast { ">= " } else { "" };
        match per_s {
            n if n > 0.0 && n < 9.95 => format!("{least}{n:.1}"),
            n => format!("{least}{}", count(n.round() as u64)),
        }
    });
    let share = setting.core_share.map_or_else(|| "-".into(), |share| percent_range(share.low, share.high));
    Row::new([per_s, share, advice(setting).into(), format!("{} = {}", setting.name, setting.value)])
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
    if is_clear && setting.name != "auto_explain.log_timing" && setting.core_share.is_some() {
        return Vec::new();
    }
    let text = setting.summary.strip_prefix("not determined: ").unwrap_or(&setting.summary);
    let note = ("-", format!("{}: {text}", setting.name));
    [note].into_iter().chain(setting.hint.iter().map(|hint| ("  hint:", hint.clone()))).collect()
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
