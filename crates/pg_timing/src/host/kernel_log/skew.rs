//! Computes the error of a clock source from the watchdog's message.

use super::event::{Event, RateSource, Skew};
use timing_clock::clocksource::is_tsc;

/// ACPI's power management timer, by the ACPI specification.
const ACPI_PM_MHZ: f64 = 3.579545;
/// The rate of most HPETs, which is four times the ACPI timer's rate. Others have 24 or 25 MHz, and QEMU's has 100 MHz.
const HPET_MHZ: f64 = 14.318180;
/// The HPET specification allows a period of 100 ns at most.
const HPET_SLOWEST_MHZ: f64 = 10.0;
/// QEMU's HPET. No faster one is known.
const HPET_FASTEST_MHZ: f64 = 100.0;
/// Two intervals with a smaller difference count as equal, apart from overflows of the counter. The kernel allowed 62
/// ms up to 5.12. The limit must allow a few ms of rate error over one or two overflows of the ACPI timer, 4.7 s each.
const SAME_NS: f64 = 10e6;

/// The interval between two checks, by both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Figures {
    /// measured by the watchdog
    pub watchdog_ns: Option<u64>,
    /// measured by the clock source
    pub clocksource_ns: Option<u64>,
    /// clock source minus watchdog
    pub skew_ns: Option<i64>,
    /// The assumed rate of the watchdog, if the log does not contain it. It is used only if the clocks disagree at
    /// every rate that an HPET can have.
    pub assumed_mhz: Option<f64>,
    /// The number of overflows of the watchdog's counter between the checks, if both clocks agree with these overflows.
    /// Then the clock source was right, and the kernel read the watchdog too late.
    pub rounds: Option<u64>,
}

/// The rates of the counters, as far as the log contains them.
#[derive(Debug, Clone, Default)]
pub(super) struct Rates {
    /// rate and quality; the kernel replaces a first estimate by better values
    tsc: Option<(f64, u8)>,
    hpet: Option<f64>,
    others: Vec<(String, f64)>,
}

/// More clock sources than any machine has. The limit keeps a log with many registrations from slowing down each
/// lookup.
const MAX_OTHERS: usize = 32;

impl Rates {
    /// Stores the rates in this event.
    pub fn learn(&mut self, event: &Event) {
        match event {
            Event::Boot { .. } => *self = Rates::default(),
            Event::Rate(rate) => {
                let quality = match rate.source {
                    RateSource::Processor => 1,
                    RateSource::Hypervisor => 2,
                    RateSource::Tsc => 3,
                    RateSource::Refined => 4,
                    RateSource::Hpet => return self.hpet = Some(rate.mhz),
                    RateSource::Recalibrated(_) | RateSource::Previous | RateSource::ArchTimer => return,
                };
                self.learn_tsc(rate.mhz, quality);
            }
            Event::Registered { clocksource, mhz: Some(mhz) } => match clocksource.as_str() {
                name if is_tsc(name) => self.learn_tsc(*mhz, 0),
                "hpet" => self.hpet = self.hpet.or(Some(*mhz)),
                _ if self.others.len() < MAX_OTHERS => self.others.push((clocksource.clone(), *mhz)),
                _ => {}
            },
            _ => {}
        }
    }

    fn learn_tsc(&mut self, mhz: f64, quality: u8) {
        if self.tsc.is_none_or(|(_, known)| known <= quality) {
            self.tsc = Some((mhz, quality));
        }
    }

    /// Returns the TSC's rate in MHz.
    pub fn tsc(&self) -> Option<f64> {
        self.tsc.map(|(mhz, _)| mhz)
    }

    fn of(&self, clocksource: &str) -> Option<f64> {
        match clocksource {
            name if is_tsc(name) => self.tsc(),
            "hpet" => self.hpet,
            "acpi_pm" => Some(ACPI_PM_MHZ),
            other => self.others.iter().rev().find(|(name, _)| name == other).map(|(_, mhz)| *mhz),
        }
    }

    /// Returns the error: as the kernel printed it, or else computed from the counters if both rates are known.
    pub fn figures(&self, skew: &Skew) -> Figures {
        let mut figures = self.counted(skew).unwrap_or_default();
        let nsec = |nsec: Option<i64>| nsec.and_then(|nsec| u64::try_from(nsec).ok());
        if let Some(watchdog_ns) = skew.interval_ns.or(nsec(skew.wd.nsec)) {
            // The kernel computed the interval itself.
            figures = Figures { rounds: figures.rounds, ..Figures::default() };
            figures.watchdog_ns = Some(watchdog_ns);
            figures.clocksource_ns = nsec(skew.cs.nsec).or_else(|| watchdog_ns.checked_add_signed(skew.skew_ns?));
        }
        let difference = || Some(i128::from(figures.clocksource_ns?) - i128::from(figures.watchdog_ns?));
        figures.skew_ns = skew.skew_ns.or_else(|| i64::try_from(difference()?).ok());
        figures
    }

