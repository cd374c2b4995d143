//! The live screen: a pure function of the monitor's report and of what the user selected. A missing figure is a dash.

#[cfg(test)]
mod tests;

use crate::document::host::access;
use crate::document::text::{columns, left, wrap};
use crate::escape;
use crate::human::{self, count, percent};
use crate::report::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, RenderDirection, Row, Sparkline, SparklineBar, Table, Widget};
use timing_clock::Rate;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const MISSING: &str = "-";
const NOT_DETERMINED: &str = "not determined";
/// Columns of a label, as on the screen of `pg_timing check`.
const LABEL: usize = 12;
const GAP: &str = "  ";
/// A longer verdict is cut.
const VERDICT_LINES: usize = 4;
/// The title and the bars. More rows of bars show nothing new.
const HISTORY_LINES: usize = 5;

/// What the user selected, and what the terminal can show.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub paused: bool,
    /// number of newer events that are not shown
    pub scroll: usize,
    pub color: bool,
    /// whether the terminal shows UTF-8
    pub unicode: bool,
}

impl View {
    /// Shows events that are older by this number, of `events` events. A negative number shows newer ones.
    pub fn scroll_by(&mut self, older: isize, events: usize) {
        self.scroll = self.scroll.saturating_add_signed(older).min(events.saturating_sub(1));
    }

    /// Returns a text of the report in one line that is safe to print.
    fn text(&self, text: &str) -> String {
        let text = escape::line(text);
        if self.unicode { human::with_sign(&text) } else { text }
    }

    /// Returns the style of a severity's word: the colors of `pg_timing check`.
    fn style(&self, severity: Severity) -> Style {
        // Unknown, OK, warning and critical.
        let color = [Color::Cyan, Color::Green, Color::Yellow, Color::Red][severity as usize];
        if self.color { BOLD.fg(color) } else { BOLD }
    }

    /// Returns the style of a figure: that of its severity if it is an alarm.
    fn alarm(&self, severity: Severity, other: Style) -> Style {
        if severity.is_alarm() { self.style(severity) } else { other }
    }
}

/// The number of parts.
const PARTS: usize = 9;
/// The least number of lines with which each part is useful, from top to bottom.
const LEAST: [usize; PARTS] = [1, 1, 3, 3, 1, 3, 1, 3, 1];
/// The parts in the order in which they get their least number of lines, and then more: first what is wrong.
const ORDER: [usize; PARTS] = [1, 4, 0, 8, 6, 5, 3, 7, 2];

/// Returns the height of each part. `most` are the lines that each can use.
fn heights(most: [usize; PARTS], lines: u16) -> [u16; PARTS] {
    let mut heights = [0; PARTS];
    let mut free = usize::from(lines);
    for nth in ORDER {
        let least = LEAST[nth].min(most[nth]);
        heights[nth] = if least <= free { least } else { 0 };
        free -= heights[nth];
    }
    for nth in ORDER {
        let more = if heights[nth] == 0 { 0 } else { (most[nth] - heights[nth]).min(free) };
        heights[nth] += more;
        free -= more;
    }
    heights.map(|height| height as u16)
}

/// Draws the report into the area.
pub fn draw(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let width = area.width.into();
    let verdict = verdict(report, view, width);
    let history = history(report, view, width);
    let findings = findings(report, view);
    let facts = facts(report, view);
    let server = server(report, view, width);
    let history_lines = history.as_ref().map_or(0, |_| HISTORY_LINES);
    let rows = report.clocks.len();
    let clock_lines = if rows == 0 { 0 } else { 1 + rows };
    let event_lines = 1 + report.events.len();
    let most =
        [1, verdict.len(), history_lines, clock_lines, findings.len(), facts.len(), server.len(), event_lines, 1];
    let mut areas: [Rect; PARTS] = Layout::vertical(heights(most, area.height)).areas(area);
    // The keys are in the last line.
    areas[8].y = area.bottom() - areas[8].height;
    let events = events(report, view, areas[7].height.into());
    let (header, footer, none) = (vec![header(report, view)], vec![footer(report, view)], Vec::new);
    let parts = [header, verdict, none(), none(), findings, facts, server, events, footer];
    areas.into_iter().zip(parts).for_each(|(area, lines)| Paragraph::new(lines).render(area, buffer));
    history.render(areas[2], buffer);
    clocks(report, view, areas[3], buffer);
}

