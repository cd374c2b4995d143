//! Metrics in the text format of Prometheus, version 0.0.4:
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>
//!
//! The table of all metrics is the only source of their names, types, labels, HELP texts and values. docs/metrics.md is generated
//! from it. The alert rules and the dashboard in deploy/ are checked against it.
//!
//! Names follow the conventions of Prometheus: base units (seconds, hertz, bytes, ratio), `_total` on counters only, `_info`
//! for labels. Nothing is here that node_exporter exports: the current clock source, steal, NTP's state and boot time are
//! metrics of node_exporter.

#[cfg(test)]
mod tests;

use crate::escape::line;
use crate::json::name;
use crate::report::*;
use clap::ValueEnum;
use std::collections::HashSet;
use std::fmt::Write;

/// One metric.
pub struct Metric {
    /// without the prefix
    pub name: &'static str,
    /// as in a TYPE line
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    /// one sentence
    pub help: &'static str,
    /// adds the series of a report
    pub values: fn(&MonitorReport, &mut Series),
}

/// Returns the page for Prometheus. A figure that is missing or not finite has no series.
pub fn text(report: &MonitorReport) -> String {
    let mut text = String::new();
    for metric in ALL {
        let mut series = Series { metric, text: String::new(), known: HashSet::new() };
        (metric.values)(report, &mut series);
        if !series.text.is_empty() {
            let Metric { name, kind, help, .. } = metric;
            _ = writeln!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}");
            text += &series.text;
        }
    }
    text
}

/// The number of buckets. Their number must not depend on the data, because a bucket that appears later would look like new
/// values. The largest bound is 2^30 - 1 ns, about 1 s: all longer differences are suspends or stops of the machine.
const BUCKETS: usize = 31;

/// The series of one metric.
pub struct Series<'a> {
    metric: &'a Metric,
    text: String,
    /// names with labels of all series: Prometheus refuses a whole page if one of them occurs twice
    known: HashSet<String>,
}

impl Series<'_> {
    /// Adds a series. `values` are those of the metric's labels, in their order. Nothing is added if the figure is missing
    /// or not finite, or if there is already this series.
    fn add(&mut self, values: &[&str], figure: impl Into<Option<f64>>) {
        debug_assert_eq!(self.metric.labels.len(), values.len(), "{}", self.metric.name);
        let labels: Vec<(&str, &str)> = self.metric.labels.iter().copied().zip(values.iter().copied()).collect();
        self.line("", &labels, figure.into());
    }

    /// Adds two series that differ in the last label, in units of which the figures have this number.
    fn add_each<F: Into<Option<f64>>>(&mut self, values: &[&str], figures: [(&str, F); 2], scale: f64) {
        for (last, figure) in figures {
            self.add(&[values, &[last]].concat(), figure.into().map(|figure| figure / scale));
        }
    }

    /// Adds a series for each severity: 1 if it is this one.
    fn add_severities(&mut self, values: &[&str], is: Severity) {
        for severity in [Severity::Ok, Severity::Warning, Severity::Critical, Severity::Unknown] {
            self.add(&[values, &[&name(&severity)]].concat(), f64::from(severity == is));
        }
    }

    /// Adds a histogram with one label. Row n counts the values from the bound of row n - 1 up to its own: 0, 1, 3, 7, 15 ... ns.
    fn add_histogram(&mut self, value: &str, rows: &[u64], sum: f64) {
        let Some(label) = self.metric.labels.first().map(|name| (*name, value)).filter(|_| sum.is_finite()) else {
            return;
        };
        let mut cumulative = 0;
        for row in 0..BUCKETS {
            cumulative += rows.get(row).copied().unwrap_or(0);
            self.line("_bucket", &[label, ("le", &bound_s(row).to_string())], Some(cumulative as f64));
        }
        let count = Some(rows.iter().sum::<u64>() as f64);
        self.line("_bucket", &[label, ("le", "+Inf")], count);
        self.line("_sum", &[label], Some(sum));
        self.line("_count", &[label], count);
    }

    fn line(&mut self, end: &str, labels: &[(&str, &str)], figure: Option<f64>) {
        let Some(figure) = figure.filter(|figure| figure.is_finite()) else { return };
        let mut series = format!("{PREFIX}{}{end}", self.metric.name);
        if !labels.is_empty() {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label(value))).collect();
            _ = write!(series, "{{{}}}", labels.join(","));
        }
        if self.known.insert(series.clone()) {
            _ = writeln!(self.text, "{series} {figure}");
        }
    }
}

/// Returns the upper bound of a histogram's row in seconds.
fn bound_s(row: usize) -> f64 {
    ((1_u64 << row) - 1) as f64 / 1e9
}

