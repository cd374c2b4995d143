//! The monitor on a synthetic machine: days of simulated time through the code that real machines run.

mod limited;

pub use limited::in_process_with_file_limit;

use super::{Monitor, ServerFigures, run};
use crate::host::facts::{Host, own_use};
use crate::host::watch::tests::synthetic::{Hardware, SyntheticMachine};
use crate::output_file::{OutputFile, READABLE, is_root};
use crate::report::{COUNTER, MonitorEvent, MonitorReport, ServerReport, Severity};
use std::time::Duration;

const INTERVAL_S: f64 = 15.0;

/// Runs this many intervals. `act` changes the machine after each sample. Returns the events as `SAMPLE NAME SUBJECT`, without
/// the start and the end, because the memory of the test must not grow much.
fn watch(samples: u64, act: impl FnMut(u64, &Hardware)) -> (Vec<String>, MonitorReport) {
    watch_with_server(samples, None, act)
}

fn watch_with_server(
    samples: u64,
    server: Option<ServerFigures>,
    mut act: impl FnMut(u64, &Hardware),
) -> (Vec<String>, MonitorReport) {
    let machine = SyntheticMachine::default();
    let hardware = machine.hardware.clone();
    let mut monitor = Monitor::new(machine, INTERVAL_S, server);
    monitor.watch.read_briefly();
    let mut seen = Vec::new();
    run(
        &mut monitor,
        Some(samples),
        || false,
        |report, events| {
            let inner = events.iter().filter(|event| !event.event.name().starts_with("monitor_"));
            seen.extend(inner.map(|event| name(report.samples, event)));
            act(report.samples, &hardware);
        },
    );
    (seen, monitor.report.clone())
}

fn name(sample: u64, event: &MonitorEvent) -> String {
    match &event.subject {
        Some(subject) => format!("{sample} {} {subject}", event.event.name()),
        None => format!("{sample} {}", event.event.name()),
    }
}

/// Returns the events if the machine changes after sample 30, and changes back after sample 40.
fn events_of(change: impl Fn(&Hardware), undo: impl Fn(&Hardware)) -> Vec<String> {
    let (events, report) = watch(80, |sample, hardware| match sample {
        30 => change(hardware),
        40 => undo(hardware),
        _ => {}
    });
    assert!(report.findings.iter().all(|watched| !watched.finding.severity.is_alarm()), "{:?}", report.findings);
    events
}

#[test]
fn a_healthy_machine_causes_no_event() {
    let (events, report) = watch(300, |_, _| ());
    assert_eq!(events, [""; 0]);
    assert_eq!(report.events.len(), 2, "start and end");
    assert_eq!(report.now.verdict.severity, Severity::Ok);
    let counter = report.counter.unwrap();
    let (hz, ppm) = (counter.rate.0, counter.uncertainty.0);
    assert!((hz / 2.5e9 - 1.0).abs() * 1e6 <= ppm && ppm < 0.01, "{counter:?}");
}

#[test]
fn a_change_of_the_clock_source_is_noticed_at_once() {
    let change = |to: &str, cost_ns| {
        let to = to.to_string();
        move |hardware: &Hardware| {
            hardware.clocksource.replace(to.clone());
            hardware.cost_ns.set(cost_ns);
            hardware.log(&format!("clocksource: Switched to clocksource {to}"));
        }
    };
    let events = events_of(change("acpi_pm", 1300.0), change("tsc", 20.0));
    assert_eq!(
        events,
        [
            "31 clocksource_changed acpi_pm",
            "31 kernel_message",
            "31 finding_appeared clock-slow",
            "31 finding_appeared clocksource-slow",
            "31 finding_appeared clock-syscall",
            "31 finding_appeared clocksource-changed",
            "41 clocksource_changed tsc",
            "41 kernel_message",
            "42 finding_cleared clock-slow",
            "42 finding_cleared clocksource-slow",
            "42 finding_cleared clock-syscall",
            "61 finding_cleared clocksource-changed",
        ]
    );
}

#[test]
fn a_backward_step_is_one_event_and_a_finding_for_some_minutes() {
    // The comparisons with other clocks read it 800 times. The buffer of 1024 reads follows.
    let events = events_of(|hardware| hardware.back.set((1200, 5_000.0)), |_| ());
    assert_eq!(
        events,
        ["31 backward_step system", "31 finding_appeared clock-backward", "51 finding_cleared clock-backward"]
    );
}

