//! Finding `clock-gaps`: how much of the time did interruptions take, and what caused them?

use super::*;

/// In a short measurement, one or two long waits can be chance, for example the start of another program.
const MIN_WAITS: u64 = 3;

/// A cause explains the interruptions if it took at least this share of their time.
const MAIN_CAUSE: f64 = 0.5;

/// `clock-gaps`: how much of the time did interruptions take, and what caused them?
pub fn clock_gaps(report: &Report) -> Judged {
    let activity = report.activity.known().copied().unwrap_or_default();
    let system = report.system().filter(|clock| clock.backward_steps == 0);
    let gaps = system.and_then(|clock| clock.gaps);
    let Some(lost) = gaps.map(|gaps| gaps.share).into_iter().chain(activity.waiting_share()).reduce(f64::max) else {
        let went_back = report.system().is_some_and(|clock| clock.backward_steps > 0);
        let why = "the clock went back, so a long difference may be the clock's return";
        return Err(if went_back { why } else { "interruptions were not measured" }.into());
    };
    // The histogram of pg_test_timing gives lower bounds, and does not show single interruptions.
    let is_output = report.origin == Origin::PgTestTiming;
    let least = if is_output { "at least " } else { "" };
    let longest = gaps.filter(|gaps| gaps.count > 0);
    let longest = longest.map(|gaps| format!(", the longest {least}{}", duration(gaps.largest_ns))).unwrap_or_default();
    // Some time remains for the program, so "100%" would be wrong.
    let share = if lost > 0.99 { "more than 99%".into() } else { percent(lost) };
    let summary = format!("interruptions took {least}{share} of the time{longest}");
    let is_heavy = if is_output { lost > INTERRUPTED_SHARE } else { is_heavy(gaps, &activity) };
    let severity = if is_heavy { Severity::Warning } else { Severity::Ok };
    Ok(with_severity(severity, summary)
        .evidence_lines(evidence(system, report.activity.known()))
        .why("a server on the host loses time, too, and EXPLAIN ANALYZE adds it to the running node: repeat the measurement")
        .fix(match is_output {
            true => Fix::new("run pg_timing on that host; it shows the cause").command("pg_timing"),
            false => fix(lost, &activity),
        }))
}

/// Returns whether the loss exceeds the limit, without the effect of one or two interruptions.
fn is_heavy(gaps: Option<Gaps>, activity: &Activity) -> bool {
    let by_gaps = gaps.is_some_and(|gaps| {
        let without_largest = (gaps.total_ns - gaps.largest_ns).max(0.0);
        gaps.total_ns > 0.0 && gaps.share * without_largest / gaps.total_ns > INTERRUPTED_SHARE
    });
    let by_waits = activity.waiting_share().is_some_and(|share| share > INTERRUPTED_SHARE)
        && activity.timeslices.is_some_and(|slices| slices >= MIN_WAITS);
    by_gaps || by_waits
}

fn evidence(system: Option<&ClockReport>, activity: Option<&Activity>) -> impl Iterator<Item = String> {
    let late = system.and_then(|clock| {
        let (late, reads, limit) = (clock.gaps?.count, count(clock.reads), duration(clock.gaps?.threshold_ns));
        Some(format!("{} of {reads} readings came more than {limit} after the previous one", count(late)))
    });
    let waits = activity.and_then(|activity| activity.run_delay_ms.zip(activity.period_ms)).map(|(waited, period)| {
        let [waited, period] = [waited, period].map(|ms| duration(ms * 1e6));
        format!("scheduler: pg_timing waited {waited} of {period} for a CPU")
    });
    let throttled = activity.and_then(|activity| activity.throttled_ms.filter(|ms| *ms > 0.0));
    let throttled = throttled.map(|ms| format!("cgroup: a CPU quota stopped its processes for {}", duration(ms * 1e6)));
    let switches = activity.map(|activity| {
        let steal = activity.steal_ms.map(|ms| format!("{ms:.0} ms of steal on all CPUs together"));
        let switches = count(activity.involuntary_context_switches);
        format!("{switches} involuntary context switches; {}", steal.unwrap_or_else(|| "steal unknown".into()))
    });
    [late, waits, throttled, switches].into_iter().flatten()
}

