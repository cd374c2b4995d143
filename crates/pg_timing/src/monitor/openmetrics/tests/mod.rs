mod docs;
mod grammar;

use super::{ALL, PREFIX, bound_s, label, text};
use crate::report::{
    AccessPath, Action, AdviseReport, ClockReport, ClockTotals, Collector, CoreShare, Drift, EventKind, EventsAre,
    Fact, FastTiming, Finding, MonitorReport, Ntp, OwnUse, PlanNode, ReadCost, Report, ServerReport, SettingAdvice,
    Severity, Skew, Verdict, WatchedClock, WatchedFinding,
};
use grammar::{Metric, Series, parse};
use proptest::prelude::*;
use timing_clock::{Hertz, Nanos, Ppm, Rate};

/// Returns a report in which nothing is missing. `text` is in each label that comes from outside.
fn complete(text: &str) -> MonitorReport {
    let finding = |id: &str, severity| WatchedFinding::new(Finding::new(id, severity, "summary"), 1_764_097_000.25);
    let last = ClockReport {
        name: text.into(),
        access_path: Some(AccessPath::Vdso),
        read_ns: Some(20.1),
        granularity_ns: Some(1.0),
        ..Default::default()
    };
    let clock = WatchedClock {
        last,
        largest_gap_ns: Some(250_000.0),
        totals: ClockTotals {
            histogram: vec![0, 0, 0, 0, 5, 1000, 7],
            measured_s: 0.0000212,
            backward_steps: 0,
            gaps: 2,
            gap_s: 0.0003,
        },
        ..Default::default()
    };
    let mut now = Report {
        verdict: Verdict { severity: Severity::Warning, summary: "slow".into() },
        drift: vec![Drift {
            clock: text.into(),
            reference: "monotonic_raw".into(),
            rate_ppm: -12.5,
            uncertainty_ppm: 0.25,
            bend_ppm: 0.0,
            steps: Vec::new(),
            over_seconds: 15.0,
        }],
        ..Report::default()
    };
    now.cpus.skew =
        vec![Skew { clock: "rdtsc".into(), a: 0, b: 1, low_ns: -15.5, high_ns: 16.0, moving: false, passes: 99 }];
    now.host.ntp = Fact::Known(Ntp { synchronized: true, frequency_ppm: -12.5 });
    MonitorReport {
        now,
        sampled_at: 1_764_097_015.5,
        interval_s: 15.0,
        samples: 4,
        findings: vec![finding("clock-slow", Severity::Warning), finding(text, Severity::Unknown)],
        clocks: vec![clock],
        offset_steps: [((text.into(), "monotonic_raw".into()), 2)].into(),
        counter: Some(Rate { rate: Hertz(2_596_098_013.5), uncertainty: Ppm(0.5), duration: Nanos(1e9) }),
        event_counts: [(EventKind::Suspend, 3)].into(),
        collectors: vec![Collector { name: "clocks", seconds: 0.05, error: None }],
        own: OwnUse { cpu_s: 1.5, cpu_share: 0.01, memory_bytes: Some(5_242_880) },
        http_requests: [("200", 7), ("refused", 1)].into(),
        server: Some(ServerReport {
            advise: Some(advise(text)),
            fast_timing: Some(fast_timing(text)),
            plan_nodes: vec![PlanNode {
                queryid: "-7083182405160926612".into(),
                plan: "8221437016219543".into(),
                node: 2,
                kind: format!("Seq Scan on {text}"),
                seconds: 12.5,
                ..PlanNode::default()
            }],
            ..ServerReport::default()
        }),
        ..Default::default()
    }
}

fn advise(text: &str) -> AdviseReport {
    let read = |clock: &str| ReadCost {
        ns: Some(20.0),
        low_ns: Some(19.0),
        high_ns: Some(21.5),
        clock: clock.into(),
        how: String::new(),
    };
    let setting = SettingAdvice {
        name: text.into(),
        value: "off".into(),
        on: false,
        events_per_s: Some(1250.5),
        events_are: EventsAre::Counted,
        core_share: Some(CoreShare { low: 0.001, high: Some(0.002) }),
        advice: Action::TurnOn,
        summary: String::new(),
        hint: None,
        line: None,
        undo: None,
    };
    AdviseReport {
        schema_version: 1,
        version: "1.0.0".into(),
        server_version: text.into(),
        server: text.into(),
        window_s: 15.0,
        interrupted: false,
        read: read("system"),
        node_read: Some(read("tsc")),
        settings: vec![setting],
        findings: Vec::new(),
        verdict: Verdict { severity: Severity::Ok, summary: String::new() },
        not_seen: Vec::new(),
    }
}

