//! The parts of the screen that are lines of text. A missing figure is a dash.

use super::view::View;
use super::{BOLD, DIM, of_severity};
use crate::human;
use crate::render::columns::{columns, left};
use crate::report::{Collector, Drift, EventKind, Fact, FastTiming, MonitorEvent, MonitorReport, SYSTEM, Severity};
use crate::report::{WatchedClock, WatchedFinding, finding_id};
use human::count;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Widget};

pub const MISSING: &str = "-";
const NOT_DETERMINED: &str = "not determined";
/// Columns of a label, as on the screen of `pg_timing check`.
const LABEL: usize = 12;
const GAP: &str = "  ";
/// Longer durations are not figures of a clock, but results of a broken one: 30 years.
const LONGEST_NS: f64 = 1e18;
/// A longer verdict is cut.
const VERDICT_LINES: usize = 4;

/// Draws the host, its clock source and the samples, and at the right end the time of the last sample.
pub fn header(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let time = if report.samples == 0 { String::new() } else { view.time_with_zone(report.sampled_at) };
    let (end, style) = match (view.paused, view.overdue) {
        (true, _) => (format!("  paused at {time}"), BOLD),
        (_, true) => (format!("  no sample since {time}"), BOLD),
        _ => (format!("  {time}"), Style::new()),
    };
    let host = if report.host.is_empty() { "this host".into() } else { view.text(&report.host) };
    let room = usize::from(area.width).saturating_sub(columns(&end));
    let mut details = String::new();
    for part in details_of_header(report, view) {
        if columns(&host) + columns(&details) + columns(&part) <= room {
            details += &part;
        }
    }
    Paragraph::new(Line::from(vec![Span::styled(host, BOLD), Span::raw(details)])).render(area, buffer);
    // The end is more important: without it, old figures look like new ones.
    let width = (columns(&end) as u16).min(area.width);
    let place = Rect { x: area.right() - width, width, ..area };
    Paragraph::new(Line::styled(end, style)).render(place, buffer);
}

fn details_of_header(report: &MonitorReport, view: &View) -> Vec<String> {
    let clocksource = match &report.clocksource {
        Some(Fact::Known(name)) => format!(": clock source {}", view.text(name)),
        Some(Fact::Unavailable { .. }) => ": clock source not determined".into(),
        None => String::new(),
    };
    let samples = match report.samples {
        0 => return vec![clocksource],
        1 => "1 sample".into(),
        n => format!("{} samples", human::grouped(n)),
    };
    let since = view.time(report.started_at, report.sampled_at);
    let every = match report.interval_s {
        s if s.fract() == 0.0 && (1.0..1e6).contains(&s) => format!("{s:.0} s"),
        s => duration(Some(s * 1e9)),
    };
    vec![clocksource, format!(", {samples} since {since}"), format!(", every {every}")]
}

/// Returns the verdict.
pub fn verdict(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let (severity, summary) = match &report.verdict {
        Some(verdict) => (verdict.severity, verdict.summary.as_str()),
        None if report.samples == 0 => (Severity::Unknown, "The first sample is not finished."),
        None => (Severity::Unknown, NOT_DETERMINED),
    };
    let mut lines = labeled(severity.word(), &view.text(summary), width);
    lines.truncate(VERDICT_LINES);
    lines[0].spans[0].style = of_severity(severity, view);
    lines
}

