//! Node calls of the statements in pg_stat_statements, from the planner's row counts. Statements are planned for any values
//! of their parameters. Nothing is executed.

mod activity;
mod assumed_run;
mod entries;
mod explain;
mod guesses;
mod limits;
mod node_calls;
mod planner_node;
mod skipped;
mod statements;
mod sums;
mod table_rows;
mod timing_cost;
mod top;
mod trust;
mod typed_constants;
mod unrecorded;
mod workload;

pub use activity::Activity;
pub use entries::Entries;
pub use limits::Limits;
pub use timing_cost::TimingCost;
pub use top::top;
pub use unrecorded::unrecorded;
#[cfg(test)]
pub use workload::tests::lookups;
pub use workload::{Window, Workload};