    /// Computes the figures from the counters.
    fn counted(&self, skew: &Skew) -> Option<Figures> {
        let (watchdog, clocksource) = (skew.watchdog.as_deref()?, skew.clocksource.as_deref()?);
        let ticks = skew.wd.elapsed()? as f64;
        let ns = skew.cs.elapsed()? as f64 * 1e3 / self.of(clocksource)?;
        let known = self.of(watchdog);
        let assumed_mhz = (known.is_none() && watchdog == "hpet").then_some(HPET_MHZ);
        let mhz = known.or(assumed_mhz)?;
        if assumed_mhz.is_some() && (ticks * 1e3 / HPET_FASTEST_MHZ..=ticks * 1e3 / HPET_SLOWEST_MHZ).contains(&ns) {
            return None;
        }
        let watchdog_ns = ticks * 1e3 / mhz;
        let round_ns = (skew.wd.mask? as f64 + 1.0) * 1e3 / mhz;
        let rounds = ((ns - watchdog_ns) / round_ns).round();
        let same = rounds >= 1.0 && (ns - watchdog_ns - rounds * round_ns).abs() < SAME_NS;
        let whole = |ns: f64| (ns < i64::MAX as f64).then_some(ns.round() as u64);
        Some(Figures {
            watchdog_ns: Some(whole(watchdog_ns)?),
            clocksource_ns: Some(whole(ns)?),
            skew_ns: None,
            assumed_mhz,
            rounds: (same && assumed_mhz.is_none()).then_some(rounds as u64),
        })
    }
}

