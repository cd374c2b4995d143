//! The live screen: a pure function of the monitor's report and of what the user selected. A missing figure is a dash.

#[cfg(test)]
mod tests;

use crate::document::text::{columns, left, wrap};
use crate::escape;
use crate::human::{self, count, percent};
use crate::report::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, RenderDirection, Row, Sparkline, SparklineBar, Table, Widget};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const MISSING: &str = "-";
const NOT_DETERMINED: &str = "not determined";
/// Columns of a label, as on the screen of `pg_timing check`.
const LABEL: usize = 12;
const GAP: &str = "  ";
/// A longer verdict is cut.
const VERDICT_LINES: usize = 4;

/// What the user selected, and what the terminal can show.
#[derive(Clone, Debug)]
pub struct View {
    pub paused: bool,
    /// number of newer events that are not shown
    pub scroll: usize,
    pub color: bool,
    /// whether the terminal shows UTF-8
    pub unicode: bool,
}

impl View {
    pub fn new(color: bool, unicode: bool) -> View {
        View { paused: false, scroll: 0, color, unicode }
    }

    /// Shows events that are older by this number, of `events` events. A negative number shows newer ones.
    pub fn scroll_by(&mut self, older: isize, events: usize) {
        self.scroll = self.scroll.saturating_add_signed(older).min(events.saturating_sub(1));
    }

    /// Returns a text of the report in one line that is safe to print.
    fn text(&self, text: &str) -> String {
        let text = escape::line(text);
        if self.unicode { human::with_sign(&text) } else { text }
    }

    /// Returns a line with a title, above a part of the screen.
    fn titled(&self, title: String) -> Block<'static> {
        let line = border::Set { horizontal_top: if self.unicode { "─" } else { "-" }, ..border::PLAIN };
        Block::new().borders(Borders::TOP).border_set(line).border_style(DIM).title(Line::styled(title, BOLD))
    }

    /// Returns the style of a severity's word: the colors of `pg_timing check`.
    fn style(&self, severity: Severity) -> Style {
        let color = match severity {
            Severity::Ok => Color::Green,
            Severity::Warning => Color::Yellow,
            Severity::Critical => Color::Red,
            Severity::Unknown => Color::Cyan,
        };
        if self.color { BOLD.fg(color) } else { BOLD }
    }

    /// Returns the style of an alarm, if it is one.
    fn alarm(&self, severity: Severity) -> Option<Style> {
        (severity >= Severity::Warning).then(|| self.style(severity))
    }
}

type Draw<'a> = Box<dyn FnOnce(Rect, &mut Buffer) + 'a>;

/// A part of the screen: the least number of lines with which it is useful, the number that it can use, and what draws it.
struct Part<'a> {
    least: usize,
    most: usize,
    draw: Draw<'a>,
}

