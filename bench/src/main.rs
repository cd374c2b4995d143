//! `make bench`: what reading clocks costs here, by us and by others, in one run.
//!
//! Two noisy cores are the worst case: variants are interleaved round by round, every figure is a
//! median, and ratios are to the raw limit of the same run.

mod limit;
mod now;
mod rate;
mod read_cost;

fn main() {
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with('-'));
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("read-cost") {
        read_cost::run();
    }
    if wanted("rate") {
        rate::run();
    }
    if wanted("now") {
        now::run();
    }
}

/// The median. Rounds are odd in number, so it is a value that was seen.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
