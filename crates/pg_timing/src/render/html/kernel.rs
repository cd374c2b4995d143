//! The kernel's messages about clocks, on a logarithmic axis of the time since boot and as a list.

use crate::human::uptime;
use crate::render::host_text::{KernelLog, READ_LOG, kernel_problem_or_summary};
use crate::report::{Fact, KernelReport, Report};
use maud::{Markup, html};

/// Returns the kernel's messages. `None` if nothing is known about the kernel log.
pub fn timeline(report: &Report) -> Option<Markup> {
    let shown = kernel_problem_or_summary(report)?;
    let Fact::Known(kernel) = &report.kernel else {
        return Some(html! { @if let KernelLog::Unreadable(why) = shown { p { (why) " " code { (READ_LOG) } } } });
    };
    let messages: Vec<Message> = kernel.story.iter().map(|line| Message::of(line, kernel)).collect();
    let last = messages.iter().filter_map(|message| message.seconds).fold(0.0, f64::max);
    let up = report.host.uptime_seconds.known().copied().unwrap_or_default();
    Some(html! {
        @if let KernelLog::Summary(summary) = shown { p { (summary) } }
        @if messages.iter().any(|message| message.seconds.is_some()) { (axis(&messages, Axis::to(last.max(up)), up >= last)) }
        ol.story {
            @for message in &messages {
                li.critical[message.is_demotion] {
                    span { (message.when.unwrap_or("-")) }
                    p { (message.text) }
                }
            }
            @if up >= last && up > 0.0 { li { span { "now" } p.muted { (uptime(up)) " after boot" } } }
        }
    })
}

/// A line of the kernel's story.
#[derive(Debug, PartialEq)]
struct Message<'a> {
    /// like `0.3 s after boot`
    when: Option<&'a str>,
    seconds: Option<f64>,
    text: &'a str,
    /// the kernel marked the TSC unstable at that time
    is_demotion: bool,
}

impl Message<'_> {
    fn of<'a>(line: &'a str, kernel: &KernelReport) -> Message<'a> {
        const AT_BOOT: &str = "at boot";
        const AFTER_BOOT: &str = " s after boot";
        /// A century. The text of a file can contain any number.
        const MAX_S: f64 = 3.2e9;
        if let Some(text) = line.strip_prefix(AT_BOOT).and_then(|rest| rest.strip_prefix(' ')) {
            return Message { when: Some(AT_BOOT), seconds: Some(0.0), text, is_demotion: false };
        }
        let timed = line.split_once(AFTER_BOOT).and_then(|(number, rest)| {
            let seconds = number.parse::<f64>().ok().filter(|seconds| (0.0..=MAX_S).contains(seconds))?;
            Some((&line[..number.len() + AFTER_BOOT.len()], seconds, rest.strip_prefix(' ')?))
        });
        let Some((when, seconds, text)) = timed else {
            return Message { when: None, seconds: None, text: line, is_demotion: false };
        };
        // The line has the time rounded to seconds, or to tenths during boot.
        let rounding = if when.contains('.') { 0.05 } else { 0.5 };
        let demoted = kernel.demotion.as_ref().and_then(|demotion| demotion.seconds);
        let is_demotion = demoted.is_some_and(|at| (at - seconds).abs() <= rounding) && text.contains("unstable");
        Message { when: Some(when), seconds: Some(seconds), text, is_demotion }
    }
}

/// A logarithmic axis that starts at boot.
#[derive(Clone, Copy)]
struct Axis {
    end: f64,
}

impl Axis {
    /// The first tenth of a second takes as much room as each later doubling of the time. Kernels write most messages early.
    const FIRST_S: f64 = 0.1;

    fn to(end: f64) -> Axis {
        Axis { end: end.max(1.0) }
    }

    /// Returns the position as a percentage.
    fn percent(self, seconds: f64) -> f64 {
        let length = |seconds: f64| (1.0 + seconds / Axis::FIRST_S).ln();
        100.0 * (length(seconds) / length(self.end)).clamp(0.0, 1.0)
    }

