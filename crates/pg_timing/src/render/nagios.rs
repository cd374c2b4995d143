//! One line and performance data, as the Monitoring Plugins' guidelines have it.

use crate::report::{Report, SYSTEM};

/// `CLOCKS OK - summary | label=value;warning;critical;min`. Times are in seconds: the guidelines
/// know s, ms and us, and a read is less than any of them.
pub fn line(report: &Report) -> String {
    // A bar would begin the performance data.
    let summary = report.verdict.summary.replace('|', "/");
    let mut data = Vec::new();
    if let Some(clock) = report.clock(SYSTEM) {
        let seconds = |ns: f64| format!("{:.10}", ns / 1e9);
        data.extend(clock.cost_ns().map(|ns| {
            let (good, bad) = crate::host::check::READ_COST_LIMITS_NS;
            format!("system_read={}s;{};{};0", seconds(ns), seconds(good), seconds(bad))
        }));
        data.push(format!("system_backward_steps={};0;0;0", clock.backward_steps));
        data.extend(clock.gaps.map(|gaps| format!("gaps={:.2}%;;;0;100", gaps.share * 100.0)));
    }
    let tsc = &report.tsc;
    data.extend(tsc.frequency_khz.known().map(|khz| format!("tsc_frequency_khz={khz}")));
    let data = if data.is_empty() { String::new() } else { format!(" | {}", data.join(" ")) };
    format!("CLOCKS {} - {summary}{data}\n", report.verdict.severity.word())
}
