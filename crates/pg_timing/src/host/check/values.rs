//! Findings about the values of clocks: backward steps, coarse steps, and offsets between CPUs.

use super::*;

/// `clock-backward`: did a clock go back?
pub fn clock_backward(report: &Report) -> Judged {
    // A clock of unknown rate counts, too: a backward step needs no rate.
    let read = || report.clocks.iter().filter(|clock| clock.name != SETTABLE_CLOCK);
    let back = || read().filter(|clock| clock.backward_steps > 0);
    let Some(worst) = back().max_by(|a, b| a.largest_backward_ns.total_cmp(&b.largest_backward_ns)) else {
        return match read().map(|clock| clock.reads).fold(0, u64::saturating_add) {
            0 => Err("no clock was measured".into()),
            reads => ok(format!("no clock went back in {} readings", count(reads))),
        };
    };
    let (name, ns) = (&worst.name, worst.largest_backward_ns);
    let by = if ns == 0.0 { "by an unknown amount".into() } else { format!("by up to {}", duration(ns)) };
    let finding = if back().any(|clock| concerns_postgresql(report, clock)) {
        critical(format!("time went back {by} (clock {name}): do not trust any timing on the host"))
            .why("an interval in which time goes back is too short or negative, also in the server's log")
    } else {
        warning(format!("the clock {name} went back {by}; PostgreSQL does not read it"))
            .why("programs that read this clock measure wrong times")
    };
    let evidence = |clock: &ClockReport| {
        let (steps, reads, most) =
            (times(clock.backward_steps), count(clock.reads), duration(clock.largest_backward_ns));
        format!("{}: went back {steps} in {reads} readings, at most by {most}", clock.name)
    };
    let restart = "in a virtual machine, restart it: a sleep of the host or a migration can break its clocks";
    Ok(finding
        .evidence_lines(back().filter(|clock| clock.reads > 0).map(evidence))
        .fix(Fix::new(restart).risk("stops everything in it"))
        .fixes(other_clocksource(report)))
}

/// Returns whether PostgreSQL reads this clock, or a clock that is computed from the same counter.
fn concerns_postgresql(report: &Report, clock: &ClockReport) -> bool {
    match clock.name.as_str() {
        SYSTEM | "system_syscall" => true,
        name => ["rdtsc", "cntvct"].iter().any(|counter| name.contains(counter)) && counter_is_used(report),
    }
}

/// Returns whether the kernel or PostgreSQL 19 may use the CPU's counter.
fn counter_is_used(report: &Report) -> bool {
    report.tsc.accepted_by_kernel != Some(false)
        || report.tsc.independent != Some(true)
        || report.tsc.used_by_default != Some(false)
}

/// Most nodes take less than a step of such a clock (jiffies: 1 to 10 ms).
const USELESS_NS: f64 = 1_000_000.0;

/// `clock-coarse`: are the clock's steps too large to time a plan node?
pub fn clock_coarse(report: &Report) -> Judged {
    let (severity, summary) = coarse_step(report)?;
    let why = match report.system().and_then(|clock| clock.stood_still_ns) {
        Some(_) => "EXPLAIN ANALYZE would print 0 for every time",
        None => "a node's time is the sum of many short intervals; each is measured as 0 or as a whole step, at random",
    };
    Ok(with_severity(severity, summary).why(why).fixes(other_clocksource(report)))
}

