//! The report of the classic test: one report per statement.

use super::{ExplainReport, ReadCost};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassicReport {
    /// 100 000 rows in one loop
    #[serde(flatten)]
    pub count: ExplainReport,
    /// 100 000 rows in 400 loops
    pub nested: ExplainReport,
    /// read cost of the clock that times the server's plan nodes
    pub read: ReadCost,
}