/// Returns the alarms, the worst first, each with the command that fixes it; then a summary, and alarms that were cleared.
pub fn findings(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    let mut alarms: Vec<&WatchedFinding> = report.findings.iter().filter(|watched| watched.is_alarm()).collect();
    alarms.sort_by_key(|watched| std::cmp::Reverse(watched.finding.severity));
    let mut lines = Vec::new();
    let mut commands = Vec::new();
    for watched in &alarms {
        let finding = &watched.finding;
        let since = view.time(watched.appeared_at.unwrap_or(watched.since), report.sampled_at);
        let word = Span::styled(format!("{:9} ", finding.severity.word()), of_severity(finding.severity, view));
        let text = format!("{} since {since}: {}", view.text(&finding.id), view.text(&finding.summary));
        lines.push(Line::from(vec![word, text.into()]));
        let command = finding.fix.first().map(|fix| fix.command.as_deref().unwrap_or(&fix.what));
        // A command of several alarms is shown once.
        if let Some(command) = command.filter(|command| !commands.contains(command)) {
            commands.push(command);
            lines.push(Line::from(vec!["      do: ".into(), Span::styled(view.text(command), BOLD)]));
        }
    }
    if !report.findings.is_empty() {
        lines.push(Line::styled(summary(report, alarms.len(), view), DIM));
    }
    let cleared = report.findings.iter().filter(|watched| !watched.is_alarm()).filter_map(|watched| {
        let [from, until] = [watched.appeared_at?, watched.cleared_at?].map(|at| view.time(at, report.sampled_at));
        Some(Line::from(format!("cleared   {}: an alarm from {from} to {until}", view.text(&watched.finding.id))))
    });
    lines.extend(cleared);
    lines
}

/// Returns the number of findings without a problem, and the names of those that were not determined.
fn summary(report: &MonitorReport, alarms: usize, view: &View) -> String {
    let of = |severity| report.findings.iter().filter(move |watched| watched.finding.severity == severity);
    let unknown: Vec<String> = of(Severity::Unknown).map(|watched| view.text(&watched.finding.id)).collect();
    let alarms = if alarms == 0 { "no alarms".into() } else { format!("alarms: {alarms}") };
    let unknown =
        if unknown.is_empty() { String::new() } else { format!("; {NOT_DETERMINED}: {}", unknown.join(", ")) };
    format!("{alarms}; checks that are OK: {}{unknown}", of(Severity::Ok).count())
}

/// Returns lines with a label, the most important first.
pub fn facts(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if report.samples == 0 {
        return Vec::new();
    }
    if let Some(unwritten) = &view.unwritten {
        facts.push(("not written", view.text(unwritten)));
    }
    // The part of the server shows its own error.
    for collector in report.collectors.iter().filter(|collector| collector.name != Collector::SERVER) {
        if let Some(why) = &collector.error {
            facts.push(("no figures", format!("{}: {}", collector.name, view.text(why))));
        }
    }
    if let Some(clock) = report.system().filter(|clock| clock.unavailable.is_none()) {
        facts.push(("lost time", lost_time(clock)));
        facts.push(("percentiles", percentiles(clock)));
    }
    facts.push(("counter", counter(report, view)));
    facts.push(("drift", drift(report, view)));
    facts.push(("CPUs", cpus(report, view)));
    facts.push(("kernel", kernel(report, view)));
    facts.into_iter().map(|(label, text)| Line::from(left(label, LABEL) + &text)).collect()
}

fn lost_time(clock: &WatchedClock) -> String {
    let totals = &clock.totals;
    match totals.lost_share() {
        Some(share) => format!(
            "{}: {} interruptions took {} of {}",
            percent(Some(share)),
            count(totals.gaps),
            period(totals.gap_s),
            period(totals.measured_s),
        ),
        None => NOT_DETERMINED.into(),
    }
}

/// Returns the percentiles that the table does not have.
fn percentiles(clock: &WatchedClock) -> String {
    let Some(p) = clock.percentiles else { return NOT_DETERMINED.into() };
    let figures =
        [("50%", p.p50_ns), ("90%", p.p90_ns), ("99%", p.p99_ns), ("99.99%", p.p99_99_ns), ("99.999%", p.p99_999_ns)];
    figures.map(|(name, ns)| format!("{name} {}", duration(Some(ns)))).join("  ")
}

fn counter(report: &MonitorReport, view: &View) -> String {
    match report.counter {
        Some(rate) if (0.0..1e15).contains(&rate.hz) => {
            // One decimal of a kHz is 0.03 ppm at 3 GHz: less than the error.
            let rounded_khz = (rate.hz / 100.0).round() / 10.0;
            format!("{}{}", human::khz(rounded_khz), margin(rate.uncertainty_ppm, view))
        }
        _ => NOT_DETERMINED.into(),
    }
}

