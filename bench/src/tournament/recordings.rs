//! Cases from recorded runs, see `bench/recordings/README.md`.

use super::Match;
use pg_timing::report::run_mode::{BASELINE, REPORTED};
use pg_timing::statistics::quantile;
use pg_timing::statistics::undisturbed::{ProbedRun, SAME_SPEED};
use std::collections::BTreeMap;
use std::path::Path;

/// The runs of one statement in one recording, in their order, with their modes.
type Recording = Vec<(String, ProbedRun)>;

/// The mode of another client's runs.
const OTHER: &str = "other";
/// `explain` may use this much time per statement.
const BUDGETS_MS: [f64; 3] = [3e3, 8e3, 20e3];

/// The statements of each recording, by its name.
fn files() -> BTreeMap<String, BTreeMap<String, Recording>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("bench/recordings can be read") {
        let path = entry.expect("bench/recordings can be read").path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            let text = std::fs::read_to_string(&path).expect("a recording can be read");
            files.insert(path.file_stem().unwrap_or_default().to_string_lossy().into(), statements(&text));
        }
    }
    files
}

/// One group per recording and budget. Each case is the next period of the recording that is as long as the budget.
///
/// The truth comes from all recordings of the same server with the same name up to the first dash: from the runs of another
/// client, if it ran in turns.
pub fn groups() -> Vec<(String, Vec<Match>)> {
    let files = files();
    let mut groups = Vec::new();
    for (name, recording) in &files {
        let host = name.split('-').next().unwrap_or(name);
        let same_host: Vec<_> = files.iter().filter(|(other, _)| other.split('-').next() == Some(host)).collect();
        for budget_ms in BUDGETS_MS {
            let cases = recording.iter().flat_map(|(statement, runs)| {
                let all: Vec<_> = same_host.iter().filter_map(|(_, file)| file.get(statement)).flatten().collect();
                let (plain, timed) = (undisturbed(&all, BASELINE), undisturbed(&all, REPORTED));
                let has_other_client = all.iter().any(|(mode, _)| mode == OTHER);
                let truth = if has_other_client { undisturbed(&all, OTHER) } else { plain };
                let own: Recording = runs.iter().filter(|(mode, _)| mode != OTHER).cloned().collect();
                periods(&own, budget_ms)
                    .into_iter()
                    .map(|period| case(period, truth, has_other_client, timed - plain))
                    .collect::<Vec<_>>()
            });
            let cases: Vec<Match> = cases.collect();
            if !cases.is_empty() {
                groups.push((format!("recorded: {name}, {} s", budget_ms / 1e3), cases));
            }
        }
    }
    groups
}

/// Prints how much the undisturbed times of two clients differ: explain's own runs, and those of another client in turns. No
/// estimator can predict this difference, because it only sees explain's own runs.
pub fn print_sessions() {
    for (name, recording) in files() {
        let difference = |runs: &Recording| {
            let runs: Vec<_> = runs.iter().collect();
            let has = |mode: &str| runs.iter().any(|(other, _)| other == mode);
            (has(OTHER) && has(BASELINE)).then(|| (undisturbed(&runs, BASELINE) - undisturbed(&runs, OTHER)).abs())
        };
        let mut differences: Vec<f64> = recording.values().filter_map(difference).collect();
        differences.sort_by(f64::total_cmp);
        if !differences.is_empty() {
            let [mean, half, most] =
                [super::mean(&differences), quantile(&differences, 0.5), quantile(&differences, 0.95)]
                    .map(|share| 100.0 * share);
            println!(
                "\nsessions of {name}: {} statements; their undisturbed times differ by {mean:.1}% (mean), {half:.1}% (median), \
                 {most:.1}% (95%)",
                differences.len()
            );
        }
    }
}

fn statements(text: &str) -> BTreeMap<String, Recording> {
    let mut statements: BTreeMap<String, Recording> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [statement, mode, times @ ..] = fields.as_slice() else { panic!("a line of a recording: {line}") };
        let times: Vec<f64> = times.iter().map(|ms| ms.parse().expect("a time in ms")).collect();
        let [ms, before_ms, after_ms] = times[..] else { panic!("three times in a line: {line}") };
        let run = ProbedRun { ms, before_ms, after_ms };
        statements.entry(statement.to_string()).or_default().push((mode.to_string(), run));
    }
    statements
}

/// Returns ln of the undisturbed time: the median of the runs at full speed, which take at most 6% longer than the fastest tenth.
fn undisturbed(runs: &[&(String, ProbedRun)], mode: &str) -> f64 {
    let mut times: Vec<f64> = runs.iter().filter(|(other, _)| other == mode).map(|(_, run)| run.ms.ln()).collect();
    times.sort_by(f64::total_cmp);
    let limit = quantile(&times, 0.1) + SAME_SPEED;
    times.retain(|time| *time <= limit);
    quantile(&times, 0.5)
}

/// Divides a recording into periods of this length. The last one is left out if it is shorter.
fn periods(runs: &Recording, budget_ms: f64) -> Vec<&[(String, ProbedRun)]> {
    const LEAST: usize = 12;
    let (mut periods, mut start, mut used) = (Vec::new(), 0, 0.0);
    for (at, (_, run)) in runs.iter().enumerate() {
        used += run.ms + 3.0 * run.after_ms;
        if used >= budget_ms && at + 1 - start >= LEAST {
            periods.push(&runs[start..=at]);
            (start, used) = (at + 1, 0.0);
        }
    }
    periods
}

fn case(period: &[(String, ProbedRun)], ln_ms: f64, is_of_another_session: bool, ln_factor: f64) -> Match {
    let of = |mode: &str| period.iter().filter(|(other, _)| other == mode).map(|(_, run)| *run).collect();
    Match {
        plain: of(BASELINE),
        timed: of(REPORTED),
        all: period.iter().map(|(_, run)| *run).collect(),
        true_ln_ms: ln_ms,
        is_of_another_session,
        true_ln_factor: ln_factor,
    }
}
