//! Sentences about a statement that pg_timing ran.

use super::figures::settings;
use super::{digits, ms, per_call};
use crate::render::plus_minus::plus_minus;
use crate::report::{ExplainReport, LiveRuns, Timed};

/// Returns the headline: `EXPLAIN ANALYZE reports 585 ms; the query takes 219 ms (+-4).`
pub fn answer(report: &ExplainReport, runs: &LiveRuns) -> String {
    let corrected = report.corrected_ms;
    let times = format!(
        "EXPLAIN ANALYZE reports {}; the query takes {} ({}{}).",
        ms(report.reported_ms),
        ms(corrected.estimate),
        plus_minus(),
        digits(corrected.half_width())
    );
    if report.reported_ms <= corrected.high {
        return format!("{times} The overhead is below measurement noise.");
    }
    let clock = match clock_ms(report) / (report.reported_ms - runs.plain_ms) {
        part if part > 0.9 => "nearly all of it clock reads",
        part if part > 0.6 => "most of it clock reads",
        part if part > 0.4 => "about half of it clock reads",
        part if part > 0.1 => "some of it clock reads",
        _ => "almost none of it clock reads",
    };
    format!("{times} {:.0}% of the reported time is overhead, {clock}.", 100.0 * runs.overhead_share)
}

/// Returns the facts below the plan.
pub fn facts(report: &ExplainReport, runs: &LiveRuns) -> Vec<(&'static str, String)> {
    let mut facts = vec![("overhead", overhead(report, runs))];
    facts.extend(timing_methods(&runs.timed).map(|fact| ("timed by", fact)));
    facts.push(("server", format!("PostgreSQL {}, {}; {}", runs.server_version, runs.server, settings(report))));
    facts
}

/// Returns a line for each setting that selects a timing method, with the reported time of each value.
fn timing_methods(timed: &[Timed]) -> impl Iterator<Item = String> {
    let method =
        |timed: &Timed| format!("{} {} ({})", timed.value, ms(timed.reported_ms), per_call(timed.clock_per_call_ns));
    timed.chunk_by(|a, b| a.setting == b.setting).map(move |methods| {
        format!("{}: {}", methods[0].setting, methods.iter().map(method).collect::<Vec<_>>().join(", "))
    })
}

fn clock_ms(report: &ExplainReport) -> f64 {
    report.clock_share * report.reported_ms
}

fn overhead(report: &ExplainReport, runs: &LiveRuns) -> String {
    let mut parts = vec![format!("clock {} ({})", ms(clock_ms(report)), per_call(runs.clock_per_call_ns))];
    let rows_counted = runs.without_buffers_ms.unwrap_or(runs.rows_only_ms);
    if runs.without_buffers_ms.is_some() {
        parts.push(format!("buffer counting {}", ms((runs.rows_only_ms - rows_counted).max(0.0))));
    }
    parts.push(format!("row counting {}", ms((rows_counted - runs.plain_ms).max(0.0))));
    format!("{}; medians of {} runs per mode and {} baseline runs", parts.join(", "), runs.runs, runs.plain_runs)
}
