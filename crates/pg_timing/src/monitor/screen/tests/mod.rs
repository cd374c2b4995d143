//! Tests of the whole screen.

mod samples;

use super::{View, draw, time};
use crate::report::*;
use insta::assert_snapshot;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use samples::{NOW, bad, event, healthy};
use timing_clock::{Hertz, Nanos, Ppm, Rate};

fn view() -> View {
    View { color: true, unicode: true, ..View::default() }
}

fn drawn(report: &MonitorReport, view: &View, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw(report, view, buffer.area, &mut buffer);
    buffer
}

fn screen(report: &MonitorReport, view: &View, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(report, view, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().clone()
}

#[test]
fn whole_screens() {
    let reports = [("healthy", healthy()), ("bad", bad()), ("empty", MonitorReport::default())];
    for (name, report) in reports {
        for (width, height) in [(80, 24), (40, 10), (120, 40)] {
            assert_snapshot!(format!("{name}_{width}x{height}"), screen(&report, &view(), width, height));
        }
    }
}

/// The guide shows the screen of the healthy host.
#[test]
fn the_guide_has_this_screen() {
    let page = include_str!("../../../../../../docs/monitor.md");
    let screen = screen(&healthy(), &view(), 80, 24).to_string();
    let lines = screen.lines().map(|line| line.trim_matches('"').trim_end());
    let screen = lines.collect::<Vec<_>>().join("\n");
    assert!(page.contains(&screen), "{screen}");
}

#[test]
fn an_ascii_screen() {
    let screen = screen(&bad(), &View::default(), 80, 24);
    assert!(screen.to_string().is_ascii(), "{screen}");
    assert_snapshot!("ascii_bad", screen);
}

#[test]
fn a_pause_and_older_events_are_shown() {
    let mut report = healthy();
    report.events.extend((0..40).map(|nth| event(NOW, EventKind::RateChanged, None, &format!("event {nth}"))));
    assert_snapshot!(screen(&report, &View { paused: true, scroll: 30, ..view() }, 80, 24));
}

#[test]
fn events_that_are_not_written_are_named() {
    let unwritten = Some("3 events: could not write \"/x\": No space left on device".to_string());
    let text = screen(&MonitorReport { unwritten, ..healthy() }, &view(), 80, 24).to_string();
    assert!(text.contains("not written 3 events: could not write \"/x\": No space left on device"), "{text}");
}

#[test]
fn without_color_only_attributes_are_used() {
    let colors = |view: &View| {
        let buffer = drawn(&bad(), view, 120, 40);
        buffer.content.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colors(&View { color: false, ..view() }), 0);
    assert!(colors(&view()) > 0);
}

#[test]
fn a_host_without_problems_has_color_only_in_the_verdict() {
    let mut report = healthy();
    report.events.clear();
    let buffer = drawn(&report, &view(), 120, 40);
    let colored: Vec<&str> = buffer.content.iter().filter(|c| c.fg != Color::Reset).map(|c| c.symbol()).collect();
    assert_eq!(colored, ["O", "K"]);
}

#[test]
fn a_small_screen_shows_the_most_important_parts() {
    let text = |height| screen(&bad(), &view(), 80, height).to_string();
    assert!(text(1).starts_with("\"CRITICAL  One read"));
    assert!(text(2).contains("CRITICAL  clock-slow since") && text(4).contains("q quit"), "{}", text(4));
}

#[test]
fn old_times_are_dates() {
    assert_eq!(time(1e9, 1e9 + 5.0), "01:46:40");
    assert_eq!(time(1e9, 1e9 + 86_401.0), "2001-09-09");
}

#[test]
fn a_missing_figure_is_not_zero() {
    let last = ClockReport { name: SYSTEM.into(), ..ClockReport::default() };
    let clocks = vec![WatchedClock { last, ..WatchedClock::default() }];
    let report = MonitorReport { samples: 1, clocks, ..MonitorReport::default() };
    let text = screen(&report, &view(), 80, 24).to_string();
    let clock = text.lines().find(|line| line.starts_with("\"system ")).unwrap();
    assert!(clock.split_whitespace().skip(1).take(6).all(|figure| figure == "-"), "{clock}");
    for label in ["percentiles", "counter    ", "drift      ", "cpu-skew   "] {
        assert!(text.contains(&format!("{label} not determined")), "{label}: {text}");
    }
}

#[test]
fn scrolling_ends_at_both_ends() {
    let mut view = view();
    for (older, scroll) in [(1, 1), (10, 2), (-1, 1), (-10, 0)] {
        view.scroll_by(older, 3);
        assert_eq!(view.scroll, scroll);
    }
    view.scroll_by(1, 0);
    assert_eq!(view.scroll, 0);
}

#[test]
fn the_error_of_a_server_is_shown_once() {
    let mut report = bad();
    let error = Some("connection refused".to_string());
    report.collectors.push(Collector { name: Collector::SERVER, seconds: 0.1, error: error.clone() });
    report.server = Some(ServerReport { error, ..ServerReport::default() });
    let text = screen(&report, &view(), 120, 60).to_string();
    assert_eq!(text.matches("connection refused").count(), 1, "{text}");
}

#[test]
fn text_from_outside_is_escaped() {
    let mut report = bad();
    let bell = "\x1b]0;\x07\n";
    report.now.host.name = Fact::Known(bell.into());
    report.now.clocksource.current = Fact::Known(bell.into());
    report.clocks[0].last.unavailable = Some(bell.into());
    report.clocks[1].last.name = bell.into();
    report.findings[0].finding.summary = bell.into();
    report.findings[1].finding.id = bell.into();
    report.events.push_back(event(NOW, EventKind::KernelMessage, None, bell));
    report.server.as_mut().unwrap().error = Some(bell.into());
    let text = screen(&report, &view(), 200, 60).to_string();
    assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_unsafe(c)), "{text}");
    assert!(text.matches("\\u{1b}]0;\\u{7}").count() >= 6, "{text}");
}