/// Returns how bad the clock's step is, and how large.
fn coarse_step(report: &Report) -> Result<(Severity, String), String> {
    let clock = report.system();
    let critical = |summary| Ok((Severity::Critical, summary));
    if let Some(ns) = clock.and_then(|clock| clock.stood_still_ns) {
        return critical(format!("PostgreSQL's clock stands still: it did not move in {}", duration(ns)));
    }
    let between = |clock: &ClockReport| clock.granularity_ns.map(|step| (step, step)).or(clock.granularity_between_ns);
    let Some((low, high)) = clock.and_then(between) else {
        // The kernel's tick is always coarse.
        let current = report.clocksource.current.known().and_then(|name| Some((name, traits_of(name)?)));
        if let Some((name, coarse)) = current.filter(|(_, traits)| traits.grade == Grade::Coarse) {
            return critical(format!("the kernel's clock source is {name}, {}", coarse.what));
        }
        let why = clock.map(|clock| clock.granularity_unavailable.as_deref().unwrap_or("it was not measured"));
        let why = why.unwrap_or("the clock was not measured");
        return Err(format!("the step of PostgreSQL's clock is unknown: {why}"));
    };
    let steps = match low {
        low if low == high => duration(low),
        0.0 => format!("at most {}", duration(high)),
        low => format!("{} to {}", duration(low), duration(high)),
    };
    let severity = match low {
        low if low >= USELESS_NS => Severity::Critical,
        low if low > VISIBLE_NS => Severity::Warning,
        _ if high <= VISIBLE_NS => return Ok((Severity::Ok, format!("PostgreSQL's clock moves in steps of {steps}"))),
        _ => return Err(format!("PostgreSQL's clock moves in steps of {steps}")),
    };
    Ok((severity, format!("PostgreSQL's clock is coarse: it moves in steps of {steps}")))
}

/// A message between CPUs takes about 100 ns. Wider bounds mean that the CPUs were busy.
const WIDE_NS: f64 = 10_000.0;

/// `cpu-skew`: do the clocks of the CPUs differ?
pub fn cpu_skew(report: &Report) -> Judged {
    let skews = &report.cpus.skew;
    if skews.is_empty() && report.cpus.online.known().is_some_and(|cpus| cpus.len() == 1) {
        return ok("one CPU is online");
    }
    if skews.is_empty() {
        let why = report.cpus.skew_unavailable.as_deref().unwrap_or("not measured");
        return Err(format!("not determined whether the CPUs' clocks agree: {why}"));
    }
    // PostgreSQL's clock comes first; within a clock, the largest certain skew.
    let mut bad: Vec<&Skew> = skews.iter().filter(|s| differs(s).is_some()).collect();
    bad.sort_by(|a, b| (a.clock != SYSTEM).cmp(&(b.clock != SYSTEM)).then(certain(b).total_cmp(&certain(a))));
    let Some(worst) = bad.first() else { return no_difference(report) };
    let severity = match worst {
        skew if skew.clock != SYSTEM && !counter_is_used(report) => Severity::Ok,
        skew if skew.moving || certain(skew) >= VISIBLE_NS => Severity::Critical,
        _ => Severity::Warning,
    };
    let clock = if worst.clock == SYSTEM { "PostgreSQL's clock" } else { "the counter" };
    let (a, b, ns) = (worst.a, worst.b, certain(worst).floor());
    let fix = "switch the machine off and on again: the firmware sets the counters at power-on, and a restart may not";
    let summary = match (severity, worst.moving) {
        (Severity::Ok, _) => "the CPUs' counters differ, but neither the kernel nor PostgreSQL uses the counter".into(),
        (_, true) => format!("the offset of {clock} between CPUs {a} and {b} changes"),
        (_, false) => format!("{clock} differs between CPUs {a} and {b} by at least {ns:.0} ns"),
    };
    Ok(with_severity(severity, summary)
        .evidence_lines(bad.iter().filter_map(|skew| differs(skew)))
        .why("a process that moves from one CPU to another sees the time jump by that much, forward or back")
        .fix(Fix::new(fix)))
}

/// Returns the finding if no two CPUs differ for certain.
fn no_difference(report: &Report) -> Judged {
    let skews = &report.cpus.skew;
    let widest = skews.iter().map(|s| s.low_ns.abs().max(s.high_ns.abs())).fold(0.0, f64::max);
    let missing = report.cpus.skew_unavailable.as_ref();
    let missing = missing.map(|why| format!(" (not all CPUs were compared: {why})")).unwrap_or_default();
    let clocks = if skews.iter().any(|skew| skew.clock == SYSTEM) { "clocks" } else { "counters" };
    let agreement = format!("{}: their {clocks} agree within {}", cpu_list(skews), duration(widest));
    match widest > WIDE_NS {
        true => Err(format!("{agreement}, but the CPUs were too busy for a narrower bound{missing}")),
        false => ok(agreement + &missing),
    }
}

