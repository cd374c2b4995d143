//! The report of live runs, and its notes.

use super::overhead::{Overhead, part};
use super::runs::Runs;
use super::script::Script;
use super::server::LiveServer;
use super::session::{PlanMode, Timing};
use super::subject::Subject;
use crate::human::duration;
use crate::report::run_mode::{BASELINE, REPORTED, ROWS_ONLY};
use crate::report::{ExplainReport, LiveRuns, NS_PER_MS, Range, Spread, Timed};
use crate::statistics::median;

/// Builds the report of a statement's runs.
pub fn report(server: &LiveServer, script: &Script, subject: &Subject, runs: &Runs) -> ExplainReport {
    let overhead = Overhead::of(runs);
    ExplainReport {
        settings: server.settings.clone(),
        statement: Some(script.text().into()),
        runs: Some(live_runs(server, script, subject, runs, &overhead)),
        notes: notes(server, subject, runs, overhead.half_width()),
        nodes: overhead.nodes(runs),
        ..ExplainReport::of(overhead.reported, overhead.corrected, overhead.clock, overhead.unexplained)
    }
}

fn live_runs(server: &LiveServer, script: &Script, subject: &Subject, runs: &Runs, overhead: &Overhead) -> LiveRuns {
    let baseline = runs.ms_of(BASELINE);
    let per_call = overhead.reported * NS_PER_MS / overhead.calls.max(1.0);
    let timed = |timing: &Timing| {
        let mode = timing.to_string();
        let ratio = runs.ratio(&mode).map_or(1.0, |ratio| ratio.estimate.max(1.0));
        Timed {
            setting: timing.setting.into(),
            value: timing.value.into(),
            reported_ms: overhead.reported * (1.0 + part(runs, &mode, REPORTED).estimate),
            ratio,
            clock_per_call_ns: not_negative(part(runs, &mode, ROWS_ONLY).times(per_call)),
        }
    };
    let mut given_settings: Vec<String> = script.settings().iter().map(|setting| setting.name.clone()).collect();
    given_settings.sort_unstable();
    given_settings.dedup();
    LiveRuns {
        server_version: server.version.clone(),
        server: server.name.clone(),
        runs: runs.rounds(),
        plain_runs: baseline.len(),
        plain_ms: median(&baseline),
        fastest_plain_ms: baseline.iter().copied().fold(f64::INFINITY, f64::min),
        spread_ms: Spread::of(&baseline),
        rows_only_ms: overhead.reported * (1.0 - part(runs, REPORTED, ROWS_ONLY).estimate),
        given_settings,
        plan_mode: subject.plan_mode.map(|mode| format!("{mode:?}").to_lowercase()),
        round_trip_ms: runs.round_trip_ms.estimate,
        planning_ms: median_planning_ms(runs),
        calls: overhead.all_calls,
        clock_per_call_ns: around(overhead.clock, part(runs, REPORTED, ROWS_ONLY), overhead),
        rows_per_call_ns: around(overhead.counting(), part(runs, ROWS_ONLY, BASELINE), overhead),
        timed: server.timings.iter().map(timed).collect(),
        samples: runs.samples.clone(),
    }
}

/// Returns a part of the overhead per call in ns, with the margin of the measured part, and at most the whole overhead.
fn around(part_ms: f64, measured: Range, overhead: &Overhead) -> Range {
    let most_ms = overhead.reported - overhead.corrected.low;
    let margin_ms = measured.half_width() * overhead.reported;
    let part =
        Range { low: part_ms - margin_ms, estimate: part_ms, high: (part_ms + margin_ms).min(most_ms).max(part_ms) };
    not_negative(part.times(NS_PER_MS / overhead.calls.max(1.0)))
}

fn not_negative(range: Range) -> Range {
    Range { low: range.low.max(0.0), estimate: range.estimate.max(0.0), high: range.high.max(0.0) }
}

/// Returns all notes, those about the server first.
fn notes(server: &LiveServer, subject: &Subject, runs: &Runs, half_width: f64) -> Vec<String> {
    let mut notes = server.notes.clone();
    if runs.is_stopped {
        let rounds = if runs.rounds() == 1 { "round" } else { "rounds" };
        notes.push(format!("the runs were stopped after {} {rounds}", runs.rounds()));
    }
    if runs.rows_sent > 0 {
        let rows = if runs.rows_sent == 1 { "row" } else { "rows" };
        notes.push(format!("the baseline includes sending {} {rows}", runs.rows_sent));
    }
    notes.extend(plan_mode(subject.plan_mode, runs));
    if subject.skips_rows {
        notes.extend(rows_not_sent(runs));
    }
    notes.extend(different_calls(runs));
    notes.extend(imprecise(runs, half_width));
    if runs.reported.iter().any(|run| run.uses_jit) {
        notes.push("JIT compilation ran in every run; all figures include its time".into());
    }
    notes
}

