//! The errors of `explain --plan` on the recordings in `bench/recordings/calls`: the overhead of each statement as its calls predict
//! it, beside the measured one.

use pg_timing::report::CallCost;
use serde_json::Value;
use std::path::Path;

/// The file, the number of its statements, and how many intervals contain the truth, within its own error.
type Coverage = (String, usize, usize);

pub fn run() {
    println!(
        "\n{:<24}{:>12}{:>24}{:>28}",
        "captured plans", "statements", "contained, timed call", "contained, read cost only"
    );
    for (measured, read_only) in coverage(true).into_iter().zip(coverage(false)) {
        let (name, statements, contained) = measured;
        println!("{name:<24}{statements:>12}{contained:>24}{:>28}", read_only.2);
    }
}

/// Returns the coverage of each recording. `has_call`: the cost of a timed call is known, if the recording has it.
fn coverage(has_call: bool) -> Vec<Coverage> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/calls");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("recordings").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let of_file = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a recording can be read");
        let rows = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        let contained: Vec<bool> = rows.filter_map(|row| contains(&row, has_call)).collect();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into();
        (name, contained.len(), contained.iter().filter(|held| **held).count())
    };
    paths.iter().map(of_file).collect()
}

/// Returns whether the estimated overhead of a statement contains the measured one. `None` if the overhead is most of the time: then
/// the time without it is not known.
fn contains(row: &Value, has_call: bool) -> Option<bool> {
    // Medians of runs are not better than this.
    const LEAST_ERROR: f64 = 0.02;
    let number = |name: &str| row[name].as_f64();
    let (reported_ms, plain_ms, read_ns) = (number("reported_ms")?, number("plain_ms")?, number("read_ns")?);
    let measured_ms = reported_ms - plain_ms;
    let noise_ms = plain_ms * number("error")?.max(LEAST_ERROR);
    let calls: f64 = row["calls"].as_object()?.values().filter_map(Value::as_f64).sum();
    let timed_call_ns = number("timed_call_ns").filter(|_| has_call);
    let system_ns = number("system_read_ns").or(Some(read_ns));
    let cost = CallCost::new(read_ns, timed_call_ns, system_ns, row["buffers"] == true);
    let estimate_ms = (calls * (cost.clock_ns() + cost.counting_ns) / 1e6).min(reported_ms);
    let margin_ms = cost.error_ms(estimate_ms, reported_ms).hypot(noise_ms);
    let is_known = (0.0..0.6 * reported_ms).contains(&measured_ms);
    is_known.then(|| (measured_ms - estimate_ms).abs() <= margin_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stated coverage is 92%. Some recordings have few statements, so the sum counts.
    #[test]
    fn the_stated_coverage_holds() {
        for has_call in [true, false] {
            let (all, held) = coverage(has_call).iter().fold((0, 0), |sum, (_, all, held)| (sum.0 + all, sum.1 + held));
            assert!(all > 200 && held as f64 >= 0.92 * all as f64, "{held} of {all}");
        }
    }
}
