//! The events of a sample: what it changes, which findings appear and clear, and whether a read cost rose beyond its noise. And
//! the counts since the start.

use crate::host::measure::log2_row;
use crate::host::watch::{OffsetStep, Sample, push};
use crate::human::{self, duration, seconds, times};
use crate::report::{
    ClockReport, ClockTotals, Collector, EventKind, Finding, MonitorEvent, MonitorReport, PlanNode, ServerReport,
    Severity, WatchedClock, WatchedFinding,
};
use crate::statistics::median;
use std::collections::{BTreeMap, VecDeque};

/// The events of one sample, and its time in seconds since 1970.
pub struct Events {
    pub list: Vec<MonitorEvent>,
    pub at: f64,
}

impl Events {
    /// Adds an event, and returns it for further figures.
    pub fn add(&mut self, event: EventKind, summary: impl Into<String>) -> &mut MonitorEvent {
        let time = human::utc(self.at);
        let (unix_seconds, summary) = (self.at, summary.into());
        self.list.push(MonitorEvent { time, unix_seconds, event, summary, subject: None, severity: None, value: None });
        self.list.last_mut().expect("one was added")
    }

    /// Adds an event about a finding.
    fn finding(&mut self, finding: &Finding, event: EventKind, summary: String) {
        let event = self.add(event, summary);
        (event.subject, event.severity) = (Some(finding.id.clone()), Some(finding.severity));
    }

    /// Adds an event about a clock or a collector.
    pub fn about(&mut self, subject: &str, event: EventKind, value: Option<f64>, summary: String) {
        let event = self.add(event, summary);
        (event.subject, event.value) = (Some(subject.into()), value);
    }
}

/// A sample or a sleep that is later than this shows that the machine or the process was stopped. A busy machine delays a process by
/// some time slices of other programs: less than a second.
const LATE_S: f64 = 2.0;

/// The most messages of the kernel that become events in one interval. A faulty clock can cause thousands.
const MOST_MESSAGES: usize = 10;

/// Adds the events of a sample. `before` is the state before the sample.
pub fn add_events(events: &mut Events, sample: &Sample, before: &MonitorReport, late_s: f64) {
    stops(events, sample, late_s);
    if let Some((from, to)) = &sample.clocksource_change {
        let summary = format!("the clock source changed from {from} to {to}");
        events.about(to, EventKind::ClocksourceChanged, None, summary);
    }
    for message in sample.messages.iter().take(MOST_MESSAGES) {
        events.add(EventKind::KernelMessage, message);
    }
    if let Some(more) = sample.messages.len().checked_sub(MOST_MESSAGES).filter(|more| *more > 0) {
        events.add(EventKind::KernelMessage, format!("and {more} more messages about clocks in the kernel log"));
    }
    for ClockReport { name, backward_steps, largest_backward_ns: ns, .. } in &sample.interval {
        if *backward_steps > 0 {
            let summary = format!("clock {name} went back {}, by up to {}", times(*backward_steps), duration(*ns));
            events.about(name, EventKind::BackwardStep, Some(*ns), summary);
        }
    }
    for step in offset_steps(sample) {
        let direction = if step.by_ns > 0.0 { "ahead" } else { "back" };
        let by = duration(step.by_ns.abs());
        let summary = format!("clock {} jumped {direction} by {by} against {}", step.clock, step.reference);
        events.about(step.clock, EventKind::OffsetStep, Some(step.by_ns), summary);
    }
    if let Some(ppm) = sample.rate_change_ppm {
        let summary = format!("the rate of the CPU's counter changed by {ppm:+.1} ppm");
        events.add(EventKind::RateChanged, summary).value = Some(ppm);
    }
    for Collector { name, error, .. } in &sample.collectors {
        let failed = before.collectors.iter().any(|before| before.name == *name && before.error.is_some());
        let label = if *name == Collector::SERVER { "the server".into() } else { name.replace('_', " ") };
        match error {
            Some(why) if !failed => {
                events.about(name, EventKind::CollectorFailed, None, format!("no figures of {label}: {why}"));
            }
            None if failed => {
                events.about(name, EventKind::CollectorRecovered, None, format!("figures of {label} again"))
            }
            _ => {}
        }
    }
}

/// A plan that is older than the last two answers of the server is not new, even if it is among the longest ones only now.
const NEW_PLAN_S: f64 = 10.0;

