//! When findings appear and clear.

use super::changes::Events;
use crate::report::{EventKind, Finding, Severity, WatchedFinding};

/// An alarm clears after this many samples without it.
const CALM_SAMPLES: u32 = 2;
/// If an alarm comes back within this many samples, it clears only after twice as many calm samples as the last time, up to
/// a maximum. So a figure near its limit does not cause many events.
const SOON: u32 = 40;
const MAX_CALM_SAMPLES: u32 = 128;

/// Every finding, with its history.
#[derive(Default)]
pub struct Findings {
    watched: Vec<Entry>,
}

struct Entry {
    watched: WatchedFinding,
    /// samples in a row with a lower severity than the alarm has
    calm: u32,
    /// samples since the severity of an alarm fell
    since_fall: u32,
    /// samples without the alarm that are needed until it clears
    needed: u32,
}

impl Findings {
    /// Returns whether one of these findings is an alarm that was none before.
    pub fn has_new_alarm(&self, findings: &[Finding]) -> bool {
        findings
            .iter()
            .any(|finding| is_alarm(finding) && self.severity(&finding.id).is_none_or(|known| known < finding.severity))
    }

    fn severity(&self, id: &str) -> Option<Severity> {
        self.watched.iter().find(|entry| entry.watched.finding.id == id).map(|entry| entry.watched.finding.severity)
    }

    /// Compares with the findings of a sample, and adds the events. Alarms that did not clear yet replace the new findings.
    pub fn update(&mut self, findings: &mut [Finding], events: &mut Events, at: f64) {
        for finding in findings {
            match self.watched.iter_mut().find(|entry| entry.watched.finding.id == finding.id) {
                Some(entry) => entry.update(finding, events, at),
                None => self.watched.push(Entry::new(finding, events, at)),
            }
        }
    }

    pub fn all(&self) -> Vec<WatchedFinding> {
        self.watched.iter().map(|entry| entry.watched.clone()).collect()
    }
}

impl Entry {
    fn new(finding: &Finding, events: &mut Events, at: f64) -> Entry {
        let appeared_at = is_alarm(finding).then(|| {
            appeared(events, finding);
            at
        });
        let watched = WatchedFinding { finding: finding.clone(), since: at, appeared_at, cleared_at: None };
        Entry { watched, calm: 0, since_fall: u32::MAX, needed: CALM_SAMPLES }
    }

    fn update(&mut self, now: &mut Finding, events: &mut Events, at: f64) {
        let watched = &mut self.watched;
        self.since_fall = self.since_fall.saturating_add(1);
        if watched.is_alarm() && now.severity < watched.finding.severity {
            self.calm += 1;
            if self.calm < self.needed {
                now.clone_from(&watched.finding);
                return;
            }
            (self.calm, self.since_fall) = (0, 0);
            if is_alarm(now) {
                appeared(events, now);
            } else {
                watched.cleared_at = Some(at);
                let change = if now.severity == Severity::Unknown { "not determined any more" } else { "cleared" };
                let event = events.add(EventKind::FindingCleared, format!("{change}: {}", watched.finding.summary));
                (event.subject, event.severity) = (Some(now.id.clone()), Some(now.severity));
            }
        } else if is_alarm(now) {
            if now.severity > watched.finding.severity {
                if !watched.is_alarm() {
                    watched.appeared_at = Some(at);
                }
                self.needed =
                    if self.since_fall < SOON { (2 * self.needed).min(MAX_CALM_SAMPLES) } else { CALM_SAMPLES };
                appeared(events, now);
            }
            self.calm = 0;
        }
        if watched.finding.severity != now.severity {
            watched.since = at;
        }
        watched.finding.clone_from(now);
    }
}

fn appeared(events: &mut Events, finding: &Finding) {
    let event = events.add(EventKind::FindingAppeared, finding.summary.clone());
    (event.subject, event.severity) = (Some(finding.id.clone()), Some(finding.severity));
}

