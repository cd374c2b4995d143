//! docs/metrics.md, generated from the table of all metrics.

use super::super::{ALL, Metric, PREFIX};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");

const HEAD: &str = "\
# Metrics

`pg_timing monitor` exports these metrics for Prometheus. Counters start at 0 with the monitor, and those of the
server (`fast_timing_`, `plan_node_`) with their last reset. `_info` and `_advice`
are always 1. `make schema` generates this file.

| metric | type | labels | meaning |
|---|---|---|---|
";

/// Returns the metric as one row of a Markdown table.
fn row(metric: &Metric) -> String {
    let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    // A vertical bar would start a new cell.
    let help = metric.help.replace('|', "\\|");
    format!("| `{PREFIX}{}` | {} | {} | {help} |\n", metric.name, metric.kind, labels.join(", "))
}

/// `make schema` runs this test with `UPDATE_SCHEMA=1`, which writes the file.
#[test]
fn committed_metrics_match_the_code() {
    let text = HEAD.to_owned() + &ALL.iter().map(row).collect::<String>();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PATH).unwrap(), text, "update the list of metrics: make schema");
}