/// Returns the host, the time of the last sample, its clock source and the number of samples.
fn header(report: &MonitorReport, view: &View) -> Line<'static> {
    let host = report.now.host.name.known().map_or("this host".into(), |name| view.text(name));
    if report.samples == 0 {
        return Line::styled(host, BOLD);
    }
    let [since, now] = [report.started_at, report.sampled_at].map(|at| time(at, report.sampled_at));
    let at = if view.paused { format!(", paused at {now} UTC") } else { format!(" at {now} UTC") };
    let clocksource = report.now.clocksource.current.known().map_or(NOT_DETERMINED.into(), |name| view.text(name));
    let (number, interval) = (human::grouped(report.samples), period(report.interval_s));
    let samples = format!(": clock source {clocksource}, {number} samples since {since}, every {interval}");
    let style = if view.paused { BOLD } else { Style::new() };
    Line::from(vec![Span::styled(host, BOLD), Span::styled(at, style), samples.into()])
}

/// Returns the verdict.
fn verdict(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let (severity, summary) = match report.samples {
        0 => (Severity::Unknown, "The first sample is not finished."),
        _ => (report.now.verdict.severity, report.now.verdict.summary.as_str()),
    };
    labeled(Span::styled(severity.word(), view.style(severity)), &view.text(summary), width)
}

/// Returns the read cost of PostgreSQL's clock over time: one bar per sample, the newest at the right end. The highest one has
/// the full height. Bars above a limit have the color of its severity. `None` without figures, and in ASCII, which has no bars.
fn history(report: &MonitorReport, view: &View, width: usize) -> Option<Sparkline<'static>> {
    /// The height of the highest bar, in steps that are smaller than a terminal shows.
    const FULL: f64 = 1000.0;
    let newest = report.system()?.history_ns.iter().rev().take(width);
    let shown: Vec<Option<f64>> = newest.map(|ns| ns.map(f64::from).filter(|ns| ns.is_finite())).collect();
    let highest = shown.iter().flatten().copied().reduce(f64::max).filter(|_| view.unicode)?;
    let bar = |ns: &Option<f64>| {
        let style = view.alarm(severity(*ns), DIM);
        SparklineBar::from(ns.map(|ns| (ns / highest * FULL) as u64)).style(style)
    };
    let time = period(shown.len() as f64 * report.interval_s);
    let title = format!("one read of PostgreSQL's clock, last {time}, at most {}", human::duration(highest));
    let bars = Sparkline::default().direction(RenderDirection::RightToLeft).max(FULL as u64).absent_value_symbol(" ");
    Some(bars.block(Block::new().title(Line::styled(title, BOLD))).data(shown.iter().map(bar)))
}

/// Returns the severity of a read cost of PostgreSQL's clock.
fn severity(ns: Option<f64>) -> Severity {
    match ns {
        Some(ns) if ns > BAD_READ_NS => Severity::Critical,
        Some(ns) if ns > GOOD_READ_NS => Severity::Warning,
        _ => Severity::Unknown,
    }
}

/// The columns of the clocks with their widths, the most important first: a narrow screen does not have the last ones.
const COLUMNS: [(&str, u16); 7] =
    [("clock", 16), ("one read", 8), ("lost", 5), ("worst", 7), ("step", 6), ("went back", 9), ("access", 12)];

/// Draws the table of clocks.
fn clocks(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    const GAP: u16 = 2;
    let right = |text: String, style| Line::styled(text, style).right_aligned();
    let row = |WatchedClock { last: clock, totals, .. }: &WatchedClock| {
        let plain = if clock.unavailable.is_some() { DIM } else { Style::new() };
        let severity = severity(clock.read_ns.filter(|_| clock.name == SYSTEM));
        let (went_back, style) = match totals.backward_steps {
            0 if totals.measured_s > 0.0 => ("never".into(), plain),
            0 => (MISSING.into(), plain),
            steps => (human::times(steps), view.style(Severity::Critical)),
        };
        let lost = if totals.measured_s > 0.0 { percent(totals.gap_s / totals.measured_s) } else { MISSING.into() };
        Row::new([
            Line::styled(view.text(&clock.name), plain),
            right(duration(clock.read_ns), view.alarm(severity, plain)),
            right(lost, plain),
            right(duration(clock.percentiles.map(|p| p.max_ns)), plain),
            right(duration(clock.granularity_ns), plain),
            right(went_back, style),
            Line::styled(clock.access_path.map_or(MISSING, access), plain),
        ])
    };
    let head = COLUMNS.map(|(name, _)| match name {
        "clock" | "access" => Line::from(name),
        _ => Line::from(name).right_aligned(),
    });
    let mut room = area.width;
    let fits = |width: &u16| room.checked_sub(*width).map(|left| room = left.saturating_sub(GAP)).is_some();
    let widths = COLUMNS.map(|(_, width)| width).into_iter().take_while(fits).map(Constraint::Length);
    let table = Table::new(report.clocks.iter().map(row), widths).header(Row::new(head).style(BOLD));
    Widget::render(table.column_spacing(GAP), area, buffer);
}

