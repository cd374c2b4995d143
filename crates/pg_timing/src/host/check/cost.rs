//! Findings about the cost of a read: slow clocks, slow hardware, system calls.

use super::*;
use crate::statistics::RUN_TO_RUN_VARIATION;

/// The good host in PostgreSQL's documentation of pg_test_timing, an i7-860 with tsc, takes 36 ns per loop.
const GOOD_HOST_NS: f64 = 36.0;

/// With a larger spread, as a share of the read cost, the median does not describe the clock.
const NOISY: f64 = 0.5;

/// `clock-slow`: is a read of PostgreSQL's clock too expensive?
pub fn clock_slow(report: &Report) -> Judged {
    let clock = report.system().ok_or("PostgreSQL's clock was not measured")?;
    let costs = clock.cost_ns().zip(clock.overhead_per_node_ns());
    let (cost, overhead) = costs.ok_or("the read cost of PostgreSQL's clock is unknown")?;
    let distorted = clock.gaps.is_some_and(|gaps| gaps.share > INTERRUPTED_SHARE);
    if distorted && clock.read_ns.or(clock.undisturbed_ns).is_none() {
        return Err(format!("interruptions are part of the {cost:.2} ns per loop"));
    }
    let low = low_ns(clock, cost);
    if low <= GOOD_READ_NS {
        let summary = format!("one read of PostgreSQL's clock takes {cost:.1} ns");
        return Ok(with_severity(Severity::Ok, summary).evidence(read_cost(clock, cost)));
    }
    // The median of a busy machine contains the time of other programs.
    let is_noisy = clock.read_spread_ns.is_some_and(|spread| spread > NOISY * cost);
    let (at_least, shown) = if is_noisy { ("at least ", low) } else { ("", cost) };
    let (shown, times) = (duration(shown), (shown / GOOD_HOST_NS).round());
    let summary = format!("{at_least}{shown} per read, about {times:.0} times as much as on a good host");
    let what = "until it is fixed: run EXPLAIN without timing (rows and buffers stay exact), or use the extension pg_fast_timing";
    Ok(slow(low, format!("PostgreSQL's clock is slow: {summary}"), &duration(overhead))
        .evidence(read_cost(clock, cost))
        .evidence_lines(clock.distribution())
        .fixes(other_clocksource(report))
        .fix(Fix::new(what).command("EXPLAIN (ANALYZE, TIMING OFF, BUFFERS) SELECT ...")))
}

/// Returns the finding for a clock that is too expensive: what one read costs, and what EXPLAIN ANALYZE adds per row and node.
fn slow(read_ns: f64, summary: String, overhead: &str) -> Finding {
    let severity = if read_ns > BAD_READ_NS { Severity::Critical } else { Severity::Warning };
    with_severity(severity, summary).why(format!(
        "EXPLAIN ANALYZE reads the clock twice per row and plan node, and adds up to about {overhead}. In plans with many rows, \
         much of the time that it reports is then overhead. track_io_timing and auto_explain read the same clock"
    ))
}

/// Returns a lower bound of the clock's own read cost. Noise must neither cause an alarm nor hide it.
///
/// A busy machine makes reads longer and never shorter. So the 5th percentile counts, minus the run-to-run variation of
/// a quiet machine. The output of pg_test_timing has no read cost.
fn low_ns(clock: &ClockReport, cost: f64) -> f64 {
    match clock.read_ns.and(clock.undisturbed_ns) {
        Some(undisturbed) => undisturbed * (1.0 - RUN_TO_RUN_VARIATION),
        None => cost - clock.read_spread_ns.unwrap_or(0.0),
    }
}

fn read_cost(clock: &ClockReport, cost: f64) -> String {
    let low = clock.undisturbed_ns.map(|ns| format!("; 95% of the reads took {ns:.1} ns or more")).unwrap_or_default();
    match (clock.read_ns.zip(clock.read_spread_ns), clock.undisturbed_ns) {
        (Some((read, spread)), _) => format!("system: {read:.1} ns +- {:.1} ns per read{low}", spread.max(0.1)),
        (None, Some(_)) => format!("system: {cost:.2} ns per loop, without the interruptions"),
        (None, None) => format!("system: {cost:.2} ns per loop, as pg_test_timing measures it"),
    }
}

/// The kernel's tick takes at least 1 ms. A clock with smaller steps does not run on it, whatever its name is.
const TICK_NS: f64 = 1e6;

/// `clocksource-slow`: does the kernel's clock run on slow hardware?
pub fn clocksource_slow(report: &Report) -> Judged {
    let current = report.clocksource.current.get().map_err(|why| format!("the clock source is unknown: {why}"))?;
    // Some clock sources are slow only on some kernels, so a measured cost decides.
    let measured = report.system().and_then(|clock| clock.read_ns);
    let is_cheap = measured.is_some_and(|ns| ns <= GOOD_READ_NS);
    let traits = match traits_of(current) {
        Some(traits) if traits.grade == Grade::Coarse => return ok(coarse(report, current)),
        Some(traits) if !traits.is_slow() => return ok(format!("clock source {current}")),
        _ if is_cheap => return ok(format!("clock source {current}, which is cheap on this host")),
        traits => traits.ok_or_else(|| format!("pg_timing does not know the clock source {current}"))?,
    };
    Ok(warning(format!("the kernel's clock source is {current}, which is slow"))
        .evidence(format!("{current}: {}; a read typically takes {}", traits.what, traits.read))
        .why("every process on this host pays this for each read of the clock, and EXPLAIN ANALYZE reads it most often")
        .fixes(other_clocksource(report)))
}

