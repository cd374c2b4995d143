//! The parts of the screen that are lines of text. A missing figure is a dash.

use super::{BOLD, DIM, MISSING, View};
use crate::human;
use crate::render::columns::{columns, left};
use crate::report::{Collector, EventKind, Fact, MonitorEvent, MonitorReport, SYSTEM, Severity};
use crate::report::{WatchedFinding, finding_id};
use human::count;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};

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
    let clocksource = match &report.clocksource {
        Some(Fact::Known(name)) => format!(": clock source {}", view.text(name)),
        Some(Fact::Unavailable { .. }) => ": clock source not determined".into(),
        None => String::new(),
    };
    let since = view.time(report.started_at, report.sampled_at);
    let samples = match report.samples {
        0 => String::new(),
        1 => format!(", 1 sample since {since}"),
        n => format!(", {} samples since {since}", human::grouped(n)),
    };
    let every = match report.interval_s {
        _ if report.samples == 0 => String::new(),
        s if s.fract() == 0.0 && (1.0..1e6).contains(&s) => format!(", every {s:.0} s"),
        s => format!(", every {}", duration(Some(s * 1e9))),
    };
    let room = usize::from(area.width).saturating_sub(columns(&end));
    let mut details = String::new();
    for part in [clocksource, samples, every] {
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

/// Returns the verdict.
pub fn verdict(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let (severity, summary) = match &report.verdict {
        Some(verdict) => (verdict.severity, verdict.summary.as_str()),
        None if report.samples == 0 => (Severity::Unknown, "The first sample is not finished."),
        None => (Severity::Unknown, NOT_DETERMINED),
    };
    let mut lines = labeled(severity.word(), &view.text(summary), width);
    lines[0].spans[0].style = view.style(severity);
    lines
}

/// Returns the alarms, the worst first, each with the command that fixes it; then a summary, and alarms that were cleared.
pub fn findings(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    let (mut alarms, others): (Vec<&WatchedFinding>, Vec<_>) = report.findings.iter().partition(|f| f.is_alarm());
    alarms.sort_by_key(|watched| std::cmp::Reverse(watched.finding.severity));
    let mut lines = Vec::new();
    let mut commands = Vec::new();
    for watched in &alarms {
        let finding = &watched.finding;
        let since = view.time(watched.appeared_at.unwrap_or(watched.since), report.sampled_at);
        let word = Span::styled(format!("{:9} ", finding.severity.word()), view.style(finding.severity));
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
        let alarms = if alarms.is_empty() { "no alarms".into() } else { format!("alarms: {}", alarms.len()) };
        let unknown = others.iter().filter(|watched| watched.finding.severity == Severity::Unknown);
        let unknown: Vec<String> = unknown.map(|watched| view.text(&watched.finding.id)).collect();
        let ok = others.len() - unknown.len();
        let unknown =
            if unknown.is_empty() { String::new() } else { format!("; {NOT_DETERMINED}: {}", unknown.join(", ")) };
        lines.push(Line::styled(format!("{alarms}; checks that are OK: {ok}{unknown}"), DIM));
    }
    lines.extend(others.into_iter().filter_map(|watched| {
        let [from, until] = [watched.appeared_at?, watched.cleared_at?].map(|at| view.time(at, report.sampled_at));
        Some(Line::from(format!("cleared   {}: an alarm from {from} to {until}", view.text(&watched.finding.id))))
    }));
    lines
}

/// Returns lines with a label, the most important first.
pub fn facts(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    if report.samples == 0 {
        return Vec::new();
    }
    let mut facts: Vec<(&str, Option<String>)> = Vec::new();
    if let Some(unwritten) = &view.unwritten {
        facts.push(("not written", Some(view.text(unwritten))));
    }
    // The part of the server shows its own error.
    for collector in report.collectors.iter().filter(|collector| collector.name != Collector::SERVER) {
        if let Some(why) = &collector.error {
            facts.push(("no figures", Some(format!("{}: {}", collector.name, view.text(why)))));
        }
    }
    if let Some(clock) = report.system().filter(|clock| clock.unavailable.is_none()) {
        let totals = &clock.totals;
        let lost = |share| {
            let [lost, all] = [totals.gap_s, totals.measured_s].map(period);
            format!("{}: {} interruptions took {lost} of {all}", percent(Some(share)), count(totals.gaps))
        };
        facts.push(("lost time", totals.lost_share().map(lost)));
        // The table has the other percentiles.
        let percentiles = clock.percentiles.map(|p| {
            [("50", p.p50_ns), ("90", p.p90_ns), ("99", p.p99_ns), ("99.99", p.p99_99_ns), ("99.999", p.p99_999_ns)]
                .map(|(name, ns)| format!("{name}% {}", duration(Some(ns))))
                .join(GAP)
        });
        facts.push(("percentiles", percentiles));
    }
    let rate = report.counter.filter(|rate| (0.0..1e15).contains(&rate.hz));
    // One decimal of a kHz is 0.03 ppm at 3 GHz: less than the error.
    let rate = rate.map(|rate| human::khz((rate.hz / 100.0).round() / 10.0) + &margin(rate.uncertainty_ppm, view));
    facts.push(("counter", rate));
    facts.push(("drift", drift(report, view)));
    facts.push(("CPUs", cpus(report, view)));
    facts.push(("kernel", Some(kernel(report, view))));
    let line = |(label, text): (_, Option<String>)| left(label, LABEL) + text.as_deref().unwrap_or(NOT_DETERMINED);
    facts.into_iter().map(|fact| Line::from(line(fact))).collect()
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

fn drift(report: &MonitorReport, view: &View) -> Option<String> {
    let drift = report.drifts.iter().find(|drift| drift.clock == SYSTEM).or(report.drifts.first())?;
    let steps = report.offset_steps.values().fold(0, |sum: u64, steps| sum.saturating_add(*steps));
    // Avoid -0.00.
    let ppm = if drift.rate_ppm.abs() < 0.005 { 0.0 } else { drift.rate_ppm };
    let rate = match ppm.abs() < 1e9 {
        true => format!("{ppm:+.2}{}", margin(drift.uncertainty_ppm, view)),
        false => NOT_DETERMINED.into(),
    };
    // The list of clocks has CLOCK_MONOTONIC_RAW under its short name.
    let reference = drift.reference.trim_start_matches("CLOCK_").to_lowercase();
    Some(format!("{} against {} {rate}; steps: {}", view.text(&drift.clock), view.text(&reference), count(steps)))
}

/// Returns whether the CPUs' clocks agree, with the finding's text.
fn cpus(report: &MonitorReport, view: &View) -> Option<String> {
    let finding = report.findings.iter().map(|watched| &watched.finding).find(|f| f.id == finding_id::CPU_SKEW);
    let text = match finding {
        Some(finding) if finding.severity >= Severity::Warning => "the clocks differ: see cpu-skew",
        Some(finding) => finding.summary.trim_start_matches("CPUs "),
        None => report.skew_unavailable.as_deref()?,
    };
    Some(view.text(text))
}

fn kernel(report: &MonitorReport, view: &View) -> String {
    let stops = |number, seconds| match number {
        0 => "0".into(),
        number => format!("{} ({})", count(number), period(seconds)),
    };
    format!(
        "since {}: messages about clocks: {}, suspends: {}, pauses: {}",
        view.time(report.started_at, report.sampled_at),
        count(report.kernel_messages),
        stops(report.suspends, report.suspended_s),
        stops(report.pauses, report.paused_s),
    )
}

/// Returns the server of `--server`: the verdict of `advise`, and pg_fast_timing's figures.
pub fn server(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let Some(server) = &report.server else { return Vec::new() };
    let (alarm, text) = match (&server.error, &server.advise) {
        (Some(why), _) => (None, format!("no figures: {}", view.text(why))),
        (None, None) => (None, "waiting for the first answer".into()),
        (None, Some(advise)) => {
            let (verdict, version) = (&advise.verdict, view.text(&advise.server_version));
            let word = verdict.severity.word();
            let text = format!("PostgreSQL {version}: {word}  {}", view.text(&verdict.summary));
            (view.alarm(verdict.severity), text)
        }
    };
    let mut lines = labeled(&left("server", LABEL - GAP.len()), &text, width);
    lines[0].spans[0].style = alarm.unwrap_or_default();
    if let Some(fast) = &server.fast_timing {
        // A float that is too large or not a number becomes the nearest integer.
        let [statements, exact, estimated, without_tsc, without_ticks] =
            [fast.statements, fast.exact_nodes, fast.estimated_nodes, fast.without_tsc, fast.without_ticks]
                .map(|number| count(number as u64));
        let (method, clock, cost) = (view.text(&fast.method), view.text(&fast.clock), duration(fast.call_cost_ns));
        lines.push(Line::from(format!(
            "{}{method} with {clock}: one call {cost}; {statements} statements; nodes: {exact} exact, {estimated} estimated; \
             without TSC: {without_tsc}, ticks: {without_ticks}",
            left("fast timing", LABEL)
        )));
    }
    lines
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
    let shown = report.events.iter().rev().skip(skipped).take(rows);
    let lines: Vec<Line> = shown.map(|shown| event(shown, report, view)).collect();
    Paragraph::new(lines).block(view.titled(title)).render(area, buffer);
}

fn event(event: &MonitorEvent, report: &MonitorReport, view: &View) -> Line<'static> {
    let alarm = event.severity.and_then(|severity| Some((severity.word(), view.alarm(severity)?)));
    let word = match (event.event, alarm) {
        (EventKind::FindingCleared, _) => Span::raw("cleared  "),
        (_, Some((word, style))) => Span::styled(format!("{word}  "), style),
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

/// Returns the text in some lines after a label. Later lines are indented.
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
    lines.truncate(VERDICT_LINES);
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
