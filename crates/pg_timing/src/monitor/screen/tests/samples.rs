//! Reports for the tests of the screen.

use crate::report::*;
use timing_clock::{Hertz, Nanos, Ppm, Rate};

pub const NOW: f64 = 1_795_632_906.0;

pub fn clock(name: &str, read_ns: f64, access_path: AccessPath, samples: usize) -> WatchedClock {
    // Small variations, and a disturbance of ten minutes that began 40 minutes before the end.
    let disturbed = samples.saturating_sub(160)..samples.saturating_sub(120);
    let noise = |nth: usize| {
        let small = 1.0 + 0.2 * ((nth * 7919 % 17) as f64 / 17.0 - 0.5);
        if disturbed.contains(&nth) { small + 0.5 } else { small }
    };
    let percentile = |factor: f64| (read_ns * factor).round();
    let last = ClockReport {
        name: name.into(),
        access_path: Some(access_path),
        read_ns: Some(read_ns),
        percentiles: Some(Percentiles {
            min_ns: percentile(0.9),
            p50_ns: percentile(1.0),
            p90_ns: percentile(1.05),
            p99_ns: percentile(1.1),
            p99_9_ns: percentile(1.5),
            p99_99_ns: 1_240.0,
            p99_999_ns: 12_400.0,
            max_ns: 212_000.0,
        }),
        granularity_ns: Some(1.0),
        ..ClockReport::default()
    };
    WatchedClock {
        last,
        history_ns: (0..samples).map(|nth| (nth != 3).then(|| (read_ns * noise(nth)) as f32)).collect(),
        largest_gap_ns: Some(212_000.0),
        totals: ClockTotals {
            histogram: vec![0, 0, 0, 0, 0, 94_000_000, 1_200, 30],
            measured_s: 1.38,
            backward_steps: 0,
            gaps: 812,
            gap_s: 0.015,
        },
    }
}

pub fn event(at: f64, event: EventKind, severity: Option<Severity>, summary: &str) -> MonitorEvent {
    MonitorEvent {
        time: String::new(),
        unix_seconds: at,
        event,
        summary: summary.into(),
        subject: None,
        severity,
        value: None,
    }
}

fn watched(finding: Finding) -> WatchedFinding {
    WatchedFinding::new(finding, NOW - 18_000.0)
}

/// Returns a host without problems, after five hours.
pub fn healthy() -> MonitorReport {
    use AccessPath::*;
    let clocks = [
        ("system", 20.1, Vdso),
        ("rdtscp", 16.6, Instruction),
        ("rdtsc", 9.0, Instruction),
        ("system_syscall", 112.0, Syscall),
        ("monotonic_raw", 20.3, Vdso),
        ("boottime", 21.2, Vdso),
        ("realtime", 20.2, Vdso),
        ("monotonic_coarse", 4.1, Vdso),
    ];
    let mut cleared =
        watched(Finding::new(finding_id::CLOCK_GAPS, Severity::Ok, "interruptions took 2.1% of the time"));
    cleared.appeared_at = Some(NOW - 2_400.0);
    let mut now = Report {
        verdict: Verdict {
            severity: Severity::Ok,
            summary:
                "EXPLAIN ANALYZE can be trusted on this host. It adds up to about 76 ns per row and plan node (36 ns \
                with PostgreSQL 19's tsc): a million rows through three nodes take up to about 0.23 s longer."
                    .into(),
        },
        drift: vec![Drift {
            clock: "system".into(),
            reference: timing_clock::REFERENCE_NAME.into(),
            rate_ppm: 0.12,
            uncertainty_ppm: 0.004,
            bend_ppm: 0.0,
            steps: vec![],
            over_seconds: 285.0,
        }],
        ..Report::default()
    };
    now.host.name = Fact::Known("db1".into());
    now.clocksource.current = Fact::Known("tsc".into());
    let mut report = MonitorReport {
        now,
        started_at: NOW - 18_000.0,
        sampled_at: NOW,
        interval_s: 15.0,
        samples: 1_201,
        findings: vec![
            watched(Finding::new(finding_id::CLOCK_SLOW, Severity::Ok, "one read of PostgreSQL's clock takes 20.1 ns")),
            cleared,
            watched(Finding::new(finding_id::CPU_SKEW, Severity::Ok, "CPUs 0 and 1 agree within 31 ns")),
            watched(Finding::new(finding_id::DRIFT, Severity::Ok, "the clocks ran at the same rate within 0.01 ppm")),
            watched(Finding::new(finding_id::TSC_FIRMWARE, Severity::Unknown, "the kernel log is not readable")),
        ],
        clocks: clocks.map(|(name, read_ns, access)| clock(name, read_ns, access, 240)).into(),
        counter: Some(Rate { rate: Hertz(2_596_098_012.0), uncertainty: Ppm(0.02), duration: Nanos(1e9) }),
        own: OwnUse { cpu_s: 12.6, cpu_share: 0.0007, memory_bytes: Some(11_800_000) },
        ..MonitorReport::default()
    };
    report.events.extend([
        event(NOW - 18_000.0, EventKind::MonitorStarted, None, "pg_timing monitor started"),
        event(
            NOW - 2_400.0,
            EventKind::FindingAppeared,
            Some(Severity::Warning),
            "clock-gaps: interruptions took 31% of the time",
        ),
        event(
            NOW - 1_800.0,
            EventKind::FindingCleared,
            Some(Severity::Warning),
            "clock-gaps: interruptions took 2.1% of the time",
        ),
    ]);
    report
}

