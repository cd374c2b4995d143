//! Creates a [`Report`] from the facts of a [`Host`] and from measurements of its clocks. Reduces the kernel's log to the facts
//! that checks and screens need.

pub(in crate::host) mod clocks;
pub(in crate::host) mod counter;

pub use counter::{between_cpus, known_faults};

// The vocabulary of this folder.
use crate::host::facts::{Host, KernelLog, activity_since, counters, parameters_about_clocks, selectable_timecounters};
use crate::host::kernel_log::{KernelClockLog, Kind, Level, Message, TSC_RATES};
use crate::host::measure::{self, *};
use crate::human::reason;
use crate::report::{SYSTEM, *};
use clocks::{Instruments, STEP_TIME, is_main};
use std::sync::atomic::AtomicBool;
use timing_clock::clocksource::{is_counter, is_tsc};
use timing_clock::{Hertz, Nanos, Ppm, Rate, Refused, bogomips_claim};

/// Receives the progress of the measurement, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// Measures this machine within the budget, and returns the report without findings.
pub fn live(host: &Host, log: &KernelLog, limit: Nanos, budget: &Budget, progress: Progress) -> Report {
    let mut report = facts(host, log, Origin::Measured);
    let permission = timing_clock::counter::permitted();
    let before = counters(host);
    let cpus = report.cpus.allowed.known().cloned().unwrap_or_default();
    // The rest of the time is for the CPU skew.
    let reading = Nanos(limit.0 - counter::time_share(cpus.len(), limit).0);
    let instruments = read(|_| true, &cpus, &budget.part(reading), progress);
    let changed = update_clocksource(host, log, &mut report);
    let measured = instruments.rate();
    let hertz = |rate: &Result<Rate, String>| rate.as_ref().ok().map(|rate| rate.rate);
    let current = report.clocksource.current.known().filter(|_| !changed).map(String::as_str);
    report.clocks = instruments.figures(hertz(&measured), current);
    let rate = &if changed { Err("the clock source changed during the measurement".into()) } else { measured };
    report.drift = hertz(rate).and_then(|rate| instruments.counter_drift(rate)).into_iter().collect();
    report.drift.extend(instruments.offset_drifts());
    report.activity = Fact::Known(activity_since(&before, &counters(host)));
    report.tsc = counter::judge(host, &report, permission, rate, log);
    report.cpus = counter::between_cpus(report.cpus, permission, rate, budget);
    report.measured_at = Some(humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string());
    report.measured_seconds = (budget.spent().secs() * 100.0).round() / 100.0;
    report.interrupted = budget.interrupted();
    progress(1.0);
    report
}

/// Returns those clocks of this machine that are `wanted`, after reading them until the budget is spent.
fn read(wanted: impl Fn(&str) -> bool, cpus: &[usize], budget: &Budget, progress: Progress) -> Instruments {
    let step_time = Nanos(STEP_TIME.0.min((budget.left().0 / 20.0).max(12e6)));
    let mut instruments = Instruments::live(wanted, budget, step_time);
    instruments.read(cpus, budget, progress);
    instruments
}

/// Reads the clock source again, and returns whether it changed during the measurement.
///
/// If it changed, the figures mix two clocks, and the rate is that of neither.
fn update_clocksource(host: &Host, log: &KernelLog, report: &mut Report) -> bool {
    let now = host.clocksource();
    let before = report.clocksource.current.known().cloned();
    let changed = before.is_some() && now.current.known() != before.as_ref();
    if changed {
        report.clocksource = Clocksource { before, ..now };
        // A log from --kernel-log has no new lines.
        if let (false, Fact::Known(entries)) = (log.named, KernelLog::own(host).entries) {
            report.kernel = Fact::Known(kernel_report(&entries));
        }
    }
    changed
}

/// Measures PostgreSQL's clock, and the counters that belong to it.
pub fn system_clock(limit: Nanos, stop: &AtomicBool) -> ClockReport {
    let cpus = measure::allowed().unwrap_or_default();
    let instruments = read(is_main, &cpus, &Budget::new(limit, stop), &mut |_| ());
    let rate = instruments.rate().ok().map(|rate| rate.rate);
    let system = instruments.figures(rate, None).into_iter().find(|clock| clock.name == SYSTEM);
    system.unwrap_or_else(|| ClockReport::unavailable(SYSTEM, "it was not read"))
}