/// Adds the statements of the server that have a plan which they did not have before.
pub fn add_new_plans(events: &mut Events, before: &MonitorReport, now: &ServerReport) {
    let known = before.server.as_ref().map_or(&[][..], |server| &server.plan_nodes);
    let has_new_plan = |node: &&PlanNode| {
        let mut plans = known.iter().filter(|known| known.queryid == node.queryid).peekable();
        plans.peek().is_some() && plans.all(|known| known.plan != node.plan)
    };
    let is_new = |node: &&PlanNode| node.node_rank == 1 && node.plan_age_s < 2.0 * before.interval_s + NEW_PLAN_S;
    for PlanNode { queryid, kind, share, .. } in now.plan_nodes.iter().filter(is_new).filter(has_new_plan) {
        let summary = format!("statement {queryid} changed its plan; {kind} now takes {:.0}%", 100.0 * share);
        events.about(queryid, EventKind::PlanChanged, Some(*share), summary);
    }
}

/// Returns the steps between clocks. Those of CLOCK_BOOTTIME are suspends, which have their own event.
fn offset_steps(sample: &Sample) -> impl Iterator<Item = &OffsetStep> {
    sample.offset_steps.iter().filter(|step| step.clock != "boottime")
}

/// Adds suspends, pauses and restores.
fn stops(events: &mut Events, sample: &Sample, late_s: f64) {
    if sample.suspends > 0 || sample.suspended_s.is_some() {
        // The kernel measures it in full seconds of the hardware clock.
        let length = sample.suspended_s.map_or("less than a second".into(), |s| seconds(s * 1e9));
        let summary = format!("the machine was suspended for {length}");
        events.add(EventKind::Suspend, summary).value = sample.suspended_s;
    } else if let Some(s) = pause_s(sample, late_s) {
        let summary = match sample.paused_s {
            Some(_) => format!("the hypervisor paused the machine for {s:.0} s +- 1 s: the hardware clock went on"),
            None => format!("the machine, or pg_timing, was stopped for {s:.1} s"),
        };
        events.add(EventKind::Pause, summary).value = Some(s);
    }
    if let Some(why) = &sample.restored {
        events.add(EventKind::MachineRestored, why);
    }
}

/// Returns the length of a pause, if there was one.
fn pause_s(sample: &Sample, late_s: f64) -> Option<f64> {
    let suspended = sample.suspends > 0 || sample.suspended_s.is_some();
    sample.paused_s.or((late_s > LATE_S).then_some(late_s)).filter(|_| !suspended)
}

/// The number of samples that the screen can show as a line: an hour by default.
const KEPT_SAMPLES: usize = 240;

/// Adds a sample to the totals. `pairs` are the clocks that are compared.
pub fn add_counts(report: &mut MonitorReport, sample: &Sample, pairs: &[(&str, &str)], late_s: f64) {
    for clock in &sample.interval {
        let known = find_or_add(&mut report.clocks, &clock.name);
        add_clock(&mut known.totals, clock);
        known.largest_gap_ns = clock.gaps.map(|gaps| gaps.largest_ns);
    }
    for clock in &sample.report.clocks {
        let known = find_or_add(&mut report.clocks, &clock.name);
        // The access path comes from the read cost, which a busy sample does not have. The path is the same as before.
        let access_path = clock.access_path.or(known.last.access_path);
        known.last = ClockReport { access_path, ..clock.clone() };
        let is_new = sample.interval.iter().any(|read| read.name == clock.name);
        push(&mut known.history_ns, KEPT_SAMPLES, clock.read_ns.filter(|_| is_new).map(|ns| ns as f32));
    }
    // Prometheus misses the first step if its counter does not begin with 0.
    for (clock, reference) in pairs {
        report.offset_steps.entry(((*clock).into(), (*reference).into())).or_default();
    }
    for step in offset_steps(sample) {
        *report.offset_steps.entry((step.clock.into(), step.reference.into())).or_default() += 1;
    }
    report.suspends += sample.suspends.max(u64::from(sample.suspended_s.is_some()));
    report.suspended_s += sample.suspended_s.unwrap_or(0.0);
    if let Some(pause_s) = pause_s(sample, late_s) {
        report.pauses += 1;
        report.paused_s += pause_s;
    }
    report.kernel_messages += sample.messages.len() as u64;
}

fn find_or_add<'a>(clocks: &'a mut Vec<WatchedClock>, name: &str) -> &'a mut WatchedClock {
    let at = clocks.iter().position(|clock| clock.last.name == name).unwrap_or_else(|| {
        let last = ClockReport { name: name.into(), ..ClockReport::default() };
        clocks.push(WatchedClock { last, ..WatchedClock::default() });
        clocks.len() - 1
    });
    &mut clocks[at]
}