impl<'a> Part<'a> {
    fn new(least: usize, most: usize, draw: impl FnOnce(Rect, &mut Buffer) + 'a) -> Part<'a> {
        Part { least: least.min(most), most, draw: Box::new(draw) }
    }

    fn of_lines(least: usize, lines: Vec<Line<'a>>) -> Part<'a> {
        Part::new(least, lines.len(), |area, buffer| Paragraph::new(lines).render(area, buffer))
    }
}

/// The number of parts.
const PARTS: usize = 9;
/// The parts of [`draw`] in the order in which they get their least number of lines, and then more: first what is wrong.
const ORDER: [usize; PARTS] = [1, 4, 0, 8, 6, 5, 3, 7, 2];

/// Draws the report into the area.
pub fn draw(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    // From top to bottom. The last part is in the last line.
    let parts = [
        Part::new(1, 1, |area, buffer| header(report, view, area, buffer)),
        Part::of_lines(1, verdict(report, view, width)),
        history(report, view),
        clocks(report, view),
        Part::of_lines(1, findings(report, view)),
        Part::of_lines(3, facts(report, view)),
        Part::of_lines(1, server(report, view, width)),
        Part::new(3, 1 + report.events.len(), |area, buffer| events(report, view, area, buffer)),
        Part::of_lines(1, vec![footer(report, view)]),
    ];
    let mut heights = [0; PARTS];
    let mut lines = usize::from(area.height);
    for nth in ORDER.into_iter().filter(|nth| parts[*nth].most > 0) {
        heights[nth] = if parts[nth].least <= lines { parts[nth].least } else { 0 };
        lines -= heights[nth];
    }
    for nth in ORDER.into_iter().filter(|nth| parts[*nth].most > 0) {
        if heights[nth] > 0 {
            let more = (parts[nth].most - heights[nth]).min(lines);
            heights[nth] += more;
            lines -= more;
        }
    }
    let mut y = area.top();
    for (nth, (part, height)) in parts.into_iter().zip(heights).enumerate() {
        let height = height as u16;
        let y_of_part = if nth == PARTS - 1 { area.bottom() - height } else { y };
        y += height;
        (part.draw)(Rect { y: y_of_part, height, ..area }, buffer);
    }
}

/// Draws the host, its clock source and the samples, and at the right end the time of the last sample.
fn header(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let host = if report.host.is_empty() { "this host".into() } else { view.text(&report.host) };
    let clocksource = report.clocksource.as_ref().and_then(Fact::known).map(|name| view.text(name));
    let [since, now] = [report.started_at, report.sampled_at].map(|at| time(at, report.sampled_at));
    let details = format!(
        ": clock source {}, {} samples since {since}, every {}",
        clocksource.unwrap_or(NOT_DETERMINED.into()),
        human::grouped(report.samples),
        period(report.interval_s),
    );
    let end = format!("  {}{now} UTC", if view.paused { "paused at " } else { "" });
    let [details, end] = if report.samples == 0 { Default::default() } else { [details, end] };
    // The end is more important: without it, old figures look like new ones.
    let width = (columns(&end) as u16).min(area.width);
    let line = Line::from(vec![Span::styled(host, BOLD), Span::raw(details)]);
    Paragraph::new(line).render(Rect { width: area.width - width, ..area }, buffer);
    let style = if view.paused { BOLD } else { Style::new() };
    Paragraph::new(Line::styled(end, style)).render(Rect { x: area.right() - width, width, ..area }, buffer);
}

/// Returns the verdict.
fn verdict(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let (severity, summary) = match &report.verdict {
        Some(verdict) => (verdict.severity, verdict.summary.as_str()),
        None if report.samples == 0 => (Severity::Unknown, "The first sample is not finished."),
        None => (Severity::Unknown, NOT_DETERMINED),
    };
    labeled(severity.word(), view.style(severity), &view.text(summary), width)
}

/// Returns the read cost of PostgreSQL's clock over time: one bar per sample, the newest at the right end. The highest one has
/// the full height. Bars above a limit have the color of its severity.
fn history<'a>(report: &'a MonitorReport, view: &'a View) -> Part<'a> {
    /// The title and the bars. Fewer rows of bars hide small changes, and more show nothing new.
    const LINES: [usize; 2] = [3, 5];
    /// The height of the highest bar, in steps that are smaller than a terminal shows.
    const FULL: f64 = 1000.0;
    let history = report.system().map(|clock| &clock.history_ns);
    // The bars have no ASCII form.
    let Some(history) = history.filter(|history| view.unicode && history.iter().flatten().any(|ns| ns.is_finite()))
    else {
        return Part::of_lines(0, Vec::new());
    };
    Part::new(LINES[0], LINES[1], move |area, buffer| {
        let newest = history.iter().rev().take(area.width.into());
        let shown: Vec<Option<f64>> = newest.map(|ns| ns.map(f64::from).filter(|ns| ns.is_finite())).collect();
        let highest = shown.iter().flatten().copied().fold(0.0, f64::max);
        let height = |ns: f64| if highest > 0.0 { (ns / highest * FULL) as u64 } else { 0 };
        let bar = |ns: &Option<f64>| {
            let style = view.alarm(severity(*ns, report.read_cost_limits_ns)).unwrap_or(DIM);
            SparklineBar::from(ns.map(height)).style(style)
        };
        let time = period(shown.len() as f64 * report.interval_s);
        let title = format!("one read of PostgreSQL's clock, last {time}, at most {} ", duration(Some(highest)));
        Sparkline::default()
            .block(view.titled(title))
            .direction(RenderDirection::RightToLeft)
            .max(FULL as u64)
            .absent_value_symbol(" ")
            .data(shown.iter().map(bar))
            .render(area, buffer);
    })
}

/// Returns the severity of a read cost of PostgreSQL's clock.
fn severity(ns: Option<f64>, limits: Option<ReadCostLimits>) -> Severity {
    match (ns, limits) {
        (Some(ns), Some(limits)) if ns > limits.critical => Severity::Critical,
        (Some(ns), Some(limits)) if ns > limits.warning => Severity::Warning,
        _ => Severity::Unknown,
    }
}

/// Returns the table of clocks.
fn clocks<'a>(report: &'a MonitorReport, view: &'a View) -> Part<'a> {
    /// The columns with their widths, the most important first: a narrow screen does not have the last ones.
    const COLUMNS: [(&str, u16); 7] =
        [("clock", 16), ("one read", 8), ("lost", 5), ("worst", 7), ("went back", 9), ("step", 6), ("access", 12)];
    const GAP: u16 = 2;
    /// The head, PostgreSQL's clock and one more.
    const LEAST: usize = 3;
    if report.clocks.is_empty() {
        return Part::of_lines(0, Vec::new());
    }
    Part::new(LEAST, 1 + report.clocks.len(), move |area, buffer| {
        let line = |head, text: String, style| {
            let line = Line::styled(text, style);
            if ["clock", "went back", "access"].contains(&head) { line } else { line.right_aligned() }
        };
        let row = |clock| {
            COLUMNS.iter().zip(cells(clock, report, view)).map(|((head, _), (text, style))| line(head, text, style))
        };
        let head = Row::new(COLUMNS.map(|(head, _)| line(head, head.into(), BOLD)));
        let mut room = area.width;
        let fits = |width: &u16| room.checked_sub(*width).map(|left| room = left.saturating_sub(GAP)).is_some();
        let widths = COLUMNS.map(|(_, width)| width).into_iter().take_while(fits).map(Constraint::Length);
        let table = Table::new(report.clocks.iter().map(|clock| Row::new(row(clock))), widths);
        Widget::render(table.header(head).column_spacing(GAP), area, buffer);
    })
}

/// Returns the figures of a clock in the order of the columns.
fn cells(clock: &WatchedClock, report: &MonitorReport, view: &View) -> [(String, Style); 7] {
    let limits = report.read_cost_limits_ns.filter(|_| clock.name == SYSTEM);
    let plain = if clock.unavailable.is_some() { DIM } else { Style::new() };
    let alarm = |severity| view.alarm(severity).unwrap_or(plain);
    let went_back = match (clock.totals.backward_steps, clock.totals.measured_s > 0.0) {
        (0, false) => (MISSING.into(), plain),
        (0, true) => ("never".into(), plain),
        (steps, _) => (human::times(steps), alarm(Severity::Critical)),
    };
    let access = match clock.access_path {
        Some(AccessPath::Instruction) => "instruction",
        Some(AccessPath::Vdso) => "vDSO",
        Some(AccessPath::Syscall) => "system call",
        Some(AccessPath::Interposed) => "intercepted",
        None if clock.unavailable.is_some() => "not measured",
        None => MISSING,
    };
    [
        (view.text(&clock.name), plain),
        (duration(clock.read_ns), alarm(severity(clock.read_ns, limits))),
        (clock.totals.lost_share().map_or(MISSING.into(), percent), plain),
        (duration(clock.percentiles.map(|p| p.max_ns)), plain),
        went_back,
        (duration(clock.granularity_ns), plain),
        (access.into(), plain),
    ]
}

/// Returns the alarms, the worst first, each with the command that fixes it; then a summary.
fn findings(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    let (mut alarms, others): (Vec<&WatchedFinding>, Vec<_>) = report.findings.iter().partition(|f| f.is_alarm());
    alarms.sort_by_key(|watched| std::cmp::Reverse(watched.finding.severity));
    let mut lines = Vec::new();
    let mut commands = Vec::new();
    for watched in &alarms {
        let finding = &watched.finding;
        let since = time(watched.appeared_at.unwrap_or(watched.since), report.sampled_at);
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
        let unknown =
            if unknown.is_empty() { String::new() } else { format!("; {NOT_DETERMINED}: {}", unknown.join(", ")) };
        lines.push(Line::styled(format!("alarms: {}; checks that are OK: {ok}{unknown}", alarms.len()), DIM));
    }
    lines
}

/// Returns lines with a label, the most important first.
fn facts(report: &MonitorReport, view: &View) -> Vec<Line<'static>> {
    if report.samples == 0 {
        return Vec::new();
    }
    let mut facts: Vec<(&str, Option<String>)> = Vec::new();
    facts.extend(report.unwritten.as_ref().map(|unwritten| ("not written", Some(view.text(unwritten)))));
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
            format!("{}: {} interruptions took {lost} of {all}", percent(share), count(totals.gaps))
        };
        facts.push(("lost time", totals.lost_share().map(lost)));
        let percentiles = clock.percentiles.map(|p| {
            [("50", p.p50_ns), ("99", p.p99_ns), ("99.9", p.p99_9_ns), ("99.99", p.p99_99_ns), ("99.999", p.p99_999_ns)]
                .map(|(name, ns)| format!("{name}% {}", duration(Some(ns))))
                .join(GAP)
        });
        facts.push(("percentiles", percentiles));
    }
    let khz = |hz: f64| human::khz((hz / 100.0).round() / 10.0);
    let rate = report.counter.map(|rate| format!("{} +- {:.2} ppm", khz(rate.hz), rate.uncertainty_ppm.max(0.01)));
    facts.push(("counter", rate));
    for id in [finding_id::DRIFT, finding_id::CPU_SKEW] {
        let finding = report.findings.iter().map(|watched| &watched.finding).find(|finding| finding.id == id);
        let text = |finding: &Finding| match finding.severity {
            Severity::Unknown => NOT_DETERMINED.into(),
            severity if severity >= Severity::Warning => "see the alarm".into(),
            _ => finding.summary.clone(),
        };
        facts.push((id, finding.map(text)));
    }
    facts.push(("kernel", Some(kernel(report))));
    let text = |text: Option<String>| text.map_or(NOT_DETERMINED.into(), |text| view.text(&text));
    facts.into_iter().map(|(label, fact)| Line::from(left(label, LABEL) + &text(fact))).collect()
}