/// Returns the value of a label between its quotes. Unsafe characters are visible, as on the screen. Then backslashes and
/// quotes are escaped for the format.
fn label(value: &str) -> String {
    line(value).replace('\\', "\\\\").replace('"', "\\\"")
}

/// The prefix of every metric.
pub const PREFIX: &str = "pg_timing_";

const NS_PER_S: f64 = 1e9;
const PPM: f64 = 1e6;

/// The name of the collector of the kernel log.
const KERNEL_LOG: &str = "kernel_log";

/// Defines `ALL` with every metric, in the order of the output: its kind, its name without the prefix, its labels, its HELP text,
/// and what adds its series.
macro_rules! metrics {
    ($($kind:ident $name:literal [$($label:literal),*] $help:literal $values:expr;)*) => {
        pub const ALL: &[Metric] =
            &[$(Metric { name: $name, kind: stringify!($kind), labels: &[$($label),*], help: $help, values: $values }),*];
    };
}

metrics! {
    gauge "build_info" ["version"] "Version of pg_timing."
        |_, out| out.add(&[env!("CARGO_PKG_VERSION")], 1.0);

    gauge "verdict" ["severity"] "1 for the verdict's severity, 0 for others."
        |report, out| if report.samples > 0 { out.add_severities(&[], report.now.verdict.severity) };
    gauge "finding" ["id", "severity"] "1 for the finding's severity, 0 for others."
        |report, out| report.findings.iter().map(|watched| &watched.finding)
            .for_each(|finding| out.add_severities(&[&finding.id], finding.severity));
    gauge "finding_since_timestamp_seconds" ["id"] "Time when the finding got its present severity."
        |report, out| report.findings.iter().for_each(|watched| out.add(&[&watched.finding.id], watched.since));
    counter "events_total" ["event"] "Events of this kind."
        |report, out| {
            let count = |kind| report.event_counts.get(kind).map_or(0.0, |count| *count as f64);
            EventKind::value_variants().iter().for_each(|kind| out.add(&[&name(kind)], count(kind)));
        };

    gauge "clock_info" ["clock", "access"] "How a program reads the clock: instruction, vdso, syscall, interposed or unknown."
        |report, out| report.clocks.iter().map(|clock| &clock.last).filter(|clock| clock.unavailable.is_none())
            .for_each(|clock| out.add(&[&clock.name, &name(&clock.access_path)], 1.0));
    gauge "clock_read_cost_seconds" ["clock"] "Median cost of one read in the last interval."
        |report, out| of_clocks(report, out, |clock| clock.last.read_ns);
    gauge "clock_read_cost_limit_seconds" ["severity"] "Read cost above which clock-slow has this severity."
        |_, out| out.add_each(&[], [("warning", GOOD_READ_NS), ("critical", BAD_READ_NS)], NS_PER_S);
    histogram "clock_read_seconds" ["clock"] "Differences between consecutive readings."
        |report, out| counted(report).map(|clock| (&clock.last.name, &clock.totals))
            .filter(|(_, totals)| !totals.histogram.is_empty())
            .for_each(|(name, totals)| out.add_histogram(name, &totals.histogram, totals.measured_s));
    counter "clock_measured_seconds_total" ["clock"] "Time for which the clock was read."
        |report, out| of_totals(report, out, |totals| totals.measured_s);
    counter "clock_gaps_total" ["clock"] "Gaps: interruptions between two reads."
        |report, out| of_totals(report, out, |totals| totals.gaps as f64);
    counter "clock_gap_seconds_total" ["clock"] "Time lost to gaps."
        |report, out| of_totals(report, out, |totals| totals.gap_s);
    gauge "clock_largest_gap_seconds" ["clock"] "Largest gap in the last interval."
        |report, out| of_clocks(report, out, |clock| clock.largest_gap_ns);
    gauge "clock_granularity_seconds" ["clock"] "Smallest step of the value."
        |report, out| of_clocks(report, out, |clock| clock.last.granularity_ns);
    counter "clock_backward_steps_total" ["clock"] "Readings below the previous one on the same CPU."
        |report, out| of_totals(report, out, |totals| totals.backward_steps as f64);

    gauge "clock_drift_ratio" ["clock", "reference"] "Rate relative to the reference clock, minus 1."
        // The rate of the counter is another metric. Its drift has only steps and changes.
        |report, out| report.now.drift.iter().filter(|d| d.clock != COUNTER)
            .for_each(|d| out.add(&[&d.clock, &d.reference], d.rate_ppm / PPM));
    gauge "clock_drift_error_ratio" ["clock", "reference"] "Error bound of the drift."
        |report, out| report.now.drift.iter().for_each(|d| out.add(&[&d.clock, &d.reference], d.uncertainty_ppm / PPM));
    counter "clock_offset_steps_total" ["clock", "reference"] "Jumps of the clock against the reference clock."
        |report, out| report.offset_steps.iter().for_each(|((clock, of), count)| out.add(&[clock, of], *count as f64));
    gauge "tsc_frequency_hertz" [] "Measured rate of the TSC, or of CNTVCT on AArch64."
        |report, out| out.add(&[], report.counter.map(|counter| counter.rate.0));
    gauge "tsc_frequency_error_ratio" [] "Bound on its relative error."
        |report, out| out.add(&[], report.counter.map(|counter| counter.uncertainty.0 / PPM));
    gauge "cpu_skew_low_seconds" ["clock", "cpu", "reference_cpu"] "Lower bound of the skew between two CPUs' clocks."
        |report, out| of_skew(report, out, |skew| skew.low_ns);
    gauge "cpu_skew_high_seconds" ["clock", "cpu", "reference_cpu"] "Upper bound of this skew."
        |report, out| of_skew(report, out, |skew| skew.high_ns);

    gauge "wall_clock_synchronized" [] "1 if a service synchronizes the time of day, 0 if the kernel knows of none."
        |report, out| out.add(&[], report.now.host.ntp.known().map(|ntp| f64::from(ntp.synchronized)));

    counter "kernel_clock_messages_total" [] "Messages about clocks in the kernel log."
        |report, out| {
            // An unreadable kernel log has no messages, and that is no good news.
            let is_unreadable = |collector: &Collector| collector.name == KERNEL_LOG && collector.error.is_some();
            let is_known = report.kernel_messages > 0 || !report.collectors.iter().any(is_unreadable);
            out.add(&[], is_known.then_some(report.kernel_messages as f64));
        };
    counter "suspends_total" [] "Suspends of the machine."
        |report, out| out.add(&[], report.suspends as f64);
    counter "suspended_seconds_total" [] "Duration of the suspends."
        |report, out| out.add(&[], report.suspended_s);
    counter "pauses_total" [] "Pauses: a hypervisor stopped or restored the machine, or pg_timing was stopped."
        |report, out| out.add(&[], report.pauses as f64);
    counter "paused_seconds_total" [] "Duration of the pauses."
        |report, out| out.add(&[], report.paused_s);

    gauge "server_up" [] "1 if the server answers."
        |report, out| out.add(&[], report.server.as_ref().map(|server| f64::from(server.error.is_none())));
    gauge "server_info" ["server", "version", "clock"] "The server, its version, and the clock of plan nodes."
        |report, out| advise(report).map(|advise| (advise, advise.node_read.as_ref().unwrap_or(&advise.read)))
            .for_each(|(advise, read)| out.add(&[&advise.server, &advise.server_version, &read.clock], 1.0));
    gauge "server_clock_read_cost_seconds" ["clock", "bound"] "Bounds of the cost of one read of a server's clock."
        |report, out| advise(report).flat_map(|advise| [Some(&advise.read), advise.node_read.as_ref()]).flatten()
            .for_each(|read| out.add_each(&[&read.clock], [("low", read.low_ns), ("high", read.high_ns)], NS_PER_S));
    gauge "server_setting_on" ["setting"] "1 if the setting makes the server read the clock."
        |report, out| settings(report).for_each(|setting| out.add(&[&setting.name], f64::from(setting.on)));
    gauge "server_setting_events_per_second" ["setting"] "Events per second that the setting times, or would time."
        |report, out| settings(report).for_each(|setting| out.add(&[&setting.name], setting.events_per_s));
    gauge "server_setting_core_ratio" ["setting", "bound"] "Bounds of the setting's cost if it is on, as a share of one core."
        |report, out| settings(report).filter_map(|setting| Some((&setting.name, setting.core_share?)))
            .for_each(|(name, share)| out.add_each(&[name], [("low", Some(share.low)), ("high", share.high)], 1.0));
    gauge "server_setting_advice" ["setting", "advice"] "The advice: keep, turn_on, turn_off, none, sample_less or unknown."
        |report, out| settings(report).for_each(|setting| out.add(&[&setting.name, &name(&setting.advice)], 1.0));

    gauge "fast_timing_info" ["method", "clock", "ticker", "scope"] "How pg_fast_timing times plan nodes."
        |report, out| fast_timing(report)
            .for_each(|fast| out.add(&[&fast.method, &fast.clock, &fast.ticker, &fast.scope], 1.0));
    gauge "fast_timing_call_cost_seconds" [] "Cost of timing one call."
        |report, out| fast_timing(report).for_each(|fast| out.add(&[], fast.call_cost_ns.map(|ns| ns / NS_PER_S)));
    counter "fast_timing_statements_total" [] "Timed statements."
        |report, out| fast_counts(report).for_each(|fast| out.add(&[], fast.statements));
    counter "fast_timing_nodes_total" ["times"] "Timed plan nodes, exact or estimated."
        |report, out| fast_counts(report)
            .for_each(|fast| out.add_each(&[], [("exact", fast.exact_nodes), ("estimated", fast.estimated_nodes)], 1.0));
    counter "fast_timing_node_calls_total" [] "Counted calls of plan nodes."
        |report, out| fast_counts(report).for_each(|fast| out.add(&[], fast.node_calls));
    counter "fast_timing_fallbacks_total" ["missing"] "Statements not timed as requested, because the TSC or the ticks were missing."
        |report, out| fast_counts(report)
            .for_each(|fast| out.add_each(&[], [("tsc", fast.without_tsc), ("ticks", fast.without_ticks)], 1.0));

    counter "plan_node_seconds_total" ["queryid", "plan", "node", "kind"] "Time of a plan node without its children: of the 20 longest plans, the 5 longest nodes."
        |report, out| report.server.iter().flat_map(|server| &server.plan_nodes)
            .for_each(|node| out.add(&[&node.queryid, &node.plan, &node.node.to_string(), &node.kind], node.seconds));

    gauge "monitor_interval_seconds" [] "Interval between samples."
        |report, out| out.add(&[], Some(report.interval_s).filter(|seconds| *seconds > 0.0));
    counter "monitor_intervals_total" [] "Samples."
        |report, out| out.add(&[], report.samples as f64);
    gauge "monitor_last_sample_timestamp_seconds" [] "Time of the last sample."
        |report, out| out.add(&[], (report.samples > 0).then_some(report.sampled_at));
    gauge "monitor_collector_duration_seconds" ["collector"] "Duration of the collector's last run."
        |report, out| report.collectors.iter().for_each(|collector| out.add(&[collector.name], collector.seconds));
    gauge "monitor_collector_success" ["collector"] "1 if the last run returned figures."
        |report, out| report.collectors.iter().for_each(|c| out.add(&[c.name], f64::from(c.error.is_none())));
    counter "monitor_cpu_seconds_total" [] "CPU time of the monitor."
        |report, out| out.add(&[], report.own.cpu_s);
    gauge "monitor_resident_memory_bytes" [] "Resident memory of the monitor."
        |report, out| out.add(&[], report.own.memory_bytes.map(|bytes| bytes as f64));
    counter "monitor_http_requests_total" ["code"] "HTTP requests by status code, or refused."
        |report, out| report.http_requests.iter().for_each(|(code, count)| out.add(&[code], *count as f64));
}

