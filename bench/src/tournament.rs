//! `make tournament`: tests the method of pairs on simulated machines and on recorded runs, beside simpler estimators.
//!
//! Each estimator sees what a live explain would see: the rounds of a session that ends at a check, or when the time is up. The
//! table shows the root mean square of the relative error, the share of intervals that contain the truth, the half-width, and
//! the length of the session. `bench/recordings/README.md` describes the recordings.

use pg_timing::statistics::{Range, Round, is_decided, is_enough, median, ratio, sorted};
use std::collections::BTreeMap;
use std::path::Path;

/// The default of `explain --time`.
const BUDGET_MS: f64 = 20_000.0;
/// The most rounds in that time.
const MOST_ROUNDS: usize = 40;
const CASES: u64 = 400;

pub fn run() {
    println!("{:<52}{:>7}{:>11}{:>7}{:>7}{:>8}{:>9}", "", "rms", "contained", "half", "p90", "rounds", "seconds");
    for (name, kind) in KINDS {
        for ms in [10.0, 200.0, 1000.0, 3000.0] {
            let sessions: Vec<Session> = (0..CASES).map(|seed| session(seed, ms, kind, None)).collect();
            print_line(&format!("{name}, {ms} ms"), &sessions);
        }
    }
    print_differences();
    for (name, sessions) in recorded() {
        print_line(&name, &sessions);
    }
}

/// Prints how often `explain --against` claims a difference between two statements, if one takes this many times as long.
fn print_differences() {
    println!("\n{:<52}{:>9}{:>11}{:>7}", "explain --against", "claimed", "contained", "half");
    for (name, kind) in KINDS.into_iter().filter(|(_, kind)| !matches!(kind, Kind::Sleeps)) {
        for truth in [1.0, 1.03, 1.1] {
            let sessions: Vec<Session> = (0..CASES).map(|seed| session(seed, 100.0, kind, Some(truth))).collect();
            let share = |test: &dyn Fn(&Session) -> bool| {
                100.0 * sessions.iter().filter(|session| test(session)).count() as f64 / CASES as f64
            };
            let claims = |session: &Session| session.ratio.low > 1.0 || session.ratio.high < 1.0;
            println!(
                "{:<52}{:>8.1}%{:>10.1}%{:>6.1}%",
                format!("{name}, B takes {truth} times as long"),
                share(&claims),
                share(&contains),
                100.0 * median(&sessions.iter().map(|session| session.ratio.relative_half_width()).collect::<Vec<_>>()),
            );
        }
    }
    println!();
}

/// What `explain` measures in one session, and the true ratio.
struct Session {
    rounds: Vec<Round>,
    ratio: Range,
    truth: f64,
    seconds: f64,
}

fn print_line(name: &str, sessions: &[Session]) {
    let of = |figure: &dyn Fn(&Session) -> f64| sessions.iter().map(figure).collect::<Vec<f64>>();
    let rms = |errors: Vec<f64>| (mean(&errors.iter().map(|error| error * error).collect::<Vec<_>>())).sqrt();
    let halves = of(&|session| session.ratio.relative_half_width());
    println!(
        "{name:<52}{:>6.1}%{:>10.1}%{:>6.1}%{:>6.1}%{:>8.1}{:>9.1}",
        100.0 * rms(of(&|session| (session.ratio.estimate / session.truth).ln())),
        100.0 * mean(&of(&|session| f64::from(contains(session)))),
        100.0 * median(&halves),
        100.0 * sorted(&halves)[halves.len() * 9 / 10],
        mean(&of(&|session| session.rounds.len() as f64)),
        mean(&of(&|session| session.seconds)),
    );
    let minimum: fn(&[f64]) -> f64 = |times| sorted(times)[0];
    let others = [("medians", median as fn(&[f64]) -> f64), ("minima", minimum)];
    let errors = others.map(|(other, of_times)| {
        let error = |session: &Session| {
            let runs: Vec<f64> = session.rounds.iter().map(|round| round.run_ms).collect();
            let neighbors: Vec<f64> =
                session.rounds.iter().flat_map(|round| [round.before_ms, round.after_ms]).collect();
            (of_times(&runs) / of_times(&neighbors) / session.truth).ln()
        };
        format!("{other} {:.1}%", 100.0 * rms(of(&error)))
    });
    println!("{:<52}{:>7}", "", format!("ratio of {}", errors.join(", of ")));
}