/// Returns the report of a captured tree: its facts, and the figures that were measured when it was captured.
pub fn captured(host: &Host, log: &KernelLog) -> Report {
    let mut report = facts(host, log, Origin::Captured);
    let measured: Fact<Report> = host.captured_json("measured");
    let why = match &measured {
        Fact::Unavailable { unavailable } if host.has_captured_json("measured") => unavailable.clone(),
        _ => "not measured".into(),
    };
    let figures = measured.known().cloned().unwrap_or_default();
    let duration = Nanos::from_secs(figures.measured_seconds);
    let rate = |(khz, ppm)| Rate { rate: Hertz(khz * 1e3), uncertainty: Ppm(ppm), duration };
    let rate = figures.tsc.frequency_khz.known().copied().zip(figures.tsc.uncertainty_ppm).map(rate);
    let permission = if figures.tsc.permitted == Some(false) { Err(Refused::Denied) } else { Ok(()) };
    report.tsc = counter::judge(host, &report, permission, &rate.ok_or(why.clone()), log);
    report.tsc.permitted = figures.tsc.permitted;
    if rate.is_none() {
        report.tsc.usable = report.tsc.usable.filter(|_| !report.tsc.distrust.is_empty());
    }
    report.measured_seconds = figures.measured_seconds;
    report.clocks = figures.clocks;
    report.activity = Fact::of(figures.activity.known().copied(), &why);
    report.drift = figures.drift;
    let Cpus { skew, skew_unavailable, .. } = figures.cpus;
    if !skew.is_empty() {
        report.cpus = Cpus { skew, skew_unavailable, ..report.cpus };
    }
    report
}

/// Returns the report of a log that the user named on this machine, if the log is from another host. Then it is judged
/// alone: figures of this machine say nothing about that host.
pub fn of_other_host(host: &Host, log: &KernelLog) -> Option<Report> {
    let entries = log.entries.known().filter(|_| log.named && host.is_live())?;
    let why = other_host(entries, host, &host.facts(), &host.clocksource())?;
    // A tree without files: no file can be below a device.
    let mut report = captured(&Host::captured("/dev/null/none".into()), log);
    report.kernel = report.kernel.map(|kernel| KernelReport { other_host: Some(why), ..kernel });
    Some(report)
}

/// Returns a report with the facts of the host and without figures.
pub(in crate::host) fn facts(host: &Host, log: &KernelLog, origin: Origin) -> Report {
    let empty = Report::empty(origin, "not measured");
    let (mut facts, mut clocksource) = (host.facts(), host.clocksource());
    if let Some(entries) = log.of(host) {
        complete(entries, &mut facts, &mut clocksource);
    }
    Report {
        host: facts,
        clocksource,
        kernel: log.entries.clone().map(|entries| kernel_report(&entries)),
        cpus: Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), ..empty.cpus },
        ..empty
    }
}

/// More different messages than one boot has. A faulty clock can produce messages for ever.
const MAX_MESSAGES: usize = 100;

/// Returns the facts of the kernel's log.
pub fn kernel_report(log: &KernelClockLog) -> KernelReport {
    let boot = log.this_boot();
    let switch = |message: &Message| Switch { seconds: message.shown.seconds, to: message.source().into() };
    let about_clocks = |message: &&Message| !matches!(message.kind, Kind::Boot | Kind::CommandLine | Kind::Cpus);
    KernelReport {
        messages: messages(boot),
        recognized_lines: boot.iter().filter(about_clocks).count(),
        other_host: None,
        since_boot: !log.truncated,
        demotion: log.demotion(),
        unstable: boot.iter().any(|message| message.shown.level == Level::Fault),
        switches: log.of(Kind::Switched).map(switch).collect(),
        firmware_bug: log.of(Kind::FirmwareBug).next().is_some(),
        refused: log.of(Kind::Refused).next_back().map(|message| message.source().into()),
    }
}

