//! The worst of what is on, and a clock that is wrong, in a few sentences.

use super::advice::{CHEAP, VERY_DEAR};
use crate::human::percent;
use crate::report::{Action, CoreShare, SettingAdvice, Severity, Verdict};

/// `clock` says whether a read's cost is known, `counted` whether there was a window.
pub fn verdict(settings: &[SettingAdvice], clock: bool, counted: bool) -> Verdict {
    let unknown = |summary: &str| Verdict { severity: Severity::Unknown, summary: summary.into() };
    if !clock {
        return unknown("What the server's clock costs could not be measured, so nothing is said of the settings.");
    }
    if !counted {
        return unknown("It was stopped before the server's statistics could be watched.");
    }
    let on: Vec<&SettingAdvice> = settings.iter().filter(|setting| setting.on).collect();
    // The clock itself is used whatever the settings are.
    let wrong = || settings.iter().filter(|setting| !setting.on && setting.advice == Action::TurnOff);
    let severity = on.iter().copied().chain(wrong()).map(severity).max().unwrap_or(Severity::Ok);
    let dear: Vec<String> = on
        .iter()
        .filter(|setting| self::severity(setting) > Severity::Ok)
        .filter_map(|setting| Some(format!("{} takes at least {}", setting.name, percent(setting.core_share?.low))))
        .collect();
    let names = |wanted: &dyn Fn(&SettingAdvice) -> bool| -> Vec<&str> {
        on.iter().filter(|setting| wanted(setting)).map(|setting| setting.name.as_str()).collect()
    };
    let cheap = names(&|setting| setting.advice == Action::Keep && setting.core_share.is_some());
    let unsure = names(&|setting| setting.advice == Action::Unknown);
    let mut summary = match (dear.is_empty(), cheap.len()) {
        (false, _) => format!("{} of a core for reading the clock.", dear.join(", ")),
        (true, _) if on.is_empty() => "No setting that reads the clock is on.".into(),
        (true, 0) => "Nothing that is on was seen to cost 1% of a core.".into(),
        (true, all) if all == on.len() => "What is on and reads the clock costs less than 1% of a core each.".into(),
        (true, _) => format!("Less than 1% of a core each: {}.", cheap.join(", ")),
    };
    if !unsure.is_empty() {
        summary += &format!(" Could not be told: {}.", unsure.join(", "));
    }
    // What has no line to paste takes more than that.
    let cheap_to_turn_on = |setting: &&SettingAdvice| setting.advice == Action::TurnOn && setting.line.is_some();
    let turn_on: Vec<&str> = settings.iter().filter(cheap_to_turn_on).map(|setting| setting.name.as_str()).collect();
    if !turn_on.is_empty() {
        summary += &format!(" Cheap to turn on: {}.", turn_on.join(", "));
    }
    for wrong in wrong() {
        summary += &format!(" {}: {}.", wrong.name, wrong.summary);
    }
    Verdict { severity, summary }
}

/// By what it costs for sure, or for being wrong.
fn severity(setting: &SettingAdvice) -> Severity {
    match setting.core_share {
        Some(CoreShare { low, .. }) if low > VERY_DEAR => Severity::Critical,
        Some(CoreShare { low, .. }) if low > CHEAP => Severity::Warning,
        // A clock that is wrong makes every figure so, whatever it costs.
        None if !setting.on && setting.advice == Action::TurnOff => Severity::Warning,
        _ => Severity::Ok,
    }
}
