//! `clock-gaps`: did something interrupt the measurement, and what?

use crate::human::{count, duration};
use crate::report::{Finding, Fix, Report, Severity, finding_id};

/// On an idle machine, interruptions take well under 1% of the time. If they take more than this share, and other
/// processes are not the reason, the reason is the firmware or the hypervisor.
const LIMIT_SHARE: f64 = 0.10;

const ID: &str = finding_id::CLOCK_GAPS;

pub fn check(report: &Report) -> Finding {
    let Some((clock, gaps)) = report.system().and_then(|clock| clock.gaps.map(|gaps| (clock, gaps))) else {
        return Finding::unknown(ID, "interruptions were not measured");
    };
    if clock.backward_steps > 0 {
        return Finding::unknown(ID, "the clock went back, so a long difference may be the clock's return");
    }
    let Some(activity) = report.activity.known() else {
        return Finding::unknown(ID, "the cause of interruptions is unknown");
    };
    let share = gaps.share * 100.0;
    let evidence = format!(
        "{} of {} readings came more than {} after the previous one, the longest after {}: {share:.1}% of the time",
        count(gaps.count),
        count(clock.reads),
        duration(gaps.threshold_ns),
        duration(gaps.largest_ns)
    );
    let switches = format!("{} involuntary context switches", count(activity.involuntary_context_switches));
    let steal = match activity.steal_ms {
        Some(ms) => format!("steal: the hypervisor took {ms:.0} ms"),
        None => "steal: unknown".into(),
    };
    // A context switch costs a time slice of milliseconds, so a few explain a large share.
    let other_processes =
        activity.involuntary_context_switches > 0 && activity.steal_ms.unwrap_or(0.0) * 1e6 < gaps.total_ns / 2.0;
    let summary = format!("interruptions took {share:.1}% of the time, the longest {}", duration(gaps.largest_ns));
    if gaps.share <= LIMIT_SHARE || other_processes {
        return Finding::ok(ID, summary).evidence(evidence).evidence(switches).evidence(steal);
    }
    Finding::new(ID, Severity::Warning, summary)
        .evidence(evidence)
        .evidence(switches)
        .evidence(steal)
        .why(
            "every program on this host stands still for that share of the time, and EXPLAIN ANALYZE adds it to the node \
             that was running: repeat a measurement before you believe it",
        )
        .fix(Fix::new("in a virtual machine, ask whether its host is overcommitted; on hardware, look for firmware interrupts (SMI) and power management"))
}
