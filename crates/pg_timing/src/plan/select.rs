//! Selects the plan that is analyzed: the last usable one of the input.

use super::errors::{self, TakenBy};
use super::find::OnPlan;
use super::tree::Explained;
use super::validate::check_figures;
use crate::error::Error;
use crate::report::PlanSource as Source;

/// The plan that is analyzed.
#[derive(Debug)]
pub struct Selected {
    pub explained: Explained,
    pub execution_ms: f64,
    /// number of plans in the input
    pub plans: usize,
    /// number of this plan, from 1
    pub taken: usize,
    /// the text of the plan, if the caller needs it
    pub source: Option<Source>,
    /// what the user should know about the selection
    pub notes: Vec<String>,
}

/// The plans that are not usable. A log can have many of them.
#[derive(Default)]
struct Skipped {
    last: Option<Error>,
    named: Vec<String>,
    others: usize,
}

impl Skipped {
    const MAX_NAMED: usize = 3;

    fn add(&mut self, number: usize, why: Error) {
        match self.named.len() < Skipped::MAX_NAMED {
            true => self.named.push(format!("plan {number} is not usable: {}", why.what)),
            false => self.others += 1,
        }
        self.last = Some(why);
    }

    fn notes(self) -> impl Iterator<Item = String> {
        let others = (self.others > 0).then(|| format!("not usable, too: {} more", self.others));
        self.named.into_iter().chain(others)
    }
}

/// Returns the last usable plan of a text. `each_plan` finds its plans. `keep_source` also keeps the plan's own text.
pub fn last_usable_plan(
    text: &str,
    each_plan: impl Fn(&str, &mut OnPlan),
    keep_source: bool,
) -> Result<Selected, Error> {
    let mut plans = 0;
    let mut usable: Option<Selected> = None;
    let mut skipped = Skipped::default();
    each_plan(text, &mut |plan, source| {
        plans += 1;
        match plan.map_err(|unreadable| errors::unreadable_plan(&unreadable)).and_then(executed) {
            Ok(selected) => {
                let source = source.filter(|_| keep_source).map(Source::to_owned);
                usable = Some(Selected { taken: plans, source, ..selected });
            }
            Err(error) => skipped.add(plans, error),
        }
    });
    match (usable, skipped.last.take()) {
        (Some(selected), _) => {
            let position = position(plans, selected.taken).into_iter();
            let notes = position.chain(skipped.notes()).chain(selected.notes).collect();
            Ok(Selected { plans, notes, ..selected })
        }
        (None, Some(error)) => Err(error),
        (None, None) => Err(errors::no_plan_in(text)),
    }
}

/// Returns a note about which of several plans is used.
fn position(plans: usize, taken: usize) -> Option<String> {
    let which = match plans - taken {
        _ if plans == 1 => return None,
        0 => "this is the last one".into(),
        _ => format!("this is number {taken}, the last usable one"),
    };
    Some(format!("the input has {plans} plans; {which} (--nth N shows another one)"))
}

/// Checks that the nodes of a plan were executed and timed, and that their figures are possible.
pub fn executed(mut explained: Explained) -> Result<Selected, Error> {
    if explained.time_correction.is_some() {
        return Err(errors::already_corrected());
    }
    // Only auto_explain prints the statement.
    let by = if explained.query.is_some() { TakenBy::AutoExplain } else { TakenBy::Explain };
    let root = &explained.plan;
    if root.loops.is_none() || root.rows.is_none() {
        return Err(errors::not_executed(by));
    }
    check_figures(&explained).map_err(|why| errors::impossible(&why))?;
    let Some(loop_ms) = root.total_ms else { return Err(errors::not_timed(by)) };
    let mut notes = std::mem::take(&mut explained.notes);
    let execution_ms = match (explained.execution_ms, root.loops) {
        (Some(ms), _) => ms,
        // Without the Execution Time, the root's time replaces it: it is the time of all nodes. But a sampled time is
        // only an estimate.
        (None, Some(loops)) if loops > 0.0 && !explained.uses_fast_timing() => {
            notes.push(
                "the plan has no Execution Time, so its topmost node's time is used. It excludes triggers, and the start and \
                 end of the execution. If lines are missing, the calls of their nodes are missing, too"
                    .into(),
            );
            // The calls of triggers, and of SERIALIZE, are not within the root's time.
            (explained.triggers, explained.serialization) = (Vec::new(), None);
            loop_ms * loops
        }
        (None, _) => return Err(errors::no_execution_time()),
    };
    Ok(Selected { explained, execution_ms, plans: 1, taken: 1, source: None, notes })
}
