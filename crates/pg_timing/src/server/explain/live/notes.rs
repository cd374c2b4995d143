//! Notes about live runs: what limits the precision of the figures.

use super::overhead::Overhead;
use super::plan_mode::PlanMode;
use super::run_results::Runs;
use super::server::LiveServer;
use super::times::precision;
use crate::human::duration;
use crate::report::NS_PER_MS;

/// Returns all notes, those about the server first.
pub fn notes(server: &LiveServer, runs: &Runs, overhead: &Overhead) -> Vec<String> {
    let mut notes = server.notes.clone();
    if runs.rows_sent > 0 {
        let rows = if runs.rows_sent == 1 { "row" } else { "rows" };
        notes.push(format!("the baseline includes sending {} {rows}", runs.rows_sent));
    }
    notes.extend(plan_mode(runs));
    notes.extend(rows_not_sent(runs));
    notes.extend(different_calls(runs));
    notes.extend(imprecise(runs));
    notes.extend(unexplained_time(overhead));
    if runs.reported.iter().any(|run| run.uses_jit) {
        notes.push("JIT compilation ran in every run; all figures include its time".into());
    }
    notes
}

/// Returns a note about the plan for the values of parameters, and about its planning.
fn plan_mode(runs: &Runs) -> Option<String> {
    let planning =
        runs.median_planning_ms().map(|ms| format!("planning took {} and is not included", duration(ms * NS_PER_MS)));
    match runs.plan_mode {
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
    (runs.rows_sent == 0 && rows >= MANY && !runs.fills_table)
        .then(|| format!("{rows} rows are not sent to the client, so psql's \\timing shows more"))
}

/// Returns a note if the figures are less precise than wanted: a longer time would help.
fn imprecise(runs: &Runs) -> Option<String> {
    const WANTED: f64 = 0.05;
    let (time, allowed, error) = (runs.time.as_secs_f64(), runs.allowed.as_secs_f64(), precision(runs)?);
    // The error shrinks with the square root of the number of runs, which grows with the time.
    let longer = (allowed * (error / WANTED).powi(2)).max(2.0 * allowed.max(time));
    (error > WANTED).then(|| {
        format!(
            "this machine changes its speed: in {time:.0} s, the error fell to {:.0}%; with --time {longer:.0}, it may fall to \
             {:.0}%",
            100.0 * error,
            100.0 * error * (allowed / longer).sqrt(),
        )
    })
}

/// Returns a note if the numbers of calls differ. The overhead per call uses the calls of the first run.
fn different_calls(runs: &Runs) -> Option<String> {
    const TOLERANCE: f64 = 1.1;
    const FEW: f64 = 10.0;
    let calls: Vec<f64> = runs.reported.iter().map(|run| run.calls_per_process().estimate).collect();
    let (min, max) = min_max(&calls);
    (max > min * TOLERANCE + FEW)
        .then(|| format!("the number of calls varied from {min} to {max}, so the overhead per call is less certain"))
}

fn unexplained_time(overhead: &Overhead) -> Option<String> {
    (overhead.unexplained() > overhead.corrected.half_width()).then(|| {
        format!(
            "{:.0}% of the reported time is unexplained: the calls cannot cost that much. Perhaps the machine was slower during \
             the timed runs. The unexplained time is subtracted from all nodes in proportion",
            100.0 * overhead.unexplained() / overhead.reported
        )
    })
}

fn min_max(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0_f64), |(min, max), &value| (min.min(value), max.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::report::run_mode::{BASELINE, ROWS_ONLY};
    use std::time::Duration;

    fn run(rows: u32) -> Plan {
        let json = format!(
            r#"{{"Plan": {{"Node Type": "Seq Scan", "Actual Total Time": 90.0, "Actual Rows": {rows}, "Actual Loops": 1}}}}"#
        );
        Plan::new(serde_json::from_str(&json).unwrap(), 100.0)
    }

    fn runs(baseline_ms: [f64; 3], rows: [u32; 3]) -> Runs {
        let mut runs = Runs::with_times(&[(BASELINE, &baseline_ms), (ROWS_ONLY, &[95.0; 3])], rows.map(run).into());
        (runs.time, runs.allowed) = (Duration::from_secs(20), Duration::from_secs(20));
        runs
    }

    #[test]
    fn quiet_runs_of_few_rows_have_no_notes() {
        let runs = runs([90.0, 92.0, 91.0], [900, 900, 900]);
        assert_eq!((rows_not_sent(&runs), different_calls(&runs), imprecise(&runs)), (None, None, None));
    }

    #[test]
    fn rows_that_are_not_sent_are_noted() {
        let mut runs = runs([90.0; 3], [5000; 3]);
        assert!(rows_not_sent(&runs).unwrap().starts_with("5000 rows are not sent"));
        runs.rows_sent = 5000;
        assert_eq!(rows_not_sent(&runs), None);
    }

    #[test]
    fn different_numbers_of_calls_are_noted() {
        let note = different_calls(&runs([90.0; 3], [500, 900, 600])).unwrap();
        assert!(note.contains("501 to 901"), "{note}");
        assert_eq!(different_calls(&runs([90.0; 3], [900, 950, 910])), None);
    }

    #[test]
    fn a_machine_that_changes_its_speed_is_noted() {
        let note = imprecise(&runs([80.0, 120.0, 95.0], [900; 3])).unwrap();
        assert!(note.contains("in 20 s, the error fell to ") && note.contains("with --time "), "{note}");
        assert_eq!(imprecise(&runs([0.0, 0.3, 0.1], [1; 3])), None, "too short to measure");
    }

    #[test]
    fn overhead_beyond_the_calls_and_the_noise_is_noted() {
        let mut runs = runs([50.0; 3], [900; 3]);
        assert_eq!(unexplained_time(&Overhead::of(&runs)), None);
        // The calls explain at most 901 x 10 us of the 50 ms.
        runs.bare_call_ms = Some(0.01);
        let note = unexplained_time(&Overhead::of(&runs)).unwrap();
        assert!(note.starts_with("41% of the reported time is unexplained"), "{note}");
    }
}
