//! Reads captured plans from a log or a ticket. `crate::plan` does the rest.

mod csv_log;
pub mod csv_record;
mod encoding;
mod records;
pub mod root;
pub mod transport;

#[cfg(test)]
pub use crate::plan::ServerClock;
pub use crate::plan::announcement;
pub use crate::plan::{
    Analysis, Found, Inputs, Selected, Source, Unreadable, errors, executed, node_line, report, structured, text,
};
pub use encoding::text_of;
pub use records::each_plan;

use crate::error::Error;
use crate::plan::last_usable_plan;
use crate::report::ExplainReport;

/// Estimates the time without overhead of the last plan in a text.
pub fn captured(text: &str, inputs: &Inputs) -> Result<ExplainReport, Error> {
    report(last_usable_plan(text, each_plan, inputs.document.is_some())?, inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_in_logs_are_read() {
        const TREE: &str = "Aggregate  (cost=1.00..2.00 rows=1 width=8) (actual time=20.000..20.000 rows=1 loops=1)\n  ->  Seq Scan on \"t\"  (cost=0.00..1.00 rows=1 width=0) (actual time=0.012..10.442 rows=100000 loops=1)\n";
        let tabbed: String =
            format!("Query Text: SELECT 1\n{TREE}").lines().map(|line| format!("\t{line}\n")).collect();
        let log = format!(
            "2026-11-21 22:20:13.745 UTC [4080] LOG:  duration: 26.105 ms  plan:\n{tabbed}2026-11-21 22:20:14 UTC [4080] LOG:  x\n"
        );
        let sent = |(n, line): (usize, &str)| {
            format!("Nov 21 22:20:13 db postgres[7]: [4-{}] {}\n", n + 1, line.replace('\t', "#011"))
        };
        let csv = format!(
            "2026-11-21 22:20:13 UTC,,,7,,,1,,,,0,LOG,00000,\"duration: 26.105 ms  plan:\nQuery Text: SELECT 1\n{}\",,,,,\n",
            TREE.replace('"', "\"\"")
        );
        for text in [log.clone(), log.lines().enumerate().map(sent).collect(), csv] {
            let mut plans = Vec::new();
            each_plan(&text, &mut |plan, _| plans.push(plan.unwrap()));
            assert_eq!(plans.len(), 1, "{text}");
            assert_eq!((plans[0].execution_ms, plans[0].query.as_deref()), (Some(26.105), Some("SELECT 1")), "{text}");
            assert_eq!(plans[0].plan.plans.len(), 1, "{text}");
        }
    }
}
