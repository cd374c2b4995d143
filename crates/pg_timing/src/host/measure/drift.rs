//! How clocks run against each other over the time of a run: slewed, stepped, or apart.

use timing_clock::{Bracket, Clock, Hertz, Nanos, Ppm, Rate, ticks_between};

/// One clock beside the reference at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// the reference, in ns since the first look
    pub at: f64,
    /// the clock less the reference, in ns, since the first look
    pub offset: f64,
    /// `offset` is off by at most this
    pub error: f64,
}

/// Looks at one clock beside the reference, again and again.
#[derive(Clone, Debug)]
pub struct DriftMeter<C, R> {
    clock: C,
    /// in ticks: a reading can be late by so much
    clock_step: f64,
    reference: R,
    reference_step: Nanos,
    /// the reference, between two reads of the clock
    brackets: Vec<Bracket<u64>>,
}

impl<C: Clock, R: Clock> DriftMeter<C, R> {
    /// `reference` ticks in nanoseconds.
    pub fn new(clock: C, clock_step: f64, reference: R, reference_step: Nanos) -> Self {
        DriftMeter { clock, clock_step, reference, reference_step, brackets: Vec::new() }
    }

    /// Takes a look.
    pub fn look(&mut self) {
        self.brackets.extend(Bracket::narrowest(&self.clock, || self.reference.read()));
    }
}

impl<C, R> DriftMeter<C, R> {
    /// The looks, with the clock at so many ns per tick: a counter's rate is known well only when the
    /// run is over.
    pub fn looks(&self, ns_per_tick: f64) -> Vec<Look> {
        let Some(first) = self.brackets.first() else { return Vec::new() };
        let look = |bracket: &Bracket<u64>| {
            let at = ticks_between(first.inside, bracket.inside) as f64;
            Look {
                at,
                offset: first.ticks_to(bracket) * ns_per_tick - at,
                error: (bracket.half_width() + self.clock_step) * ns_per_tick + self.reference_step.0,
            }
        };
        self.brackets.iter().map(look).collect()
    }

    /// The clock's ns per tick from one look to the next, as it is most of the time.
    fn usual_tick(&self) -> Option<f64> {
        let tick = |pair: &[Bracket<u64>]| {
            let ns = ticks_between(pair[0].inside, pair[1].inside) as f64;
            Some(ns / pair[0].ticks_to(&pair[1])).filter(|tick| tick.is_normal() && *tick > 0.0)
        };
        let mut ticks: Vec<f64> = self.brackets.windows(2).filter_map(tick).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.get(ticks.len() / 2).copied()
    }

    /// The clock's rate in the longest stretch without a break. `None` where nothing broke: the whole
    /// run is the better measure then.
    ///
    /// In a suspend or a pause of the virtual machine one of the two clocks stands still: a rate taken
    /// across it is neither's.
    pub fn unbroken_rate(&self) -> Option<Rate> {
        let tick = self.usual_tick()?;
        let (from, to) = longest_stretch(&self.looks(tick))?;
        let span = to.at - from.at;
        let ratio = 1.0 + (to.offset - from.offset) / span;
        Some(Rate {
            rate: Hertz(ratio / tick * 1e9),
            uncertainty: Ppm((from.error + to.error) / span * 1e6),
            duration: Nanos(span),
        })
    }
}

/// The ends of the longest stretch without a break, if there is a break. The looks are at the clock's
/// usual rate.
fn longest_stretch(looks: &[Look]) -> Option<(Look, Look)> {
    let broken = |pair: &[Look]| {
        let moved = (pair[1].offset - pair[0].offset).abs();
        moved > MOST_SLEW * (pair[1].at - pair[0].at) + pair[0].error + pair[1].error
    };
    let breaks: Vec<usize> =
        looks.windows(2).enumerate().filter(|(_, pair)| broken(pair)).map(|(nth, _)| nth).collect();
    breaks.first()?;
    let starts = std::iter::once(0).chain(breaks.iter().map(|nth| nth + 1));
    let ends = breaks.iter().copied().chain([looks.len() - 1]);
    let (from, to) = starts.zip(ends).max_by_key(|(from, to)| to.saturating_sub(*from))?;
    (looks[to].at > looks[from].at).then(|| (looks[from], looks[to]))
}

