//! Computes a setting's share of a core from its events, and derives the advice.

use super::facts::{Events, Facts};
use super::statements::is_idle;
use crate::human::{count, percent};
use crate::report::{Action, CoreShare, ReadCost, SettingAdvice};

/// Share of a core. A smaller cost is not visible in the throughput, because pgbench runs differ by more.
pub const CHEAP: f64 = 0.01;
/// Share of a core. Above this, a tenth of a core does nothing but read the clock.
pub const VERY_EXPENSIVE: f64 = 0.1;

/// Events per second. If an idle server has fewer, its statistics say nothing about a busy server.
const FEW_PER_S: f64 = 10.0;
/// Events per second on a busy server: blocks or calls.
const BUSY_PER_S: f64 = 100_000.0;

/// A setting with its value and its events.
pub struct Setting<'a> {
    pub name: &'static str,
    pub value: String,
    /// whether it reads the clock with its present value
    pub on: bool,
    pub events: Events,
    pub reads_per_event: f64,
    pub cost: &'a ReadCost,
    pub why: String,
    /// lines for postgresql.conf
    pub turn_on: String,
    pub turn_off: String,
}

/// Returns the advice for a setting.
pub fn advise(facts: &Facts, setting: Setting) -> SettingAdvice {
    let share = share(&setting.events, setting.cost);
    let event_ns = setting.cost.high_ns.map(|ns| setting.reads_per_event * ns);
    advise_share(facts, setting, share, event_ns)
}

/// Returns the advice for a setting that takes this share of a core. An event takes at most `event_ns`.
pub fn advise_share(facts: &Facts, setting: Setting, share: Option<CoreShare>, event_ns: Option<f64>) -> SettingAdvice {
    let Setting { name, value, on, events, reads_per_event, cost, why, turn_on, turn_off } = setting;
    let busy = event_ns.map(|ns| BUSY_PER_S * ns / 1e9);
    let limit_per_s = event_ns.filter(|ns| *ns > 0.0).map(|ns| CHEAP * 1e9 / ns);
    let few = is_idle(facts) && events.per_s.is_some_and(|per_s| per_s < FEW_PER_S);
    let (advice, summary) = match (share, busy) {
        (Some(share), Some(busy)) if few && share.high.is_some() => {
            let text = format!(
                "few events on this idle server; {BUSY_PER_S} per second would take {} of a core",
                percent(busy)
            );
            match (on, busy <= CHEAP) {
                (true, true) => (Action::Keep, format!("{text}: leave it on")),
                (false, true) => (Action::TurnOn, format!("{text}: it can be turned on")),
                (_, false) => (Action::Unknown, format!("not determined: {text}")),
            }
        }
        (Some(share), _) => judge(on, share, &events),
        (None, _) if cost.low_ns.is_none() => {
            (Action::Unknown, "not determined: the read cost of the clock is unknown".into())
        }
        (None, _) => (Action::Unknown, not_determined(&events)),
    };
    // Without statistics, the user can compare the limit with other figures.
    let summary = match (advice, limit_per_s, share.and_then(|share| share.high)) {
        (Action::Unknown, Some(limit), None) => {
            format!("{summary}; {} per second would cost 1% of a core", count(limit.round() as u64))
        }
        _ => summary,
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
        limit_per_s,
        advice,
        summary,
        why,
        line,
        undo,
        extrapolated: few,
    }
}

/// Returns the share of a core, or `None` if there is neither a lower nor an upper bound.
pub fn share(events: &Events, cost: &ReadCost) -> Option<CoreShare> {
    let (low_ns, high_ns) = cost.low_ns.zip(cost.high_ns)?;
    if events.per_s.is_none() && events.reads_high.is_none() {
        return None;
    }
    Some(CoreShare { low: events.reads_low * low_ns / 1e9, high: events.reads_high.map(|reads| reads * high_ns / 1e9) })
}

/// Returns the advice for a known share.
fn judge(on: bool, share: CoreShare, events: &Events) -> (Action, String) {
    match (on, share) {
        (true, share) if share.high.is_some_and(|high| high <= CHEAP) => (Action::Keep, "cheap: leave it on".into()),
        (false, share) if share.high.is_some_and(|high| high <= CHEAP) => {
            (Action::TurnOn, "cheap: it can be turned on".into())
        }
        (true, share) if share.low > CHEAP => (Action::TurnOff, "expensive: turn it off".into()),
        (false, share) if share.low > CHEAP => (Action::None, "expensive: leave it off".into()),
        (_, CoreShare { high: None, .. }) => (Action::Unknown, not_determined(events)),
        (_, CoreShare { low, high: Some(high) }) => {
            (Action::Unknown, format!("not determined: between {} and {} of a core", percent(low), percent(high)))
        }
    }
}

/// Returns why the share is unknown.
fn not_determined(events: &Events) -> String {
    let why =
        events.unseen.as_deref().unwrap_or("the window is too short, because backends report only once per second");
    format!("not determined: {why}")
}
