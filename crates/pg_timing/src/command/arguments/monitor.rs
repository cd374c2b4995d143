//! The arguments of `monitor`.

use super::values::{interval_seconds, sample_count};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use timing_clock::Nanos;

#[derive(Debug, Args)]
pub struct MonitorArguments {
    /// Time between two samples, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = interval_seconds, allow_negative_numbers = true)]
    pub interval: Nanos,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics; a port alone means 127.0.0.1
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub listen: Option<String>,
    /// Write metrics to FILE after each sample, for node_exporter's textfile collector; the name must end in .prom
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub textfile: Option<PathBuf>,
    /// Append each event to FILE, one line of JSON per event
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub events: Option<PathBuf>,
    /// Also watch this server: what its settings cost, and what pg_fast_timing does (a database name, a connection string or a
    /// URI)
    #[arg(long, value_name = "CONNINFO")]
    pub server: Option<String>,
    /// Stop after N samples
    #[arg(long, value_name = "N", value_parser = sample_count)]
    pub samples: Option<u64>,
}