fn contains(session: &Session) -> bool {
    (session.ratio.low..=session.ratio.high).contains(&session.truth)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a machine and a statement do.
#[derive(Clone, Copy)]
enum Kind {
    /// the machine has one speed
    Quiet,
    /// neighbors make the machine slower by up to two, for 0.1 to 30 s
    TwoSpeeds,
    /// the machine becomes slower by two within the session
    BecomesSlower,
    /// each run waits for a lock with a probability of one half, on a machine of two speeds
    WaitsForLock,
    /// the statement sleeps, on a machine of two speeds
    Sleeps,
}

const KINDS: [(&str, Kind); 5] = [
    ("a quiet machine", Kind::Quiet),
    ("a machine of two speeds", Kind::TwoSpeeds),
    ("a machine that becomes slower", Kind::BecomesSlower),
    ("a lock wait in half of the runs", Kind::WaitsForLock),
    ("a sleep", Kind::Sleeps),
];

/// A simulated machine. The lengths of its phases are exponentially distributed.
struct Machine {
    random: Random,
    kind: Kind,
    now_ms: f64,
    /// factor of time in a slow phase
    slow: f64,
    mean_phase_ms: [f64; 2],
    is_slow: bool,
    left_ms: f64,
    /// relative standard deviation of a run at constant speed
    noise: f64,
}

impl Machine {
    fn new(seed: u64, kind: Kind) -> Machine {
        let mut random = Random(seed.wrapping_mul(7919) + 13);
        (0..5).for_each(|_| _ = random.uniform());
        let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
        let phase_ms = between(100f64.ln(), 30_000f64.ln()).exp();
        let (slow_share, slow, noise) = (between(0.1, 0.9), between(1.2, 2.0), between(0.003, 0.02));
        let mean_phase_ms = [2.0 * phase_ms * (1.0 - slow_share), 2.0 * phase_ms * slow_share];
        let is_slow = random.uniform() < slow_share;
        let left_ms = random.exponential(mean_phase_ms[usize::from(is_slow)]);
        Machine { random, kind, now_ms: 0.0, slow, mean_phase_ms, is_slow, left_ms, noise }
    }

    /// Returns the time of a run that takes `ms` at full speed.
    fn run(&mut self, ms: f64) -> f64 {
        let noisy_ms = ms * (self.noise * self.random.normal()).exp();
        let time = match self.kind {
            Kind::Quiet => noisy_ms,
            Kind::TwoSpeeds => self.compute(noisy_ms),
            // The speed in the middle of the run.
            Kind::BecomesSlower => noisy_ms * (1.0 + (self.now_ms + noisy_ms / 2.0) / BUDGET_MS),
            Kind::WaitsForLock => {
                let wait_ms = if self.random.uniform() < 0.5 { self.random.exponential(ms) } else { 0.0 };
                self.left_ms -= wait_ms;
                self.compute(noisy_ms) + wait_ms
            }
            // Timers and round trips vary by some 10 us.
            Kind::Sleeps => ms + 0.03 * self.random.normal().abs(),
        };
        self.now_ms += time;
        time
    }

    fn compute(&mut self, mut work_ms: f64) -> f64 {
        let mut time = 0.0;
        loop {
            let factor = if self.is_slow { self.slow } else { 1.0 };
            if work_ms * factor < self.left_ms {
                self.left_ms -= work_ms * factor;
                return time + work_ms * factor;
            }
            if self.left_ms > 0.0 {
                time += self.left_ms;
                work_ms -= self.left_ms / factor;
            }
            self.is_slow = !self.is_slow;
            self.left_ms = self.random.exponential(self.mean_phase_ms[usize::from(self.is_slow)]);
        }
    }
}

/// Runs rounds of a statement as `explain` does: baseline, timed, baseline, TIMING OFF.
fn session(seed: u64, ms: f64, kind: Kind, truth: Option<f64>) -> Session {
    let mut machine = Machine::new(seed, kind);
    let usual = match kind {
        Kind::Sleeps => 1.0,
        _ => 1.0 + 1.5 * machine.random.uniform(),
    };
    let mut rounds = Vec::new();
    loop {
        let [before_ms, run_ms, after_ms] = [ms, truth.unwrap_or(usual) * ms, ms].map(|ms| machine.run(ms));
        machine.run(1.07 * ms);
        rounds.push(Round { before_ms, run_ms, after_ms });
        let is_last = rounds.len() >= MOST_ROUNDS || rounds.len() >= 3 && machine.now_ms >= BUDGET_MS;
        let ratio = ratio(&rounds, is_last);
        let is_done = match truth {
            Some(_) => is_decided(rounds.len(), ratio),
            None => is_enough(rounds.len(), ratio.relative_half_width()),
        };
        if is_last || is_done {
            let truth = truth.unwrap_or(usual);
            return Session { rounds, ratio, truth, seconds: machine.now_ms / 1e3 };
        }
    }
}

/// Returns the sessions in each recording. The truth is the median over all rounds of the statement, so a statement needs
/// rounds for at least three sessions.
fn recorded() -> Vec<(String, Vec<Session>)> {
    const ROUNDS: [usize; 3] = [3, 8, 16];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("bench/recordings").flatten().map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    paths.sort();
    let mut groups = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a recording can be read");
        let statements = rounds_of(&text);
        for size in ROUNDS {
            let long = statements.values().filter(|rounds| rounds.len() >= 3 * size);
            let sessions: Vec<Session> = long
                .flat_map(|rounds| {
                    let truth = ratio(rounds, true).estimate;
                    rounds.chunks_exact(size).map(move |part| Session {
                        rounds: part.into(),
                        ratio: ratio(part, true),
                        truth,
                        seconds: part.iter().map(|round| round.before_ms + round.run_ms + round.after_ms).sum::<f64>()
                            / 1e3,
                    })
                })
                .collect();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if !sessions.is_empty() {
                groups.push((format!("{name}: {} parts of {size} rounds", sessions.len()), sessions));
            }
        }
    }
    groups
}