fn fast_timing(text: &str) -> FastTiming {
    FastTiming {
        method: "auto".into(),
        clock: text.into(),
        ticker: "worker".into(),
        scope: "server".into(),
        call_cost_ns: Some(3.5),
        statements: 10.0,
        exact_nodes: 20.0,
        estimated_nodes: 30.0,
        node_calls: 4e10,
        without_tsc: 1.0,
        without_ticks: 2.0,
    }
}

fn metric<'a>(metrics: &'a [Metric], name: &str) -> &'a [Series] {
    let found = metrics.iter().find(|metric| metric.name == format!("{PREFIX}{name}"));
    found.map_or(&[], |metric| &metric.series)
}

/// Returns each series of a metric as `label value,label value=figure`.
fn figures(metrics: &[Metric], name: &str) -> Vec<String> {
    let labels = |series: &Series| series.labels.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(",");
    metric(metrics, name).iter().map(|series| format!("{}={}", labels(series), series.value)).collect()
}

#[test]
fn a_complete_report_has_every_metric_of_the_table() {
    let page = text(&complete("system"));
    let metrics = parse(&page).unwrap();
    let names: Vec<(String, &str)> = ALL.iter().map(|m| (format!("{PREFIX}{}", m.name), m.kind)).collect();
    assert_eq!(metrics.iter().map(|m| (m.name.clone(), m.kind.as_str())).collect::<Vec<_>>(), names);
    for (found, Metric { series, .. }) in ALL.iter().zip(&metrics) {
        for series in series {
            let labels: Vec<&str> =
                series.labels.iter().map(|(name, _)| name.as_str()).filter(|l| *l != "le").collect();
            assert_eq!(labels, found.labels, "{}", found.name);
        }
    }
    assert_eq!(page, text(&complete("system")), "the order is always the same");
}

#[test]
fn figures_have_base_units() {
    let metrics = parse(&text(&complete("system"))).unwrap();
    for (name, expected) in [
        ("clock_read_cost_seconds", vec!["system=0.0000000201"]),
        ("clock_read_cost_limit_seconds", vec!["warning=0.0000001", "critical=0.0000005"]),
        ("clock_largest_gap_seconds", vec!["system=0.00025"]),
        ("clock_drift_ratio", vec!["system,monotonic_raw=-0.0000125"]),
        ("clock_drift_error_ratio", vec!["system,monotonic_raw=0.00000025"]),
        ("tsc_frequency_hertz", vec!["=2596098013.5"]),
        ("tsc_frequency_error_ratio", vec!["=0.0000005"]),
        ("cpu_skew_low_seconds", vec!["rdtsc,1,0=-0.0000000155"]),
        ("cpu_skew_high_seconds", vec!["rdtsc,1,0=0.000000016"]),
        (
            "server_clock_read_cost_seconds",
            vec!["system,low=0.000000019", "system,high=0.0000000215", "tsc,low=0.000000019", "tsc,high=0.0000000215"],
        ),
        ("server_info", vec!["system,system,tsc=1"]),
        ("server_setting_core_ratio", vec!["system,low=0.001", "system,high=0.002"]),
        ("server_setting_advice", vec!["system,turn_on=1"]),
        ("fast_timing_call_cost_seconds", vec!["=0.0000000035"]),
        ("monitor_http_requests_total", vec!["200=7", "refused=1"]),
    ] {
        assert_eq!(figures(&metrics, name), expected, "{name}");
    }
}

#[test]
fn the_histogram_is_cumulative_and_always_has_the_same_buckets() {
    let mut report = complete("system");
    let bounds = |report: &MonitorReport| {
        let metrics = parse(&text(report)).unwrap();
        let series = metric(&metrics, "clock_read_seconds");
        series.iter().map(|s| (s.label("le").unwrap_or("").to_string(), s.value)).collect::<Vec<_>>()
    };
    let few = bounds(&report);
    // The bounds 0 to 2^30 - 1 ns, +Inf, the sum and the count.
    assert_eq!(few.len(), 31 + 3);
    assert_eq!(
        few[4..7],
        [("0.000000015".into(), 5.0), ("0.000000031".into(), 1005.0), ("0.000000063".into(), 1012.0)]
    );
    assert_eq!(few[few.len() - 3..], [("+Inf".into(), 1012.0), (String::new(), 0.0000212), (String::new(), 1012.0)]);
    report.clocks[0].totals.histogram.resize(64, 1);
    let many = bounds(&report);
    let labels = |series: &[(String, f64)]| series.iter().map(|(label, _)| label.clone()).collect::<Vec<_>>();
    assert_eq!(labels(&few), labels(&many));
    assert_eq!(many[many.len() - 1].1, 1012.0 + 57.0);
}

