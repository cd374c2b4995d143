//! `clock-gaps`: was the measuring held up, and by whom?

use crate::human::{count, duration};
use crate::report::{Finding, Fix, Report, Severity, finding_id};

/// Interruptions of an idle machine take well under a percent of the time. One that loses this
/// much, and not to its own processes, loses it to firmware or to the hypervisor.
const MUCH: f64 = 0.10;

const ID: &str = finding_id::CLOCK_GAPS;

pub fn check(report: &Report) -> Finding {
    let Some((clock, gaps)) = report.system().and_then(|clock| clock.gaps.map(|gaps| (clock, gaps))) else {
        return Finding::unknown(ID, "interruptions were not measured");
    };
    if clock.backward_steps > 0 {
        return Finding::unknown(ID, "the clock went back, so that a long difference may be its way forward again");
    }
    let Some(activity) = report.activity.known() else {
        return Finding::unknown(ID, "what interrupted the measuring is unknown");
    };
    let share = gaps.share * 100.0;
    let evidence = format!(
        "{} of {} readings came more than {} after the one before, the longest after {}: {share:.1}% of the time",
        count(gaps.count),
        count(clock.reads),
        duration(gaps.threshold_ns),
        duration(gaps.largest_ns)
    );
    let switches =
        format!("{} times the kernel gave the CPU to another process", count(activity.involuntary_context_switches));
    let steal = match activity.steal_ms {
        Some(ms) => format!("the hypervisor took {ms:.0} ms (steal)"),
        None => "steal is unknown".into(),
    };
    // One switch is a slice of milliseconds: a handful of them explains a large share.
    let own_doing =
        activity.involuntary_context_switches > 0 && activity.steal_ms.unwrap_or(0.0) * 1e6 < gaps.total_ns / 2.0;
    let summary = format!("interruptions took {share:.1}% of the time, the longest {}", duration(gaps.largest_ns));
    if gaps.share <= MUCH || own_doing {
        return Finding::ok(ID, summary).evidence(evidence).evidence(switches).evidence(steal);
    }
    Finding::new(ID, Severity::Warning, summary)
        .evidence(evidence)
        .evidence(switches)
        .evidence(steal)
        .why(
            "whatever runs here is stopped for that share of the time, and EXPLAIN ANALYZE counts it to the node that \
             was running: repeat a measurement before you believe it",
        )
        .fix(Fix::new("in a virtual machine, ask whether its host is overbooked; on hardware, look for firmware (SMI) or power management"))
}