/// Text with wide characters, characters without width, and characters that a terminal executes.
fn odd_text() -> impl Strategy<Value = String> {
    "(a|\u{65e5}\u{672c}|\u{301}|\u{1f469}\u{200d}\u{1f692}|\x1b|\n| ){0,12}"
}

fn odd_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-1.0),
        Just(0.0),
        Just(f64::MAX),
        Just(1e18),
        Just(f64::MIN_POSITIVE),
        any::<f64>(),
        0.0..1e4,
    ]
}

prop_compose! {
    fn odd_clock()(
        name in odd_text(),
        unavailable in proptest::option::of(odd_text()),
        numbers in proptest::array::uniform6(odd_number()),
        history in proptest::collection::vec(proptest::option::of(odd_number().prop_map(|n| n as f32)), 0..300),
        count in any::<u64>(),
    ) -> WatchedClock {
        let [a, b, c, d, e, f] = numbers;
        let last = ClockReport {
            name: if count % 3 == 0 { SYSTEM.into() } else { name },
            unavailable: unavailable.filter(|_| count % 5 == 0),
            read_ns: Some(a),
            percentiles: Some(Percentiles {
                min_ns: a, p50_ns: b, p90_ns: c, p99_ns: d, p99_9_ns: e, p99_99_ns: f, p99_999_ns: a, max_ns: b,
            }),
            granularity_ns: Some(c),
            ..ClockReport::default()
        };
        WatchedClock {
            last,
            history_ns: history.into(),
            largest_gap_ns: Some(d),
            totals: ClockTotals { histogram: vec![count; 3], measured_s: e, backward_steps: count / 2, gaps: count, gap_s: f },
        }
    }
}

prop_compose! {
    fn odd_report()(
        clocks in proptest::collection::vec(odd_clock(), 0..12),
        texts in proptest::array::uniform6(odd_text()),
        numbers in proptest::array::uniform8(odd_number()),
        count in any::<u64>(),
    ) -> MonitorReport {
        let [a, b, c, d, e, f, g, h] = numbers;
        let [host, id, summary, evidence, clock, message] = texts;
        let mut report = if count % 2 == 0 { bad() } else { MonitorReport::default() };
        let severity = [Severity::Unknown, Severity::Ok, Severity::Warning, Severity::Critical][(count % 4) as usize];
        let finding = Finding::new(&id, severity, &summary).evidence(evidence.clone()).fix(Fix::new(evidence));
        report.now.verdict = Verdict { severity, summary };
        report.findings.push(WatchedFinding { appeared_at: Some(b), ..WatchedFinding::new(finding, a) });
        report.events.push_back(event(d, EventKind::Suspend, Some(severity), &message));
        report.now.drift = vec![Drift {
            clock, reference: id, rate_ppm: e, uncertainty_ppm: f, bend_ppm: g, steps: vec![], over_seconds: h,
        }];
        report.counter = Some(Rate { rate: Hertz(a), uncertainty: Ppm(b), duration: Nanos(1e9) });
        report.own = OwnUse { cpu_s: e, cpu_share: f, memory_bytes: Some(count) };
        report.now.host.name = Fact::Known(host);
        MonitorReport {
            clocks, started_at: g, sampled_at: h, interval_s: a, samples: count, suspends: count, suspended_s: b,
            pauses: count, paused_s: c, kernel_messages: count, ..report
        }
    }
}

proptest! {
    #[test]
    fn any_report_fits_on_any_screen(
        report in odd_report(),
        width in 0..=250u16,
        height in 0..=80u16,
        flags in proptest::array::uniform3(any::<bool>()),
        scroll in any::<usize>(),
    ) {
        let [paused, color, unicode] = flags;
        drawn(&report, &View { paused, scroll, color, unicode }, width, height);
    }
}