#[test]
fn severities_are_state_sets_and_all_events_are_counted() {
    let metrics = parse(&text(&complete("drift"))).unwrap();
    assert_eq!(figures(&metrics, "verdict"), ["ok=0", "warning=1", "critical=0", "unknown=0"]);
    let clock_slow = ["clock-slow,ok=0", "clock-slow,warning=1", "clock-slow,critical=0", "clock-slow,unknown=0"];
    let drift = ["drift,ok=0", "drift,warning=0", "drift,critical=0", "drift,unknown=1"];
    assert_eq!(figures(&metrics, "finding"), [clock_slow, drift].concat());
    let events = figures(&metrics, "events_total");
    assert_eq!(events.len(), <EventKind as clap::ValueEnum>::value_variants().len());
    assert!(events.contains(&"suspend=3".into()) && events.contains(&"pause=0".into()));
}

#[test]
fn a_missing_figure_has_no_series() {
    let metrics = parse(&text(&MonitorReport::default())).unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| &metric.name[PREFIX.len()..]).collect();
    let always = [
        "build_info",
        "events_total",
        "clock_read_cost_limit_seconds",
        "kernel_clock_messages_total",
        "suspends_total",
        "suspended_seconds_total",
        "pauses_total",
        "paused_seconds_total",
        "monitor_intervals_total",
        "monitor_cpu_seconds_total",
    ];
    assert_eq!(names, always);
    let clock = |name: &str, unavailable| WatchedClock {
        last: ClockReport { name: name.into(), unavailable, ..Default::default() },
        ..Default::default()
    };
    let clocks = vec![clock("rdtscp", Some("no".into())), clock("system", None)];
    let metrics = parse(&text(&MonitorReport { clocks, ..Default::default() })).unwrap();
    assert_eq!(figures(&metrics, "clock_info"), ["system,unknown=1"]);
    assert_eq!(metrics.len(), always.len() + 1);
}

#[test]
fn an_unreadable_kernel_log_has_no_count_of_messages() {
    let error = Some("Permission denied".to_string());
    let collectors = vec![Collector { name: "kernel_log", seconds: 0.0, error }];
    let page = |kernel_messages| {
        text(&MonitorReport { kernel_messages, collectors: collectors.clone(), ..Default::default() })
    };
    assert_eq!(figures(&parse(&page(0)).unwrap(), "kernel_clock_messages_total"), Vec::<String>::new());
    assert_eq!(figures(&parse(&page(2)).unwrap(), "kernel_clock_messages_total"), ["=2"]);
}

#[test]
fn a_server_that_does_not_answer_has_no_old_figures() {
    let mut report = complete("system");
    report.server = Some(ServerReport { error: Some("connection refused".into()), ..ServerReport::default() });
    let metrics = parse(&text(&report)).unwrap();
    assert_eq!(figures(&metrics, "server_up"), ["=0"]);
    let is_servers = |metric: &&Metric| metric.name.contains("_server_") || metric.name.contains("_fast_timing_");
    assert_eq!(metrics.iter().filter(is_servers).count(), 1);
}

/// The counts are those of the monitor's own session, if the extension is not in shared_preload_libraries.
#[test]
fn counts_of_one_session_are_left_out() {
    let mut report = complete("system");
    let server = report.server.as_mut().unwrap();
    server.fast_timing.as_mut().unwrap().scope = "session".into();
    let metrics = parse(&text(&report)).unwrap();
    assert_eq!(metric(&metrics, "fast_timing_call_cost_seconds").len(), 1);
    assert!(metric(&metrics, "fast_timing_statements_total").is_empty());
}

