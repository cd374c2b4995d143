//! The verdict: the most expensive settings that are on, and faults of the clock.

use super::advice::{CHEAP, VERY_EXPENSIVE};
use crate::human::percent;
use crate::report::{Action, CoreShare, SettingAdvice, Severity, Verdict};

/// Returns the verdict. `clock` means that the read cost is known, and `counted` that there was a window.
pub fn verdict(settings: &[SettingAdvice], clock: bool, counted: bool) -> Verdict {
    let unknown = |summary: &str| Verdict { severity: Severity::Unknown, summary: summary.into() };
    if !clock {
        return unknown("Not determined: the read cost of the server's clock could not be measured.");
    }
    if !counted {
        return unknown("Not determined: stopped before the server's statistics could be observed.");
    }
    let on: Vec<&SettingAdvice> = settings.iter().filter(|setting| setting.on).collect();
    // The clock source matters even if no setting is on.
    let faulty = || settings.iter().filter(|setting| !setting.on && setting.advice == Action::TurnOff);
    let severity = on.iter().copied().chain(faulty()).map(severity).max().unwrap_or(Severity::Ok);
    let expensive: Vec<String> = on
        .iter()
        .filter(|setting| self::severity(setting) > Severity::Ok)
        .filter_map(|setting| Some(format!("{} takes at least {}", setting.name, percent(setting.core_share?.low))))
        .collect();
    let names = |wanted: &dyn Fn(&SettingAdvice) -> bool| -> Vec<&str> {
        on.iter().filter(|setting| wanted(setting)).map(|setting| setting.name.as_str()).collect()
    };
    let cheap = names(&|setting| setting.advice == Action::Keep && setting.core_share.is_some());
    let unknown = names(&|setting| setting.advice == Action::Unknown);
    let mut summary = match (expensive.is_empty(), cheap.len()) {
        (false, _) => format!("{} of a core for reading the clock.", expensive.join(", ")),
        (true, _) if on.is_empty() => "No setting that reads the clock is on.".into(),
        (true, 0) => "No setting that is on was found to cost 1% of a core.".into(),
        (true, all) if all == on.len() => "Each setting that is on costs less than 1% of a core.".into(),
        (true, _) => format!("These settings are on and cost less than 1% of a core each: {}.", cheap.join(", ")),
    };
    if !unknown.is_empty() {
        summary += &format!(" On, but not determined: {}.", unknown.join(", "));
    }
    let sample_less = names(&|setting| setting.advice == Action::SampleLess);
    if !sample_less.is_empty() {
        summary += &format!(" On, and may cost more than 1% of a core: {}.", sample_less.join(", "));
    }
    // Settings without a line for postgresql.conf need other steps.
    let cheap_to_turn_on = |setting: &&SettingAdvice| setting.advice == Action::TurnOn && setting.line.is_some();
    let turn_on: Vec<&str> = settings.iter().filter(cheap_to_turn_on).map(|setting| setting.name.as_str()).collect();
    if !turn_on.is_empty() {
        summary += &format!(" Cheap to turn on: {}.", turn_on.join(", "));
    }
    for setting in faulty() {
        summary += &format!(" {}: {}.", setting.name, setting.summary);
    }
    Verdict { severity, summary }
}

/// Returns the severity of the certain cost, or of a faulty clock.
fn severity(setting: &SettingAdvice) -> Severity {
    match setting.core_share {
        Some(CoreShare { low, .. }) if low > VERY_EXPENSIVE => Severity::Critical,
        Some(CoreShare { low, .. }) if low > CHEAP => Severity::Warning,
        // A faulty clock makes every figure wrong, even if it is cheap.
        None if !setting.on && setting.advice == Action::TurnOff => Severity::Warning,
        _ => Severity::Ok,
    }
}