/// Returns the messages that mean something. One that comes again and again is counted.
fn messages(boot: &[Message]) -> Vec<KernelMessage> {
    let mut all: Vec<KernelMessage> = Vec::new();
    for Message { kind, shown, .. } in boot.iter().filter(|message| !message.shown.meaning.is_empty()) {
        let is_repeated = shown.level < Level::Fault && !matches!(kind, Kind::Switched | Kind::Timecounter);
        if let Some(first) = all.iter_mut().find(|first| is_repeated && first.meaning == shown.meaning) {
            first.times += 1;
            first.last_seconds = shown.seconds;
        } else if all.len() < MAX_MESSAGES {
            all.push(shown.clone());
        }
    }
    all
}

/// How the names of a hypervisor's clock sources begin, and its name.
const HYPERVISORS: [(&str, &str); 3] = [("xen", "Xen"), ("kvm-clock", "KVM"), ("hyperv", "Hyper-V")];

/// Completes facts that are missing if only the log is there: the kernel's version and boot parameters, the last clock source,
/// and FreeBSD's timecounters.
pub fn complete(log: &KernelClockLog, facts: &mut HostFacts, clocksource: &mut Clocksource) {
    fill(&mut facts.kernel, log.field(Kind::Boot, "version").map(|version| format!("Linux {version}")));
    fill(&mut facts.boot_parameters, log.field(Kind::CommandLine, "line").map(parameters_about_clocks));
    let named = log.this_boot().iter().flat_map(|message| ["source", "watchdog"].map(|hole| message.fields.text(hole)));
    let hypervisor = named.flatten().find_map(|name| HYPERVISORS.iter().find(|(start, _)| name.starts_with(start)));
    fill(&mut facts.virtualization, hypervisor.map(|(_, name)| name.to_string()));
    fill(&mut clocksource.current, last_clocksource(log));
    let quality = |Message { fields, .. }: &Message| Some((fields.number("quality")?, fields.text("name")?.into()));
    let timecounters: Vec<(i64, String)> = log.of(Kind::Timecounter).filter_map(quality).collect();
    if !timecounters.is_empty() && facts.kernel.known().is_none_or(|kernel| kernel.starts_with("FreeBSD")) {
        fill(&mut facts.kernel, Some("FreeBSD".into()));
        // The current one may be another than the best, because a sysctl selects it.
        fill(&mut clocksource.available, Some(selectable_timecounters(timecounters)));
    }
}

/// Sets a fact that is not known.
fn fill<T>(fact: &mut Fact<T>, value: Option<T>) {
    if let (None, Some(value)) = (fact.known(), value) {
        *fact = Fact::Known(value);
    }
}

/// Returns the last clock source that the log shows, unless the kernel found a fault of it later.
fn last_clocksource(log: &KernelClockLog) -> Option<String> {
    let boot = log.this_boot();
    let last = boot.iter().rposition(|message| matches!(message.kind, Kind::Switched | Kind::Current))?;
    let name = boot[last].source();
    let same = |other: &str| other == name || is_tsc(other) && is_tsc(name);
    let kept = boot[last..].iter().all(|message| message.shown.level < Level::Fault || !same(message.source()));
    kept.then(|| name.into())
}

/// A rate from /proc/cpuinfo differs less from the one in the log of the same machine.
const SAME_RATE_PPM: f64 = 50_000.0;

