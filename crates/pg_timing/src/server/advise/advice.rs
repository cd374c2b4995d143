//! From events and reads to a share of a core, and to a yes or no.

use super::facts::{Events, Facts};
use super::statements::is_idle;
use crate::human::percent;
use crate::report::{Action, CoreShare, ReadCost, SettingAdvice};

/// Of one core. Below this nobody finds it in a throughput: pgbench's own runs differ by more.
pub const CHEAP: f64 = 0.01;
/// From here on a tenth of a core does nothing but look at the clock.
pub const VERY_DEAR: f64 = 0.1;

/// Rarer than this in an idle server, events tell nothing about it at work.
const FEW_PER_S: f64 = 10.0;
/// What a busy server does: 100 000 blocks or calls a second.
const BUSY_PER_S: f64 = 100_000.0;

/// A setting as it is, and what it reads.
pub struct Setting<'a> {
    pub name: &'static str,
    pub value: String,
    /// it reads the clock as it is set
    pub on: bool,
    pub events: Events,
    pub reads_per_event: f64,
    pub cost: &'a ReadCost,
    pub why: String,
    /// for postgresql.conf
    pub turn_on: String,
    pub turn_off: String,
}

pub fn advise(facts: &Facts, setting: Setting) -> SettingAdvice {
    let Setting { name, value, on, events, reads_per_event, cost, why, turn_on, turn_off } = setting;
    let share = share(&events, cost);
    let busy = cost.high_ns.map(|ns| BUSY_PER_S * reads_per_event * ns / 1e9);
    let few = is_idle(facts) && events.per_s.is_some_and(|per_s| per_s < FEW_PER_S);
    let (advice, summary) = match (share, busy) {
        (Some(share), Some(busy)) if few && share.high.is_some() => {
            let said = format!("little happened; {BUSY_PER_S} a second would take {}", percent(busy));
            match (on, busy <= CHEAP) {
                (true, true) => (Action::Keep, format!("{said}: leave it on")),
                (false, true) => (Action::TurnOn, format!("{said}: it can be turned on")),
                (_, false) => (Action::Unknown, format!("not determined: {said}")),
            }
        }
        (Some(share), _) => judged(on, share, &events),
        (None, _) if cost.low_ns.is_none() => {
            (Action::Unknown, "not determined: what a read of the clock costs is unknown".into())
        }
        (None, _) => (Action::Unknown, could_not(&events)),
    };
    let (line, undo) = match (advice, on) {
        (Action::TurnOn, _) => (Some(turn_on), Some(turn_off)),
        (Action::TurnOff, _) => (Some(turn_off), Some(turn_on)),
        _ => (None, None),
    };
    SettingAdvice {
        name: name.into(),
        value,
        on,
        events_per_s: events.per_s,
        events_are: events.are,
        reads_per_event,
        core_share: share,
        advice,
        summary,
        why,
        line,
        undo,
        extrapolated: few,
    }
}

/// `None` where nothing bounds it from either side.
fn share(events: &Events, cost: &ReadCost) -> Option<CoreShare> {
    let (low_ns, high_ns) = cost.low_ns.zip(cost.high_ns)?;
    if events.per_s.is_none() && events.reads_high.is_none() {
        return None;
    }
    Some(CoreShare { low: events.reads_low * low_ns / 1e9, high: events.reads_high.map(|reads| reads * high_ns / 1e9) })
}

fn judged(on: bool, share: CoreShare, events: &Events) -> (Action, String) {
    match (on, share) {
        (true, share) if share.high.is_some_and(|high| high <= CHEAP) => (Action::Keep, "cheap: leave it on".into()),
        (false, share) if share.high.is_some_and(|high| high <= CHEAP) => {
            (Action::TurnOn, "cheap: it can be turned on".into())
        }
        (true, share) if share.low > CHEAP => (Action::TurnOff, "dear: turn it off".into()),
        (false, share) if share.low > CHEAP => (Action::None, "dear: leave it off".into()),
        (_, CoreShare { high: None, .. }) => (Action::Unknown, could_not(events)),
        (_, CoreShare { low, high: Some(high) }) => {
            (Action::Unknown, format!("not determined: somewhere from {} to {}", percent(low), percent(high)))
        }
    }
}

fn could_not(events: &Events) -> String {
    let why = events.unseen.as_deref().unwrap_or("the window is too short for what backends report once a second");
    format!("not determined: {why}")
}
