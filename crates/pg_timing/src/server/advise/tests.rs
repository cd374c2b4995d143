//! Tests of the whole advice, from facts to the screen.

mod log_timing;

use super::*;
use crate::document;
use crate::report::{Action, ClockReport, EventsAre, Finding, ReadCost, Severity};
use crate::server::clock::Clocks;
use crate::server::settings::{Role, Server};

fn cost(ns: Option<f64>) -> ReadCost {
    ReadCost {
        ns,
        low_ns: ns.map(|ns| ns - 1.0),
        high_ns: ns.map(|ns| ns + 1.0),
        clock: "system".into(),
        how: "measured on this host, where the server runs".into(),
    }
}

const QUIET: [(&str, &str); 5] = [
    ("track_io_timing", "off"),
    ("track_wal_io_timing", "off"),
    ("track_functions", "none"),
    ("log_min_duration_statement", "-1"),
    ("log_duration", "off"),
];

impl Snapshot {
    pub fn of(part: &'static str, numbers: &[(&str, f64)]) -> Snapshot {
        let numbers = numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Snapshot([(part, Ok(numbers))].into())
    }

    pub fn and(mut self, other: Snapshot) -> Snapshot {
        self.0.extend(other.0);
        self
    }
}

/// Returns the facts of a PostgreSQL 18 that reads this many blocks per second, over a window of ten seconds.
fn facts(ns: Option<f64>, reads_per_s: f64, more: &[(&str, &str)]) -> Facts {
    let system = cost(ns);
    let settings = QUIET.iter().chain(more).map(|(name, value)| (name.to_string(), value.to_string()));
    let snapshot = |seconds: f64| {
        // Six of them are our own.
        Snapshot::of("activity", &[("transactions", 500.6 * seconds), ("temp_bytes", 7.0), ("blks_read", 0.0)])
            .and(Snapshot::of(
                "io",
                &[
                    ("reads", reads_per_s * seconds),
                    ("writes", 0.0),
                    ("extends", 0.0),
                    ("fsyncs", 0.0),
                    ("writebacks", 0.0),
                ],
            ))
            .and(Snapshot::of("wal", &[("operations", 100.0 * seconds)]))
            .and(Snapshot::of("functions", &[("calls", 0.0)]))
            .and(Snapshot::of("tables", &[("asked", 2_000.0 * seconds)]))
            .and(Snapshot::of("sessions", &[("hidden", 0.0), ("oldest", 0.0), ("running", 0.0)]))
    };
    Facts {
        server: Server {
            major: 18,
            version: "18.6".into(),
            name: "shop at /run/postgresql:5432".into(),
            settings: settings.collect(),
            role: Role { pid: 7, databases: 1, monitor: true },
            ..Server::default()
        },
        clocks: Clocks { system: system.clone(), read: system.clone(), node: system, here: None },
        before: snapshot(0.0),
        after: snapshot(10.0),
        window_s: 10.0,
    }
}

#[test]
fn hidden_transactions_are_noted_even_if_the_oldest_one_is_not_plausible() {
    let mut facts = facts(Some(20.0), 0.0, &[]);
    facts.after = facts.after.and(Snapshot::of("sessions", &[("hidden", 1.0), ("oldest", 1e12)]));
    let lines = not_seen(&facts);
    assert!(lines.iter().any(|line| line.contains("transactions of other users")), "{lines:?}");
}