/// Returns the timed runs of each statement with their nearest baseline runs.
fn rounds_of(text: &str) -> BTreeMap<&str, Vec<Round>> {
    let mut runs: BTreeMap<&str, Vec<(&str, f64)>> = BTreeMap::new();
    for line in text.lines() {
        let [statement, mode, ms, ..] = line.split(',').collect::<Vec<_>>()[..] else { panic!("a run: {line}") };
        runs.entry(statement).or_default().push((mode, ms.parse().expect("a time in ms")));
    }
    let rounds = |runs: Vec<(&str, f64)>| {
        let baseline = |(mode, ms): &(&str, f64)| (*mode == "baseline").then_some(*ms);
        let round = |at: usize| {
            let before_ms = runs[..at].iter().rev().find_map(baseline)?;
            let after_ms = runs[at + 1..].iter().find_map(baseline)?;
            Some(Round { before_ms, run_ms: runs[at].1, after_ms })
        };
        (0..runs.len()).filter(|&at| runs[at].0 == "reported").filter_map(round).collect()
    };
    runs.into_iter().map(|(statement, runs)| (statement, rounds(runs))).collect()
}

/// Pseudorandom numbers: a linear congruential generator. The same seed gives the same numbers on every machine.
/// Source of the multiplier: G. Steele and S. Vigna, "Computationally easy, spectrally good multipliers", 2022.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number with nearly a normal distribution and a standard deviation of 1: the sum of 12 uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds are generous: the simulated machines are worse than most real ones.
    #[test]
    fn the_intervals_contain_the_truth() {
        for (name, kind) in KINDS {
            for ms in [10.0, 200.0, 3000.0] {
                let sessions: Vec<Session> = (0..CASES).map(|seed| session(seed, ms, kind, None)).collect();
                let contained = mean(&sessions.iter().map(|session| f64::from(contains(session))).collect::<Vec<_>>());
                assert!(contained > 0.9, "{name}, {ms} ms: {contained}");
            }
        }
    }

    #[test]
    fn a_sleep_takes_three_rounds() {
        for seed in 0..CASES {
            let session = session(seed, 200.0, Kind::Sleeps, None);
            assert!(session.rounds.len() == 3 && session.ratio.high < 1.02, "{:?}", session.ratio);
        }
    }
}
