//! Plans of all kinds.

mod calls;
mod conservation;
mod forks;
mod formats;
mod found;
pub mod generated;
mod old_versions;
mod preorder;
pub mod proptests;
mod psql;
pub mod published;
mod selected;
mod subplans;
mod wrapped;

use super::*;

/// Returns the last plan of a text that can be analyzed, or else the last reason.
pub fn last_usable_plan(text: &str) -> Found {
    let mut last = Err(Unusable::NoPlanAfterAnnouncement);
    each_plan(text, false, &mut |plan| {
        let plan = plan.and_then(executed);
        if plan.is_ok() || last.is_err() {
            last = plan;
        }
    });
    last
}

/// Returns the plan in this JSON, with this execution time.
pub fn plan_of_json(json: &str, execution_ms: f64) -> Plan {
    Plan::new(Explained { execution_ms: Some(execution_ms), ..serde_json::from_str(json).unwrap() })
}