#[test]
fn a_suspend_is_no_fault_of_a_clock() {
    let suspend = |hardware: &Hardware| {
        hardware.suspends.set(hardware.suspends.get() + 1);
        hardware.suspend(3600.0);
        // The TSC goes on in a suspend on some machines.
        hardware.counter_ahead_ns.set(3600e9);
    };
    assert_eq!(events_of(suspend, |_| ()), ["31 suspend"]);
}

/// Returns the figures of the suspends if the machine changes after this sample.
fn suspended_s(after: u64, change: impl Fn(&Hardware)) -> (Vec<Option<f64>>, f64) {
    let (_, report) = watch(40, |sample, hardware| {
        if sample == after {
            change(hardware)
        }
    });
    let suspends = report.events.iter().filter(|event| event.event.name() == "suspend");
    (suspends.map(|event| event.value.map(f64::round)).collect(), report.suspended_s.round())
}

/// The TSC can be wrong after a suspend, and then the kernel uses another clock source at once.
#[test]
fn the_duration_of_a_suspend_is_known_if_the_clock_source_changes() {
    let suspend = |hardware: &Hardware| {
        hardware.suspends.set(hardware.suspends.get() + 1);
        hardware.suspend(3600.0);
    };
    for after in [1, 2, 30] {
        assert_eq!(suspended_s(after, suspend), (vec![Some(3600.0)], 3600.0), "{after}");
    }
    let with_change = |hardware: &Hardware| {
        suspend(hardware);
        hardware.clocksource.replace("hpet".into());
    };
    assert_eq!(suspended_s(30, with_change), (vec![Some(3600.0)], 3600.0));
    // In the interval after the change, the new instruments compare the clocks.
    let (events, _) = watch(40, |sample, hardware| match sample {
        29 => _ = hardware.clocksource.replace("hpet".into()),
        30 => hardware.suspend(60.0),
        _ => {}
    });
    assert!(events.contains(&"31 suspend".into()), "{events:?}");
}

#[test]
fn a_pause_by_the_hypervisor_is_noticed_by_the_hardware_clock() {
    assert_eq!(events_of(|hardware| hardware.pause(20.0), |_| ()), ["31 pause"]);
}

#[test]
fn a_hardware_clock_that_the_kernel_corrects_is_no_pause() {
    let (events, _) = watch(40, |sample, hardware| match sample {
        // It goes back, which is no pause, and is set to the time of day.
        20 => hardware.rtc_ahead_s.set(-3600.0),
        30 => hardware.rtc_ahead_s.set(0.0),
        _ => {}
    });
    assert_eq!(events, [""; 0]);
}

#[test]
fn a_late_sample_is_a_pause() {
    assert_eq!(events_of(|hardware| hardware.oversleep_s.set(7.0), |_| ()), ["31 pause"]);
    assert_eq!(events_of(|hardware| hardware.oversleep_s.set(0.8), |_| ()), [""; 0]);
    // It ended before the next sample was due.
    assert_eq!(events_of(|hardware| hardware.stopped_s.set(7.0), |_| ()), ["31 pause"]);
    // It happened while the outputs were written.
    assert_eq!(events_of(|hardware| hardware.pass(7.0), |_| ()), ["31 pause"]);
}

#[test]
fn a_step_of_the_counter_differs_from_a_change_of_its_rate() {
    let jump = |hardware: &Hardware| hardware.counter_ahead_ns.set(3e6);
    assert_eq!(
        events_of(jump, |_| ()),
        [&format!("31 offset_step {COUNTER}"), "31 finding_appeared drift", "52 finding_cleared drift"]
    );
    let change = |hardware: &Hardware| hardware.change_rate(80.0);
    assert_eq!(events_of(change, |_| ()), ["31 rate_changed", "31 finding_appeared drift", "52 finding_cleared drift"]);
}

#[test]
fn setting_the_time_of_day_is_an_event_and_no_finding() {
    assert_eq!(events_of(|hardware| hardware.realtime_ahead_ns.set(-2e9), |_| ()), ["31 offset_step realtime"]);
}

#[test]
fn a_read_cost_that_rises_is_noticed() {
    let events = events_of(|hardware| hardware.cost_ns.set(60.0), |hardware| hardware.cost_ns.set(20.0));
    assert_eq!(events, ["31 read_cost_rose system", "41 read_cost_fell system"]);
}

