//! The kernel's messages about clocks, on a logarithmic axis of the time since boot and as a list.

use crate::human::uptime;
use crate::render::host_text::{READ_LOG, kernel_log, meaning};
use crate::report::{KernelMessage, MessageLevel, Report};
use maud::{Markup, html};

/// A century. A file can contain any number.
const MAX_S: f64 = 3.2e9;

/// Returns the kernel's messages. `None` if nothing is known about the kernel log.
pub fn timeline(report: &Report) -> Option<Markup> {
    let log = kernel_log(report)?;
    // The page has room for all messages, also if none of them matters.
    let messages = report.kernel.known().map(|kernel| kernel.messages.as_slice()).unwrap_or_default();
    let last = messages.iter().filter_map(seconds).fold(0.0, f64::max);
    let up = report.host.uptime_seconds.known().copied().unwrap_or_default();
    Some(html! {
        @if let Some(summary) = log.summary { p { (summary) } }
        @if let Some(why) = log.unreadable { p { (why) " " code { (READ_LOG) } } }
        @if messages.iter().any(|message| seconds(message).is_some()) { (axis(messages, Axis::to(last.max(up)), up >= last)) }
        @if !messages.is_empty() {
            ol.story {
                @for message in messages {
                    li.critical[is_fault(message)] {
                        span { (when(message)) }
                        p { (message.text) br; span.muted { (meaning(message)) } }
                    }
                }
                @if up >= last && up > 0.0 { li { span { "now" } p.muted { (uptime(up)) " after boot" } } }
            }
        }
    })
}

fn is_fault(message: &KernelMessage) -> bool {
    message.level == MessageLevel::Fault
}

/// Returns the time since boot, if it is possible.
fn seconds(message: &KernelMessage) -> Option<f64> {
    message.seconds.filter(|seconds| (0.0..=MAX_S).contains(seconds))
}

/// Returns the time in words: `0.3 s after boot`.
fn when(message: &KernelMessage) -> String {
    match (seconds(message), &message.stamp) {
        (Some(0.0), _) => "at boot".into(),
        (Some(seconds @ ..60.0), _) => format!("{seconds:.1} s after boot"),
        (Some(seconds), _) => format!("{seconds:.0} s after boot"),
        (None, Some(stamp)) => stamp.clone(),
        (None, None) => "-".into(),
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
fn axis(messages: &[KernelMessage], axis: Axis, has_now: bool) -> Markup {
    let end = uptime(axis.end);
    html! {
        div.timeline role="img" aria-label={ "Times of these messages, from boot to " (end) " later. The list has the same times." } {
            span.line {}
            @for message in messages {
                @if let Some(seconds) = seconds(message) {
                    i.critical[is_fault(message)] style=(format!("left: {:.2}%", axis.percent(seconds))) {}
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
    use crate::report::{Fact, KernelReport, Origin};

    fn message(seconds: f64, text: &str, level: MessageLevel) -> KernelMessage {
        let meaning = "bad".to_string();
        KernelMessage {
            seconds: Some(seconds),
            stamp: None,
            text: text.into(),
            meaning,
            level,
            times: 1,
            last_seconds: None,
        }
    }

    #[test]
    fn impossible_times_are_not_on_the_axis() {
        let times = [0.0, 0.31, 7823.1, 1e300, -1.0, f64::NAN].map(|at| when(&message(at, "", MessageLevel::Detail)));
        assert_eq!(times, ["at boot", "0.3 s after boot", "7823 s after boot", "-", "-", "-"]);
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
        let messages =
            vec![message(0.0, "<script>", MessageLevel::Detail), message(7823.0, "unstable", MessageLevel::Fault)];
        report.kernel = Fact::Known(KernelReport { messages, recognized_lines: 2, ..KernelReport::default() });
        let text = timeline(&report).unwrap().into_string();
        assert!(text.contains("<p>&lt;script&gt;<br>") && text.contains("<li class=\"critical\">"), "{text}");
    }
}
