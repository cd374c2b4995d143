//! Read cost and loop cost against the raw limit and the installed pg_test_timing.

use crate::{limit, median};
use pg_timing::host::measure::summarize;
use pg_timing::host::pg_test_timing::parse;
use read_loops::{Outside, Record, timing_cost};
use std::path::PathBuf;
use std::process::Command;
use timing_clock::counter::{Rdtsc, Rdtscp};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Ppm, Reference, System, measure_rate};

const ROUNDS: usize = 41;
/// Blocks of reads per round: some 5 ms of each clock.
const BLOCKS: u32 = 400;

/// Ours for one clock: a record per round.
struct Ours {
    read: Vec<f64>,
    looped: Vec<f64>,
}

pub fn run() {
    let counter = Rdtsc::new().expect("the counter may be read");
    let rdtscp = Rdtscp::new().expect("the CPU has RDTSCP");
    let rate = measure_rate(counter, Reference::default(), Ppm(0.0), Nanos::from_millis(100.0)).expect("a rate").rate;
    let mut limits = [const { Vec::new() }; 3];
    let mut ours = [const { Ours { read: Vec::new(), looped: Vec::new() } }; 3];
    for _ in 0..ROUNDS {
        limits[0].push(limit::system());
        round(&System::default(), NANOSECONDS, rate, &mut ours[0]);
        limits[1].push(limit::rdtscp());
        round(&rdtscp, rate, rate, &mut ours[1]);
        limits[2].push(limit::rdtsc());
        round(&counter, rate, rate, &mut ours[2]);
    }
    let theirs = pg_test_timing();
    println!("read cost, ns (medians of {ROUNDS} interleaved rounds; ratio to the unrolled limit of this run)");
    print!("{:<8} {:>9} {:>16} {:>16}", "clock", "limit", "our read_ns", "our loop_ns");
    for (name, _) in &theirs {
        print!(" {name:>26}");
    }
    println!();
    for (nth, name) in ["system", "rdtscp", "rdtsc"].iter().enumerate() {
        let limit = median(&limits[nth]);
        let beside = |ns: f64| format!("{ns:.2} ({:.2})", ns / limit);
        print!(
            "{name:<8} {limit:>9.2} {:>16} {:>16}",
            beside(median(&ours[nth].read)),
            beside(median(&ours[nth].looped))
        );
        for (_, figures) in &theirs {
            print!(" {:>26}", figures.get(nth).map_or("-".into(), |ns| beside(*ns)));
        }
        println!();
    }
    println!();
}

fn round<C: Clock>(clock: &C, rate: Hertz, counter_rate: Hertz, ours: &mut Ours) {
    let counter = Counter::new().expect("the counter may be read");
    let outside = Outside { clock: &counter, cost: timing_cost(&counter) };
    let mut record = Record::default();
    let mut left = BLOCKS;
    record.slice(clock, &outside, || {
        left -= 1;
        left > 0
    });
    let looked = read_loops::MeasuredStep { granularity: timing_clock::Granularity::Step(1.0), duration: Nanos(0.0) };
    let clock = summarize("", &record, Some(looked), rate, Some(counter_rate));
    ours.read.extend(clock.read_ns);
    ours.looped.extend(clock.loop_ns);
}

/// The loop figures of every installed pg_test_timing, newest last. `PG_TEST_TIMING` adds one, as a
/// command with arguments (such as one in another root).
fn pg_test_timing() -> Vec<(String, Vec<f64>)> {
    let mut commands: Vec<Vec<PathBuf>> = Vec::new();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    commands.extend(versions.map(|v| v.path().join("bin/pg_test_timing")).filter(|p| p.exists()).map(|p| vec![p]));
    commands.sort();
    if let Ok(extra) = std::env::var("PG_TEST_TIMING") {
        commands.push(extra.split_whitespace().map(PathBuf::from).collect());
    }
    commands.iter().filter_map(|command| ask(command)).collect()
}

fn ask(command: &[PathBuf]) -> Option<(String, Vec<f64>)> {
    let (program, arguments) = command.split_first()?;
    let run = |extra: &[&str]| {
        let output = Command::new(program).args(arguments).args(extra).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let version = run(&["--version"])?;
    let version = version.split_whitespace().nth(2).unwrap_or("?").to_string();
    // One more of three seconds would not be more true: its median of three short runs is.
    let runs: Vec<Vec<f64>> = (0..3).filter_map(|_| run(&["-d", "1"])).map(|text| figures(&text)).collect();
    let clocks = runs.first()?.len();
    let medians = (0..clocks).map(|nth| median(&runs.iter().filter_map(|r| r.get(nth).copied()).collect::<Vec<_>>()));
    Some((format!("pg_test_timing {version}"), medians.collect()))
}

fn figures(text: &str) -> Vec<f64> {
    let runs = parse(text).unwrap_or_default();
    runs.iter().flat_map(|run| &run.clocks).filter_map(|clock| clock.loop_ns).collect()
}
