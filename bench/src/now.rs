//! Compares timing-clock's `now()` with the standard library and with other fast-clock crates: the cost of a read, the drift
//! after 10 s, and readings that go back between CPUs.

use crate::median;
use read_loops::{Pinned, allowed};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use timing_clock::{Bracket, Clock, Counter, FastClock, Reference, Scale, fast};

/// Rounds. Each round measures every clock.
const ROUNDS: usize = 41;
/// Reads per round and clock.
const READS: u32 = 200_000;
/// Duration of the drift measurement.
const DRIFT_TIME: Duration = Duration::from_secs(10);
/// Duration of the search for readings that go back, per clock.
const BACKWARD_TIME: Duration = Duration::from_secs(10);

/// A clock of the comparison.
struct Subject<'a> {
    name: &'static str,
    /// returns the cost of a read in ns
    cost: Box<dyn Fn() -> f64 + 'a>,
    /// returns the time since some instant in ns
    nanos: Box<dyn Fn() -> u64 + Sync + 'a>,
}

impl<'a> Subject<'a> {
    /// `nanos` returns the time of a reading in ns. Its cost does not count.
    fn new<T>(
        name: &'static str,
        now: impl Fn() -> T + Copy + Sync + 'a,
        nanos: impl Fn(T) -> u64 + Sync + 'a,
    ) -> Self {
        Subject { name, cost: Box::new(move || cost(now)), nanos: Box::new(move || nanos(now())) }
    }
}

/// Returns the cost of a read in ns.
fn cost<T>(now: impl Fn() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..READS {
        black_box(now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READS)
}

/// Returns how often a reading was earlier than one that another CPU had taken before, per million, and the largest step in ns.
fn steps_back(nanos: &(dyn Fn() -> u64 + Sync), time: Duration) -> (f64, u64) {
    let (newest, steps, largest, readings) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for cpu in allowed().expect("the CPUs are unknown") {
            let (newest, steps, largest, readings) = (&newest, &steps, &largest, &readings);
            scope.spawn(move || {
                let _pinned = Pinned::to(cpu).expect("cannot pin a thread");
                let (start, mut own) = (Instant::now(), 0);
                while own % 1000 != 0 || start.elapsed() < time {
                    let before = newest.load(SeqCst);
                    let now = nanos();
                    if now < before {
                        steps.fetch_add(1, SeqCst);
                        largest.fetch_max(before - now, SeqCst);
                    }
                    newest.fetch_max(now, SeqCst);
                    own += 1;
                }
                readings.fetch_add(own, SeqCst);
            });
        }
    });
    (steps.into_inner() as f64 / readings.into_inner() as f64 * 1e6, largest.into_inner())
}

/// Prints whether `fast::Instant` went back between CPUs.
pub fn search_steps_back(time: Duration) {
    let start = fast::Instant::now();
    let (steps, largest) = steps_back(&|| (fast::Instant::now() - start).as_nanos() as u64, time);
    println!(
        "fast::Instant in {} s: {steps:.1} of a million readings went back, by up to {largest} ns",
        time.as_secs()
    );
}