/// Returns the median planning time, if baseline runs include it.
fn median_planning_ms(runs: &Runs) -> Option<f64> {
    (!runs.planning_ms.is_empty()).then(|| median(&runs.planning_ms))
}

/// Returns a note about the plan for the values of parameters, and about its planning.
fn plan_mode(plan_mode: Option<PlanMode>, runs: &Runs) -> Option<String> {
    let planning =
        median_planning_ms(runs).map(|ms| format!("planning took {} and is not included", duration(ms * NS_PER_MS)));
    match plan_mode {
        Some(PlanMode::Custom) => {
            Some(format!("the server plans the statement for these values (custom plan); {}", planning?))
        }
        Some(PlanMode::Generic) => Some(
            "the server uses a plan for any values (generic plan), as it does after five executions; SET plan_cache_mode = \
             force_custom_plan selects a plan for these values"
                .into(),
        ),
        None => planning,
    }
}

/// Returns a note if the rows are not sent. psql's \timing includes sending them.
fn rows_not_sent(runs: &Runs) -> Option<String> {
    const MANY: f64 = 1000.0;
    let rows = runs.reported.first()?.rows()?;
    (rows >= MANY).then(|| format!("{rows} rows are not sent to the client, so psql's \\timing shows more"))
}

/// Returns a note if the interval is wide and the time was up: a longer time would help.
fn imprecise(runs: &Runs, half_width: f64) -> Option<String> {
    const WANTED: f64 = 0.05;
    // The error of what the calls can cost does not depend on the number of rounds.
    let runs_vary = runs.ratio(REPORTED).is_some_and(|ratio| (ratio.high / ratio.low).ln() / 2.0 > WANTED);
    (runs_vary && half_width > WANTED && half_width.is_finite() && !runs.is_stopped).then(|| {
        let (percent, rounds) = (100.0 * half_width, runs.rounds());
        format!("the runs varied, so the time is known to {percent:.0}% after {rounds} rounds; a longer --time gives a narrower interval")
    })
}

/// Returns a note if the numbers of calls differ. The overhead per call uses the calls of the first run.
fn different_calls(runs: &Runs) -> Option<String> {
    const TOLERANCE: f64 = 1.1;
    const FEW: f64 = 10.0;
    let calls = runs.reported.iter().map(|run| run.calls_per_process().estimate);
    let (min, max) = calls.fold((f64::INFINITY, 0.0_f64), |(min, max), calls| (min.min(calls), max.max(calls)));
    (max > min * TOLERANCE + FEW)
        .then(|| format!("the number of calls varied from {min} to {max}, so the overhead per call is less certain"))
}

#[cfg(test)]
mod tests {
    use super::super::proptests::runs_with_times;
    use super::*;
    use crate::plan::Plan;

    fn run(rows: u32) -> Plan {
        let json = format!(
            r#"{{"Plan": {{"Node Type": "Seq Scan", "Actual Total Time": 90.0, "Actual Rows": {rows}, "Actual Loops": 1}}}}"#
        );
        Plan::new(serde_json::from_str(&json).unwrap(), 100.0)
    }

    fn runs(baseline_ms: [f64; 3], rows: [u32; 3]) -> Runs {
        runs_with_times(&baseline_ms, &[95.0; 3], rows.map(run).into())
    }

    #[test]
    fn quiet_runs_of_few_rows_have_no_notes() {
        let runs = runs([90.0, 90.5, 90.2], [900, 900, 900]);
        assert_eq!((rows_not_sent(&runs), different_calls(&runs), imprecise(&runs, 0.01)), (None, None, None));
    }

    #[test]
    fn rows_that_are_not_sent_are_noted() {
        assert!(rows_not_sent(&runs([90.0; 3], [5000; 3])).unwrap().starts_with("5000 rows are not sent"));
    }

    #[test]
    fn different_numbers_of_calls_are_noted() {
        let note = different_calls(&runs([90.0; 3], [500, 900, 600])).unwrap();
        assert!(note.contains("501 to 901"), "{note}");
        assert_eq!(different_calls(&runs([90.0; 3], [900, 950, 910])), None);
    }

    #[test]
    fn rounds_that_vary_are_noted() {
        let note = imprecise(&runs([80.0, 120.0, 95.0], [900; 3]), 0.1).unwrap();
        assert!(note.contains("to 10% after 3 rounds") && note.contains("a longer --time"), "{note}");
        assert_eq!(imprecise(&runs([90.0, 90.1, 90.2], [900; 3]), 0.1), None, "the calls are uncertain");
        assert_eq!(imprecise(&Runs { is_stopped: true, ..runs([80.0, 120.0, 95.0], [900; 3]) }, 0.1), None);
    }
}