#[test]
fn figures_that_are_not_finite_and_repeated_series_are_left_out() {
    let mut report = complete("system");
    report.findings.push(report.findings[0].clone());
    report.clocks.push(report.clocks[0].clone());
    report.clocks[0].last.read_ns = Some(f64::NAN);
    report.clocks[1].last.name = "other".into();
    report.clocks[1].totals.measured_s = f64::INFINITY;
    report.own.cpu_s = f64::NEG_INFINITY;
    let metrics = parse(&text(&report)).unwrap();
    assert_eq!(figures(&metrics, "clock_read_cost_seconds"), ["other=0.0000000201"]);
    assert!(metric(&metrics, "monitor_cpu_seconds_total").is_empty());
    assert!(metric(&metrics, "clock_read_seconds").iter().all(|series| series.label("clock") == Some("system")));
    assert_eq!(figures(&metrics, "finding").len(), 8);
}

#[test]
fn hostile_labels_stay_in_their_quotes() {
    for hostile in
        ["\"} 1\nevil 1", "\\", "\\\"", "a\\n", "\r\n\0\x1b[2J", "{a=\"b\"}", "", "\u{202e}\u{2028}", "# HELP x y"]
    {
        let metrics = parse(&text(&complete(hostile))).unwrap_or_else(|error| panic!("{hostile:?}: {error}"));
        assert_eq!(metrics.len(), ALL.len());
        assert_eq!(metric(&metrics, "clock_info")[0].label("clock"), Some(&*crate::escape::line(hostile)));
    }
}

#[test]
fn names_follow_the_conventions() {
    let names: std::collections::HashSet<_> = ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), ALL.len(), "a name occurs twice");
    for super::Metric { name, kind, labels, help, .. } in ALL {
        assert_eq!(name.ends_with("_total"), *kind == "counter", "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert!(!name.ends_with("_info") || !labels.is_empty(), "{name}");
        assert!(help.ends_with('.') && !help.contains(['\n', '\\']), "{name}");
        // Names that Prometheus or its conventions reserve.
        assert!(!["_count", "_sum", "_bucket", "_created"].iter().any(|end| name.ends_with(end)), "{name}");
        assert!(!labels.iter().any(|label| ["le", "quantile", "job", "instance"].contains(label)), "{name}");
    }
}

#[test]
fn label_values_are_escaped() {
    for (value, text) in [
        ("system", "system"),
        (r#"a"b\c"#, r#"a\"b\\c"#),
        ("a\nb", r"a\\nb"),
        ("\x1b[2J\0", r"\\u{1b}[2J\\u{0}"),
        ("Größe 数", "Größe 数"),
    ] {
        assert_eq!(label(value), text);
    }
}

#[test]
fn bounds_are_whole_nanoseconds() {
    assert_eq!([0, 1, 2, 30].map(bound_s), [0.0, 1e-9, 3e-9, 1.073741823]);
}

proptest! {
    #[test]
    fn any_report_is_a_valid_page(
        text in any::<String>(),
        figures in prop::collection::vec(prop::option::of(any::<f64>()), 6),
        histogram in prop::collection::vec(0..u64::MAX / 100, 0..70),
        count in any::<u64>(),
    ) {
        let mut report = complete(&text);
        report.clocks[0].last.read_ns = figures[0];
        report.clocks[0].last.granularity_ns = figures[1];
        report.clocks[0].totals.histogram = histogram;
        report.clocks[0].totals.measured_s = figures[2].map_or(0.0, f64::abs);
        report.now.drift[0].rate_ppm = figures[3].unwrap_or(f64::NAN);
        report.findings[0].since = figures[4].unwrap_or(f64::NAN);
        report.counter = figures[5].map(|hz| Rate { rate: Hertz(hz), uncertainty: Ppm(hz), duration: Nanos(1e9) });
        report.samples = count;
        let metrics = parse(&super::text(&report)).unwrap_or_else(|error| panic!("{error}"));
        let read_back = metric(&metrics, "clock_read_cost_seconds").first().map(|series| series.value);
        let seconds = figures[0].map(|ns| ns / 1e9).filter(|seconds| seconds.is_finite());
        prop_assert_eq!(read_back, seconds);
        prop_assert_eq!(metric(&metrics, "tsc_frequency_hertz").len(), usize::from(figures[5].is_some_and(f64::is_finite)));
        let finding = metric(&metrics, "finding")[4].label("id").map(String::from);
        prop_assert_eq!(finding, Some(crate::escape::line(&text)));
    }
}
