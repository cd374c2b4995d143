//! Figures with their units and errors.

use crate::report::Range;

/// `40 +-3 ns a call`, or as much at most.
pub fn per_call(ns: Range) -> String {
    format!("{} ns a call", with_error(ns))
}

pub fn with_error(range: Range) -> String {
    match range.low > 0.0 {
        true => format!("{} +-{}", digits(range.estimate), digits(range.off())),
        false => format!("0 to {}", digits(range.high)),
    }
}

pub fn ms(ms: f64) -> String {
    format!("{} ms", digits(ms))
}

/// Three digits, as far as they are before the point.
pub fn digits(ms: f64) -> String {
    match ms.abs() {
        m if m < 0.9995 => format!("{ms:.3}"),
        m if m < 9.995 => format!("{ms:.2}"),
        m if m < 99.95 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}
