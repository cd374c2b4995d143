//! The screen of `advise`: one line per setting, the verdict, and the lines for postgresql.conf.

use super::lines::verdict;
use super::{BOLD, DIM, findings, wrapped};
use crate::human::{count, duration, percent};
use crate::render::plus_minus::plus_minus;
use crate::report::{Action, AdviseReport, CoreShare, EventsAre, ReadCost, SettingAdvice};

pub fn text(report: &AdviseReport) -> String {
    let mut out = headline(report);
    out.push('\n');
    out.push_str(&table(report));
    out.push('\n');
    out.push_str(&notes(report));
    for block in findings::blocks(&report.findings) {
        out.push_str(&block);
        out.push('\n');
    }
    out.push_str(&verdict(&report.verdict));
    out.push_str(&lines(report));
    if !report.not_seen.is_empty() {
        out.push('\n');
    }
    for line in &report.not_seen {
        wrapped(&mut out, "not counted  ", line);
    }
    if report.interrupted {
        out.push_str(&format!("Stopped after {:.1} s. The figures are from this time.\n", report.window_s));
    }
    out
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

fn table(report: &AdviseReport) -> String {
    let mut out = String::new();
    let widest = report.settings.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
    let value_widest = report.settings.iter().map(|setting| setting.value.chars().count()).max().unwrap_or(0);
    let head = format!("{:widest$}  {:value_widest$}  {:>9}  {:>16}  advice", "setting", "now", "per s", "of a core");
    out.push_str(&format!("{BOLD}{head}{BOLD:#}\n"));
    for setting in &report.settings {
        out.push_str(&format!(
            "{:widest$}  {:value_widest$}  {:>9}  {:>16}  {}\n",
            setting.name,
            setting.value,
            events(setting),
            setting.core_share.map_or_else(|| "-".into(), share),
            advice(setting),
        ));
    }
    out.push_str(&format!("{DIM}of a core: CPU share of the setting's clock reads; if the setting is off, the share after turning it on{DIM:#}\n"));
    out
}

fn advice(setting: &SettingAdvice) -> &'static str {
    match setting.advice {
        Action::Keep => "leave it on",
        // A library needs an installation, which the notes describe.
        Action::TurnOn if setting.line.is_none() => "can be installed",
        Action::TurnOn => "can be turned on",
        Action::TurnOff => "turn it off",
        Action::None if setting.core_share.is_some() && !setting.on => "leave it off",
        Action::None => "nothing to do",
        Action::Unknown => "not determined",
    }
}

/// Renders what the table does not show: why an advice was not determined, advice without figures, and advice for a
/// busy server where the observed server was idle.
fn notes(report: &AdviseReport) -> String {
    let mut out = String::new();
    for setting in &report.settings {
        let is_clear = matches!(setting.advice, Action::Keep | Action::TurnOn | Action::TurnOff);
        if !is_clear || setting.core_share.is_none() || setting.extrapolated {
            let text = setting.summary.strip_prefix("not determined: ").unwrap_or(&setting.summary);
            wrapped(&mut out, &format!("{}  ", setting.name), text);
        }
    }
    if !out.is_empty() {
        out.push('\n');
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

fn share(share: CoreShare) -> String {
    let low = percent(share.low);
    match share.high {
        None if low.starts_with('<') => "> 0%".into(),
        None => format!(">= {low}"),
        Some(high) if percent(high) == low => low,
        Some(high) => format!("{} to {}", low.trim_end_matches('%'), percent(high)),
    }
}

/// Renders the lines for postgresql.conf, each with its undo.
fn lines(report: &AdviseReport) -> String {
    let mut out = String::new();
    for (action, label) in [(Action::TurnOff, "turn off   "), (Action::TurnOn, "turn on    ")] {
        for setting in report.settings.iter().filter(|setting| setting.advice == action) {
            let (Some(line), Some(undo)) = (&setting.line, &setting.undo) else { continue };
            out.push_str(&format!("{label}{line}    undo: {undo}\n"));
        }
    }
    match out.is_empty() {
        true => out,
        false => format!("\nfor postgresql.conf (or ALTER SYSTEM SET), then SELECT pg_reload_conf():\n{out}"),
    }
}