/// Returns the margin of a figure in ppm. It is rounded up, and is never shown as 0.
fn margin(ppm: f64, view: &View) -> String {
    let figure = match ppm {
        ppm if ppm < 1.0 => format!("{:.2}", (ppm.max(0.01) * 100.0).ceil() / 100.0),
        ppm if ppm < 1e9 => format!("{:.1}", (ppm * 10.0).ceil() / 10.0),
        _ => return " (error not determined)".into(),
    };
    format!(" {} {figure} ppm", view.plus_minus())
}

fn drift(report: &MonitorReport, view: &View) -> String {
    let shown = report.drifts.iter().find(|drift| drift.clock == SYSTEM).or(report.drifts.first());
    let Some(Drift { clock, reference, rate_ppm, uncertainty_ppm, .. }) = shown else { return NOT_DETERMINED.into() };
    let steps = report.offset_steps.values().fold(0, |sum: u64, steps| sum.saturating_add(*steps));
    // Avoid -0.00.
    let ppm = if rate_ppm.abs() < 0.005 { 0.0 } else { *rate_ppm };
    let rate = match ppm.abs() < 1e9 {
        true => format!("{ppm:+.2}{}", margin(*uncertainty_ppm, view)),
        false => NOT_DETERMINED.into(),
    };
    // The list of clocks has CLOCK_MONOTONIC_RAW under its short name.
    let reference = reference.strip_prefix("CLOCK_").unwrap_or(reference).to_lowercase();
    format!("{} against {} {rate}; steps: {}", view.text(clock), view.text(&reference), count(steps))
}

/// Returns whether the CPUs' clocks agree, with the finding's text.
fn cpus(report: &MonitorReport, view: &View) -> String {
    let finding = report.findings.iter().map(|watched| &watched.finding).find(|f| f.id == finding_id::CPU_SKEW);
    match finding {
        Some(finding) if finding.severity >= Severity::Warning => "the clocks differ: see cpu-skew".into(),
        Some(finding) => view.text(finding.summary.strip_prefix("CPUs ").unwrap_or(&finding.summary)),
        None => view.text(report.skew_unavailable.as_deref().unwrap_or(NOT_DETERMINED)),
    }
}

fn kernel(report: &MonitorReport, view: &View) -> String {
    let stops = |what, number, seconds| match number {
        0 => format!("{what}: 0"),
        number => format!("{what}: {} ({})", count(number), period(seconds)),
    };
    format!(
        "since {}: messages about clocks: {}, {}, {}",
        view.time(report.started_at, report.sampled_at),
        count(report.kernel_messages),
        stops("suspends", report.suspends, report.suspended_s),
        stops("pauses", report.pauses, report.paused_s),
    )
}

/// Returns the server of `--server`: the verdict of `advise`, and pg_fast_timing's figures.
pub fn server(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let Some(server) = &report.server else { return Vec::new() };
    let (severity, text) = match (&server.error, &server.advise) {
        (Some(why), _) => (Severity::Ok, format!("no figures: {}", view.text(why))),
        (None, None) => (Severity::Ok, "waiting for the first answer".into()),
        (None, Some(advise)) => {
            let (verdict, version) = (&advise.verdict, view.text(&advise.server_version));
            let word = verdict.severity.word();
            (verdict.severity, format!("PostgreSQL {version}: {word}  {}", view.text(&verdict.summary)))
        }
    };
    let mut lines = labeled(&left("server", LABEL - GAP.len()), &text, width);
    lines.truncate(VERDICT_LINES);
    if severity >= Severity::Warning {
        lines[0].spans[0].style = of_severity(severity, view);
    }
    let fast = server.fast_timing.as_ref().map(|fast| left("fast timing", LABEL) + &fast_timing(fast, view));
    lines.extend(fast.map(Line::from));
    lines
}