fn setting<'a>(report: &'a AdviseReport, name: &str) -> &'a SettingAdvice {
    report.settings.iter().find(|setting| setting.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn io(facts: &Facts) -> (Action, Severity) {
    let report = report(facts, false);
    (setting(&report, "track_io_timing").advice, report.verdict.severity)
}

#[test]
fn screen_of_a_busy_server() {
    let more = [
        ("track_io_timing", "on"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "on"),
        ("auto_explain.log_min_duration", "1s"),
        ("auto_explain.sample_rate", "1"),
    ];
    let mut facts = facts(Some(22.0), 1000.0, &more);
    facts.server.other_settings = vec!["track_functions (role app)".into()];
    let report = report(&facts, false);
    insta::assert_snapshot!(document::text::piped(&document::advise::document(&report)));
}

#[test]
fn the_threshold_is_one_percent_of_a_core() {
    // 1000 a second, 2 to 4 reads of 22 ns: 0.004 to 0.009%.
    let on = [("track_io_timing", "on")];
    assert_eq!(io(&facts(Some(22.0), 1e3, &on)), (Action::Keep, Severity::Ok));
    assert_eq!(io(&facts(Some(22.0), 1e3, &[])), (Action::TurnOn, Severity::Ok));
    // 4.4 to 8.8%, 44 to 88%
    assert_eq!(io(&facts(Some(22.0), 1e6, &on)), (Action::TurnOff, Severity::Warning));
    assert_eq!(io(&facts(Some(22.0), 1e7, &on)), (Action::TurnOff, Severity::Critical));
    assert_eq!(io(&facts(Some(22.0), 1e6, &[])), (Action::None, Severity::Ok));
    // 0.8 to 1.8%
    assert_eq!(io(&facts(Some(22.0), 2e5, &on)), (Action::Unknown, Severity::Ok));
    // With a slow clock the same events are expensive.
    assert_eq!(io(&facts(Some(1000.0), 1e4, &on)), (Action::TurnOff, Severity::Warning));
}

#[test]
fn the_bounds_contain_late_reports_of_backends() {
    let report = report(&facts(Some(22.0), 1100.0, &[]), false);
    let io = setting(&report, "track_io_timing");
    assert_eq!((io.events_per_s, io.events_are), (Some(1100.0), EventsAre::Counted));
    let share = io.core_share.unwrap();
    // 11 000 reads, in 11 s to 9 s, 2 to 4 times 21 to 23 ns.
    assert!((share.low - 1000.0 * 2.0 * 21e-9).abs() < 1e-12, "{share:?}");
    assert!((share.high.unwrap() - 11_000.0 / 9.0 * 4.0 * 23e-9).abs() < 1e-12, "{share:?}");
}

#[test]
fn without_a_read_cost_the_verdict_is_unknown() {
    let report = report(&facts(None, 1e9, &[("track_io_timing", "on")]), false);
    assert_eq!(report.verdict.severity, Severity::Unknown);
    assert!(report.settings.iter().all(|setting| setting.core_share.is_none()));
    assert_eq!(setting(&report, "track_io_timing").events_are, EventsAre::Counted);
}

#[test]
fn missing_statistics_are_unknown_and_not_zero() {
    let mut facts = facts(Some(22.0), 1e3, &[("track_io_timing", "on")]);
    facts.after = Snapshot::default();
    let report = report(&facts, false);
    let io = setting(&report, "track_io_timing");
    assert_eq!((io.events_per_s, io.events_are, io.advice), (None, EventsAre::Unknown, Action::Unknown));
}

#[test]
fn a_window_shorter_than_a_second_has_no_upper_bound() {
    let facts = Facts { window_s: 0.5, ..facts(Some(22.0), 1e3, &[("track_io_timing", "on")]) };
    let report = report(&facts, true);
    assert_eq!(report.verdict.severity, Severity::Unknown);
    assert_eq!(setting(&report, "track_io_timing").core_share.unwrap().high, None);
}

#[test]
fn a_lower_bound_is_never_called_cheap() {
    let on = [
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "on"),
        ("auto_explain.log_min_duration", "1s"),
        ("auto_explain.sample_rate", "0.5"),
    ];
    let report = report(&facts(Some(22.0), 0.0, &on), false);
    let auto_explain = setting(&report, "auto_explain.log_timing");
    assert_eq!((auto_explain.advice, auto_explain.events_per_s), (Action::Unknown, Some(1000.0)));
    let with: Vec<_> = on.into_iter().chain([("pg_fast_timing.method", "auto")]).collect();
    let report = super::report(&facts(Some(22.0), 0.0, &with), false);
    assert_eq!(setting(&report, "auto_explain.log_timing").advice, Action::Keep);
}

#[test]
fn the_undo_line_has_the_present_value() {
    let report =
        report(&facts(Some(1e5), 1e6, &[("track_io_timing", "on"), ("log_min_duration_statement", "250ms")]), false);
    for (name, line, undo) in [
        ("track_io_timing", "track_io_timing = off", "track_io_timing = on"),
        ("log_min_duration_statement", "log_min_duration_statement = -1", "log_min_duration_statement = '250ms'"),
    ] {
        let setting = setting(&report, name);
        assert_eq!((setting.line.as_deref(), setting.undo.as_deref()), (Some(line), Some(undo)));
    }
}

