//! The arguments of `pg_timing explain`, and its output formats.

use super::connection::ConnectionArguments;
use super::output;
use super::values::{DAY_S, count, number};
use crate::document::{self, pages};
use crate::error::Error;
use crate::render;
use crate::report::{ExplainReport, PlanFormat};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// A longer list is not readable, and its plans would fill the memory.
const MOST_SHOWN: u64 = 1000;
/// No log has more plans.
const MOST_PLANS: u64 = 1_000_000_000;
/// A clock read takes at least 1 ns, which is about four cycles of a fast processor, and never more than one second.
const LEAST_NS: f64 = 1.0;
const MOST_NS: f64 = 1e9;
/// From one nanosecond to 30 years.
const LEAST_MS: f64 = 1e-6;
const MOST_MS: f64 = 1e12;

/// Options of live runs. They conflict with `--plan`, and with the options that require `--plan`: clap's `requires`
/// alone would accept `--read-cost 20 -c "SELECT 1"`.
const LIVE: [&str; 8] = [CONNECTION, "ephemeral", "command", "file", "param", "allow_writes", "limit", "time"];
/// The name of the group that clap creates for [`ConnectionArguments`].
const CONNECTION: &str = "ConnectionArguments";

/// The end of the help text.
const WHAT_RUNS_DO: &str = "\
The overhead has two parts: clock reads, and counting of rows and buffers. If the timed runs took longer than the calls can \
cost, the rest is not explained by clock reads, and it is not overhead; for example, the machine was slower during these runs.

The statement runs 13 to 165 times, or up to 370 times if the server has other timing methods; with a longer --time, \
more often in proportion. Each run is rolled back, \
and it is read-only without --allow-writes. This does not undo effects outside the transaction, for example of \
dblink_exec, of COPY TO in a function, or of pg_switch_wal. Each run repeats them. The runs appear in pg_stat_statements and in the log of \
auto_explain.

SET and RESET before the statement apply to all runs, and are undone after each run. pg_timing refuses settings that \
would change what it measures or promises, for example auto_explain.log_analyze or default_transaction_read_only.

Values of --param are given to a prepared statement. With plan_cache_mode = auto, the server first plans it for the values \
(custom plan). From the sixth execution on it may use one plan for any values (generic plan). pg_timing uses the plan that \
the server would use from then on, in all runs, and says which one that is. SET plan_cache_mode = force_custom_plan or \
force_generic_plan selects one. pg_timing does not print the values itself. The server's error messages, which pg_timing repeats, and the server's log \
can contain them. Other users of this host can see them in the list of processes.

Show the overhead of a statement, node by node:
  pg_timing explain -h db1 -d shop -c 'SELECT count(*) FROM orders'

Show the overhead of a plan in a file, with the costs of the clock on the server's host:
  pg_timing check --format json > host.json
  pg_timing explain --plan plan.txt --host-report host.json

Add up the plans that auto_explain wrote to logs, by statement:
  pg_timing explain --plan *.log --all --host-report host.json

Measure the overhead per call on a temporary server:
  pg_timing explain --ephemeral";