/// A sudden change of the offset, which no change of rate explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// ns since the first look
    pub at: f64,
    /// the clock moved ahead by so much (behind, if negative), in ns
    pub by: f64,
    /// off by at most this
    pub error: f64,
}

/// What a series of looks shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// how much faster than the reference the clock ran, steps left out
    pub rate: Ppm,
    pub uncertainty: Ppm,
    /// how far the rates of the first and the second half are apart, beyond what both may be off
    pub bend: Ppm,
    pub steps: Vec<Step>,
    pub over: Nanos,
}

/// The kernel's own limit on NTP's slewing, with as much again for a counter's changing rate:
/// what the offset moves by beyond it is a step.
const MOST_SLEW: f64 = 1_000e-6;

/// Reads a trend out of the looks. `None` with fewer than three: two cannot tell a step from a slew.
pub fn trend(looks: &[Look]) -> Option<Trend> {
    let (first, last) = (looks.first()?, looks.last()?);
    if looks.len() < 3 || last.at <= first.at {
        return None;
    }
    let mut steps = Vec::new();
    // The looks with every step taken out again.
    let mut even = vec![*first];
    let mut stepped = 0.0;
    for pair in looks.windows(2) {
        let (moved, error) = (pair[1].offset - pair[0].offset, pair[0].error + pair[1].error);
        if moved.abs() > error + MOST_SLEW * (pair[1].at - pair[0].at) {
            steps.push(Step { at: pair[1].at, by: moved, error });
            stepped += moved;
        }
        even.push(Look { offset: pair[1].offset - stepped, ..pair[1] });
    }
    let (rate, uncertainty) = between(&even[0], &even[even.len() - 1]);
    let middle = &even[even.len() / 2];
    let halves = (between(&even[0], middle), between(middle, &even[even.len() - 1]));
    let apart = (halves.0.0 - halves.1.0).abs() - halves.0.1 - halves.1.1;
    Some(Trend {
        rate: Ppm(rate),
        uncertainty: Ppm(uncertainty),
        bend: Ppm(if apart.is_finite() { apart.max(0.0) } else { 0.0 }),
        steps,
        over: Nanos(last.at - first.at),
    })
}

