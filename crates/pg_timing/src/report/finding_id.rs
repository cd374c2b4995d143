//! The ids of all findings, in the order of the checks. They are a contract: monitoring rules and scripts compare them.

pub const TSC_DEMOTED: &str = "tsc-demoted";
pub const CLOCK_BACKWARD: &str = "clock-backward";
pub const CLOCK_SLOW: &str = "clock-slow";
pub const CLOCK_COARSE: &str = "clock-coarse";
pub const CLOCKSOURCE_SLOW: &str = "clocksource-slow";
pub const CLOCK_SYSCALL: &str = "clock-syscall";
pub const CLOCKSOURCE_CHANGED: &str = "clocksource-changed";
pub const CLOCKSOURCE_REFUSED: &str = "clocksource-refused";
pub const CLOCKSOURCE_NOT_PERSISTENT: &str = "clocksource-not-persistent";
pub const TSC_DENIED: &str = "tsc-denied";
pub const TSC_ABSENT: &str = "tsc-absent";
pub const TSC_NOT_INVARIANT: &str = "tsc-not-invariant";
pub const TSC_RATE_MISMATCH: &str = "tsc-rate-mismatch";
pub const TSC_FIRMWARE: &str = "tsc-firmware";
pub const CPU_SKEW: &str = "cpu-skew";
pub const TSC_UNCHECKED: &str = "tsc-unchecked";
pub const TSC_AUTO_DEMOTED: &str = "tsc-auto-demoted";
pub const TSC_SLOW: &str = "tsc-slow";
pub const DRIFT: &str = "drift";
pub const WALL_CLOCK: &str = "wall-clock";
pub const CLOCK_GAPS: &str = "clock-gaps";

/// Consequences of `tsc-demoted`. The screen shows them in one line, and JSON in full.
pub const CONSEQUENCES_OF_TSC_DEMOTED: &[&str] = &[CLOCKSOURCE_SLOW, CLOCK_SYSCALL, CLOCKSOURCE_CHANGED];