/// If an option is repeated, the last one counts, as in psql. This allows a shell alias with default options.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = WHAT_RUNS_DO)]
pub struct ExplainArguments {
    /// SQL statement to measure. SET, RESET and PREPARE may come before it, also in their own -c. Without -c and -f, measure the
    /// overhead per call with test statements: 100 000 rows in one scan and in 400 loops. If no option names a server and none
    /// answers on the default socket, a temporary server is started, as with --ephemeral
    #[arg(short, long, value_name = "SQL")]
    pub command: Vec<String>,
    /// File with the statement, or - for stdin
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath, conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Value of $1 in the statement; repeat it for $2 and so on. The server infers the type. \N is NULL, and the word NULL
    /// is a string
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub param: Vec<String>,
    /// Run the statement even if it writes. Each run is rolled back, except sequences, effects of functions outside the
    /// transaction and dead tuples
    #[arg(long)]
    pub allow_writes: bool,
    /// Time limit of each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = count(DAY_S), allow_negative_numbers = true)]
    pub limit: u64,
    /// Time for all runs, in seconds. A long statement takes at least three rounds
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = count(DAY_S), allow_negative_numbers = true)]
    pub time: u64,
    /// Files with existing EXPLAIN ANALYZE plans (text, JSON, YAML or XML), as psql, auto_explain or a ticket shows them.
    /// Needs --read-cost, --host-report or --plain-ms. The last usable plan counts, without --all, --slowest and --nth
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, num_args = 1.., conflicts_with_all = LIVE)]
    pub plan: Vec<PathBuf>,
    /// Read all plans of the files, and add them up by statement. The files can be logs of any size (stderr, csvlog, jsonlog,
    /// syslog, journald, containers), also compressed with gzip or zstd
    #[arg(long, requires = "plan", conflicts_with_all = LIVE, conflicts_with_all = ["slowest", "nth", "plain_ms"])]
    pub all: bool,
    /// Show the N slowest plans of the files
    #[arg(long, value_name = "N", requires = "plan", conflicts_with_all = LIVE, conflicts_with_all = ["nth", "plain_ms"], value_parser = count(MOST_SHOWN), allow_negative_numbers = true)]
    pub slowest: Option<u64>,
    /// Show plan number N of the files, from 1
    #[arg(long, value_name = "N", requires = "plan", conflicts_with_all = LIVE, value_parser = count(MOST_PLANS), allow_negative_numbers = true)]
    pub nth: Option<u64>,
    /// Cost of one read of the server's clock, in ns
    #[arg(long, value_name = "NS", requires = "plan", conflicts_with = "host_report", conflicts_with_all = LIVE, value_parser = number(LEAST_NS..=MOST_NS), allow_negative_numbers = true)]
    pub read_cost: Option<f64>,
    /// File with the output of pg_timing --format json on the server's host: costs of the clock, number of CPUs
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "plan", conflicts_with_all = LIVE)]
    pub host_report: Option<PathBuf>,
    /// Clock of the host report that the server reads: system, rdtsc or rdtscp. By default, the plan's settings select it
    #[arg(long, value_name = "NAME", requires = "host_report", conflicts_with_all = LIVE)]
    pub clock: Option<String>,
    /// Time of the statement without EXPLAIN, in ms, as psql's \timing shows it
    #[arg(long, value_name = "MS", requires = "plan", conflicts_with_all = LIVE, value_parser = number(LEAST_MS..=MOST_MS), allow_negative_numbers = true)]
    pub plain_ms: Option<f64>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: ExplainFormat,
    /// Run on a temporary server of the newest installed PostgreSQL, and remove it afterwards
    #[arg(long, conflicts_with = CONNECTION)]
    pub ephemeral: bool,
    #[command(flatten, next_help_heading = "Connection options")]
    pub connection: ConnectionArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    Text,
    Json,
    /// one JSON object per plan and line; for --all, --slowest and --nth
    Jsonl,
    /// a self-contained page
    Html,
    /// EXPLAIN's text format with corrected times, without their intervals, for a visualizer. A captured plan must be text
    PlanText,
    /// EXPLAIN's JSON format with corrected times, for a visualizer. A captured plan must be JSON, YAML or XML
    PlanJson,
}

impl ExplainFormat {
    /// Returns EXPLAIN's format, if the output is a plan.
    pub fn plan(self) -> Option<PlanFormat> {
        match self {
            ExplainFormat::PlanText => Some(PlanFormat::Text),
            ExplainFormat::PlanJson => Some(PlanFormat::Json),
            ExplainFormat::Text | ExplainFormat::Json | ExplainFormat::Jsonl | ExplainFormat::Html => None,
        }
    }
}

/// Returns a report on one statement or plan in this format.
pub fn render_report(report: &ExplainReport, format: ExplainFormat) -> Result<String, Error> {
    Ok(match format {
        ExplainFormat::Text => document::text::text(&document::explain::document(report), output()),
        ExplainFormat::Json => render::json::json(report),
        ExplainFormat::Jsonl => render::json::json_line(report),
        ExplainFormat::Html => pages::of_plans(std::slice::from_ref(report)),
        ExplainFormat::PlanText => render::plan::text(report)?,
        ExplainFormat::PlanJson => render::plan::json(report)?,
    })
}
