//! How clocks run against each other over the time of a run: slewed, stepped, or apart.

use timing_clock::{Clock, Nanos, Ppm, ticks_between};

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
    reference: R,
    /// ns per tick of the clock
    scale: f64,
    /// one step of each clock: no look is better
    steps: f64,
    /// clock, reference, half the width
    first: Option<(u64, u64, f64)>,
    pub looks: Vec<Look>,
}

/// After so many tries one is undisturbed nearly always.
const TRIES: u32 = 100;

impl<C: Clock, R: Clock> DriftMeter<C, R> {
    /// `steps`: one step of each clock, in ns. `reference` ticks in nanoseconds.
    pub fn new(clock: C, reference: R, ns_per_tick: f64, steps: Nanos) -> Self {
        DriftMeter { clock, reference, scale: ns_per_tick, steps: steps.0, first: None, looks: Vec::new() }
    }

    /// Takes a look: the reference, the clock and the reference again, the narrowest of many.
    pub fn look(&mut self) {
        let mut best: Option<(i64, u64, u64)> = None;
        for _ in 0..TRIES {
            let before = self.reference.read();
            let clock = self.clock.read_ordered();
            let width = ticks_between(before, self.reference.read());
            if width >= 0 && best.is_none_or(|(narrow, ..)| width < narrow) {
                best = Some((width, before, clock));
            }
        }
        let Some((width, before, clock)) = best else { return };
        let half = width as f64 / 2.0;
        let (clock0, before0, half0) = *self.first.get_or_insert((clock, before, half));
        // from middle to middle
        let at = ticks_between(before0, before) as f64 + half - half0;
        let offset = ticks_between(clock0, clock) as f64 * self.scale - at;
        self.looks.push(Look { at, offset, error: half + self.steps });
    }
}

impl<C, R> DriftMeter<C, R> {
    /// The looks as they would have come out at another length of the clock's tick: a counter's rate
    /// is known well only when the run is over. `step` of the clock, in ns, adds to the error.
    pub fn looks_at(&self, ns_per_tick: f64, step: f64) -> Vec<Look> {
        let factor = ns_per_tick / self.scale;
        let at = |look: &Look| Look {
            offset: (look.offset + look.at) * factor - look.at,
            error: look.error + step,
            ..*look
        };
        self.looks.iter().map(at).collect()
    }
}

/// How many ticks went by per ns in the longest stretch without a break, and by how much that may be
/// off. `None` where nothing broke: the whole run is the better measure then.
///
/// In a suspend or a pause of the virtual machine one of the two clocks stands still: a rate taken
/// across it is neither's.
pub fn unbroken(looks: &[Look]) -> Option<(f64, Ppm)> {
    let ratio = |a: &Look, b: &Look| 1.0 + (b.offset - a.offset) / (b.at - a.at);
    let mut ratios: Vec<f64> =
        looks.windows(2).map(|pair| ratio(&pair[0], &pair[1])).filter(|r| r.is_finite()).collect();
    ratios.sort_by(f64::total_cmp);
    let usual = *ratios.get(ratios.len() / 2)?;
    let broken = |pair: &[Look]| {
        let error = (pair[0].error + pair[1].error) / (pair[1].at - pair[0].at);
        (ratio(&pair[0], &pair[1]) - usual).abs() > usual * (MOST_SLEW + error)
    };
    let breaks: Vec<usize> =
        looks.windows(2).enumerate().filter(|(_, pair)| broken(pair)).map(|(nth, _)| nth).collect();
    let last = looks.len() - 1;
    breaks.first()?;
    let starts = std::iter::once(0).chain(breaks.iter().map(|nth| nth + 1));
    let ends = breaks.iter().copied().chain([last]);
    let (from, to) =
        starts.zip(ends).max_by_key(|(from, to)| to.saturating_sub(*from)).filter(|(from, to)| to > from)?;
    let (a, b) = (&looks[from], &looks[to]);
    Some((ratio(a, b), Ppm((a.error + b.error) / (b.at - a.at) * 1e6)))
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
        let mut meter = DriftMeter::new(&clock, &reference, 1.0, Nanos(2.0));
        for (nth, ns) in at.iter().enumerate() {
            meter.look();
            world.pass_ns(*ns);
            disturb(&world, nth);
        }
        trend(&meter.looks).unwrap()
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

    /// 60 s of sleep in which the reference stood still: the rate is that of the waking time, and by it
    /// there is one step and no more.
    #[test]
    fn a_suspend_spoils_no_rate() {
        let hz = 2.3;
        let looks: Vec<Look> = (0..500)
            .map(|n| {
                let at = n as f64 * 6e8;
                let slept = if n > 200 { 60e9 } else { 0.0 };
                Look { at, offset: (at + slept) * hz - at, error: 40.0 }
            })
            .collect();
        let (ratio, uncertainty) = unbroken(&looks).unwrap();
        assert!((ratio / hz - 1.0).abs() * 1e6 <= uncertainty.0 + 1e-6, "{ratio}");
        let by_it: Vec<Look> = looks.iter().map(|l| Look { offset: (l.offset + l.at) / ratio - l.at, ..*l }).collect();
        let got = trend(&by_it).unwrap();
        assert_eq!(got.steps.len(), 1, "{got:?}");
        assert!((got.steps[0].by - 60e9).abs() < 1e7, "{got:?}");
        assert_eq!(unbroken(&looks[..200]), None, "nothing broke before");
    }

    #[test]
    fn too_little_to_tell() {
        assert_eq!(trend(&[]), None);
        let look = Look { at: 0.0, offset: 0.0, error: 1.0 };
        assert_eq!(trend(&[look, look, look]), None, "no time passed");
    }
}
