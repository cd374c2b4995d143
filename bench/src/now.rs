//! Compares timing-clock's `now()` with the standard library and with other fast-clock crates: the cost of a read, and the
//! drift after 10 s.

use crate::median;
use std::hint::black_box;
use std::time::{Duration, Instant};
use timing_clock::{Bracket, FastClock, Reference};

/// Rounds. Each round measures every clock.
const ROUNDS: usize = 41;
/// Reads per round and clock.
const READS: u32 = 200_000;
/// Duration of the drift measurement.
const DRIFT_TIME: Duration = Duration::from_secs(10);

/// Returns the cost of a read in ns.
fn cost<T>(mut now: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..READS {
        black_box(now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READS)
}

/// Returns a reading of `now` between two reads of the reference.
fn sample<T>(now: impl Fn() -> T) -> Bracket<T> {
    Bracket::narrowest(&Reference::default(), now).expect("the reference went back")
}

pub fn run() {
    let start = Instant::now();
    let clock = FastClock::new().expect("cannot use the counter");
    let timing_clock_setup = start.elapsed();
    let start = Instant::now();
    let quanta = quanta::Clock::new();
    let quanta_setup = start.elapsed();
    let anchor = fastant::Anchor::new();
    _ = (minstant::Instant::now(), fastant::Instant::now(), anchor);

    let mut costs: [Vec<f64>; 5] = Default::default();
    for _ in 0..ROUNDS {
        costs[0].push(cost(Instant::now));
        costs[1].push(cost(|| clock.now()));
        costs[2].push(cost(|| quanta.now()));
        costs[3].push(cost(minstant::Instant::now));
        costs[4].push(cost(fastant::Instant::now));
    }

    let mut refreshed = clock.clone();
    let starts = (
        sample(Instant::now),
        sample(|| clock.now()),
        sample(|| quanta.now()),
        sample(minstant::Instant::now),
        sample(fastant::Instant::now),
    );
    std::thread::sleep(DRIFT_TIME);
    let ends = (
        sample(Instant::now),
        sample(|| clock.now()),
        sample(|| quanta.now()),
        sample(minstant::Instant::now),
        sample(fastant::Instant::now),
    );
    _ = refreshed.refresh();
    // The duration by the reference and by the clock, in ns.
    let spans = [
        (starts.0.ticks_to(&ends.0), (ends.0.inside - starts.0.inside).as_nanos() as f64),
        (starts.1.ticks_to(&ends.1), clock.nanos(starts.1.inside, ends.1.inside) as f64),
        (starts.2.ticks_to(&ends.2), (ends.2.inside - starts.2.inside).as_nanos() as f64),
        (starts.3.ticks_to(&ends.3), (ends.3.inside - starts.3.inside).as_nanos() as f64),
        (starts.4.ticks_to(&ends.4), (ends.4.inside - starts.4.inside).as_nanos() as f64),
    ];
    let ppm = |(reference, nanos): (f64, f64)| (nanos - reference) / reference * 1e6;
    let drift = spans.map(ppm);
    let after_refresh = ppm((spans[1].0, refreshed.nanos(starts.1.inside, ends.1.inside) as f64));

    println!(
        "now(): cost of a read in a loop (median of {ROUNDS} rounds), and drift over {} s against {}",
        DRIFT_TIME.as_secs(),
        timing_clock::REFERENCE_NAME
    );
    println!("{:<28} {:>10} {:>14} {:>12}", "", "one read", "drift", "setup");
    let milliseconds = |d: Duration| format!("{:.1} ms", d.as_secs_f64() * 1e3);
    let rows = [
        ("std::time::Instant", "-".into()),
        ("timing_clock::FastClock", milliseconds(timing_clock_setup)),
        ("quanta::Clock", milliseconds(quanta_setup)),
        ("minstant::Instant", "before main".into()),
        ("fastant::Instant", "before main".into()),
    ];
    for (nth, (name, setup)) in rows.iter().enumerate() {
        println!("{name:<28} {:>7.2} ns {:>10.4} ppm {setup:>12}", median(&costs[nth]), drift[nth]);
    }
    println!("{:<28} {:>10} {:>10.4} ppm", "  after refresh()", "", after_refresh);
    println!();
}
