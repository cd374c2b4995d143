//! Shows the screen of `pg_timing monitor` with simulated faults, because few hosts have them:
//!
//!     cargo run -p pg_timing --example monitor_screen -- [--interval SECONDS] [--panic]
//!
//! The clock gets slow for a while, goes back, and recovers. With `--panic`, the thread that takes the samples panics.

use pg_timing::command::finish;
use pg_timing::command::monitor::screen;
use pg_timing::report::*;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use timing_clock::{Hertz, Nanos, Ppm, Rate};

/// Samples that the screen can show: more than the columns of a wide terminal.
const HISTORY: usize = 720;
/// Samples after which faults begin and end, so that all of them appear within a minute at one sample per second.
const SLOW: std::ops::Range<u64> = 15..40;
const BACK: u64 = 25;
const PANIC: u64 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let interval = arguments.iter().position(|word| word == "--interval").and_then(|at| arguments.get(at + 1));
    let interval_s: f64 = interval.and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let panics = arguments.iter().any(|word| word == "--panic");
    let (reports, shown) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop)).expect("a handler can be registered");
    std::thread::spawn(move || {
        let mut simulation = Simulation::new(interval_s);
        loop {
            assert!(!panics || simulation.report.samples < PANIC, "the simulated panic");
            simulation.sample();
            if reports.send(simulation.report.clone()).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_secs_f64(interval_s));
        }
    });
    ExitCode::from(finish(screen::run(&shown, &stop).map(|()| 0)))
}

struct Simulation {
    report: MonitorReport,
    random: u64,
}

impl Simulation {
    fn new(interval_s: f64) -> Simulation {
        let clock = |name: &str, read_ns: f64, access_path| WatchedClock {
            last: ClockReport {
                name: name.into(),
                access_path: Some(access_path),
                read_ns: Some(read_ns),
                granularity_ns: Some(1.0),
                ..ClockReport::default()
            },
            totals: ClockTotals { histogram: vec![0; 20], ..ClockTotals::default() },
            ..WatchedClock::default()
        };
        use AccessPath::*;
        let ok = |id: &str, text: &str| WatchedFinding::new(Finding::new(id, Severity::Ok, text), now());
        let mut report = MonitorReport {
            started_at: now(),
            interval_s,
            clocks: vec![
                clock("system", 20.1, Vdso),
                clock("rdtscp", 16.6, Instruction),
                clock("rdtsc", 9.0, Instruction),
                clock("system_syscall", 112.0, Syscall),
                clock("monotonic_raw", 20.3, Vdso),
                clock("realtime", 20.2, Vdso),
            ],
            findings: vec![
                ok("clock-slow", "one read of PostgreSQL's clock takes 20.1 ns"),
                ok("clock-backward", "no clock went back"),
                ok("cpu-skew", "CPUs 0 and 1 agree within 31 ns"),
            ],
            counter: Some(Rate { rate: Hertz(2_596_098_012.0), uncertainty: Ppm(0.02), duration: Nanos(1e9) }),
            ..MonitorReport::default()
        };
        report.now.host.name = Fact::Known("db1".into());
        report.now.clocksource.current = Fact::Known("tsc".into());
        report.findings.push(WatchedFinding {
            finding: Finding::new("tsc-firmware", Severity::Unknown, "the kernel log is not readable"),
            ..report.findings[0].clone()
        });
        let mut simulation = Simulation { report, random: 1 };
        simulation.event(EventKind::MonitorStarted, None, "The monitor started.");
        simulation
    }