fn add_clock(totals: &mut ClockTotals, clock: &ClockReport) {
    totals.backward_steps += clock.backward_steps;
    totals.measured_s += clock.measured_ns().unwrap_or(0.0) / 1e9;
    if let Some(gaps) = clock.gaps {
        totals.gaps += gaps.count;
        totals.gap_s += gaps.total_ns / 1e9;
    }
    for bin in &clock.histogram {
        let row = log2_row(bin.le_ns);
        totals.histogram.resize(totals.histogram.len().max(row + 1), 0);
        totals.histogram[row] += bin.count;
    }
}

/// An alarm clears after this many samples without it.
const CALM_SAMPLES: u32 = 2;
/// If an alarm comes back within this many samples, it clears only after twice as many calm samples as the last time, up to
/// a maximum. So a figure near its limit does not cause many events.
const SOON: u32 = 40;
const MAX_CALM_SAMPLES: u32 = 128;

/// Returns whether one of these findings is an alarm that was none before.
pub fn has_new_alarm(known: &[WatchedFinding], findings: &[Finding]) -> bool {
    let is_known =
        |new: &Finding| known.iter().any(|old| old.finding.id == new.id && old.finding.severity >= new.severity);
    findings.iter().any(|finding| finding.severity.is_alarm() && !is_known(finding))
}

/// Compares the known findings with those of a sample, and adds the events. Alarms that did not clear yet replace the new findings.
pub fn update_findings(known: &mut Vec<WatchedFinding>, findings: &mut [Finding], events: &mut Events) {
    for finding in findings {
        let nth = known.iter().position(|old| old.finding.id == finding.id).unwrap_or_else(|| {
            known.push(WatchedFinding::new(Finding::new(&finding.id, Severity::Unknown, ""), events.at));
            known.len() - 1
        });
        update_finding(&mut known[nth], finding, events);
    }
}

fn update_finding(known: &mut WatchedFinding, now: &mut Finding, events: &mut Events) {
    known.fell_before = known.fell_before.saturating_add(1);
    if known.finding.severity.is_alarm() && now.severity < known.finding.severity {
        known.lower_for += 1;
        if known.lower_for < known.clears_after {
            now.clone_from(&known.finding);
            return;
        }
        (known.lower_for, known.fell_before) = (0, 0);
        let before = &known.finding.summary;
        match now.severity {
            Severity::Unknown => {
                events.finding(now, EventKind::FindingCleared, format!("not determined any more: {before}"))
            }
            Severity::Ok => events.finding(now, EventKind::FindingCleared, format!("cleared: {before}")),
            _ => events.finding(now, EventKind::FindingAppeared, now.summary.clone()),
        }
    } else if now.severity.is_alarm() {
        if now.severity > known.finding.severity {
            if !known.finding.severity.is_alarm() {
                known.appeared_at = Some(events.at);
            }
            known.clears_after =
                if known.fell_before < SOON { (2 * known.clears_after).min(MAX_CALM_SAMPLES) } else { CALM_SAMPLES };
            events.finding(now, EventKind::FindingAppeared, now.summary.clone());
        }
        known.lower_for = 0;
    }
    if known.finding.severity != now.severity {
        known.since = events.at;
    }
    known.finding.clone_from(now);
}

/// The number of samples whose costs are the noise: one hour by default.
const NOISE_SAMPLES: usize = 240;
/// With fewer samples, the noise is unknown.
const MIN_SAMPLES: usize = 8;
/// A risen cost exceeds the median of the samples by this factor, and their maximum by `ABOVE_MAX`.
const ABOVE_MEDIAN: f64 = 1.5;
const ABOVE_MAX: f64 = 1.25;
/// A smaller rise adds less than 10 ns to a row, which no plan shows.
const MIN_RISE_NS: f64 = 5.0;

/// The noise of each clock's read cost, by the clock's name: the costs of the last hour. A cost counts as risen if it exceeds each
/// of them by a quarter, and their median by half, in two readings of one interval. CPUs change their frequency and share their
/// core with other programs, so a cost can rise by a third for seconds on a healthy host.
#[derive(Default)]
pub struct ReadCosts(BTreeMap<String, Cost>);

#[derive(Default)]
struct Cost {
    samples: VecDeque<f64>,
    /// while it is risen: the median before that, and the number of samples since then
    risen: Option<(f64, usize)>,
}