/// Returns the fix for the main cause. Steal does not prove a cause, because it counts for all CPUs together.
fn fix(lost: f64, activity: &Activity) -> Fix {
    let throttled = activity.throttled_ms.zip(activity.run_delay_ms).is_some_and(|(ms, all)| ms >= MAIN_CAUSE * all);
    let waited = activity.waiting_share();
    Fix::new(if waited.is_none() {
        "look for other busy processes (top); in a virtual machine, ask whether its host is overcommitted"
    } else if waited.is_some_and(|waited| waited < MAIN_CAUSE * lost) {
        "in a virtual machine, ask whether its host is overcommitted; on hardware, look for firmware interrupts (SMI)"
    } else if throttled {
        "raise the CPU quota of this container or cgroup (cpu.max), and check the server's quota"
    } else {
        "measure again when other processes (see top) leave a CPU free; a container can also have a CPU quota (cpu.max)"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::*;

    mod clock_gaps {
        use super::*;

        /// Returns a report of 4 s, with gaps of 10 ms that took this share of the system clock's second.
        fn report(gap_share: f64, activity: Option<Activity>) -> Report {
            let mut report = Report::empty(Origin::Measured, "");
            report.clocks = vec![ClockReport {
                name: SYSTEM.into(),
                reads: 1_000_000,
                gaps: Some(Gaps {
                    threshold_ns: 1000.0,
                    count: (gap_share * 100.0) as u64,
                    total_ns: gap_share * 1e9,
                    largest_ns: if gap_share > 0.0 { 1e7 } else { 0.0 },
                    share: gap_share,
                }),
                ..ClockReport::default()
            }];
            report.activity = activity.map_or_else(|| Fact::unavailable("x"), Fact::Known);
            report
        }

        fn waited(share: f64) -> Activity {
            Activity {
                involuntary_context_switches: 100,
                period_ms: Some(4000.0),
                run_delay_ms: Some(4000.0 * share),
                timeslices: Some(100),
                ..Activity::default()
            }
        }

        fn severity(report: &Report) -> Severity {
            crate::host::check::finding("", clock_gaps(report)).severity
        }

        #[test]
        fn a_loss_of_more_than_10_percent_is_a_warning_whatever_its_cause() {
            for (gap_share, waiting_share, expected) in [
                (0.005, 0.004, Severity::Ok),
                (0.09, 0.09, Severity::Ok),
                (0.44, 0.45, Severity::Warning),
                (0.85, 0.0, Severity::Warning),
                (0.0, 0.2, Severity::Warning),
            ] {
                let report = report(gap_share, Some(waited(waiting_share)));
                assert_eq!(severity(&report), expected, "{gap_share} {waiting_share}");
            }
        }

        #[test]
        fn one_context_switch_hides_nothing() {
            let one_switch = Activity { involuntary_context_switches: 1, ..waited(0.0) };
            assert_eq!(severity(&report(0.6, Some(one_switch))), Severity::Warning);
            assert_eq!(severity(&report(0.6, None)), Severity::Warning);
        }

        #[test]
        fn steal_of_other_cpus_is_not_a_warning() {
            let stolen = Activity { steal_ms: Some(100_000.0), ..waited(0.01) };
            assert_eq!(severity(&report(0.02, Some(stolen))), Severity::Ok);
        }

        #[test]
        fn one_long_interruption_is_not_a_warning() {
            let mut one = report(0.3, Some(Activity { timeslices: Some(1), ..waited(0.3) }));
            let gaps = one.clocks[0].gaps.as_mut().unwrap();
            (gaps.count, gaps.largest_ns) = (7, 0.25e9);
            assert_eq!(severity(&one), Severity::Ok);
            assert!(
                crate::host::check::finding("", clock_gaps(&one)).summary.contains("30%"),
                "{:?}",
                crate::host::check::finding("", clock_gaps(&one))
            );
        }

        #[test]
        fn the_fix_names_the_cause() {
            let fix = |report: &Report| crate::host::check::finding("", clock_gaps(report)).fix[0].what.clone();
            assert!(fix(&report(0.5, Some(waited(0.5)))).contains("other processes"));
            let quota = Activity { throttled_ms: Some(2000.0), ..waited(0.5) };
            assert!(fix(&report(0.5, Some(quota))).starts_with("raise the CPU quota"));
            let short_quota = Activity { throttled_ms: Some(10.0), ..waited(0.5) };
            assert!(fix(&report(0.5, Some(short_quota))).contains("other processes"));
            assert!(fix(&report(0.5, Some(waited(0.01)))).contains("overcommitted"));
            assert!(fix(&report(0.5, None)).starts_with("look for other busy"));
        }

        #[test]
        fn waits_count_without_the_gaps_of_a_clock() {
            let mut without = report(0.0, Some(waited(0.8)));
            without.clocks.clear();
            assert_eq!(severity(&without), Severity::Warning);
            without.activity = Fact::unavailable("x");
            assert_eq!(clock_gaps(&without), Err("interruptions were not measured".into()));
            let mut back = report(0.5, None);
            back.clocks[0].backward_steps = 1;
            assert!(
                severity(&back) == Severity::Unknown
                    && crate::host::check::finding("", clock_gaps(&back)).summary.starts_with("the clock went back")
            );
        }
    }

    /// The whole loss of an output counts, because it does not show single interruptions.
    #[test]
    fn more_than_10_percent_of_an_output_is_a_warning() {
        let at = |share: f64| {
            let gaps = Gaps { threshold_ns: 16_000.0, count: 10, total_ns: share * 1e9, largest_ns: 4e6, share };
            let clock =
                ClockReport { name: SYSTEM.into(), gaps: Some(gaps), reads: 1_000_000, ..ClockReport::default() };
            crate::host::check::finding(
                "",
                clock_gaps(&Report { clocks: vec![clock], ..Report::empty(Origin::PgTestTiming, "") }),
            )
        };
        assert_eq!((at(0.10).severity, at(0.101).severity), (Severity::Ok, Severity::Warning));
        assert_eq!(at(0.883).summary, "interruptions took at least 88% of the time, the longest at least 4 ms");
    }
}