/// Returns the alarms, the worst first, each with the command that fixes it; then a summary.
fn findings(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    let (mut alarms, others): (Vec<&WatchedFinding>, Vec<_>) =
        report.findings.iter().partition(|f| f.finding.severity.is_alarm());
    alarms.sort_by_key(|watched| std::cmp::Reverse(watched.finding.severity));
    let mut lines = Vec::new();
    let mut commands = Vec::new();
    for WatchedFinding { finding, since, appeared_at, .. } in &alarms {
        let since = time(appeared_at.unwrap_or(*since), report.sampled_at);
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
        let unknown = others.iter().filter(|watched| watched.finding.severity == Severity::Unknown);
        let unknown: Vec<String> = unknown.map(|watched| view.text(&watched.finding.id)).collect();
        let ok = others.len() - unknown.len();
        let mut summary = format!("alarms: {}; checks that are OK: {ok}", alarms.len());
        if !unknown.is_empty() {
            summary += &format!("; {NOT_DETERMINED}: {}", unknown.join(", "));
        }
        lines.push(Line::styled(summary, DIM));
    }
    lines
}

/// Returns lines with a label, the most important first.
fn facts(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    if report.samples == 0 {
        return Vec::new();
    }
    let mut facts: Vec<(&str, Option<String>)> = Vec::new();
    facts.extend(report.unwritten.clone().map(|why| ("not written", Some(why))));
    // The part of the server shows its own error.
    let others = report.collectors.iter().filter(|one| one.name != Collector::SERVER);
    let failed = others.filter_map(|one| Some(format!("{}: {}", one.name, one.error.as_ref()?)));
    facts.extend(failed.map(|why| ("no figures", Some(why))));
    if let Some(clock) = report.system().filter(|clock| clock.last.unavailable.is_none()) {
        let percentiles = clock.last.percentiles.map(|p| {
            [("50", p.p50_ns), ("99", p.p99_ns), ("99.9", p.p99_9_ns), ("99.99", p.p99_99_ns), ("99.999", p.p99_999_ns)]
                .map(|(name, ns)| format!("{name}% {}", human::duration(ns)))
                .join(GAP)
        });
        facts.push(("percentiles", percentiles));
    }
    let khz = |hz: f64| human::khz((hz / 100.0).round() / 10.0);
    let rate = |rate: Rate| format!("{} +- {:.2} ppm", khz(rate.rate.0), rate.uncertainty.0.max(0.01));
    facts.push(("counter", report.counter.map(rate)));
    for id in [finding_id::DRIFT, finding_id::CPU_SKEW] {
        let finding = report.findings.iter().map(|watched| &watched.finding).find(|finding| finding.id == id);
        let text = |finding: &Finding| match finding.severity {
            Severity::Ok => finding.summary.clone(),
            Severity::Unknown => NOT_DETERMINED.into(),
            Severity::Warning | Severity::Critical => "see the alarm".into(),
        };
        facts.push((id, finding.map(text)));
    }
    let [suspends, pauses] = [(report.suspends, report.suspended_s), (report.pauses, report.paused_s)]
        .map(|(number, s)| if number == 0 { "0".into() } else { format!("{} ({})", count(number), period(s)) });
    let messages = count(report.kernel_messages);
    let text = format!("messages about clocks: {messages}, suspends: {suspends}, pauses: {pauses}");
    facts.push(("kernel", Some(text)));
    let text = |fact: Option<String>| fact.map_or(NOT_DETERMINED.into(), |fact| view.text(&fact));
    facts.into_iter().map(|(label, fact)| Line::from(left(label, LABEL) + &text(fact))).collect()
}

