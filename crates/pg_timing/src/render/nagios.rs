//! One line with performance data, in the format of the Monitoring Plugins' guidelines.

use crate::report::{Report, SYSTEM};

/// Returns `CLOCKS OK - summary | label=value;warning;critical;min`. Times are in seconds, because the guidelines have
/// no unit for nanoseconds.
pub fn line(report: &Report) -> String {
    // A vertical bar would start the performance data.
    let summary = report.verdict.summary.replace('|', "/");
    let mut data = Vec::new();
    if let Some(clock) = report.clock(SYSTEM) {
        let seconds = |ns: f64| format!("{:.10}", ns / 1e9);
        data.extend(clock.cost_ns().map(|ns| {
            let limits = report.read_cost_limits_ns.map(|limits| [seconds(limits.warning), seconds(limits.critical)]);
            format!("system_read={}s;{};0", seconds(ns), limits.unwrap_or_default().join(";"))
        }));
        data.push(format!("system_backward_steps={};0;0;0", clock.backward_steps));
        data.extend(clock.gaps.map(|gaps| format!("gaps={:.2}%;;;0;100", gaps.share * 100.0)));
    }
    let tsc = &report.tsc;
    data.extend(tsc.frequency_khz.known().map(|khz| format!("tsc_frequency_khz={khz}")));
    let data = if data.is_empty() { String::new() } else { format!(" | {}", data.join(" ")) };
    format!("CLOCKS {} - {summary}{data}\n", report.verdict.severity.word())
}
