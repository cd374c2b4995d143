//! What the classic test found out: a report of each of its statements.

use super::{ExplainReport, ReadCost};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClassicReport {
    /// 100 000 rows, one after the other
    #[serde(flatten)]
    pub count: ExplainReport,
    /// 100 000 rows in 400 loops
    pub nested: ExplainReport,
    /// of the clock that times the server's plan nodes
    pub read: ReadCost,
}
