//! The ids of all findings. They are a contract: monitoring rules and scripts compare them.

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
pub const TSC_RATE_MISMATCH: &str = "tsc-rate-mismatch";
pub const TSC_FIRMWARE: &str = "tsc-firmware";
pub const CPU_SKEW: &str = "cpu-skew";
pub const TSC_UNCHECKED: &str = "tsc-unchecked";
pub const TSC_AUTO_DEMOTED: &str = "tsc-auto-demoted";
pub const DRIFT: &str = "drift";
pub const CLOCK_GAPS: &str = "clock-gaps";

/// Every id, a cause before its effects: the order of the checks and of the screen.
pub const ALL: &[&str] = &[
    TSC_DEMOTED,
    CLOCK_BACKWARD,
    CLOCK_SLOW,
    CLOCK_COARSE,
    CLOCKSOURCE_SLOW,
    CLOCK_SYSCALL,
    CLOCKSOURCE_CHANGED,
    CLOCKSOURCE_REFUSED,
    CLOCKSOURCE_NOT_PERSISTENT,
    TSC_DENIED,
    TSC_ABSENT,
    TSC_RATE_MISMATCH,
    TSC_FIRMWARE,
    CPU_SKEW,
    TSC_UNCHECKED,
    TSC_AUTO_DEMOTED,
    DRIFT,
    CLOCK_GAPS,
];
