//! What `explain` and `advise` take, and what a connection takes.

use super::values::{milliseconds, nanoseconds, window_seconds};
use super::{Format, PageFormat};
use clap::Args;
use std::path::PathBuf;
use timing_clock::Nanos;

/// psql's, with its meanings.
#[derive(Debug, Args)]
pub struct ConnectionArguments {
    /// Database server's host, or the directory of its socket
    #[arg(short = 'h', long, value_name = "HOST")]
    pub host: Option<String>,
    /// Database server's port
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<String>,
    /// Database user
    #[arg(short = 'U', long, value_name = "NAME")]
    pub username: Option<String>,
    /// Database, or a connection string or URI
    #[arg(short, long, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Never ask for a password
    #[arg(short = 'w', long, conflicts_with = "password")]
    pub no_password: bool,
    /// Ask for a password before connecting
    #[arg(short = 'W', long)]
    pub password: bool,
    /// Database, or a connection string or URI
    #[arg(value_name = "DBNAME|CONNINFO|URI", conflicts_with = "dbname")]
    pub database: Option<String>,
}

/// What has no meaning where nothing is run. (`requires` alone lets them stand beside what --plan
/// conflicts with.)
const LIVE: [&str; 6] = [CONNECTION, "ephemeral", "command", "file", "allow_writes", "limit"];
/// The group that clap makes of a struct's arguments.
const CONNECTION: &str = "ConnectionArguments";

/// The last one counts, as in psql, where an alias has set some of them.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ExplainArguments {
    /// The statement; without -c and -f it is read from stdin, and if there is none it is the classic
    /// test: 100 000 rows counted, in one go and in 400 loops
    #[arg(short, long, value_name = "SQL")]
    pub command: Vec<String>,
    /// A file with the statement
    #[arg(short, long, value_name = "FILE", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// Run a statement that writes, too; everything is rolled back, but for sequences and what its
    /// functions do outside of the database
    #[arg(long)]
    pub allow_writes: bool,
    /// The longest that one run may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub limit: u64,
    /// A plan that EXPLAIN ANALYZE printed, instead of a statement: text or JSON, as psql, auto_explain
    /// or a ticket shows it; with one of the next three
    #[arg(long, value_name = "FILE|-", conflicts_with_all = LIVE)]
    pub plan: Option<PathBuf>,
    /// What one read of the server's clock costs, in ns
    #[arg(long, value_name = "NS", requires = "plan", conflicts_with = "host_report", conflicts_with_all = LIVE, value_parser = nanoseconds, allow_negative_numbers = true)]
    pub read_cost: Option<f64>,
    /// The same, and how much runs differ there, out of what pg_timing --format json printed on the server's host
    #[arg(long, value_name = "FILE", requires = "plan", conflicts_with_all = LIVE)]
    pub host_report: Option<PathBuf>,
    /// What the statement takes without EXPLAIN, in ms, by psql's \timing
    #[arg(long, value_name = "MS", requires = "plan", conflicts_with_all = LIVE, value_parser = milliseconds, allow_negative_numbers = true)]
    pub plain_ms: Option<f64>,
    #[arg(long, value_enum, default_value = "text")]
    pub format: PageFormat,
    /// Start a server for this run alone, out of the newest PostgreSQL that is installed; nothing of it
    /// is left behind
    #[arg(long, conflicts_with = CONNECTION)]
    pub ephemeral: bool,
    #[command(flatten, next_help_heading = "Connection options")]
    pub connection: ConnectionArguments,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct AdviseArguments {
    /// How long to watch the server's statistics, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = window_seconds, allow_negative_numbers = true)]
    pub window: Nanos,
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    #[command(flatten, next_help_heading = "Connection options")]
    pub connection: ConnectionArguments,
}
