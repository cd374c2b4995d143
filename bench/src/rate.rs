//! The counter's rate after 1 to 50 ms, against a 3 s reference, in 100 runs of each.

use crate::median;
use timing_clock::{Counter, Hertz, Nanos, Ppm, RateMeter, Reference, measure_rate};

const RUNS: usize = 100;
const LIMITS_MS: [f64; 4] = [1.0, 10.0, 20.0, 50.0];

pub fn run() {
    let counter = Counter::new().expect("the counter may be read");
    let reference = RateMeter::start(counter, Reference::default()).expect("a rate");
    let mut short: [Vec<(Hertz, f64)>; LIMITS_MS.len()] = Default::default();
    for _ in 0..RUNS {
        for (nth, ms) in LIMITS_MS.iter().enumerate() {
            let rate = measure_rate(counter, Reference::default(), Ppm(0.0), Nanos::from_millis(*ms)).expect("a rate");
            short[nth].push((rate.rate, rate.uncertainty.0));
        }
    }
    let long = loop {
        let rate = reference.rate().expect("a rate");
        if rate.over >= Nanos::from_secs(3.0) {
            break rate;
        }
    };
    println!(
        "rate against {:.1} s of {} ({:.3} kHz +- {:.4} ppm), {RUNS} runs each",
        long.over.secs(),
        timing_clock::REFERENCE_NAME,
        long.rate.khz(),
        long.uncertainty.0
    );
    println!(
        "{:>6} {:>12} {:>12} {:>14} {:>10} {:>12}",
        "ms", "median off", "worst off", "stated +-", "covered", "within 1 ppm"
    );
    for (ms, runs) in LIMITS_MS.iter().zip(&short) {
        let off: Vec<f64> = runs.iter().map(|(rate, _)| rate.ppm_from(long.rate).0.abs()).collect();
        let stated: Vec<f64> = runs.iter().map(|(_, ppm)| *ppm).collect();
        let covered = off.iter().zip(&stated).filter(|(off, stated)| **off <= **stated + long.uncertainty.0).count();
        let close = off.iter().filter(|off| **off <= 1.0).count();
        println!(
            "{ms:>6} {:>8.3} ppm {:>8.3} ppm {:>10.2} ppm {:>6} of {RUNS} {:>5} of {RUNS}",
            median(&off),
            off.iter().copied().fold(0.0, f64::max),
            median(&stated),
            covered,
            close
        );
    }
    println!();
}