    fn sample(&mut self) {
        self.report.samples += 1;
        self.report.sampled_at = now();
        self.report.own = OwnUse { cpu_s: 0.1, cpu_share: 0.0011, memory_bytes: Some(11_800_000) };
        let slow = SLOW.contains(&self.report.samples);
        for nth in 0..self.report.clocks.len() {
            let noise = self.noise();
            let clock = &mut self.report.clocks[nth];
            let usual = [20.1, 16.6, 9.0, 112.0, 20.3, 20.2][nth];
            let factor = if slow && clock.last.access_path != Some(AccessPath::Instruction) { 62.0 } else { 1.0 };
            let read_ns = usual * factor * (0.95 + 0.3 * noise * noise);
            clock.last.read_ns = Some(read_ns);
            clock.history_ns.push_back(Some(read_ns as f32));
            if clock.history_ns.len() > HISTORY {
                clock.history_ns.pop_front();
            }
            let largest = 20_000.0 + 4e6 * noise * noise * noise;
            clock.last.percentiles = Some(Percentiles {
                min_ns: read_ns * 0.8,
                p50_ns: read_ns,
                p90_ns: read_ns * 1.05,
                p99_ns: read_ns * 1.1,
                p99_9_ns: read_ns * 1.6,
                p99_99_ns: 1_240.0,
                p99_999_ns: 12_400.0,
                max_ns: largest,
            });
            clock.largest_gap_ns = Some(largest);
            clock.totals.histogram[5] += 5_000_000;
            clock.totals.measured_s += 0.1;
            clock.totals.gaps += 40;
            clock.totals.gap_s += 0.0002 * noise;
        }
        self.verdict_and_findings();
        self.report.now.drift = vec![Drift {
            clock: "system".into(),
            reference: "monotonic_raw".into(),
            rate_ppm: 0.12,
            uncertainty_ppm: 30.0 / self.report.samples as f64,
            bend_ppm: 0.0,
            steps: vec![],
            over_seconds: self.report.samples as f64 * self.report.interval_s,
        }];
    }

    fn verdict_and_findings(&mut self) {
        let slow_text = "one read of PostgreSQL's clock takes 1249 ns";
        let use_tsc = Fix::new("use the TSC").command("sudo pg_timing clocksource use tsc --for 60");
        match self.report.samples {
            n if n == SLOW.start => {
                self.report.now.clocksource.current = Fact::Known("hpet".into());
                self.event(EventKind::ClocksourceChanged, None, "The clock source changed from tsc to hpet.");
                let slow = Finding::new("clock-slow", Severity::Critical, slow_text).evidence("median 1249 +- 12 ns");
                self.alarm(0, slow.fix(use_tsc));
            }
            n if n == BACK => {
                self.report.clocks[2].totals.backward_steps = 12;
                self.event(EventKind::BackwardStep, None, "rdtsc went back by 31 ns.");
                self.alarm(1, Finding::new("clock-backward", Severity::Critical, "rdtsc went back 12 times"));
            }
            n if n == SLOW.end => {
                self.report.now.clocksource.current = Fact::Known("tsc".into());
                self.event(EventKind::ClocksourceChanged, None, "The clock source changed from hpet to tsc.");
                self.event(EventKind::FindingCleared, Some(Severity::Critical), "clock-slow is no alarm any more.");
                let watched = &mut self.report.findings[0];
                watched.finding =
                    Finding::new("clock-slow", Severity::Ok, "one read of PostgreSQL's clock takes 20.1 ns");
                watched.since = now();
            }
            _ => {}
        }
        let worst = self.report.findings.iter().find(|watched| watched.finding.severity.is_alarm());
        let (severity, summary) = match worst {
            Some(watched) if watched.finding.id == "clock-slow" => (
                Severity::Critical,
                "One read of PostgreSQL's clock takes 1249 ns. EXPLAIN ANALYZE adds at most about 2.5 us per row and plan \
                 node: a million rows through three nodes: 7.5 s."
                    .into(),
            ),
            Some(watched) => (Severity::Critical, format!("{}.", watched.finding.summary)),
            None => (
                Severity::Ok,
                "EXPLAIN ANALYZE can be trusted on this host. It adds at most about 40 ns per row and plan node (18 ns with \
                 PostgreSQL 19's tsc): a million rows through three nodes: 0.12 s."
                    .into(),
            ),
        };
        self.report.now.verdict = Verdict { severity, summary };
    }

    fn alarm(&mut self, nth: usize, finding: Finding) {
        let summary = format!("{}: {}", finding.id, finding.summary);
        self.event(EventKind::FindingAppeared, Some(finding.severity), &summary);
        let at = now();
        self.report.findings[nth] = WatchedFinding { appeared_at: Some(at), ..WatchedFinding::new(finding, at) };
    }

    fn event(&mut self, event: EventKind, severity: Option<Severity>, summary: &str) {
        let event = MonitorEvent {
            time: String::new(),
            unix_seconds: now(),
            event,
            summary: summary.into(),
            subject: None,
            severity,
            value: None,
        };
        self.report.events.push_back(event);
    }

    /// Returns a number from 0 to 1, by xorshift64.
    fn noise(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random as f64 / u64::MAX as f64
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
