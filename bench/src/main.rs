//! `make bench`: measures the cost of reading clocks with pg_timing and with other programs, in one run.
//!
//! The machine's speed may change during a run. So each round measures all variants, and every figure is the median over
//! the rounds. Ratios compare with the raw limit of the same run. An argument selects one benchmark:
//! `read-cost`, `rate` or `now`. `backward SECONDS` searches readings that go back between CPUs. `tournament` measures nothing: it compares estimators on recorded and simulated runs.

mod calls;
mod limit;
mod now;
mod rate;
mod read_cost;
mod tournament;

fn main() {
    let selected = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    if selected.as_deref() == Some("tournament") {
        tournament::run();
        return calls::run();
    }
    if selected.as_deref() == Some("backward") {
        let seconds = std::env::args().nth(2).and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
        return now::search_steps_back(std::time::Duration::from_secs(seconds));
    }
    let is_selected = |name: &str| selected.as_deref().is_none_or(|selected| selected == name);
    if is_selected("read-cost") {
        read_cost::run();
    }
    if is_selected("rate") {
        rate::run();
    }
    if is_selected("now") {
        now::run();
    }
}

/// Returns the median. For an even number of values, it is the higher one of the two middle values.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
