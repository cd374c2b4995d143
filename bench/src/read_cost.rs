//! Compares pg_timing's read cost and loop cost with the raw limit and with the installed pg_test_timing.

use crate::{limit, median};
use pg_timing::host::measure::summarize;
use pg_timing::host::pg_test_timing::parse;
use read_loops::{Outside, Record, timing_cost};
use std::path::PathBuf;
use std::process::Command;
use timing_clock::counter::{Rdtsc, Rdtscp};
use timing_clock::{Clock, Counter, Hertz, NANOSECONDS, Nanos, Ppm, Reference, System, measure_rate};

/// Rounds. Each round measures every clock.
const ROUNDS: usize = 41;
/// Blocks of reads per round and clock. They take about 5 ms.
const BLOCKS: u32 = 400;

/// pg_timing's figures for one clock in ns, one per round.
struct Figures {
    read_ns: Vec<f64>,
    loop_ns: Vec<f64>,
}

pub fn run() {
    let counter = Rdtsc::new().expect("cannot read the counter");
    let rdtscp = Rdtscp::new().expect("cannot use RDTSCP");
    let rate = measure_rate(counter, Reference::default(), Ppm(0.0), Nanos::from_millis(100.0))
        .expect("cannot measure the rate")
        .rate;
    let mut limits = [const { Vec::new() }; 3];
    let mut figures = [const { Figures { read_ns: Vec::new(), loop_ns: Vec::new() } }; 3];
    for _ in 0..ROUNDS {
        limits[0].push(limit::system());
        round(&System::default(), NANOSECONDS, rate, &mut figures[0]);
        limits[1].push(limit::rdtscp());
        round(&rdtscp, rate, rate, &mut figures[1]);
        limits[2].push(limit::rdtsc());
        round(&counter, rate, rate, &mut figures[2]);
    }
    let references = installed_pg_test_timing();
    println!("read cost in ns, with the ratio to the limit (medians of {ROUNDS} rounds)");
    print!("{:<8} {:>9} {:>16} {:>16}", "clock", "limit", "read_ns", "loop_ns");
    for (name, _) in &references {
        print!(" {name:>26}");
    }
    println!();
    for (nth, name) in ["system", "rdtscp", "rdtsc"].iter().enumerate() {
        let limit = median(&limits[nth]);
        let with_ratio = |ns: f64| format!("{ns:.2} ({:.2})", ns / limit);
        print!(
            "{name:<8} {limit:>9.2} {:>16} {:>16}",
            with_ratio(median(&figures[nth].read_ns)),
            with_ratio(median(&figures[nth].loop_ns))
        );
        for (_, loop_ns) in &references {
            print!(" {:>26}", loop_ns.get(nth).map_or("-".into(), |ns| with_ratio(*ns)));
        }
        println!();
    }
    println!();
}

/// Measures one clock for one round, and adds its figures.
fn round<C: Clock>(clock: &C, rate: Hertz, counter_rate: Hertz, figures: &mut Figures) {
    let counter = Counter::new().expect("cannot read the counter");
    let outside = Outside { clock: &counter, cost: timing_cost(&counter) };
    let mut record = Record::default();
    let mut remaining = BLOCKS;
    record.slice(clock, &outside, || {
        remaining -= 1;
        remaining > 0
    });
    let step = read_loops::MeasuredStep { granularity: timing_clock::Granularity::Step(1.0), duration: Nanos(0.0) };
    let clock = summarize("", &record, Some(step), rate, Some(counter_rate));
    figures.read_ns.extend(clock.read_ns);
    figures.loop_ns.extend(clock.loop_ns);
}

/// Returns name and loop costs in ns of every installed pg_test_timing, sorted by path.
///
/// The environment variable `PG_TEST_TIMING` adds a command with arguments, for example one that runs in another root.
fn installed_pg_test_timing() -> Vec<(String, Vec<f64>)> {
    let mut commands: Vec<Vec<PathBuf>> = Vec::new();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    commands.extend(versions.map(|v| v.path().join("bin/pg_test_timing")).filter(|p| p.exists()).map(|p| vec![p]));
    commands.sort();
    if let Ok(extra) = std::env::var("PG_TEST_TIMING") {
        commands.push(extra.split_whitespace().map(PathBuf::from).collect());
    }
    commands.iter().filter_map(|command| measure_with(command)).collect()
}

/// Runs a pg_test_timing. Returns its name with the version, and one loop cost in ns per clock.
fn measure_with(command: &[PathBuf]) -> Option<(String, Vec<f64>)> {
    let (program, arguments) = command.split_first()?;
    let run = |extra: &[&str]| {
        let output = Command::new(program).args(arguments).args(extra).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let version = run(&["--version"])?;
    let version = version.split_whitespace().nth(2).unwrap_or("?").to_string();
    // The median of three runs of 1 s is less sensitive to interruptions than one run of 3 s.
    let runs: Vec<Vec<f64>> = (0..3).filter_map(|_| run(&["-d", "1"])).map(|text| loop_costs(&text)).collect();
    let clocks = runs.first()?.len();
    let medians = (0..clocks).map(|nth| median(&runs.iter().filter_map(|r| r.get(nth).copied()).collect::<Vec<_>>()));
    Some((format!("pg_test_timing {version}"), medians.collect()))
}

/// Returns the loop costs in ns from the output of pg_test_timing.
fn loop_costs(text: &str) -> Vec<f64> {
    let runs = parse(text).unwrap_or_default();
    runs.iter().flat_map(|run| &run.clocks).filter_map(|clock| clock.loop_ns).collect()
}
