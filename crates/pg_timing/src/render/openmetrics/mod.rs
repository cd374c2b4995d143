//! Metrics in the text format of Prometheus.

pub mod table;
