//! Sentences about `explain` without a statement.

use super::with_margin;
use crate::report::{LiveRuns, Range, ReadCost};

/// Returns the headline, for the statement with the higher overhead.
pub fn answer(count: &LiveRuns, nested: &LiveRuns) -> String {
    const ROWS: f64 = 1e6;
    const NODES: f64 = 3.0;
    let per_row = |runs: &LiveRuns| runs.clock_per_call_ns + runs.rows_per_call_ns;
    let (count, nested) = (per_row(count), per_row(nested));
    let higher = if count.estimate > nested.estimate { count } else { nested };
    format!(
        "EXPLAIN ANALYZE adds {} ns per row and plan node on this server. For a million rows through three nodes that is {} s.",
        with_margin(higher),
        with_margin(higher.times(ROWS * NODES / 1e9))
    )
}

/// Returns the read cost of the server's clock.
pub fn read(read: &ReadCost) -> String {
    match (read.ns, read.low_ns, read.high_ns) {
        (Some(ns), Some(low), Some(high)) => format!(
            "{} ns for the {} clock, {}; a timed call reads it twice",
            with_margin(Range { low, estimate: ns, high }),
            read.clock,
            read.how
        ),
        _ => format!("not determined for the {} clock: {}", read.clock, read.how),
    }
}