/// Returns a host whose kernel has stopped using the TSC, with a clock that goes back, and with a server.
pub fn bad() -> MonitorReport {
    let mut report = healthy();
    report.now.clocksource.current = Fact::Known("hpet".into());
    let slow = "one read of PostgreSQL's clock takes 1249 ns";
    report.now.verdict = Verdict {
        severity: Severity::Critical,
        summary: "One read of PostgreSQL's clock takes 1249 ns. The kernel stopped using the TSC. EXPLAIN ANALYZE adds up to \
            about 2.5 us per row and plan node: a million rows through three nodes take up to about 7.5 s longer."
            .into(),
    };
    let alarm = |id: &str, severity, text: &str, evidence: &str, command: &str, ago: f64| {
        let finding = Finding::new(id, severity, text);
        let finding = if evidence.is_empty() { finding } else { finding.evidence(evidence) };
        let finding = if command.is_empty() { finding } else { finding.fix(Fix::new("do it").command(command)) };
        WatchedFinding { appeared_at: Some(NOW - ago), ..WatchedFinding::new(finding, NOW - ago) }
    };
    report.events.truncate(1);
    const USE_TSC: &str = "sudo pg_timing clocksource use tsc --for 60";
    report.findings.splice(
        0..1,
        [
            alarm(finding_id::CLOCK_SLOW, Severity::Critical, slow, "median of 1 249 +- 12 ns", USE_TSC, 1_800.0),
            alarm(finding_id::CLOCK_BACKWARD, Severity::Critical, "rdtsc went back 12 times", "by 31 ns", "", 90.0),
            alarm(
                finding_id::TSC_DEMOTED,
                Severity::Warning,
                "the kernel stopped using the TSC",
                "",
                USE_TSC,
                200_000.0,
            ),
        ],
    );
    for (clock, factor) in report.clocks.iter_mut().zip([62.0, 1.0, 1.0, 11.0, 62.0]) {
        clock.last.read_ns = clock.last.read_ns.map(|ns| ns * factor);
        let rose = clock.history_ns.len() - 12;
        clock.history_ns.iter_mut().skip(rose).for_each(|ns| *ns = ns.map(|ns| ns * factor as f32));
    }
    report.clocks[2].totals.backward_steps = 12;
    report.clocks[7] = WatchedClock {
        last: ClockReport {
            name: "monotonic_coarse".into(),
            unavailable: Some("the kernel does not have this clock".into()),
            ..ClockReport::default()
        },
        ..WatchedClock::default()
    };
    report.kernel_messages = 3;
    (report.suspends, report.suspended_s) = (1, 12.5);
    (report.pauses, report.paused_s) = (2, 7.25);
    report.offset_steps.insert(("system".into(), "monotonic_raw".into()), 2);
    report.collectors = vec![
        Collector { name: "clocks", seconds: 0.2, error: None },
        Collector { name: "kernel_log", seconds: 0.0, error: Some("permission denied".into()) },
    ];
    report.server = Some(server());
    report.events.extend([
        event(
            NOW - 1_810.0,
            EventKind::KernelMessage,
            None,
            "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large",
        ),
        event(NOW - 1_800.0, EventKind::ClocksourceChanged, None, "The clock source changed from tsc to hpet."),
        event(NOW - 1_800.0, EventKind::FindingAppeared, Some(Severity::Critical), &format!("clock-slow: {slow}")),
        event(NOW - 90.0, EventKind::BackwardStep, None, "rdtsc went back by 31 +- 1 ns."),
    ]);
    report
}

fn server() -> ServerReport {
    let setting = |name: &str, value: &str, per_s, share, advice| SettingAdvice {
        name: name.into(),
        value: value.into(),
        on: value == "on",
        events_per_s: per_s,
        events_are: EventsAre::Counted,
        core_share: share,
        advice,
        summary: String::new(),
        hint: None,
        line: None,
        undo: None,
    };
    let share = |low, high| Some(CoreShare { low, high: Some(high) });
    let advise = AdviseReport {
        schema_version: 1,
        version: "1.0.0".into(),
        server_version: "18.6".into(),
        server: "database shop on db1:5432".into(),
        window_s: 15.0,
        interrupted: false,
        read: ReadCost {
            ns: Some(1249.0),
            low_ns: Some(1230.0),
            high_ns: Some(1262.0),
            clock: "system".into(),
            how: "measured on this host".into(),
        },
        node_read: None,
        settings: vec![
            setting("track_io_timing", "on", Some(41_000.0), share(0.098, 0.11), Action::TurnOff),
            setting("track_wal_io_timing", "off", Some(220.0), share(0.0005, 0.0006), Action::Keep),
            setting("auto_explain.log_timing", "not loaded", None, None, Action::Unknown),
        ],
        findings: vec![],
        verdict: Verdict {
            severity: Severity::Warning,
            summary: "track_io_timing costs 9.8% to 11% of a core: turn it off.".into(),
        },
        not_seen: vec![],
    };
    let fast_timing = FastTiming {
        method: "auto".into(),
        clock: "tsc".into(),
        ticker: "worker".into(),
        scope: "server".into(),
        call_cost_ns: Some(14.0),
        statements: 12_000.0,
        exact_nodes: 34_000.0,
        estimated_nodes: 12.0,
        ..FastTiming::default()
    };
    ServerReport { advise: Some(advise), fast_timing: Some(fast_timing), ..ServerReport::default() }
}
