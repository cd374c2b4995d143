//! The TSC's rate and its faults: arch/x86/kernel/tsc.c, tsc_sync.c and related files.

use super::Parsed;
use crate::host::kernel_log::event::{Event, FirmwareBug, Rate, RateSource, Warp};
use crate::host::kernel_log::scan::{mhz, name, number, number_after, skip, skip_to, text};

pub(super) fn parse(body: &str) -> Option<Parsed> {
    rate(body)
        .map(|(source, mhz)| Event::Rate(Rate { source, mhz }))
        .or_else(|| firmware_bug(body))
        .or_else(|| other(body))
        .map(Parsed::from)
        .or_else(|| warp(body))
}

fn rate(body: &str) -> Option<(RateSource, f64)> {
    if let Some(rest) = skip(body, "Detected") {
        let source = match skip(skip_to(rest, "MHz")?, "TSC") {
            Some(_) => RateSource::Tsc,
            None => skip(skip_to(rest, "MHz")?, "processor").map(|_| RateSource::Processor)?,
        };
        return Some((source, mhz(rest)?));
    }
    if let Some(rest) = skip(body, "Refined TSC clocksource calibration:") {
        return Some((RateSource::Refined, mhz(rest)?));
    }
    if let Some(rest) = skip(body, "TSC freq recalibrated by [") {
        let (by, rest) = rest.split_once("]:")?;
        return Some((RateSource::Recalibrated(text(by)?), mhz(rest)?));
    }
    if let Some(rest) = skip(body, "Previous calibrated TSC freq:") {
        return Some((RateSource::Previous, mhz(rest)?));
    }
    if let Some(rest) = skip(body, "TSC freq read from hypervisor :") {
        return Some((RateSource::Hypervisor, mhz(rest)?));
    }
    // "cp15 and mmio timer(s)" if both exist; "Architected" before 4.16.
    let timer = skip(body, "Architected").unwrap_or(body);
    if let Some(rest) = skip(timer, "cp15").and_then(|rest| skip_to(rest, "timer(s) running at")) {
        return Some((RateSource::ArchTimer, mhz(rest)?));
    }
    if body.starts_with("hpet") && body.contains(" comparators,") {
        return Some((RateSource::Hpet, mhz(skip_to(body, "-bit")?)?));
    }
    None
}

/// `[Firmware Bug]: TSC ADJUST ...`
fn firmware_bug(body: &str) -> Option<Event> {
    let rest = skip(body, "[Firmware Bug]:").unwrap_or(body);
    let rest = skip(rest, "TSC ADJUST")?;
    let cpu = |rest| number::<u32>(skip(rest, "CPU")?);
    let value = |rest| number::<i64>(skip(rest, ":")?);
    if let Some((cpu, rest)) = skip(rest, "compensate:").and_then(cpu) {
        return Some(Event::WarpCorrected { cpu, cycles: number_after(rest, "observed") });
    }
    let mut bug = FirmwareBug::default();
    if let Some(rest) = skip(rest, "differs: Reference") {
        // "CPU0: 0 CPU1: -1234"
        let (_, rest) = cpu(rest)?;
        let (expected, rest) = value(rest)?;
        bug.expected = expected;
        if let Some((cpu, rest)) = cpu(rest.trim_start_matches(',')) {
            // At the end of the line, the last digits may be missing.
            (bug.cpu, bug.found) = (cpu, value(rest).and_then(|(found, _)| found));
        }
    } else if let Some((cpu, rest)) = skip(rest, "differs:").and_then(cpu) {
        // "CPU3 0 --> 12345. Restoring"
        let (expected, rest) = number(rest)?;
        bug = FirmwareBug { cpu, expected, found: skip(rest, "-->").and_then(number).and_then(|(found, _)| found) };
    } else if let Some((cpu, rest)) = skip(rest, ":").and_then(cpu) {
        // "CPU0: -23 force to 0"
        let (found, rest) = value(rest)?;
        skip(rest, "force to 0")?;
        bug = FirmwareBug { cpu, expected: Some(0), found };
    } else {
        skip(rest, "differs within socket")?;
    }
    Some(Event::FirmwareBug(bug))
}

fn other(body: &str) -> Option<Event> {
    if let Some(rest) = skip(body, "Linux version") {
        // Without further text the version may be cut off.
        let version = name(rest).filter(|(_, more)| !more.is_empty());
        return Some(Event::Boot { version: version.map(|(version, _)| version) });
    }
    if let Some(reason) = skip(body, "Marking TSC unstable due to") {
        return Some(Event::Unstable { clocksource: "tsc".into(), reason: text(reason) });
    }
    // "TSC found unstable after boot", "Warning: TSC freq calibrated by CPUID/MSR differs ..."
    let simple = [
        ("TSC found unstable after boot", Event::UnstableAfterBoot),
        ("Warning: TSC freq calibrated by", Event::RateWarning),
        ("Skipped synchronization checks as TSC is reliable", Event::SyncSkipped),
        ("sched_clock: Marking unstable", Event::SchedClockUnstable),
        ("kvm-clock: Using msrs", Event::KvmClock),
    ];
    if let Some((_, event)) = simple.into_iter().find(|(words, _)| skip(body, words).is_some()) {
        return Some(event);
    }
    // "Using 3.579545 MHz WALL PM GTOD PIT/TSC timer."; without WALL before 2.6.16
    let rest = skip(body, "Using")?;
    let after = skip_to(rest, "MHz")?;
    let (wall, after) = match skip(after, "WALL") {
        Some(after) => name(after).map(|(wall, after)| (Some(wall), after))?,
        None => (None, after),
    };
    let (timer, after) = name(skip(after, "GTOD").unwrap_or(after))?;
    skip(after, "timer")?;
    Some(Event::OldTimer { mhz: mhz(rest), wall, timer: Some(timer) })
}

/// `TSC synchronization [CPU#0 -> CPU#1]:`, then `Measured N cycles TSC warp between CPUs, turning off TSC clock.`
fn warp(body: &str) -> Option<Parsed> {
    if skip(body, "TSC warped randomly between CPUs").is_some() {
        return Some(Parsed::part(Event::Warp(Warp { random: true, ..Warp::default() })));
    }
    if let Some((cycles, rest)) = skip(body, "Measured").and_then(number) {
        skip(rest, "cycles TSC warp between CPUs")?;
        return Some(Parsed::part(Event::Warp(Warp { cycles, ..Warp::default() })));
    }
    let rest = skip(body, "checking").unwrap_or(body);
    let (first, rest) = number(skip(rest, "TSC synchronization [CPU#")?)?;
    let (second, rest) = number(skip(rest, "-> CPU#")?)?;
    // Otherwise it is "passed", which only a debugging kernel prints since 2.6.31.
    let failed = skip(rest, "]:")?.trim().is_empty();
    failed.then(|| Event::Warp(Warp { cpus: first.zip(second), ..Warp::default() }).into())
}

#[cfg(test)]
mod tests;