#[test]
fn an_idle_server_shows_the_limit_for_a_busy_one() {
    let mut facts = facts(Some(22.0), 0.0, &[]);
    let none = || Snapshot::of("activity", &[("transactions", 7.0), ("temp_bytes", 0.0)]);
    for snapshot in [&mut facts.before, &mut facts.after] {
        *snapshot = std::mem::take(snapshot).and(none());
    }
    let report = report(&facts, false);
    let io = setting(&report, "track_io_timing");
    let summary = "not determined: few events on this idle server; 217 k per second would cost 1% of a core";
    assert_eq!((io.advice, io.summary.as_str()), (Action::Unknown, summary));
    // A lower bound has its own reason.
    let statements = setting(&report, "log_min_duration_statement");
    assert!(statements.summary.contains("the database has no pg_stat_statements"), "{statements:?}");
}

#[test]
fn a_loaded_library_needs_no_restart() {
    for (loaded, restarts) in [(&[][..], true), (&[("pg_stat_statements.track", "top")], false)] {
        let gap = settings::growth(&facts(Some(22.0), 0.0, loaded), "calls").unwrap_err();
        assert_eq!((gap.hint.contains("restart"), gap.hint.contains("CREATE EXTENSION")), (restarts, true), "{gap:?}");
    }
}

#[test]
fn advice_on_timing_clock_source() {
    let mut facts = facts(Some(22.0), 0.0, &[("timing_clock_source", "auto (tsc)")]);
    facts.server.major = 19;
    assert_eq!(
        setting(&report(&facts, false), "timing_clock_source").advice,
        Action::Unknown,
        "its host is not visible"
    );
    let mut here = crate::report::Report::empty(crate::report::Origin::Measured, "");
    here.tsc.usable = Some(false);
    here.tsc.distrust = vec!["the kernel demoted it".into()];
    facts.clocks.here = Some(here);
    let report = report(&facts, false);
    let source = setting(&report, "timing_clock_source");
    assert_eq!(
        (source.advice, source.line.as_deref(), source.undo.as_deref()),
        (Action::TurnOff, Some("timing_clock_source = 'system'"), Some("timing_clock_source = 'auto'"))
    );
    assert!(source.summary.ends_with("the kernel demoted it"));
    assert_eq!(report.verdict.severity, Severity::Warning);
    assert!(report.verdict.summary.starts_with("timing_clock_source: do not use the TSC: the kernel demoted it."));

    // With the system clock in use, the TSC is advised if it is faster and has no faults.
    let clock = |name: &str, ns| ClockReport { name: name.into(), read_ns: Some(ns), ..ClockReport::default() };
    let mut here = crate::report::Report::empty(crate::report::Origin::Measured, "");
    here.tsc.usable = Some(true);
    here.clocks = vec![clock("system", 22.0), clock("rdtscp", 16.0)];
    facts.server.settings.insert("timing_clock_source".into(), "auto (system)".into());
    facts.clocks.here = Some(here.clone());
    assert_eq!(setting(&super::report(&facts, false), "timing_clock_source").advice, Action::TurnOn);
    here.findings = vec![Finding::new("cpu-skew", Severity::Critical, "CPUs 0 and 1 differ")];
    facts.clocks.here = Some(here);
    assert_eq!(setting(&super::report(&facts, false), "timing_clock_source").advice, Action::None);
}

/// Returns the report about a PostgreSQL 19 with this setting, on a host with these findings and read costs.
fn on_a_host(setting: &str, findings: Vec<Finding>, system_ns: f64, tsc_ns: f64) -> AdviseReport {
    let mut facts = facts(Some(22.0), 0.0, &[("timing_clock_source", setting)]);
    facts.server.major = 19;
    let clock = |name: &str, ns| ClockReport { name: name.into(), read_ns: Some(ns), ..ClockReport::default() };
    let mut here = crate::report::Report::empty(crate::report::Origin::Measured, "");
    here.tsc.usable = Some(true);
    here.clocks = vec![clock("system", system_ns), clock("rdtscp", tsc_ns), clock("rdtsc", tsc_ns)];
    here.findings = findings;
    facts.clocks.here = Some(here);
    report(&facts, false)
}

