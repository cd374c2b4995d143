//! The ids of all findings. They are a contract: monitoring rules and scripts compare them.

/// Defines a constant for each id, and `ALL` with every id in this order.
macro_rules! finding_ids {
    ($($name:ident = $id:literal;)*) => {
        $(pub const $name: &str = $id;)*

        /// Every id, a cause before its effects: the order of the checks and of the screen.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

finding_ids! {
    TSC_DEMOTED = "tsc-demoted";
    CLOCK_BACKWARD = "clock-backward";
    CLOCK_SLOW = "clock-slow";
    CLOCK_COARSE = "clock-coarse";
    CLOCKSOURCE_SLOW = "clocksource-slow";
    CLOCK_SYSCALL = "clock-syscall";
    CLOCKSOURCE_CHANGED = "clocksource-changed";
    CLOCKSOURCE_REFUSED = "clocksource-refused";
    CLOCKSOURCE_NOT_PERSISTENT = "clocksource-not-persistent";
    TSC_DENIED = "tsc-denied";
    TSC_ABSENT = "tsc-absent";
    TSC_NOT_INVARIANT = "tsc-not-invariant";
    TSC_RATE_MISMATCH = "tsc-rate-mismatch";
    TSC_FIRMWARE = "tsc-firmware";
    CPU_SKEW = "cpu-skew";
    TSC_UNCHECKED = "tsc-unchecked";
    TSC_AUTO_DEMOTED = "tsc-auto-demoted";
    TSC_SLOW = "tsc-slow";
    DRIFT = "drift";
    WALL_CLOCK = "wall-clock";
    CLOCK_GAPS = "clock-gaps";
}

/// Consequences of `tsc-demoted`. The screen shows them in one line, and JSON in full.
pub const CONSEQUENCES_OF_TSC_DEMOTED: &[&str] = &[CLOCKSOURCE_SLOW, CLOCK_SYSCALL, CLOCKSOURCE_CHANGED];