impl ReadCosts {
    /// Returns whether a cost rose, so that a second reading must confirm it.
    pub fn is_suspicious(&self, clocks: &[ClockReport]) -> bool {
        clocks.iter().any(|clock| {
            let known = self.0.get(&clock.name);
            known.zip(calm_ns(clock)).is_some_and(|(known, ns)| known.risen.is_none() && known.exceeds(ns))
        })
    }

    /// Adds the costs of a sample, and the events.
    pub fn update(&mut self, clocks: &[ClockReport], events: &mut Events) {
        for clock in clocks {
            let Some(ns) = calm_ns(clock) else { continue };
            if let Some((kind, summary)) = self.0.entry(clock.name.clone()).or_default().update(ns, &clock.name) {
                events.about(&clock.name, kind, Some(ns), summary);
            }
        }
    }
}

impl Cost {
    fn exceeds(&self, ns: f64) -> bool {
        let max = self.samples.iter().copied().fold(0.0, f64::max);
        let median = self.median();
        let limit = (max * ABOVE_MAX).max(median * ABOVE_MEDIAN).max(median + MIN_RISE_NS);
        self.samples.len() >= MIN_SAMPLES && ns > limit
    }

    fn median(&self) -> f64 {
        median(&self.samples.iter().copied().collect::<Vec<_>>())
    }

    /// Adds the cost of a sample. Returns the event, if there is one.
    fn update(&mut self, ns: f64, name: &str) -> Option<(EventKind, String)> {
        let (now, is_risen, before) = (duration(ns), self.exceeds(ns), self.risen);
        self.risen = is_risen.then(|| before.map_or((self.median(), 1), |(from_ns, samples)| (from_ns, samples + 1)));
        // A cost that stays is the new normal.
        if self.risen.is_some_and(|(_, samples)| samples > NOISE_SAMPLES) {
            *self = Cost::default();
        }
        let event = match (before, self.risen) {
            (None, Some((from_ns, _))) => {
                let from = duration(from_ns);
                Some((EventKind::ReadCostRose, format!("one read of clock {name} takes {now} instead of {from}")))
            }
            (Some((from_ns, _)), None) if !is_risen => {
                let summary =
                    format!("one read of clock {name} takes {now}; before the rise it took {}", duration(from_ns));
                Some((EventKind::ReadCostFell, summary))
            }
            _ => None,
        };
        if self.risen.is_none() {
            push(&mut self.samples, NOISE_SAMPLES, ns);
        }
        event
    }
}

/// Returns the read cost without disturbance by other programs, in ns.
fn calm_ns(clock: &ClockReport) -> Option<f64> {
    let low = clock.read_ns? - clock.read_spread_ns.unwrap_or(0.0);
    Some(clock.undisturbed_ns.unwrap_or(low)).filter(|ns| ns.is_finite() && *ns > 0.0)
}

#[cfg(test)]
mod finding_tests {
    use super::*;