fn fast_timing(fast: &FastTiming, view: &View) -> String {
    format!(
        "{} with {}: one call {}; {} statements; nodes: {} exact, {} estimated; without TSC: {}, ticks: {}",
        view.text(&fast.method),
        view.text(&fast.clock),
        duration(fast.call_cost_ns),
        // A float that is too large or not a number becomes the nearest integer.
        count(fast.statements as u64),
        count(fast.exact_nodes as u64),
        count(fast.estimated_nodes as u64),
        count(fast.without_tsc as u64),
        count(fast.without_ticks as u64),
    )
}

/// Draws the last events, the newest first.
pub fn events(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let all = report.events.len();
    let rows = usize::from(area.height).saturating_sub(1);
    let skipped = view.scroll.min(all.saturating_sub(rows));
    let title = match all {
        0 => "no events ".into(),
        all if all <= rows => "events ".into(),
        all => format!("events {} to {} of {all} ", skipped + 1, skipped + rows),
    };
    let lines: Vec<Line> =
        report.events.iter().rev().skip(skipped).take(rows).map(|e| event(e, report, view)).collect();
    let block = Block::new().borders(Borders::TOP).border_set(view.border()).border_style(DIM);
    Paragraph::new(lines).block(block.title(Line::styled(title, BOLD))).render(area, buffer);
}

fn event(event: &MonitorEvent, report: &MonitorReport, view: &View) -> Line<'static> {
    let alarm = event.severity.filter(|severity| *severity >= Severity::Warning);
    let word = match (event.event, alarm) {
        (EventKind::FindingCleared, _) => Span::raw("cleared  "),
        (_, Some(severity)) => Span::styled(format!("{}  ", severity.word()), of_severity(severity, view)),
        (_, None) => Span::raw(""),
    };
    let time = format!("{:8}  ", view.time(event.unix_seconds, report.sampled_at));
    Line::from(vec![Span::styled(time, DIM), word, Span::raw(view.text(&event.summary))])
}

/// Returns the keys, and what the monitor itself uses.
pub fn footer(report: &MonitorReport, view: &View) -> Line<'static> {
    let pause = if view.paused { "continue" } else { "pause" };
    let arrows = if view.unicode { "↑↓" } else { "up/down" };
    let memory = report.own.memory_bytes.map(|bytes| format!(", {} MB", bytes.div_ceil(1_000_000)));
    let own = format!("CPU {}{}", percent(Some(report.own.cpu_share)), memory.unwrap_or_default());
    let own = if report.samples == 0 { String::new() } else { own };
    let sort = view.sort.name();
    let keys = format!("q quit   ? help   p {pause}   s sort: {sort}   {arrows} events   ");
    Line::from(vec![Span::raw(keys), Span::styled(own, DIM)])
}

/// Returns the text in lines after a label. Later lines are indented.
fn labeled(label: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    let indent = columns(label) + GAP.len();
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && indent + columns(line) + 1 + columns(word) > width {
            lines.push(word.into());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    let label = |nth| if nth == 0 { label.to_string() } else { " ".repeat(columns(label)) };
    let lines = lines.into_iter().enumerate();
    lines.map(|(nth, line)| Line::from(vec![Span::raw(label(nth)), Span::raw(GAP), Span::raw(line)])).collect()
}

/// Returns a duration, or a dash.
pub fn duration(ns: Option<f64>) -> String {
    ns.filter(|ns| ns.abs() < LONGEST_NS).map_or(MISSING.into(), human::duration)
}

/// Returns a time in seconds, minutes, hours or days, or a dash.
pub fn period(seconds: f64) -> String {
    match seconds {
        s if !(0.0..LONGEST_NS / 1e9).contains(&s) => MISSING.into(),
        s if s < 10.0 => human::duration(s * 1e9),
        s if s < 59.5 => format!("{s:.0} s"),
        s => human::uptime(s.max(60.0)),
    }
}

/// Returns a share as a percentage, or a dash.
pub fn percent(share: Option<f64>) -> String {
    share.filter(|share| (0.0..1e6).contains(share)).map_or(MISSING.into(), human::percent)
}
