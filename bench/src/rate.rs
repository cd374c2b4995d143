//! Compares the counter's rate, measured for 1 to 50 ms, with the rate of a measurement of 3 s or more.

use crate::median;
use timing_clock::{Counter, Hertz, Nanos, Ppm, RateMeter, Reference, measure_rate};

/// Measurements of each duration.
const RUNS: usize = 100;
/// Durations of the short measurements in ms.
const LIMITS_MS: [f64; 4] = [1.0, 10.0, 20.0, 50.0];

pub fn run() {
    let counter = Counter::new().expect("cannot read the counter");
    let long_meter = RateMeter::start(counter, Reference::default()).expect("cannot measure the rate");
    let mut short: [Vec<(Hertz, f64)>; LIMITS_MS.len()] = Default::default();
    for _ in 0..RUNS {
        for (nth, ms) in LIMITS_MS.iter().enumerate() {
            let rate = measure_rate(counter, Reference::default(), Ppm(0.0), Nanos::from_millis(*ms))
                .expect("cannot measure the rate");
            short[nth].push((rate.rate, rate.uncertainty.0));
        }
    }
    let long = loop {
        let rate = long_meter.rate().expect("cannot measure the rate");
        if rate.duration >= Nanos::from_secs(3.0) {
            break rate;
        }
    };
    println!(
        "error of short rate measurements, compared with {:.1} s against {} ({:.3} kHz +- {:.4} ppm); {RUNS} runs each",
        long.duration.secs(),
        timing_clock::REFERENCE_NAME,
        long.rate.khz(),
        long.uncertainty.0
    );
    println!(
        "{:>6} {:>12} {:>12} {:>14} {:>13} {:>13}",
        "ms", "median error", "max error", "stated +-", "covered", "within 1 ppm"
    );
    for (ms, runs) in LIMITS_MS.iter().zip(&short) {
        let errors: Vec<f64> = runs.iter().map(|(rate, _)| rate.ppm_from(long.rate).0.abs()).collect();
        let stated: Vec<f64> = runs.iter().map(|(_, ppm)| *ppm).collect();
        let covered =
            errors.iter().zip(&stated).filter(|(error, stated)| **error <= **stated + long.uncertainty.0).count();
        let within_1_ppm = errors.iter().filter(|error| **error <= 1.0).count();
        println!(
            "{ms:>6} {:>8.3} ppm {:>8.3} ppm {:>10.2} ppm {:>6} of {RUNS} {:>6} of {RUNS}",
            median(&errors),
            errors.iter().copied().fold(0.0, f64::max),
            median(&stated),
            covered,
            within_1_ppm
        );
    }
    println!();
}