#[test]
fn a_virtual_machine_that_moves_is_noticed() {
    assert_eq!(events_of(|hardware| hardware.hypervisor_hz.set(3e9), |_| ()), ["31 machine_restored"]);
    let marker = |marker| move |hardware: &Hardware| hardware.vmclock_disruption.set(marker);
    assert_eq!(events_of(marker(Some(2)), |_| ()), ["31 machine_restored"]);
    // The marker cannot be read while the hypervisor changes it.
    assert_eq!(events_of(marker(None), marker(Some(2))), ["41 machine_restored"]);
    let fork = |hardware: &Hardware| hardware.log("random: crng reseeded due to virtual machine fork");
    assert_eq!(events_of(fork, |_| ()), ["31 machine_restored", "31 kernel_message"]);
}

#[test]
fn skew_between_cpus_is_a_finding() {
    let events = events_of(|hardware| hardware.skew_ns.set(5_000.0), |hardware| hardware.skew_ns.set(0.0));
    // One pair of CPUs is compared in every twentieth interval.
    assert_eq!(events, ["40 finding_appeared cpu-skew", "61 finding_cleared cpu-skew"]);
    // After a suspend, each pair is compared at once.
    let suspend = |hardware: &Hardware| {
        hardware.skew_ns.set(5_000.0);
        hardware.suspend(60.0);
    };
    let events = events_of(suspend, |hardware| hardware.skew_ns.set(0.0));
    assert_eq!(events[..2], ["31 suspend", "31 finding_appeared cpu-skew"]);
}

#[test]
fn comparisons_that_fail_on_busy_cpus_are_no_event() {
    assert_eq!(events_of(|hardware| hardware.busy.set(3), |_| ()), [""; 0]);
}

/// Many comparisons one after the other would load a busy machine more.
#[test]
fn a_failed_comparison_is_repeated_only_at_the_next_turn() {
    let (events, _) = watch(60, |sample, hardware| {
        if sample == 1 {
            // With another clock source, each pair is due in the next interval.
            hardware.clocksource.replace("hpet".into());
            hardware.busy.set(1000);
        }
    });
    assert!(events.iter().all(|event| !event.contains("collector")), "{events:?}");
}

#[test]
fn cpus_that_are_busy_for_long_are_an_event() {
    // One comparison is due in each 20th interval. Twelve of them fail.
    let (events, _) = watch(320, |sample, hardware| {
        if sample == 30 {
            hardware.busy.set(12);
        }
    });
    assert_eq!(events, ["260 collector_failed skew", "280 collector_recovered skew"]);
}

#[test]
fn a_clock_source_that_disappears_is_reported_and_the_measurement_continues() {
    let name = |name: &'static str| move |hardware: &Hardware| _ = hardware.clocksource.replace(name.into());
    let events = events_of(name(""), name("tsc"));
    assert_eq!(events, ["31 collector_failed clocksource", "41 collector_recovered clocksource"]);
}

#[test]
fn an_unreadable_kernel_log_is_one_event() {
    let events = events_of(
        |hardware| hardware.kernel_log_readable.set(false),
        |hardware| hardware.kernel_log_readable.set(true),
    );
    assert_eq!(events, ["31 collector_failed kernel_log", "41 collector_recovered kernel_log"]);
}

#[test]
fn a_failing_server_is_one_event() {
    let figures = ServerFigures::new(Duration::from_secs(3600));
    let set = |error: Option<&str>| {
        figures.set(ServerReport { error: error.map(str::to_string), ..ServerReport::default() }, 0.25);
    };
    let (events, report) = watch_with_server(30, Some(figures.clone()), |sample, _| match sample {
        5 | 25 => set(None),
        10 => set(Some("refused; start it")),
        15 => set(Some("the server is starting")),
        _ => {}
    });
    assert_eq!(events, ["11 collector_failed server", "26 collector_recovered server"]);
    let summaries: Vec<&str> = report.events.iter().map(|event| event.summary.as_str()).collect();
    assert_eq!(summaries[1..3], ["no figures of the server: refused; start it", "figures of the server again"]);
    let collector = report.collectors.iter().find(|collector| collector.name == "server").unwrap();
    assert_eq!((collector.seconds, &collector.error), (0.25, &None));
    assert!(report.server.is_some());
}