fn is_alarm(finding: &Finding) -> bool {
    finding.severity >= Severity::Warning
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the events after these severities of one finding.
    fn events_of(severities: &[Severity]) -> Vec<Vec<&'static str>> {
        let mut findings = Findings::default();
        let sample = |(nth, severity): (usize, &Severity)| {
            let mut events = Events::at(nth as f64);
            findings.update(&mut [Finding::new("x", *severity, "slow")], &mut events, nth as f64);
            events.0.iter().map(|event| event.event.name()).collect()
        };
        severities.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn an_alarm_appears_at_once_and_clears_after_two_calm_samples() {
        use Severity::*;
        let none = Vec::<&str>::new;
        assert_eq!(
            events_of(&[Ok, Warning, Warning, Ok, Warning, Unknown, Ok, Ok]),
            [none(), vec!["finding_appeared"], none(), none(), none(), none(), vec!["finding_cleared"], none()]
        );
        assert_eq!(events_of(&[Critical, Critical]), [vec!["finding_appeared"], none()]);
    }

    #[test]
    fn an_alarm_that_comes_and_goes_causes_few_events() {
        use Severity::*;
        // Every fourth sample is above the limit.
        let severities: Vec<Severity> = (0..400).map(|nth| if nth % 4 == 0 { Warning } else { Ok }).collect();
        let events: Vec<_> = events_of(&severities).concat();
        assert_eq!(events, ["finding_appeared", "finding_cleared", "finding_appeared"]);
        // After a long time without the alarm, two calm samples are enough again.
        let calm = [vec![Warning, Ok, Ok, Warning, Ok, Ok, Ok, Ok], vec![Ok; 50], vec![Warning, Ok, Ok]].concat();
        assert_eq!(events_of(&calm).concat().len(), 6);
        assert_eq!(events_of(&calm).last().unwrap(), &["finding_cleared"]);
    }

    #[test]
    fn a_change_between_warning_and_critical_is_an_event() {
        use Severity::*;
        let events = events_of(&[Ok, Warning, Critical, Critical, Warning, Warning, Warning, Warning, Warning]);
        assert_eq!(events.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1, 0, 0, 0]);
        // A figure near the limit of critical.
        let near = [vec![Ok, Warning], [Critical, Warning].repeat(100)].concat();
        assert_eq!(events_of(&near).concat().len(), 2);
    }

    #[test]
    fn an_alarm_that_becomes_unknown_is_not_good_news() {
        let mut findings = Findings::default();
        let mut last = Vec::new();
        for severity in [Severity::Warning, Severity::Unknown, Severity::Unknown] {
            let mut events = Events::at(0.0);
            findings.update(&mut [Finding::new("x", severity, "slow")], &mut events, 0.0);
            last = events.0;
        }
        assert_eq!(
            (last[0].event.name(), last[0].summary.as_str()),
            ("finding_cleared", "not determined any more: slow")
        );
    }

    #[test]
    fn times_are_those_of_the_changes() {
        let mut findings = Findings::default();
        for (at, severity) in
            [Severity::Ok, Severity::Warning, Severity::Critical, Severity::Ok, Severity::Ok].into_iter().enumerate()
        {
            findings.update(&mut [Finding::new("x", severity, "slow")], &mut Events::at(at as f64), at as f64);
        }
        let all = findings.all();
        assert_eq!((all[0].appeared_at, all[0].cleared_at, all[0].since), (Some(1.0), Some(4.0), 4.0));
        assert!(!all[0].is_alarm());
    }

    #[test]
    fn a_new_or_worse_alarm_must_be_confirmed() {
        let mut findings = Findings::default();
        let warning = Finding::new("x", Severity::Warning, "slow");
        assert!(findings.has_new_alarm(std::slice::from_ref(&warning)));
        findings.update(&mut [warning.clone()], &mut Events::at(0.0), 0.0);
        assert!(!findings.has_new_alarm(&[warning]));
        assert!(findings.has_new_alarm(&[Finding::new("x", Severity::Critical, "slow")]));
        assert!(!findings.has_new_alarm(&[Finding::new("y", Severity::Ok, "fine")]));
    }
}