fn kernel(report: &MonitorReport) -> String {
    let stops = |number, seconds| match number {
        0 => "0".into(),
        number => format!("{} ({})", count(number), period(seconds)),
    };
    format!(
        "since {}: messages about clocks: {}, suspends: {}, pauses: {}",
        time(report.started_at, report.sampled_at),
        count(report.kernel_messages),
        stops(report.suspends, report.suspended_s),
        stops(report.pauses, report.paused_s),
    )
}

/// Returns the server of `--server`: the verdict of `advise`, and pg_fast_timing's figures.
fn server(report: &MonitorReport, view: &View, width: usize) -> Vec<Line<'static>> {
    let Some(server) = &report.server else { return Vec::new() };
    let (alarm, text) = match (&server.error, &server.advise) {
        (Some(why), _) => (None, format!("no figures: {why}")),
        (None, None) => (None, "waiting for the first answer".into()),
        (None, Some(AdviseReport { verdict, server_version, .. })) => {
            let text = format!("PostgreSQL {server_version}: {}: {}", verdict.severity.word(), verdict.summary);
            (view.alarm(verdict.severity), text)
        }
    };
    let label = left("server", LABEL - GAP.len());
    let mut lines = labeled(&label, alarm.unwrap_or_default(), &view.text(&text), width);
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
fn events(report: &MonitorReport, view: &View, area: Rect, buffer: &mut Buffer) {
    let all = report.events.len();
    let rows = usize::from(area.height).saturating_sub(1);
    let skipped = view.scroll.min(all.saturating_sub(rows));
    let title = match all {
        0 => "no events ".into(),
        all if all <= rows => "events ".into(),
        all => format!("events {} to {} of {all} ", skipped + 1, skipped + rows),
    };
    let line = |event: &MonitorEvent| {
        let alarm = event.severity.and_then(|severity| Some((severity.word(), view.alarm(severity)?)));
        let word = match (event.event, alarm) {
            (EventKind::FindingCleared, _) => Span::raw("cleared  "),
            (_, Some((word, style))) => Span::styled(format!("{word}  "), style),
            (_, None) => Span::raw(""),
        };
        let time = format!("{:8}  ", time(event.unix_seconds, report.sampled_at));
        Line::from(vec![Span::styled(time, DIM), word, Span::raw(view.text(&event.summary))])
    };
    let lines: Vec<Line> = report.events.iter().rev().skip(skipped).take(rows).map(line).collect();
    Paragraph::new(lines).block(view.titled(title)).render(area, buffer);
}