#[test]
fn a_tsc_that_is_slower_than_the_system_clock_is_turned_off() {
    for (value, undo) in [("auto (tsc)", "timing_clock_source = 'auto'"), ("tsc", "timing_clock_source = 'tsc'")] {
        let report = on_a_host(value, Vec::new(), 30.0, 1400.0);
        let source = setting(&report, "timing_clock_source");
        assert_eq!(
            (source.advice, source.line.as_deref(), source.undo.as_deref()),
            (Action::TurnOff, Some("timing_clock_source = 'system'"), Some(undo))
        );
        assert!(source.summary.contains("a read of the TSC takes 1.4 us, one of the system clock 30 ns"), "{source:?}");
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!((ids, report.verdict.severity), (vec!["tsc-slow"], Severity::Critical));
    }
    let unused = on_a_host("system", Vec::new(), 30.0, 1400.0);
    assert_eq!(setting(&unused, "timing_clock_source").advice, Action::None);
    assert!(unused.findings.is_empty(), "{:?}", unused.findings);
    assert!(on_a_host("tsc", Vec::new(), 30.0, 16.0).findings.is_empty());
}

#[test]
fn coarse_steps_and_interruptions_of_the_host_are_findings() {
    let alarm = |id, severity| Finding::new(id, severity, format!("{id} found")).evidence("a figure");
    let host = vec![
        alarm("clock-coarse", Severity::Critical),
        alarm("clock-gaps", Severity::Warning),
        alarm("clock-backward", Severity::Ok),
        alarm("clocksource-changed", Severity::Warning),
    ];
    let report = on_a_host("system", host, 30.0, 16.0);
    let ids: Vec<&str> = report.findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!((ids, report.verdict.severity), (vec!["clock-coarse", "clock-gaps"], Severity::Critical));
    assert!(report.verdict.summary.contains("On this host: clock-coarse found."), "{}", report.verdict.summary);
    let text = document::text::piped(&document::advise::document(&report));
    assert!(text.contains("clock-gaps  WARNING  clock-gaps found\n  seen   a figure\n"), "{text}");
}

#[test]
fn the_report_matches_its_schema() {
    let schema = serde_json::from_str(include_str!("../../../../../docs/advise.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for ns in [None, Some(22.0)] {
        let json = crate::json::json(&report(&facts(ns, 1e6, &[("track_io_timing", "on")]), false));
        let errors: Vec<String> =
            validator.iter_errors(&serde_json::from_str(&json).unwrap()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn the_verdict_calls_only_counted_settings_cheap() {
    let on = [
        ("track_io_timing", "on"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "on"),
        ("auto_explain.log_min_duration", "1s"),
        ("pg_fast_timing.method", "auto"),
    ];
    let summary = report(&facts(Some(22.0), 1e3, &on), false).verdict.summary;
    assert!(summary.starts_with("On, and less than 1% of a core each: track_io_timing. "), "{summary}");
    // The method tsc times each call.
    let on = on.map(|(name, value)| (name, if name == "pg_fast_timing.method" { "tsc" } else { value }));
    let summary = report(&facts(Some(22.0), 1e3, &on), false).verdict.summary;
    assert!(summary.starts_with("On, but not determined: auto_explain.log_timing."), "the bad news first: {summary}");
    assert!(
        report(&facts(Some(22.0), 1e3, &[]), false)
            .verdict
            .summary
            .starts_with("No setting that reads the clock is on.")
    );
}

#[test]
fn each_undetermined_setting_has_a_hint_with_a_command() {
    for facts in
        [facts(Some(22.0), 2e5, &[]), facts(None, 1.0, &[]), Facts { window_s: 0.5, ..facts(Some(22.0), 1e3, &[]) }]
    {
        let report = report(&facts, false);
        for setting in report.settings.iter().filter(|setting| setting.advice == Action::Unknown) {
            let hint = setting.hint.as_deref().unwrap_or_else(|| panic!("{setting:?}"));
            assert!(
                ["pg_timing", "ALTER ", "GRANT ", "CREATE "].iter().any(|command| hint.contains(command)),
                "{hint}"
            );
        }
        let screen = document::text::piped(&document::advise::document(&report));
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    }
}