/// Returns why the log cannot be from the host, if a fact contradicts it.
pub fn other_host(log: &KernelClockLog, host: &Host, facts: &HostFacts, clocksource: &Clocksource) -> Option<String> {
    let kernel = facts.kernel.known();
    let freebsd = log.of(Kind::Timecounter).next().filter(|_| kernel.is_some_and(|kernel| kernel.starts_with("Linux")));
    let linux = log.field(Kind::Boot, "version").map(|version| format!("Linux {version}"));
    let online = host.online_cpus();
    let online = online.known();
    let most = online.and_then(|online| online.iter().max().copied());
    let cpu = log.this_boot().iter().filter_map(|message| message.fields.number::<usize>("cpu")).max();
    let now = clocksource.current.known();
    let demoted = now.filter(|now| log.demoted(now));
    let own_rate = host.read("/proc/cpuinfo").known().and_then(|text| bogomips_claim(text)).map(|claim| claim.rate);
    let rates = log.mhz(TSC_RATES).zip(own_rate);
    let rates = rates.filter(|(mhz, own)| own.ppm_from(Hertz(mhz * 1e6)).0.abs() > SAME_RATE_PPM);
    let mhz = |mhz: f64| format!("{mhz:.0} MHz");
    let facts = [
        ("kernel", linux.or(freebsd.map(|_| "FreeBSD".into())), kernel.cloned()),
        ("highest CPU", cpu.max(most).map(|cpu| cpu.to_string()), most.map(|most| most.to_string())),
        (now.map_or("", String::as_str), demoted.map(|_| "marked unstable".into()), Some("in use".into())),
        ("last clock source", last_clocksource(log), now.cloned()),
        ("number of CPUs", log.field(Kind::Cpus, "cpus").map(String::from), online.map(|cpus| cpus.len().to_string())),
        ("TSC's rate", rates.map(|(of_log, _)| mhz(of_log)), rates.map(|(_, own)| mhz(own.0 / 1e6))),
    ];
    facts.into_iter().find_map(|(what, of_log, of_host)| {
        let (of_log, of_host) = of_log.zip(of_host).filter(|(of_log, of_host)| of_log != of_host)?;
        Some(format!("its {what} is {of_log}, and that of this host is {of_host}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::kernel_log::parse;
    use crate::report::{Origin, Report};

    /// Returns the kernel, the current clock source and the available ones.
    fn completed(log: &str) -> (Option<String>, Option<String>, Option<Vec<String>>) {
        let mut report = Report::empty(Origin::Captured, "x");
        complete(&parse(log), &mut report.host, &mut report.clocksource);
        let Clocksource { current, available, .. } = report.clocksource;
        (report.host.kernel.known().cloned(), current.known().cloned(), available.known().cloned())
    }

    #[test]
    fn freebsds_timecounters_are_available_best_first() {
        let log = "Timecounter \"i8254\" frequency 1193182 Hz quality 0\n\
                   Timecounter \"HPET\" frequency 14318180 Hz quality 950\n\
                   Timecounter \"ACPI-fast\" frequency 3579545 Hz quality 900\n\
                   Timecounter \"TSC-low\" frequency 1296049048 Hz quality -100\n";
        let names = ["HPET", "ACPI-fast", "i8254"].map(String::from).to_vec();
        assert_eq!(completed(log), (Some("FreeBSD".into()), None, Some(names)));
        assert_eq!(completed(""), (None, None, None));
    }

    #[test]
    fn a_log_of_a_host_with_other_cpus_or_another_rate_is_from_another_host() {
        let root = tempfile::tempdir().unwrap();
        let online = root.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&online).unwrap();
        std::fs::write(online.join("online"), "0-3\n").unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/cpuinfo"), "processor : 0\nbogomips : 5000.00\n").unwrap();
        let host = Host::captured(root.path().into());
        let report = Report::empty(Origin::Captured, "x");
        let why = |log: &str| other_host(&parse(log), &host, &report.host, &report.clocksource);
        let cpus = |number: u32| format!("[    0.100000] smp: Brought up 1 node, {number} CPUs");
        let rate = |mhz: f64| format!("[    0.000000] tsc: Detected {mhz:.3} MHz processor");
        assert_eq!([why(&cpus(4)), why(&rate(2499.9))], [None, None]);
        assert_eq!(why(&cpus(8)).unwrap(), "its number of CPUs is 8, and that of this host is 4");
        assert_eq!(why(&rate(3000.0)).unwrap(), "its TSC's rate is 3000 MHz, and that of this host is 2500 MHz");
        let named = "clocksource: timekeeping watchdog on CPU7: Marking clocksource 'tsc' as unstable because the skew is too large:";
        assert_eq!(why(named).unwrap(), "its highest CPU is 7, and that of this host is 3");
    }

    #[test]
    fn known_facts_are_not_replaced() {
        let mut report = Report::empty(Origin::Captured, "x");
        report.clocksource.current = Fact::Known("hpet".into());
        report.host.kernel = Fact::Known("Linux 6.18".into());
        let log = parse("Switched to clocksource tsc\nTimecounter \"TSC\" frequency 1 Hz quality 1\n");
        let before = (report.host.clone(), report.clocksource.clone());
        complete(&log, &mut report.host, &mut report.clocksource);
        assert_eq!((report.host, report.clocksource), before);
    }
}
