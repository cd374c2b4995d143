//! Computes a setting's share of a core from its events, and derives the advice.

use super::facts::{Events, Facts, Gap};
use super::statements::is_idle;
use crate::human::{count, percent, percent_range};
use crate::report::{Action, CoreShare, EventsAre, ReadCost, SettingAdvice};

/// Share of a core. A smaller cost is not visible in the throughput, because pgbench runs differ by more.
pub const CHEAP: f64 = 0.01;
/// Share of a core. Above this, a tenth of a core does nothing but read the clock.
pub const VERY_EXPENSIVE: f64 = 0.1;

/// Events per second. If an idle server has fewer, its statistics say nothing about a busy server.
const FEW_PER_S: f64 = 10.0;
/// Events per second on a busy server: blocks or calls.
const BUSY_PER_S: f64 = 100_000.0;

/// Why there is no upper bound, if nothing else is missing.
const SHORT: &str = "the window is too short, because backends report only once per second";
const LONGER_WINDOW: &str = "a longer window narrows the range: pg_timing advise --window 60";
const WHILE_BUSY: &str = "run it while the server is busy: pg_timing advise --window 60";

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
    let event_ns = setting.cost.high_ns.map(|ns| setting.reads_per_event * ns);
    advise_events(facts, setting, event_ns)
}

/// Returns the advice for a setting whose events take at most `event_ns`.
pub fn advise_events(facts: &Facts, setting: Setting, event_ns: Option<f64>) -> SettingAdvice {
    let share = share(&setting.events, setting.cost);
    let busy = event_ns.map(|ns| BUSY_PER_S * ns / 1e9);
    let limit_per_s = event_ns.filter(|ns| *ns > 0.0).map(|ns| CHEAP * 1e9 / ns);
    let few = is_idle(facts) && setting.events.per_s.is_some_and(|per_s| per_s < FEW_PER_S);
    let gap = match setting.cost.low_ns {
        None => Gap::new("the read cost of the clock is unknown", "run pg_timing on the server's host"),
        Some(_) => setting.events.gap.clone().unwrap_or_else(|| Gap::new(SHORT, LONGER_WINDOW)),
    };
    let (advice, summary, hint) = match (share, busy) {
        (Some(share), Some(busy)) if few && share.high.is_some() => {
            let text = format!(
                "few events on this idle server; {BUSY_PER_S} per second would take {} of a core",
                percent(busy)
            );
            match (setting.on, busy <= CHEAP) {
                (true, true) => (Action::Keep, format!("{text}: leave it on"), None),
                (false, true) => (Action::TurnOn, format!("{text}: it can be turned on"), None),
                (_, false) => (Action::Unknown, format!("not determined: {text}"), Some(WHILE_BUSY.into())),
            }
        }
        (Some(share), _) => judge(setting.on, share, gap),
        (None, _) => (Action::Unknown, format!("not determined: {}", gap.why), Some(gap.hint)),
    };
    // Without statistics, the user can compare the limit with other figures.
    let summary = match (advice, limit_per_s, share.and_then(|share| share.high)) {
        (Action::Unknown, Some(limit), None) => {
            format!("{summary}; {} per second would cost 1% of a core", count(limit.round() as u64))
        }
        _ => summary,
    };
    let advice = setting.advice(share, limit_per_s, advice, summary);
    SettingAdvice { hint, extrapolated: few, ..advice }
}

impl Setting<'_> {
    /// Returns this advice with the setting's values, and with the line that follows it.
    pub fn advice(
        self,
        core_share: Option<CoreShare>,
        limit_per_s: Option<f64>,
        advice: Action,
        summary: String,
    ) -> SettingAdvice {
        let (line, undo) = match (advice, self.on) {
            (Action::TurnOn, _) => (Some(self.turn_on), Some(self.turn_off)),
            (Action::TurnOff, _) => (Some(self.turn_off), Some(self.turn_on)),
            _ => (None, None),
        };
        SettingAdvice {
            on: self.on,
            events_per_s: self.events.per_s,
            events_are: self.events.are(),
            reads_per_event: self.reads_per_event,
            core_share,
            limit_per_s,
            line,
            undo,
            ..without_events(self.name, self.value, advice, summary, self.why)
        }
    }
}

/// Returns an advice about something whose events are not counted.
pub fn without_events(
    name: &str,
    value: impl Into<String>,
    advice: Action,
    summary: impl Into<String>,
    why: impl Into<String>,
) -> SettingAdvice {
    SettingAdvice {
        name: name.into(),
        value: value.into(),
        on: false,
        events_per_s: None,
        events_are: EventsAre::Unknown,
        reads_per_event: 0.0,
        core_share: None,
        limit_per_s: None,
        advice,
        summary: summary.into(),
        hint: None,
        why: why.into(),
        line: None,
        undo: None,
        extrapolated: false,
    }
}

/// Returns the share of a core, or `None` if there is neither a lower nor an upper bound.
fn share(events: &Events, cost: &ReadCost) -> Option<CoreShare> {
    let (low_ns, high_ns) = cost.low_ns.zip(cost.high_ns)?;
    if events.per_s.is_none() && events.reads_high.is_none() {
        return None;
    }
    Some(CoreShare { low: events.reads_low * low_ns / 1e9, high: events.reads_high.map(|reads| reads * high_ns / 1e9) })
}

/// Returns the advice for a known share, with its reason, and with a hint if it was not determined.
fn judge(on: bool, share: CoreShare, gap: Gap) -> (Action, String, Option<String>) {
    let known = |advice, text: &str| (advice, text.to_string(), None);
    match (on, share) {
        (true, share) if share.high.is_some_and(|high| high <= CHEAP) => known(Action::Keep, "cheap: leave it on"),
        (false, share) if share.high.is_some_and(|high| high <= CHEAP) => {
            known(Action::TurnOn, "cheap: it can be turned on")
        }
        (true, share) if share.low > CHEAP => known(Action::TurnOff, "expensive: turn it off"),
        (false, share) if share.low > CHEAP => known(Action::None, "expensive: leave it off"),
        (_, CoreShare { high: None, .. }) => (Action::Unknown, format!("not determined: {}", gap.why), Some(gap.hint)),
        (_, CoreShare { low, high }) => {
            let text = format!("not determined: {} of a core", percent_range(low, high));
            (Action::Unknown, text, Some(LONGER_WINDOW.into()))
        }
    }
}