/// Adds a figure of each clock, from ns.
fn of_clocks(report: &MonitorReport, out: &mut Series, ns: impl Fn(&WatchedClock) -> Option<f64>) {
    report.clocks.iter().for_each(|clock| out.add(&[&clock.last.name], ns(clock).map(|ns| ns / NS_PER_S)));
}

/// Returns the clocks that were read. Before the first sample, nothing was counted.
fn counted(report: &MonitorReport) -> impl Iterator<Item = &WatchedClock> {
    report.clocks.iter().filter(|clock| clock.totals.measured_s > 0.0)
}

fn of_totals(report: &MonitorReport, out: &mut Series, figure: impl Fn(&ClockTotals) -> f64) {
    counted(report).for_each(|clock| out.add(&[&clock.last.name], figure(&clock.totals)));
}

/// Adds a bound of each pair of CPUs: b's reading minus that of a, the reference.
fn of_skew(report: &MonitorReport, out: &mut Series, ns: impl Fn(&Skew) -> f64) {
    for skew in &report.now.cpus.skew {
        out.add(&[&skew.clock, &skew.b.to_string(), &skew.a.to_string()], ns(skew) / NS_PER_S);
    }
}

fn advise(report: &MonitorReport) -> impl Iterator<Item = &AdviseReport> {
    report.server.iter().filter_map(|server| server.advise.as_ref())
}

fn settings(report: &MonitorReport) -> impl Iterator<Item = &SettingAdvice> {
    advise(report).flat_map(|advise| &advise.settings)
}

fn fast_timing(report: &MonitorReport) -> impl Iterator<Item = &FastTiming> {
    report.server.iter().filter_map(|server| server.fast_timing.as_ref())
}

/// Returns the figures if they count the whole server. Those of the monitor's own session say nothing about it.
fn fast_counts(report: &MonitorReport) -> impl Iterator<Item = &FastTiming> {
    fast_timing(report).filter(|fast| fast.scope == "server")
}