/// Returns the compared CPUs.
fn cpu_list(skews: &[Skew]) -> String {
    let mut cpus: Vec<usize> = skews.iter().flat_map(|s| [s.a, s.b]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    match cpus.as_slice() {
        [first, .., last] if cpus.len() > 4 => format!("{} CPUs from {first} to {last}", cpus.len()),
        few => format!("CPUs {}", few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns the distance of the bounds from 0, in ns: the skew is at least that large.
fn certain(skew: &Skew) -> f64 {
    skew.low_ns.max(-skew.high_ns).max(0.0)
}

/// Returns the difference of two CPUs if it is certain: `system: CPU 8 is 1115 to 1343 ns ahead of CPU 0`.
pub fn differs(skew: &Skew) -> Option<String> {
    let Skew { clock, a, b, low_ns, high_ns, .. } = skew;
    Some(match skew.moving {
        true => format!(
            "{clock}: within milliseconds the offset of CPU {b} from CPU {a} varied from {low_ns:.0} to {high_ns:.0} ns"
        ),
        false if certain(skew) == 0.0 => return None,
        false if *high_ns < 0.0 => format!("{clock}: CPU {b} is {:.0} to {:.0} ns behind CPU {a}", -high_ns, -low_ns),
        false => format!("{clock}: CPU {b} is {low_ns:.0} to {high_ns:.0} ns ahead of CPU {a}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::*;

    mod clock_backward {
        use super::*;

        #[test]
        fn a_clock_that_postgresql_does_not_read_is_a_warning() {
            let severity = |name: &str, counter_is_used: bool| {
                let mut report = Report::empty(Origin::Measured, "");
                let backward =
                    ClockReport { reads: 10, backward_steps: 1, largest_backward_ns: 5.0, ..ClockReport::default() };
                report.clocks = vec![ClockReport { name: name.into(), ..backward }];
                report.tsc.accepted_by_kernel = Some(counter_is_used);
                report.tsc.independent = Some(!counter_is_used);
                report.tsc.used_by_default = Some(false);
                crate::host::check::finding("", clock_backward(&report)).severity
            };
            for (name, if_unused, if_used) in [
                ("system", Severity::Critical, Severity::Critical),
                ("rdtsc", Severity::Warning, Severity::Critical),
                ("boottime", Severity::Warning, Severity::Warning),
                ("realtime", Severity::Unknown, Severity::Unknown),
            ] {
                assert_eq!((severity(name, false), severity(name, true)), (if_unused, if_used), "{name}");
            }
        }
    }

    mod clock_coarse {
        use super::*;

        fn finding(current: &str, clock: Option<ClockReport>) -> Finding {
            let mut report = Report::empty(Origin::Captured, "");
            report.clocksource.current = Fact::Known(current.into());
            report.clocks = clock.map(|clock| ClockReport { name: SYSTEM.into(), ..clock }).into_iter().collect();
            crate::host::check::finding("", clock_coarse(&report))
        }

        #[test]
        fn the_step_decides() {
            for (step_ns, severity) in
                [(1.0, Severity::Ok), (1e3, Severity::Ok), (1e4, Severity::Warning), (4e6, Severity::Critical)]
            {
                let clock = ClockReport { granularity_ns: Some(step_ns), ..ClockReport::default() };
                assert_eq!(finding("tsc", Some(clock)).severity, severity, "{step_ns}");
            }
        }

        #[test]
        fn a_clock_that_stands_still_has_a_fix() {
            let stopped = ClockReport { stood_still_ns: Some(1e9), ..ClockReport::default() };
            let mut report = Report::empty(Origin::Captured, "");
            report.clocks = vec![ClockReport { name: SYSTEM.into(), ..stopped }];
            assert!(!crate::host::check::finding("", clock_coarse(&report)).fix.is_empty());
        }

        #[test]
        fn an_unknown_step_is_unknown_unless_the_clock_source_is_the_tick() {
            let hidden = || ClockReport { granularity_unavailable: Some("x".into()), ..ClockReport::default() };
            assert_eq!(finding("tsc", None).severity, Severity::Unknown);
            let unknown = finding("tsc", Some(hidden()));
            assert_eq!((unknown.severity, unknown.summary.ends_with("is unknown: x")), (Severity::Unknown, true));
            for clock in [None, Some(hidden())] {
                assert_eq!(finding("jiffies", clock).severity, Severity::Critical);
            }
        }
    }
}
