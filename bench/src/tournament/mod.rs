//! `make tournament`: compares estimators of the undisturbed time and of the overhead factor.
//!
//! Each estimator sees what a live explain would see: all runs within a time budget. It is judged by the interval score
//! (width plus 40 times the miss; T. Gneiting and A. Raftery, "Strictly Proper Scoring Rules", 2007), by its error, by the
//! share of intervals that contain the truth, and by its repeatability.

mod candidates;
mod recordings;
mod simulated;

use candidates::{CANDIDATES, Candidate};
use pg_timing::statistics::median;
use pg_timing::statistics::undisturbed::{LogEstimate, ProbedRun};

/// One test case of all candidates.
struct Match {
    plain: Vec<ProbedRun>,
    timed: Vec<ProbedRun>,
    /// all runs of the session, in all modes
    all: Vec<ProbedRun>,
    true_ln_ms: f64,
    /// the truth comes from another client's session
    is_of_another_session: bool,
    true_ln_factor: f64,
}

/// Results of one candidate: (estimate - truth, half width), as logarithms.
type Results = Vec<(f64, f64)>;

pub fn run() {
    for (group, matches) in simulated::groups().into_iter().chain(recordings::groups()) {
        print_group(&group, &matches);
    }
    recordings::print_sessions();
}

fn print_group(group: &str, matches: &[Match]) {
    println!("\n{group}: {} cases", matches.len());
    println!("  {:<28} {:>7} {:>7} {:>9} {:>8} {:>7}", "", "error", "worst", "contained", "half", "score");
    for (figure, estimate) in [("undisturbed time", undisturbed as Figure), ("overhead factor", factor)] {
        println!("  {figure}");
        for candidate in &CANDIDATES {
            print_line(candidate.name, &matches.iter().filter_map(|case| estimate(candidate, case)).collect());
        }
    }
}

fn print_line(name: &str, results: &Results) {
    let errors: Vec<f64> = results.iter().map(|(error, _)| error.abs()).collect();
    let contained = results.iter().filter(|(error, half)| error.abs() <= *half).count() as f64 / results.len() as f64;
    let halves: Vec<f64> = results.iter().map(|(_, half)| *half).collect();
    let score = |(error, half): &(f64, f64)| 2.0 * half + 40.0 * (error.abs() - half).max(0.0);
    println!(
        "    {name:<26} {:>6.1}% {:>6.1}% {:>8.0}% {:>7.1}% {:>7.3}",
        100.0 * mean(&errors),
        100.0 * errors.iter().fold(0.0f64, |worst, error| worst.max(*error)),
        100.0 * contained,
        100.0 * median(&halves),
        mean(&results.iter().map(score).collect::<Vec<f64>>()),
    );
}

type Figure = fn(&Candidate, &Match) -> Option<(f64, f64)>;

fn undisturbed(candidate: &Candidate, case: &Match) -> Option<(f64, f64)> {
    let estimate = candidate.plain(case)?;
    let LogEstimate { ln_ms, error, .. } =
        if case.is_of_another_session { estimate.in_another_session() } else { estimate };
    Some((ln_ms - case.true_ln_ms, error))
}

fn factor(candidate: &Candidate, case: &Match) -> Option<(f64, f64)> {
    let (plain, timed) = (candidate.plain(case)?, candidate.timed(case)?);
    let ratio = timed.ratio_to(plain);
    Some((ratio.ln_ms - case.true_ln_factor, ratio.error))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
