//! The findings: alarms first, with what to do; then what is no alarm any more, and what was not determined.

use super::figures::{fit, safe, wrap};
use super::header::with_sign;
use super::style::{BOLD, DIM, of_severity};
use super::view::View;
use crate::render::columns::left;
use crate::report::{MonitorReport, Severity, WatchedFinding};
use ratatui::text::{Line, Span};

/// Columns of the word at the beginning of a line: `CRITICAL` is the longest.
const WORD: usize = 8;

/// Returns the alarms, the worst first.
pub fn alarms(report: &MonitorReport) -> Vec<&WatchedFinding> {
    let mut alarms: Vec<&WatchedFinding> = report.findings.iter().filter(|watched| watched.is_alarm()).collect();
    alarms.sort_by_key(|watched| std::cmp::Reverse(watched.finding.severity));
    alarms
}

/// Returns the number of lines that show each alarm, that also show what to do, and that show everything.
pub fn heights(report: &MonitorReport) -> [usize; 3] {
    let alarms = alarms(report);
    let with_commands = alarms.len() + commands(&alarms).iter().flatten().count();
    let summary = usize::from(summary(report).is_some());
    let least = if alarms.is_empty() { summary } else { alarms.len() };
    [least, with_commands.max(least), with_commands + summary + cleared(report).len()]
}

/// Returns at most `height` lines. If there is room, each alarm has a line with the command that fixes it.
pub fn lines(report: &MonitorReport, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let alarms = alarms(report);
    let with_commands = height >= heights(report)[1];
    let mut lines = Vec::new();
    for (watched, command) in alarms.iter().zip(commands(&alarms)) {
        lines.push(alarm(report, watched, view, width));
        if let Some(command) = command.filter(|_| with_commands) {
            let label = fit(&format!("{}  ", left("  do", WORD)), width);
            let command = fit(&safe(command), width - label.len());
            lines.push(Line::from(vec![Span::raw(label), Span::styled(command, BOLD)]));
        }
    }
    if lines.len() > height {
        return names(&alarms, width, height);
    }
    lines.extend(summary(report).into_iter().map(|text| Line::styled(fit(&text, width), DIM)));
    lines.extend(cleared(report).iter().map(|watched| Line::from(fit(&cleared_text(report, watched, view), width))));
    lines.truncate(height);
    lines
}

/// Returns the names of the alarms, if the lines do not suffice for more.
fn names(alarms: &[&WatchedFinding], width: usize, height: usize) -> Vec<Line<'static>> {
    let names: Vec<String> = alarms.iter().map(|watched| safe(&watched.finding.id)).collect();
    let text = format!("{} alarms: {}", alarms.len(), names.join(", "));
    wrap(&text, width, 0, height).into_iter().map(|line| Line::styled(line, BOLD)).collect()
}

fn alarm(report: &MonitorReport, watched: &WatchedFinding, view: &View, width: usize) -> Line<'static> {
    let finding = &watched.finding;
    let word = left(finding.severity.word(), WORD);
    let since = view.time(watched.appeared_at.unwrap_or(watched.since), report.sampled_at);
    // The verdict already shows the summary of the worst alarm.
    let is_shown = report.verdict.as_ref().is_some_and(|verdict| {
        verdict.summary.to_lowercase().contains(&finding.summary.to_lowercase()) && !finding.evidence.is_empty()
    });
    let text = if is_shown { &finding.evidence[0] } else { &finding.summary };
    let rest = format!("  {} since {since}: {}", safe(&finding.id), with_sign(&safe(text), view));
    let word = fit(&word, width);
    let rest = fit(&rest, width - word.len());
    Line::from(vec![Span::styled(word, of_severity(finding.severity, view)), Span::raw(rest)])
}

/// Returns what to do about each alarm: the best command. A command of several alarms is shown once.
fn commands<'a>(alarms: &[&'a WatchedFinding]) -> Vec<Option<&'a str>> {
    let mut shown = Vec::new();
    let commands = alarms.iter().map(|watched| {
        let fix = watched.finding.fix.first()?;
        let command = fix.command.as_deref().unwrap_or(&fix.what);
        let is_new = !shown.contains(&command);
        shown.push(command);
        is_new.then_some(command)
    });
    commands.collect()
}

/// Returns the findings that were alarms, the last cleared first.
fn cleared(report: &MonitorReport) -> Vec<&WatchedFinding> {
    let were = report.findings.iter().filter(|watched| !watched.is_alarm() && watched.cleared_at.is_some());
    let mut cleared: Vec<&WatchedFinding> = were.collect();
    cleared.sort_by(|a, b| b.cleared_at.unwrap_or(0.0).total_cmp(&a.cleared_at.unwrap_or(0.0)));
    cleared
}

fn cleared_text(report: &MonitorReport, watched: &WatchedFinding, view: &View) -> String {
    let time = |at: Option<f64>| at.map_or("-".into(), |at| view.time(at, report.sampled_at));
    let word = left("cleared", WORD);
    let [from, until] = [watched.appeared_at, watched.cleared_at].map(time);
    format!("{word}  {}: an alarm from {from} to {until}", safe(&watched.finding.id))
}

/// Returns a line with the number of findings without a problem, and with those that were not determined.
fn summary(report: &MonitorReport) -> Option<String> {
    let of = |severity| report.findings.iter().filter(move |watched| watched.finding.severity == severity);
    let unknown: Vec<String> = of(Severity::Unknown).map(|watched| safe(&watched.finding.id)).collect();
    let ok = match (of(Severity::Ok).count(), alarms(report).len()) {
        _ if report.findings.is_empty() => return None,
        (0, 0) => "no alarms".into(),
        (0, _) => String::new(),
        (1, 0) => "no alarms, 1 check is OK".into(),
        (ok, 0) => format!("no alarms, {ok} checks are OK"),
        (1, _) => "1 other check is OK".into(),
        (ok, _) => format!("{ok} other checks are OK"),
    };
    let unknown = if unknown.is_empty() { String::new() } else { format!("not determined: {}", unknown.join(", ")) };
    Some([ok, unknown].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::samples::{bad, healthy, view};

    fn texts(report: &MonitorReport, height: usize) -> Vec<String> {
        lines(report, &view(), 80, height).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_command_of_several_alarms_is_shown_once() {
        let report = bad();
        let commands = |height| texts(&report, height).iter().filter(|text| text.starts_with("  do ")).count();
        assert_eq!(heights(&report), [3, 4, 6]);
        assert_eq!([3, 4, 6].map(commands), [0, 1, 1]);
    }

    #[test]
    fn alarms_without_a_line_are_named() {
        assert_eq!(texts(&bad(), 1), ["3 alarms: clock-slow, clock-backward, tsc-demoted"]);
        assert_eq!(texts(&bad(), 0), [""; 0]);
    }

    #[test]
    fn a_cleared_alarm_has_both_times() {
        let texts = texts(&healthy(), 9);
        assert_eq!(texts[0], "no alarms, 3 checks are OK; not determined: tsc-firmware");
        assert_eq!(texts[1], "cleared   clock-gaps: an alarm from 18:15:06 to 18:25:06");
    }

    #[test]
    fn the_verdict_is_not_repeated() {
        let mut report = bad();
        assert!(texts(&report, 9)[0].ends_with("clock-slow since 18:25:06: median of 1 249 ± 12 ns"));
        report.verdict = None;
        assert!(texts(&report, 9)[0].contains("clock-slow since 18:25:06: one read of PostgreSQL's"));
    }
}