    /// Returns the names of the events after these severities of one finding.
    fn events_of(severities: &[Severity]) -> Vec<Vec<String>> {
        let mut known = Vec::new();
        let sample = |(nth, severity): (usize, &Severity)| {
            let mut events = Events { list: Vec::new(), at: nth as f64 };
            update_findings(&mut known, &mut [Finding::new("x", *severity, "slow")], &mut events);
            events.list.iter().map(|event| event.event.name()).collect()
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
    fn a_new_plan_of_a_known_statement_is_an_event() {
        let node = |queryid: &str, plan: &str, node_rank, plan_age_s| PlanNode {
            queryid: queryid.into(),
            plan: plan.into(),
            kind: "Seq Scan on orders".into(),
            share: 0.93,
            node_rank,
            plan_age_s,
            ..PlanNode::default()
        };
        let server = |plan_nodes| ServerReport { plan_nodes, ..ServerReport::default() };
        let old = [node("7", "a", 1, 900.0), node("7", "a", 2, 900.0), node("8", "b", 1, 900.0)];
        let before = |server| MonitorReport { server, interval_s: 15.0, ..MonitorReport::default() };
        let new = [
            node("7", "c", 1, 20.0),
            node("7", "c", 2, 20.0),  // not the longest node of the plan
            node("8", "d", 1, 900.0), // an old plan, which takes more time than before
            node("9", "e", 1, 20.0),  // a new statement
        ];
        let summaries = |before: &MonitorReport| {
            let mut events = Events { list: Vec::new(), at: 0.0 };
            add_new_plans(&mut events, before, &server([&old[..], &new[..]].concat()));
            events.list.into_iter().map(|event| event.summary).collect::<Vec<_>>()
        };
        let changed = "statement 7 changed its plan; Seq Scan on orders now takes 93%";
        assert_eq!(summaries(&before(Some(server(old.to_vec())))), [changed]);
        assert_eq!(summaries(&before(Some(server([&old[..], &new[..]].concat())))), [""; 0], "only once");
        assert_eq!(summaries(&before(None)), [""; 0], "the first answer");
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
        let mut known = Vec::new();
        let mut last = Vec::new();
        for severity in [Severity::Warning, Severity::Unknown, Severity::Unknown] {
            let mut events = Events { list: Vec::new(), at: 0.0 };
            update_findings(&mut known, &mut [Finding::new("x", severity, "slow")], &mut events);
            last = events.list;
        }
        assert_eq!(
            (last[0].event.name().as_str(), last[0].summary.as_str()),
            ("finding_cleared", "not determined any more: slow")
        );
    }

    #[test]
    fn times_are_those_of_the_changes() {
        let mut known = Vec::new();
        for (at, severity) in
            [Severity::Ok, Severity::Warning, Severity::Critical, Severity::Ok, Severity::Ok].into_iter().enumerate()
        {
            let mut events = Events { list: Vec::new(), at: at as f64 };
            update_findings(&mut known, &mut [Finding::new("x", severity, "slow")], &mut events);
        }
        assert_eq!((known[0].appeared_at, known[0].since), (Some(1.0), 4.0));
        assert!(!known[0].finding.severity.is_alarm());
    }

    #[test]
    fn a_new_or_worse_alarm_must_be_confirmed() {
        let mut known = Vec::new();
        let warning = Finding::new("x", Severity::Warning, "slow");
        assert!(has_new_alarm(&known, std::slice::from_ref(&warning)));
        update_findings(&mut known, &mut [warning.clone()], &mut Events { list: Vec::new(), at: 0.0 });
        assert!(!has_new_alarm(&known, &[warning]));
        assert!(has_new_alarm(&known, &[Finding::new("x", Severity::Critical, "slow")]));
        assert!(!has_new_alarm(&known, &[Finding::new("y", Severity::Ok, "fine")]));
    }
}

#[cfg(test)]
mod cost_tests {
    use super::*;

    fn clock(ns: f64) -> Vec<ClockReport> {
        vec![ClockReport {
            name: "system".into(),
            read_ns: Some(ns),
            undisturbed_ns: Some(ns),
            ..ClockReport::default()
        }]
    }

    fn events_of(costs: &mut ReadCosts, ns: f64) -> Vec<String> {
        let mut events = Events { list: Vec::new(), at: 0.0 };
        costs.update(&clock(ns), &mut events);
        events.list.iter().map(|event| event.event.name()).collect()
    }

    fn after_an_hour(noise: impl Fn(usize) -> f64) -> ReadCosts {
        let mut costs = ReadCosts::default();
        for nth in 0..NOISE_SAMPLES {
            assert!(events_of(&mut costs, noise(nth)).is_empty(), "{nth}");
        }
        costs
    }

    #[test]
    fn a_rise_and_its_end_are_one_event_each() {
        let mut costs = after_an_hour(|nth| 20.0 + (nth % 4) as f64);
        assert!(costs.is_suspicious(&clock(800.0)) && !costs.is_suspicious(&clock(26.0)));
        assert_eq!(events_of(&mut costs, 800.0), ["read_cost_rose"]);
        assert!(!costs.is_suspicious(&clock(800.0)), "it is known");
        assert!(events_of(&mut costs, 810.0).is_empty());
        assert_eq!(events_of(&mut costs, 21.0), ["read_cost_fell"]);
    }

    #[test]
    fn noise_is_no_rise() {
        // A host that is half as fast from time to time.
        let costs = after_an_hour(|nth| if nth % 30 == 7 { 42.0 } else { 20.0 });
        assert!(!costs.is_suspicious(&clock(50.0)), "within a quarter of the worst of the last hour");
        assert!(costs.is_suspicious(&clock(60.0)));
        let cheap = after_an_hour(|_| 1.0);
        assert!(!cheap.is_suspicious(&clock(5.0)), "a plan does not show 10 ns per row");
    }

    #[test]
    fn a_cost_that_stays_becomes_normal() {
        let mut costs = after_an_hour(|_| 20.0);
        let events: Vec<_> = (0..=NOISE_SAMPLES + 1).flat_map(|_| events_of(&mut costs, 800.0)).collect();
        assert_eq!(events, ["read_cost_rose"]);
        assert!(!costs.is_suspicious(&clock(800.0)));
    }
}