/// Returns the server of `--server`: the verdict of `advise`, and pg_fast_timing's figures.
fn server(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let Some(server) = &report.server else { return Vec::new() };
    let (style, text) = match (&server.error, &server.advise) {
        (Some(why), _) => (Style::new(), format!("no figures: {why}")),
        (None, None) => (Style::new(), "waiting for the first answer".into()),
        (None, Some(AdviseReport { verdict, server_version, .. })) => {
            let text = format!("PostgreSQL {server_version}: {}: {}", verdict.severity.word(), verdict.summary);
            (view.alarm(verdict.severity, Style::new()), text)
        }
    };
    let label = Span::styled(left("server", LABEL - GAP.len()), style);
    let mut lines = labeled(label, &view.text(&text), width);
    if let Some(fast) = &server.fast_timing {
        // A float that is too large or not a number becomes the nearest integer.
        let [statements, exact, estimated] =
            [fast.statements, fast.exact_nodes, fast.estimated_nodes].map(|number| count(number as u64));
        let (method, clock, cost) = (view.text(&fast.method), view.text(&fast.clock), duration(fast.call_cost_ns));
        let label = left("fast timing", LABEL);
        let counts = format!("{statements} statements; nodes: {exact} exact, {estimated} estimated");
        lines.push(Line::from(format!("{label}{method} with {clock}: one call {cost}; {counts}")));
    }
    lines
}

/// Returns a title and the last events, the newest first, in this number of lines.
fn events(report: &MonitorReport, view: &View, lines: usize) -> Vec<Line<'static>> {
    let all = report.events.len();
    let rows = lines.saturating_sub(1);
    let skipped = view.scroll.min(all.saturating_sub(rows));
    let title = match all {
        0 => "no events".into(),
        all if all <= rows => "events".into(),
        all => format!("events {} to {} of {all}", skipped + 1, skipped + rows),
    };
    let line = |event: &MonitorEvent| {
        let word = match (event.event, event.severity) {
            (EventKind::FindingCleared, _) => Span::raw("cleared  "),
            (_, Some(severity)) => Span::styled(format!("{}  ", severity.word()), view.style(severity)),
            (_, None) => Span::raw(""),
        };
        let time = format!("{:8}  ", time(event.unix_seconds, report.sampled_at));
        Line::from(vec![Span::styled(time, DIM), word, Span::raw(view.text(&event.summary))])
    };
    let shown = report.events.iter().rev().skip(skipped).take(rows).map(line);
    std::iter::once(Line::styled(title, BOLD)).chain(shown).collect()
}

/// Returns the keys, and what the monitor itself uses.
fn footer(report: &MonitorReport, view: &View) -> Line<'static> {
    let pause = if view.paused { "continue" } else { "pause" };
    let memory = report.own.memory_bytes.map(|bytes| format!(", {} MB", bytes.div_ceil(1_000_000)));
    let own = format!("CPU {}{}", percent(report.own.cpu_share), memory.unwrap_or_default());
    let keys = format!("q quit   p {pause}   up/down events   ");
    Line::from(vec![Span::raw(keys), Span::styled(own, DIM)])
}

/// Returns the text in some lines after a label. Later lines are indented.
fn labeled(label: Span<'static>, text: &str, width: usize) -> Vec<Line<'static>> {
    let indent = columns(&label.content) + GAP.len();
    let lines = wrap(text, width.saturating_sub(indent)).into_iter().take(VERDICT_LINES);
    let start = |nth| match nth {
        0 => vec![label.clone(), GAP.into()],
        _ => vec![" ".repeat(indent).into()],
    };
    lines.enumerate().map(|(nth, line)| Line::from([start(nth), vec![line.into()]].concat())).collect()
}

/// Returns a time of day (UTC) like `18:55:06`, or the date if it is more than a day from `now`.
fn time(at: f64, now: f64) -> String {
    const DAY_S: f64 = 86_400.0;
    let text = human::utc(at);
    if (now - at).abs() > DAY_S { text[..10].into() } else { text[11..19].into() }
}

/// Returns a duration, or a dash.
fn duration(ns: Option<f64>) -> String {
    ns.map_or(MISSING.into(), human::duration)
}

/// Returns a time in seconds, minutes, hours or days.
fn period(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => human::duration(s * 1e9),
        s if s < 59.5 => format!("{s:.0} s"),
        s => human::uptime(s.max(60.0)),
    }
}