/// Returns the keys, and what the monitor itself uses.
fn footer(report: &MonitorReport, view: &View) -> Line<'static> {
    let pause = if view.paused { "continue" } else { "pause" };
    let arrows = if view.unicode { "↑↓" } else { "up/down" };
    let memory = report.own.memory_bytes.map(|bytes| format!(", {} MB", bytes.div_ceil(1_000_000)));
    let own = format!("CPU {}{}", percent(report.own.cpu_share), memory.unwrap_or_default());
    let own = if report.samples == 0 { String::new() } else { own };
    let keys = format!("q quit   p {pause}   {arrows} events   ");
    Line::from(vec![Span::raw(keys), Span::styled(own, DIM)])
}

/// Returns the text in some lines after a label. Later lines are indented.
fn labeled(label: &str, style: Style, text: &str, width: usize) -> Vec<Line<'static>> {
    let indent = columns(label) + GAP.len();
    let lines = wrap(text, width.saturating_sub(indent)).into_iter().take(VERDICT_LINES);
    let mut lines: Vec<Line> = lines.map(|line| Line::from(vec![" ".repeat(indent).into(), line.into()])).collect();
    lines[0].spans[0] = Span::styled(label.to_string(), style);
    lines[0].spans.insert(1, Span::raw(GAP));
    lines
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