pub fn run() {
    let start = Instant::now();
    let clock = FastClock::new().expect("cannot use the counter");
    let timing_clock_setup = start.elapsed();
    let start = Instant::now();
    let quanta = quanta::Clock::new();
    let quanta_setup = start.elapsed();
    let start = Instant::now();
    let fast_clock = fast_clock::tsc::Tsc::try_new_linux_sys().expect("cannot use the counter");
    let calibration_time = Duration::from_millis(100);
    let (calibration, _) =
        fast_clock::wrapping_u64::U64Calibration::new_with_std_instant(&fast_clock, calibration_time);
    let fast_clock_setup = start.elapsed();
    let (counter, scale) = (Counter::new().expect("cannot use the counter"), Scale::from_rate(clock.rate().rate));
    let scale = scale.expect("the rate is impossible");
    let starts =
        (Instant::now(), fast::Instant::now(), quanta.now(), minstant::Instant::now(), fastant::Instant::now());
    let (first, fast_first) = (clock.now(), fast_clock::Clock::now(&fast_clock));
    let (clock, quanta, fast_clock, calibration) = (&clock, &quanta, &fast_clock, &calibration);

    let subjects = [
        Subject::new("std::time::Instant", Instant::now, |now| (now - starts.0).as_nanos() as u64),
        Subject::new("counter, ordered, in ns", move || scale.nanos(counter.read_ordered()), |now| now),
        Subject::new("timing_clock::fast::Instant", fast::Instant::now, |now| (now - starts.1).as_nanos() as u64),
        Subject::new("timing_clock::FastClock", || clock.now(), |now| clock.nanos(first, now).max(0) as u64),
        Subject::new("quanta::Clock", || quanta.now(), |now| (now - starts.2).as_nanos() as u64),
        Subject::new("minstant::Instant", minstant::Instant::now, |now| (now - starts.3).as_nanos() as u64),
        Subject::new("fastant::Instant", fastant::Instant::now, |now| (now - starts.4).as_nanos() as u64),
        Subject::new(
            "fast_clock::tsc::Tsc",
            || fast_clock::Clock::now(fast_clock),
            |now| {
                use fast_clock::{DurationCalibration, Time, wrapping_u64::WrappingU64Time};
                calibration.convert_to_ns(WrappingU64Time::instant_sub(now, fast_first))
            },
        ),
    ];
    let mut costs: [Vec<f64>; 8] = Default::default();
    for _ in 0..ROUNDS {
        for (costs, subject) in costs.iter_mut().zip(&subjects) {
            costs.push((subject.cost)());
        }
    }
    // The cost divided by that of the ordered counter in the same round.
    let ratios = costs.each_ref().map(|own| own.iter().zip(&costs[1]).map(|(own, raw)| own / raw).collect::<Vec<_>>());

    let sample =
        |subject: &Subject| Bracket::narrowest(&Reference::default(), &subject.nanos).expect("the reference went back");
    let mut refreshed = clock.clone();
    let (start, starts) = (sample_moment(clock), subjects.each_ref().map(sample));
    std::thread::sleep(DRIFT_TIME);
    let (end, ends) = (sample_moment(clock), subjects.each_ref().map(sample));
    _ = refreshed.refresh();
    let ppm = |reference: f64, nanos: f64| (nanos - reference) / reference * 1e6;
    let after_refresh = ppm(start.ticks_to(&end), refreshed.nanos(start.inside, end.inside) as f64);

    println!(
        "now(): cost of a read in a loop (median of {ROUNDS} rounds), drift over {} s against {}, and readings in {} s that are\n\
         earlier than one that another CPU had taken before",
        DRIFT_TIME.as_secs(),
        timing_clock::REFERENCE_NAME,
        BACKWARD_TIME.as_secs()
    );
    println!("{:<28} {:>10} {:>8} {:>14} {:>12}  back, per million", "", "one read", "ratio", "drift", "setup");
    let milliseconds = |d: Duration| format!("{:.1} ms", d.as_secs_f64() * 1e3);
    let own = milliseconds(timing_clock_setup);
    let before_main = || "before main".to_string();
    let setups = [
        "-".into(),
        "-".into(),
        own.clone(),
        own,
        milliseconds(quanta_setup),
        before_main(),
        before_main(),
        milliseconds(fast_clock_setup),
    ];
    for (nth, (subject, setup)) in subjects.iter().zip(setups).enumerate() {
        let drift = ppm(starts[nth].ticks_to(&ends[nth]), (ends[nth].inside as f64) - starts[nth].inside as f64);
        let (steps, largest) = steps_back(&subject.nanos, BACKWARD_TIME);
        println!(
            "{:<28} {:>7.2} ns {:>8.2} {drift:>10.4} ppm {setup:>12}  {steps:.1}, up to {largest} ns",
            subject.name,
            median(&costs[nth]),
            median(&ratios[nth]),
        );
    }
    println!("{:<28} {:>10} {:>8} {:>10.4} ppm", "  FastClock after refresh()", "", "", after_refresh);
    println!();
}

/// Returns a reading of the clock between two reads of the reference.
fn sample_moment(clock: &FastClock) -> Bracket<timing_clock::Moment> {
    Bracket::narrowest(&Reference::default(), || clock.now()).expect("the reference went back")
}