/// Returns the rate of a clock source from the two numbers that the kernel prints when it registers it.
///
/// The second number is the duration of that many cycles, minus 11% for adjustments of the clock, and divided by two
/// (`clocks_calc_max_nsecs`).
pub(super) fn registered_mhz(max_cycles: Option<u64>, max_idle_ns: Option<u64>) -> Option<f64> {
    let (cycles, ns) = (max_cycles?, max_idle_ns?);
    (cycles > 0 && ns > 0).then(|| cycles as f64 * 0.89 / 2.0 / ns as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::event::{Rate, Reading};
    use super::*;

    fn rates(tsc: f64, hpet: Option<f64>) -> Rates {
        let mut rates = Rates::default();
        rates.learn(&Event::Rate(Rate { source: RateSource::Tsc, mhz: tsc }));
        if let Some(mhz) = hpet {
            rates.learn(&Event::Rate(Rate { source: RateSource::Hpet, mhz }));
        }
        rates
    }

    /// Returns a comparison of the TSC with a watchdog, as counters.
    fn skew(watchdog: &str, wd_ticks: u64, mask: u64, cs_ticks: u64) -> Skew {
        let reading = |ticks: u64, mask: u64| Reading {
            now: Some(5u64.wrapping_add(ticks) & mask),
            last: Some(5),
            mask: Some(mask),
            nsec: None,
        };
        Skew {
            clocksource: Some("tsc".into()),
            watchdog: Some(watchdog.into()),
            wd: reading(wd_ticks, mask),
            cs: reading(cs_ticks, u64::MAX),
            ..Skew::default()
        }
    }

    const BITS32: u64 = u32::MAX as u64;

    #[test]
    fn intervals_are_computed_from_counters() {
        let figures = rates(2000.0, Some(25.0)).figures(&skew("hpet", 12_500_000, BITS32, 1_001_000_000));
        assert_eq!((figures.watchdog_ns, figures.clocksource_ns), (Some(500_000_000), Some(500_500_000)));
        assert_eq!((figures.skew_ns, figures.assumed_mhz, figures.rounds), (Some(500_000), None, None));
        // acpi_pm has the same rate on every machine.
        let figures = rates(2000.0, None).figures(&skew("acpi_pm", 3_579_545, 0xff_ffff, 1_000_000_000));
        assert_eq!((figures.watchdog_ns, figures.skew_ns), (Some(1_000_000_000), Some(-500_000_000)));
    }

    #[test]
    fn an_hpet_rate_is_assumed_only_if_every_rate_shows_a_skew() {
        // 0.5 s on QEMU's hpet of 100 MHz would be 3.5 s on a usual one.
        assert_eq!(rates(2000.0, None).figures(&skew("hpet", 50_000_000, BITS32, 1_001_000_000)), Figures::default());
        let figures = rates(2000.0, None).figures(&skew("hpet", 14_318_180, BITS32, 20_000_000_000));
        assert_eq!((figures.assumed_mhz, figures.skew_ns), (Some(HPET_MHZ), Some(9_000_000_000)));
    }

    #[test]
    fn overflows_of_the_watchdog_are_recognized() {
        // The guest stood still for 10 s. The ACPI timer overflows every 4.687 s.
        let ticks = (10.0 * ACPI_PM_MHZ * 1e6) as u64;
        let figures = rates(2000.0, None).figures(&skew("acpi_pm", ticks & 0xff_ffff, 0xff_ffff, 20_000_000_000));
        assert_eq!(figures.rounds, Some(2));
        let off = rates(2000.0, None).figures(&skew("acpi_pm", ticks & 0xff_ffff, 0xff_ffff, 20_100_000_000));
        assert_eq!(off.rounds, None);
    }

    #[test]
    fn printed_figures_replace_computed_ones() {
        let printed = Skew { skew_ns: Some(876_429), interval_ns: Some(495_412_266), ..skew("hpet", 1, BITS32, 1) };
        let figures = rates(2000.0, Some(25.0)).figures(&printed);
        assert_eq!((figures.watchdog_ns, figures.clocksource_ns), (Some(495_412_266), Some(496_288_695)));
        let nsec = |nsec| Reading { nsec: Some(nsec), ..Reading::default() };
        let by_kernel = Skew { wd: nsec(500), cs: nsec(400), ..Skew::default() };
        assert_eq!(Rates::default().figures(&by_kernel).skew_ns, Some(-100));
        let negative = Skew { wd: nsec(-500), cs: nsec(i64::MAX), ..Skew::default() };
        assert_eq!(Rates::default().figures(&negative), Figures::default());
        let old = Skew { skew_ns: Some(-5), ..Skew::default() };
        assert_eq!(Rates::default().figures(&old), Figures { skew_ns: Some(-5), ..Figures::default() });
    }

    #[test]
    fn incomplete_readings_give_no_figures() {
        let all = skew("hpet", 12_500_000, BITS32, 1_001_000_000);
        let cut_mask = Reading { mask: Some(0xff), ..all.wd };
        for part in [
            Skew { wd: Reading { last: None, ..all.wd }, ..all.clone() },
            Skew { wd: Reading { mask: None, ..all.wd }, ..all.clone() },
            Skew { wd: Reading { mask: Some(0x12), ..all.wd }, ..all.clone() },
            Skew { wd: cut_mask, ..all.clone() },
            Skew { cs: Reading { now: None, ..all.cs }, ..all.clone() },
            Skew { watchdog: None, ..all.clone() },
            Skew { watchdog: Some("sgi_rtc".into()), ..all.clone() },
        ] {
            assert_eq!(rates(2000.0, Some(25.0)).figures(&part), Figures::default(), "{part:?}");
        }
        assert_eq!(Rates::default().figures(&all), Figures::default(), "tsc's rate is missing");
    }

    #[test]
    fn better_rates_replace_worse_ones() {
        let mut rates = Rates::default();
        for (source, mhz, then) in [
            (RateSource::Hypervisor, 1.0, 1.0),
            (RateSource::Processor, 2.0, 1.0),
            (RateSource::Tsc, 3.0, 3.0),
            (RateSource::Refined, 4.0, 4.0),
            (RateSource::Recalibrated("HPET".into()), 5.0, 4.0),
            (RateSource::Processor, 6.0, 4.0),
        ] {
            rates.learn(&Event::Rate(Rate { source, mhz }));
            assert_eq!(rates.tsc(), Some(then));
        }
        rates.learn(&Event::Boot { version: None });
        assert_eq!(rates.tsc(), None);
    }

    #[test]
    fn the_rate_follows_from_the_registration() {
        for (cycles, ns, mhz) in [
            (0xffff_ffff, 76_450_417_870, 25.0),
            (0xff_ffff, 2_085_701_024, ACPI_PM_MHZ),
            (0x36a_8d32_ce31, 881_590_731_004, 1896.0),
            (0x1cd_42e4_dffb, 881_590_591_483, 1000.0),
            (0x2_4e6a_1710, 440_795_202_120, 10.0),
        ] {
            let found = registered_mhz(Some(cycles), Some(ns)).unwrap();
            assert!((found / mhz - 1.0).abs() < 1e-6, "{found} {mhz}");
        }
        assert_eq!(registered_mhz(Some(0), Some(1)), None);
        assert_eq!(registered_mhz(Some(1), Some(0)), None);
    }
}