/// Rate and its error between two looks, in ppm.
fn between(a: &Look, b: &Look) -> (f64, f64) {
    let span = b.at - a.at;
    ((b.offset - a.offset) / span * 1e6, (a.error + b.error) / span * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timing_clock::sim::{Character, SimClock, World};

    fn looked(hz: f64, at: &[f64], disturb: impl Fn(&World, usize)) -> Trend {
        let world = World::new(9);
        let clock = SimClock::new(&world, Character { hz, ..Character::default() });
        let reference = SimClock::new(&world, Character::default());
        let mut meter = DriftMeter::new(&clock, 1.0, &reference, Nanos(1.0));
        for (nth, ns) in at.iter().enumerate() {
            meter.look();
            world.pass_ns(*ns);
            disturb(&world, nth);
        }
        trend(&meter.looks(1.0)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn the_rate_is_within_its_error(ppm in -500.0..500.0f64) {
            let got = looked(1e9 * (1.0 + ppm / 1e6), &[1e8; 20], |_, _| {});
            prop_assert!((got.rate.0 - ppm).abs() <= got.uncertainty.0 + 1e-6, "{got:?}");
            prop_assert!(got.steps.is_empty() && got.bend.0 == 0.0, "{got:?}");
        }

        #[test]
        fn a_step_is_told_from_a_slew(by in prop_oneof![-1e10..-1e6f64, 1e6..1e10f64], ppm in -400.0..400.0f64) {
            let by: f64 = by;
            let mut looks: Vec<Look> = (0..20)
                .map(|n| Look { at: n as f64 * 1e8, offset: n as f64 * 1e8 * ppm / 1e6, error: 30.0 })
                .collect();
            looks[12..].iter_mut().for_each(|look| look.offset += by);
            let got = trend(&looks).unwrap();
            prop_assert_eq!(got.steps.len(), 1);
            prop_assert!((got.steps[0].by - by).abs() < 1e8 * 500.0 / 1e6, "{:?}", got);
            // The step takes one interval's slew with it: a twentieth of the whole.
            prop_assert!((got.rate.0 - ppm).abs() <= 500.0 / 15.0, "{:?}", got);
        }
    }

    #[test]
    fn a_rate_that_changes_is_a_bend() {
        let looks: Vec<Look> = (0..21)
            .map(|n| {
                let t = n as f64 * 1e8;
                Look { at: t, offset: if n <= 10 { 0.0 } else { (t - 1e9) * 50e-6 }, error: 30.0 }
            })
            .collect();
        let got = trend(&looks).unwrap();
        assert!((got.bend.0 - 50.0).abs() < 1.0 && got.steps.is_empty(), "{got:?}");
    }

    /// A meter whose reference stands still for `pause_ns` after the look number `after`.
    fn paused(hz: f64, step: u64, looks: usize, after: usize, pause_ns: f64) -> (Option<Rate>, Vec<Look>) {
        let world = World::new(4);
        let clock = SimClock::new(&world, Character { hz, ..Character::default() });
        let reference = SimClock::new(&world, Character { step, ..Character::default() });
        let mut meter = DriftMeter::new(clock, 1.0, reference, Nanos(step as f64));
        let mut asleep = 0;
        for nth in 0..looks {
            meter.look();
            if let Some(bracket) = meter.brackets.last_mut() {
                bracket.inside -= asleep;
            }
            world.pass_ns(if nth == after { pause_ns } else { 1e8 });
            asleep += if nth == after { pause_ns as u64 } else { 0 };
        }
        let rate = meter.unbroken_rate();
        let ns_per_tick = rate.map_or(1e9 / hz, |rate| rate.rate.nanos(1.0).0);
        (rate, meter.looks(ns_per_tick))
    }

    #[test]
    fn a_pause_spoils_no_rate() {
        let hz = 2.3e9;
        let (rate, looks) = paused(hz, 1, 50, 20, 60e9);
        let rate = rate.unwrap();
        assert!(rate.rate.ppm_from(Hertz(hz)).0.abs() <= rate.uncertainty.0, "{rate:?}");
        // Looks 21 to 49, and not the whole run.
        assert!((rate.duration.secs() - 2.8).abs() < 0.01 && rate.uncertainty.0 < 1.0, "{rate:?}");
        let got = trend(&looks).unwrap();
        assert_eq!(got.steps.len(), 1, "{got:?}");
        assert!((got.steps[0].by - 60e9).abs() < 1e7, "{got:?}");
    }

    /// Kernels that count time by their tick: what a look can be off is the tick, and no step.
    #[test]
    fn a_coarse_reference_raises_nothing() {
        for step in [1, 279, 4_000_000, 10_000_000] {
            let (rate, looks) = paused(2.3e9, step, 40, usize::MAX, 0.0);
            assert_eq!(rate, None, "nothing broke: step {step}");
            let got = trend(&looks).unwrap();
            assert!(got.steps.is_empty() && got.bend.0 == 0.0, "step {step}: {got:?}");
            assert!(got.rate.0.abs() <= got.uncertainty.0, "step {step}: {got:?}");
        }
    }

    #[test]
    fn too_little_to_tell() {
        assert_eq!(trend(&[]), None);
        let look = Look { at: 0.0, offset: 0.0, error: 1.0 };
        assert_eq!(trend(&[look, look, look]), None, "no time passed");
    }
}