/// A fault, and the events that it must cause, each once.
type Fault = (fn(&Hardware), &'static [&'static str]);

const FAULTS: &[Fault] = &[
    (|hardware| hardware.suspend(60.0), &["suspend"]),
    (|hardware| hardware.pause(9.0), &["pause"]),
    (|hardware| hardware.oversleep_s.set(5.0), &["pause"]),
    (|hardware| hardware.realtime_ahead_ns.set(hardware.realtime_ahead_ns.get() + 1e6), &["offset_step realtime"]),
    (
        |hardware| hardware.counter_ahead_ns.set(hardware.counter_ahead_ns.get() + 1e6),
        &["offset_step rdtsc", "finding_appeared drift", "finding_cleared drift"],
    ),
    (
        |hardware| hardware.back.set((1200, 5_000.0)),
        &["backward_step system", "finding_appeared clock-backward", "finding_cleared clock-backward"],
    ),
    (|hardware| hardware.log("Timekeeping suspended for 1.5 seconds"), &["kernel_message"]),
    (|hardware| hardware.hypervisor_hz.set(hardware.hypervisor_hz.get() + 1e6), &["machine_restored"]),
];

/// Samples between two faults: more than a finding needs to clear.
const BETWEEN: u64 = 50;

/// Simulates days: 100 000 samples are 17 days. `make check-all` sets the number; the default is a part of a day.
#[test]
fn each_of_many_faults_is_reported_once_in_constant_memory() {
    let requested = std::env::var("MONITOR_SAMPLES").ok();
    let samples: u64 = requested.as_ref().map_or(900, |number| number.parse().expect("a number"));
    let mut expected = vec![];
    let mut memory = Vec::new();
    let (events, report) = watch(samples, |sample, hardware| {
        if sample.is_multiple_of(BETWEEN) && sample + BETWEEN <= samples {
            let (fault, events) = FAULTS[(sample / BETWEEN) as usize % FAULTS.len()];
            fault(hardware);
            expected.extend(events.iter().map(|event| event.replace("rdtsc", COUNTER)));
        }
        if sample.is_multiple_of(samples / 10) {
            memory.extend(own_use(&Host::live(), 0.0).memory_bytes);
        }
    });
    let seen: Vec<String> = events.iter().filter_map(|event| Some(event.split_once(' ')?.1.to_string())).collect();
    assert_eq!(seen, expected);
    assert!(report.events.len() <= super::KEPT_EVENTS);
    // Other tests use memory in the same process, unless this test runs alone.
    if requested.is_some() {
        // The first tenth fills the history.
        let growth = memory.last().unwrap().saturating_sub(memory[0]);
        assert!(growth < 1 << 20, "memory grew by {growth} bytes: {memory:?}");
    }
}

/// Between two writes, another user replaces the directory, or becomes its owner.
#[test]
fn root_writes_only_while_the_directory_is_its_own() {
    use std::os::unix::fs::{lchown, symlink};
    let top = tempfile::tempdir().unwrap();
    let path = |name: &str| top.path().join(name);
    let give = |name: &str, user: u32| {
        if is_root() {
            lchown(path(name), Some(user), None).unwrap()
        }
    };
    for name in ["own", "private", "other"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    give("other", 1000);
    let textfile = OutputFile::to_replace(&path("own/a.prom")).unwrap();
    let file = OutputFile::to_append(&path("own/events")).unwrap();
    let write = || [textfile.replace(b"a 1\n", Some(READABLE)).is_ok(), file.append(b"event\n").is_ok()];
    assert_eq!(write(), [true; 2]);
    give("own", 1000);
    assert_eq!(write(), [!is_root(); 2]);
    give("own", 0);
    std::fs::rename(path("own"), path("moved")).unwrap();
    for target in ["private", "other"] {
        symlink(target, path("own")).unwrap();
        give("own", 1000);
        assert_eq!(write(), [!is_root(); 2]);
        std::fs::remove_file(path("own")).unwrap();
        assert_eq!(path(target).read_dir().unwrap().count() == 0, is_root(), "{target}");
    }
    std::fs::rename(path("moved"), path("own")).unwrap();
    assert_eq!(write(), [true; 2]);
    let lines = std::fs::read_to_string(path("own/events")).unwrap().lines().count();
    assert_eq!(lines, if is_root() { 2 } else { 3 });
}