    /// Returns the labels between both ends, with enough room for each.
    fn ticks(self) -> Vec<(f64, &'static str)> {
        /// On a screen of 360 pixels this is 46 pixels, which is more than the longest label.
        const APART: f64 = 14.0;
        let all = [(1.0, "1 s"), (60.0, "1 min"), (3600.0, "1 h"), (86_400.0, "1 day"), (2_592_000.0, "30 days")];
        let mut ticks = Vec::new();
        let mut before = 0.0;
        for (seconds, label) in all {
            let at = self.percent(seconds);
            if at >= before + APART && at <= 100.0 - 1.5 * APART {
                ticks.push((at, label));
                before = at;
            }
        }
        ticks
    }
}

/// `has_now`: the end of the axis is the time of the report.
fn axis(messages: &[Message], axis: Axis, has_now: bool) -> Markup {
    let end = uptime(axis.end);
    html! {
        div.timeline role="img" aria-label={ "Times of these messages, from boot to " (end) " later. The list has the same times." } {
            span.line {}
            @for message in messages {
                @if let Some(seconds) = message.seconds {
                    i.critical[message.is_demotion] style=(format!("left: {:.2}%", axis.percent(seconds))) {}
                }
            }
            span.tick.start style="left: 0" { "boot" }
            @for (at, label) in axis.ticks() { span.tick style=(format!("left: {at:.2}%")) { (label) } }
            span.tick.end style="left: 100%" { @if has_now { "now" } @else { "last" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Demoted, Origin};

    fn kernel(story: &[&str]) -> KernelReport {
        let demotion = Demoted {
            when: None,
            seconds: Some(7823.1),
            at_boot: false,
            cpu: None,
            watchdog: None,
            skew_ns: None,
            interval_ns: None,
            reason: None,
            because: String::new(),
            doubt: None,
        };
        let story = story.iter().map(|line| line.to_string()).collect();
        KernelReport { story, demotion: Some(demotion), ..KernelReport::default() }
    }

    #[test]
    fn the_time_is_the_start_of_a_message() {
        let kernel = kernel(&[]);
        let parts = |line| {
            let Message { when, seconds, is_demotion, .. } = Message::of(line, &kernel);
            (when, seconds, is_demotion)
        };
        assert_eq!(parts("at boot the kernel"), (Some("at boot"), Some(0.0), false));
        assert_eq!(parts("0.3 s after boot it"), (Some("0.3 s after boot"), Some(0.3), false));
        assert!(parts("7823 s after boot it marked tsc unstable").2);
        assert!(!parts("7823 s after boot it switched").2);
        for other in
            ["at Nov 20 10:29:43 the kernel", "x s after boot y", "-1 s after boot y", "1e10 s after boot y", ""]
        {
            assert_eq!(parts(other), (None, None, false), "{other}");
        }
    }

    #[test]
    fn labels_do_not_touch() {
        for end in [0.0, 3.0, 100.0, 8012.0, 1e5, 1e7, 1e300] {
            let ticks = Axis::to(end).ticks();
            assert!(ticks.windows(2).all(|two| two[1].0 - two[0].0 >= 14.0), "{end}: {ticks:?}");
            assert!(ticks.iter().all(|(at, _)| (14.0..=79.0).contains(at)), "{end}: {ticks:?}");
        }
    }

    #[test]
    fn messages_are_escaped() {
        let mut report = Report::empty(Origin::Measured, "<why>");
        assert!(timeline(&report).unwrap().into_string().contains("&lt;why&gt;"));
        report.kernel = Fact::Known(kernel(&["at boot <script>", "7823 s after boot it is unstable"]));
        let text = timeline(&report).unwrap().into_string();
        assert!(text.contains("<p>&lt;script&gt;</p>") && text.contains("<li class=\"critical\">"), "{text}");
    }
}
