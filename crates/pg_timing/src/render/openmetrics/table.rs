//! The table of all metrics: the only source of their names, types, labels and HELP texts. docs/metrics.md is generated from
//! it. The alert rules and the dashboard in deploy/ are checked against it.
//!
//! Names follow the conventions of Prometheus: base units (seconds, hertz, bytes, ratio), `_total` on counters only, `_info`
//! for labels. Nothing is here that node_exporter exports: the current clock source, steal, NTP's state and boot time are
//! metrics of node_exporter.

/// The prefix of every metric.
pub const PREFIX: &str = "pg_timing_";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
    Histogram,
}

impl Kind {
    /// Returns the name in a TYPE line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// without the prefix
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    /// one sentence
    pub help: &'static str,
}

/// Defines a constant for each metric, and `ALL` with every metric in this order.
macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub const $constant: Metric = Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)*

        /// Every metric, in the order of the output.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO = Gauge "build_info" ["version"] "Version of pg_timing. The value is always 1.";

    VERDICT = Gauge "verdict" ["severity"] "1 for the severity of the verdict on this host's clocks, 0 for the other severities.";
    FINDING = Gauge "finding" ["id", "severity"] "1 for the severity of this finding, 0 for its other severities.";
    FINDING_SINCE = Gauge "finding_since_timestamp_seconds" ["id"] "Time when the finding got its present severity, in seconds since 1970.";
    EVENTS = Counter "events_total" ["event"] "Number of events of this kind since the monitor started.";

    CLOCK_INFO = Gauge "clock_info" ["clock", "access"] "How a program reads the clock: instruction, vdso, syscall, interposed or unknown. The value is always 1.";
    CLOCK_READ_COST = Gauge "clock_read_cost_seconds" ["clock"] "Median cost of one read of the clock in the last interval.";
    READ_COST_LIMIT = Gauge "clock_read_cost_limit_seconds" ["severity"] "Cost of one read of PostgreSQL's clock above which the finding clock-slow has this severity.";
    CLOCK_READ = Histogram "clock_read_seconds" ["clock"] "Differences between consecutive readings of the clock.";
    CLOCK_MEASURED = Counter "clock_measured_seconds_total" ["clock"] "Time for which the clock was read.";
    CLOCK_GAPS = Counter "clock_gaps_total" ["clock"] "Number of gaps: interruptions between two reads of the clock.";
    CLOCK_GAP_SECONDS = Counter "clock_gap_seconds_total" ["clock"] "Time lost to gaps while the clock was read.";
    CLOCK_LARGEST_GAP = Gauge "clock_largest_gap_seconds" ["clock"] "Largest gap in the last interval.";
    CLOCK_GRANULARITY = Gauge "clock_granularity_seconds" ["clock"] "Smallest step of the clock's value.";
    CLOCK_BACKWARD_STEPS = Counter "clock_backward_steps_total" ["clock"] "Readings that were lower than the previous one on the same CPU.";

    DRIFT = Gauge "clock_drift_ratio" ["clock", "reference"] "Rate of the clock relative to the reference clock, minus 1.";
    DRIFT_ERROR = Gauge "clock_drift_error_ratio" ["clock", "reference"] "Bound on the error of the drift.";
    OFFSET_STEPS = Counter "clock_offset_steps_total" ["clock", "reference"] "Sudden changes of the offset between the clock and the reference clock.";
    TSC_FREQUENCY = Gauge "tsc_frequency_hertz" [] "Measured rate of the CPU's counter: the TSC, or CNTVCT on AArch64.";
    TSC_FREQUENCY_ERROR = Gauge "tsc_frequency_error_ratio" [] "Bound on the relative error of the measured rate.";
    SKEW_LOW = Gauge "cpu_skew_low_seconds" ["clock", "cpu", "reference_cpu"] "Lower bound of the skew between the clocks of two CPUs.";
    SKEW_HIGH = Gauge "cpu_skew_high_seconds" ["clock", "cpu", "reference_cpu"] "Upper bound of the skew between the clocks of two CPUs.";

    KERNEL_MESSAGES = Counter "kernel_clock_messages_total" [] "Messages about clocks in the kernel log since the monitor started.";
    SUSPENDS = Counter "suspends_total" [] "Suspends of the machine since the monitor started.";
    SUSPENDED = Counter "suspended_seconds_total" [] "Time for which the machine was suspended.";
    PAUSES = Counter "pauses_total" [] "Pauses since the monitor started: a hypervisor stopped or restored the machine, or pg_timing was stopped.";
    PAUSED = Counter "paused_seconds_total" [] "Duration of the pauses.";

    SERVER_UP = Gauge "server_up" [] "1 if the server of --server answers, 0 if not.";
    SERVER_INFO = Gauge "server_info" ["server", "version", "clock"] "The server of --server, its version, and the clock that times plan nodes. The value is always 1.";
    SERVER_READ_COST = Gauge "server_clock_read_cost_seconds" ["clock", "bound"] "Cost of one read of a clock that the server uses: low and high bound.";
    SETTING_ON = Gauge "server_setting_on" ["setting"] "1 if the setting makes the server read the clock, 0 if not.";
    SETTING_EVENTS = Gauge "server_setting_events_per_second" ["setting"] "Events per second that the setting times, or would time.";
    SETTING_COST = Gauge "server_setting_core_ratio" ["setting", "bound"] "Cost of the setting, or its cost if it were on, as a share of one core: low and high bound.";
    SETTING_ADVICE = Gauge "server_setting_advice" ["setting", "advice"] "The advice for the setting: keep, turn_on, turn_off, none, sample_less or unknown. The value is always 1.";
    FAST_TIMING_INFO = Gauge "fast_timing_info" ["method", "clock", "ticker", "scope"] "What pg_fast_timing uses to time plan nodes. The value is always 1.";
    FAST_TIMING_CALL_COST = Gauge "fast_timing_call_cost_seconds" [] "Cost of timing one call with pg_fast_timing.";
    FAST_TIMING_STATEMENTS = Counter "fast_timing_statements_total" [] "Statements whose plan nodes pg_fast_timing timed.";
    FAST_TIMING_NODES = Counter "fast_timing_nodes_total" ["times"] "Plan nodes that pg_fast_timing timed: exact or estimated.";
    FAST_TIMING_CALLS = Counter "fast_timing_node_calls_total" [] "Calls of plan nodes that pg_fast_timing counted.";
    FAST_TIMING_WITHOUT = Counter "fast_timing_fallbacks_total" ["missing"] "Statements that pg_fast_timing could not time as requested, because the TSC (tsc) or the ticks (ticks) were missing.";

    INTERVAL = Gauge "monitor_interval_seconds" [] "The interval between two samples.";
    INTERVALS = Counter "monitor_intervals_total" [] "Samples since the monitor started.";
    LAST_SAMPLE = Gauge "monitor_last_sample_timestamp_seconds" [] "Time of the last sample, in seconds since 1970.";
    COLLECTOR_DURATION = Gauge "monitor_collector_duration_seconds" ["collector"] "Duration of the collector's last run: clocks, drift, skew, clocksource, kernel_log or server.";
    COLLECTOR_SUCCESS = Gauge "monitor_collector_success" ["collector"] "1 if the collector's last run returned its figures, 0 if not.";
    CPU_SECONDS = Counter "monitor_cpu_seconds_total" [] "CPU time of the monitor itself.";
    MEMORY = Gauge "monitor_resident_memory_bytes" [] "Resident memory of the monitor itself.";
    HTTP_REQUESTS = Counter "monitor_http_requests_total" ["code"] "HTTP requests by the status code of the answer; refused for connections beyond the limit.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_follow_the_conventions() {
        let names: HashSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name occurs twice");
        for Metric { name, kind, labels, help } in ALL {
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!(!name.ends_with("_info") || !labels.is_empty(), "{name}");
            assert!(help.ends_with('.') && !help.contains(['\n', '\\']), "{name}");
            // Names that Prometheus or its conventions reserve.
            assert!(!["_count", "_sum", "_bucket", "_created"].iter().any(|end| name.ends_with(end)), "{name}");
            assert!(!labels.iter().any(|label| ["le", "quantile", "job", "instance"].contains(label)), "{name}");
        }
    }
}