/// Returns that a clock source is coarse, or that its steps are small on this host. It is not slow hardware.
fn coarse(report: &Report, name: &str) -> String {
    let step = |clock: &ClockReport| clock.granularity_ns.or(clock.granularity_between_ns.map(|(_, high)| high));
    match report.system().and_then(step).filter(|step| *step < TICK_NS) {
        Some(step) => format!("clock source {name}, whose steps are at most {} on this host", duration(step)),
        None => format!("clock source {name}: it is coarse (see clock-coarse), and not slow hardware"),
    }
}

/// `clock-syscall`: does a read of PostgreSQL's clock need a system call?
pub fn clock_syscall(report: &Report) -> Judged {
    let clock = report.system().and_then(|clock| clock.access_path.map(|path| (clock, path)));
    let (clock, path) = clock.ok_or("the access path of PostgreSQL's clock was not measured")?;
    let call = report.clock("system_syscall").and_then(|call| call.read_ns);
    let costs = clock.read_ns.zip(call);
    let costs = costs.map(|(own, call)| format!("system: {own:.1} ns per read; by a plain system call: {call:.1} ns"));
    let (summary, why, fix) = match path {
        AccessPath::Instruction | AccessPath::Vdso => {
            let summary = "reads of PostgreSQL's clock need no system call (vDSO)";
            return Ok(with_severity(Severity::Ok, summary).evidence_lines(costs));
        }
        AccessPath::Syscall => (
            "each read of PostgreSQL's clock is a system call, because the vDSO cannot read this clock source",
            "the vDSO reads tsc, kvm-clock, the Hyper-V page and arch_sys_counter without a system call, usually in less than 70 ns",
            other_clocksource(report),
        ),
        AccessPath::Interposed => (
            "a read of PostgreSQL's clock costs more than a system call: something intercepts the reads",
            "a sandbox, a tracer or an LD_PRELOAD library adds its own work to each read",
            Some(Fix::new("check whether LD_PRELOAD is set, a tracer is attached, or a sandbox runs this process")),
        ),
    };
    Ok(warning(summary).why(why).fixes(fix).evidence_lines(costs))
}

/// The two clocks are read one after the other. In between, a machine that is shared with other guests can change its
/// speed by up to a factor of 2. So a smaller difference can be chance.
const NOISE_FACTOR: f64 = 2.0;

/// Returns the finding `tsc-slow` of a server that reads the TSC or not.
pub fn tsc_slow_if(report: &Report, used: Option<bool>) -> Finding {
    finding(finding_id::TSC_SLOW, tsc_slow(report, used))
}

/// `tsc-slow`: does PostgreSQL 19 read the TSC although the system clock is cheaper? `used_by_default`: whether it reads the TSC
/// by default.
pub fn tsc_slow(report: &Report, used_by_default: Option<bool>) -> Judged {
    if !used_by_default.ok_or("not determined whether PostgreSQL 19 uses the TSC")? {
        return ok("PostgreSQL 19 does not use the TSC by default on this host");
    }
    let costs = |name: &str| report.clock(name).and_then(|clock| clock.cost_ns().zip(clock.overhead_per_node_ns()));
    // EXPLAIN reads RDTSC.
    let ((tsc, tsc_overhead), (system, system_overhead)) =
        costs("rdtsc").zip(costs(SYSTEM)).ok_or("the costs of the TSC and of the system clock are unknown")?;
    let costs =
        format!("a read of the TSC takes {}, and a read of the system clock {}", duration(tsc), duration(system));
    if tsc <= NOISE_FACTOR * system {
        return ok(costs);
    }
    let summary = format!("PostgreSQL 19 uses the TSC by default, which is slower than the system clock: {costs}");
    let overhead = format!("{} instead of {}", duration(tsc_overhead), duration(system_overhead));
    Ok(slow(tsc, summary, &overhead)
        .evidence("possible cause: a hypervisor or a sandbox intercepts reads of the TSC")
        .fix(system_clock_on_19()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::*;

    mod clock_slow {
        use super::*;

        fn finding(clock: ClockReport) -> Finding {
            let mut report = Report::empty(Origin::Measured, "");
            report.clocks = vec![ClockReport { name: SYSTEM.into(), reads: 1000, ..clock }];
            crate::host::check::finding("", clock_slow(&report))
        }

        fn clock(read_ns: f64, spread_ns: f64, undisturbed_ns: Option<f64>) -> ClockReport {
            ClockReport {
                read_ns: Some(read_ns),
                read_spread_ns: Some(spread_ns),
                undisturbed_ns,
                granularity_ns: Some(1.0),
                ..ClockReport::default()
            }
        }

        #[test]
        fn a_busy_machine_does_not_hide_a_slow_clock() {
            let slow = finding(clock(1249.0, 7823.0, Some(620.0)));
            assert_eq!(slow.severity, Severity::Critical);
            assert!(slow.summary.contains("at least 601 ns per read"), "{}", slow.summary);
            assert_eq!(finding(clock(1249.0, 7823.0, Some(160.0))).severity, Severity::Warning);
        }

        #[test]
        fn a_busy_machine_does_not_make_a_clock_slow() {
            assert_eq!(finding(clock(1249.0, 7823.0, Some(22.0))).severity, Severity::Ok);
            assert_eq!(finding(clock(150.0, 60.0, Some(101.0))).severity, Severity::Ok, "within the noise");
            assert_eq!(finding(clock(150.0, 60.0, Some(104.0))).severity, Severity::Warning);
        }
    }

    mod clocksource_slow {
        use super::*;

        fn finding(current: &str, read_ns: Option<f64>) -> Finding {
            let mut report = Report::empty(Origin::Captured, "");
            report.clocksource.current = Fact::Known(current.into());
            report.clocks = vec![ClockReport { name: SYSTEM.into(), read_ns, ..ClockReport::default() }];
            crate::host::check::finding("", clocksource_slow(&report))
        }

        #[test]
        fn slow_hardware_is_a_warning_unless_its_cost_is_low() {
            for name in ["hpet", "acpi_pm", "hyperv_clocksource", "piix"] {
                assert_eq!(finding(name, None).severity, Severity::Warning, "{name}");
                assert_eq!(finding(name, Some(30.0)).severity, Severity::Ok, "{name}");
            }
            assert_eq!(finding("tsc", None).severity, Severity::Ok);
        }

        #[test]
        fn the_kernels_tick_is_coarse_and_not_slow() {
            for read_ns in [None, Some(60.0), Some(300.0)] {
                let jiffies = finding("jiffies", read_ns);
                assert_eq!(jiffies.severity, Severity::Ok);
                assert!(jiffies.summary.contains("coarse"), "{}", jiffies.summary);
            }
        }

        /// An old Linux calls its clock jiffies, and takes the time within a tick from another counter.
        #[test]
        fn jiffies_with_small_steps_are_not_coarse() {
            let mut report = Report::empty(Origin::Captured, "");
            report.clocksource.current = Fact::Known("jiffies".into());
            let clock = ClockReport {
                name: SYSTEM.into(),
                granularity_between_ns: Some((0.0, 2000.0)),
                ..ClockReport::default()
            };
            report.clocks = vec![clock];
            let summary = crate::host::check::finding("", clocksource_slow(&report)).summary;
            assert!(summary.contains("at most 2 us") && !summary.contains("coarse"), "{summary}");
        }

        #[test]
        fn an_unknown_clock_source_is_judged_by_its_cost() {
            assert_eq!(finding("flux", None).severity, Severity::Unknown);
            assert_eq!(finding("flux", Some(30.0)).severity, Severity::Ok);
            assert_eq!(finding("flux", Some(300.0)).severity, Severity::Unknown);
        }
    }

    mod tsc_slow {
        use super::*;

        fn finding(tsc_ns: Option<f64>, system_ns: Option<f64>, used_by_default: Option<bool>) -> Finding {
            let clock = |name: &str, read_ns| ClockReport { name: name.into(), read_ns, ..ClockReport::default() };
            let clocks = vec![clock("rdtsc", tsc_ns), clock(SYSTEM, system_ns)];
            tsc_slow_if(&Report { clocks, ..Report::empty(Origin::Measured, "not measured") }, used_by_default)
        }

        #[test]
        fn a_tsc_that_is_emulated_is_critical() {
            let slow = finding(Some(1400.0), Some(30.0), Some(true));
            assert_eq!(slow.severity, Severity::Critical);
            assert!(
                slow.summary.contains("the TSC takes 1.4 us, and a read of the system clock 30 ns"),
                "{}",
                slow.summary
            );
            let command = slow.fix[0].command.as_deref().unwrap();
            assert!(command.contains("timing_clock_source = 'system'"), "{command}");
        }

        #[test]
        fn a_difference_within_the_noise_is_no_alarm() {
            let severity = |tsc, system| finding(Some(tsc), Some(system), Some(true)).severity;
            assert_eq!(severity(16.0, 28.0), Severity::Ok);
            assert_eq!(severity(60.0, 30.0), Severity::Ok);
            assert_eq!(severity(61.0, 30.0), Severity::Warning);
            assert_eq!((severity(500.0, 30.0), severity(501.0, 30.0)), (Severity::Warning, Severity::Critical));
        }

        #[test]
        fn only_a_clock_that_is_used_counts() {
            let severity = |tsc, used| finding(tsc, Some(30.0), used).severity;
            assert_eq!(severity(Some(1400.0), Some(false)), Severity::Ok);
            assert_eq!(severity(Some(1400.0), None), Severity::Unknown);
            assert_eq!(severity(None, Some(true)), Severity::Unknown);
        }
    }
}
