//! Messages of the clock source watchdog: kernel/time/clocksource.c.

use super::Parsed;
use crate::host::kernel_log::event::{CheckSkipped, CpuSkew, Cpus, Event, ReadBack, Reading, Skew, SyncCheck};
use crate::host::kernel_log::scan::{hex, name, number, number_after, skip, skip_to, text};

pub(super) fn parse(body: &str) -> Option<Parsed> {
    match body.trim_start().as_bytes().first()? {
        b'\'' => quoted(body),
        b'w' => skipped_part(body),
        b'C' => skewed(body).or_else(|| cpus(body)).or_else(|| checking(body)),
        b'M' => marking(body, None).or_else(|| due_to(body)),
        b'W' => read_timed_out(body).or_else(|| interval(body)),
        b'L' => long_interval(body),
        b't' => timekeeping(body),
        _ => None,
    }
}

fn skew(skew: Skew) -> Event {
    Event::Skew(Box::new(skew))
}

/// `timekeeping watchdog on CPU2: ...`; without the CPU before 5.0
fn timekeeping(body: &str) -> Option<Parsed> {
    let rest = skip(body, "timekeeping watchdog")?;
    let (cpu, rest) = match skip(rest, "on CPU") {
        Some(rest) => number::<u32>(rest)?,
        None => (None, rest),
    };
    let rest = skip(rest, ":")?;
    if let Some(marked) = marking(rest, cpu) {
        return Some(marked);
    }
    let (subject, rest) = name(rest)?;
    if let Some((times, _)) = skip(rest, "retried").and_then(number) {
        return Some(Event::Retried { cpu, watchdog: Some(subject), times }.into());
    }
    if let Some((delay, _)) = skip(rest, "wd-wd read-back delay of").and_then(number) {
        let skipped = CheckSkipped { cpu, watchdog: Some(subject), watchdog_delay_ns: delay, ..Default::default() };
        return Some(Event::CheckSkipped(skipped).into());
    }
    // 5.13 prints the watchdog's name, 6.1 prints "wd-tsc-wd", and 6.3 adds "excessive" and the limit.
    let (delay_ns, _) =
        skip(rest, "excessive").or(Some(rest)).and_then(|r| skip(r, "read-back delay of")).and_then(number)?;
    let tested = subject.strip_prefix("wd-").and_then(|subject| subject.strip_suffix("-wd"));
    Some(
        Event::ReadBack(ReadBack {
            clocksource: tested.map(String::from),
            cpu,
            watchdog: tested.is_none().then(|| subject.clone()),
            delay_ns,
            limit_ns: number_after(rest, "vs. limit of"),
            watchdog_delay_ns: number_after(rest, "delay only"),
            attempt: number_after(rest, "attempt"),
        })
        .into(),
    )
}

/// `Marking clocksource 'tsc' as unstable because the skew is too large:`
fn marking(rest: &str, cpu: Option<u32>) -> Option<Parsed> {
    let (clocksource, rest) = name(skip(rest, "Marking clocksource")?)?;
    skip(rest, "as unstable")?;
    Some(skew(Skew { clocksource: Some(clocksource), cpu, ..Skew::default() }).into())
}

/// `Marking clocksource tsc unstable due to frequency skew` (7.1)
fn due_to(body: &str) -> Option<Parsed> {
    let (clocksource, rest) = name(skip(body, "Marking clocksource")?)?;
    let reason = skip(rest, "unstable due to")?;
    if skip(reason, "frequency skew").is_some() {
        let clocksource = Some(clocksource);
        return Some(skew(Skew { clocksource, frequency: true, ..Skew::default() }).into());
    }
    if skip(reason, "inter CPU skew").is_some() {
        return Some(Event::CpuSkew(CpuSkew { clocksource: Some(clocksource), ..CpuSkew::default() }).into());
    }
    Some(Event::Unstable { clocksource, reason: text(reason) }.into())
}

/// `'hpet' wd_now: ... wd_last: ... mask: ...`, `'tsc' is current clocksource.`
fn quoted(body: &str) -> Option<Parsed> {
    let (name, rest) = name(body)?;
    let mut current = Skew::default();
    if skip(rest, "is current clocksource").is_some() || skip(rest, "(not").is_some() {
        current.current = Some(name);
        return Some(Parsed::part(skew(current)));
    }
    let rest = rest.trim_start();
    let mut reading = Reading::default();
    let mut words = rest.split_whitespace();
    while let Some(key) = words.next() {
        // Without further text the last digits may be missing. A mask shows by itself whether it is complete.
        let (value, more) = (words.next().unwrap_or(""), words.clone().next().is_some());
        match key {
            "wd_nsec:" | "cs_nsec:" if more => reading.nsec = value.parse().ok(),
            "wd_now:" | "cs_now:" if more => reading.now = hex(value),
            "wd_last:" | "cs_last:" if more => reading.last = hex(value),
            "mask:" => reading.mask = hex(value),
            _ => break,
        }
    }
    let part = if rest.starts_with("wd_") {
        Skew { watchdog: Some(name), wd: reading, ..Skew::default() }
    } else if rest.starts_with("cs_") {
        Skew { clocksource: Some(name), cs: reading, ..Skew::default() }
    } else {
        return None;
    };
    Some(Parsed::part(skew(part)))
}

/// `Clocksource 'tsc' skewed N ns (M ms) over watchdog 'hpet' interval of N ns`, or before 4.1 only
/// `Clocksource tsc unstable (delta = N ns)`
fn skewed(body: &str) -> Option<Parsed> {
    let (clocksource, rest) = name(skip(body, "Clocksource")?)?;
    let clocksource = Some(clocksource);
    if let Some(rest) = skip(rest, "unstable (delta =") {
        let (skew_ns, _) = number(rest)?;
        return Some(skew(Skew { clocksource, skew_ns, ..Skew::default() }).into());
    }
    if let Some((skew_ns, rest)) = skip(rest, "skewed").and_then(number) {
        let watchdog = skip_to(rest, "over watchdog").and_then(name).map(|(name, _)| name);
        let interval_ns = number_after(rest, "interval of");
        return Some(Parsed::part(skew(Skew { clocksource, skew_ns, watchdog, interval_ns, ..Skew::default() })));
    }
    // 7.1: "Clocksource       tsc interval:    512345678ns"
    let (nsec, _) = number(skip(rest, "interval:")?)?;
    let cs = Reading { nsec, ..Reading::default() };
    Some(Parsed::part(skew(Skew { clocksource, cs, frequency: true, ..Skew::default() })))
}

/// `Watchdog      hpet interval:     512345678ns` (7.1)
fn interval(body: &str) -> Option<Parsed> {
    let (watchdog, rest) = name(skip(body, "Watchdog")?)?;
    let (nsec, _) = number(skip(rest, "interval:")?)?;
    let wd = Reading { nsec, ..Reading::default() };
    Some(Parsed::part(skew(Skew { watchdog: Some(watchdog), wd, frequency: true, ..Skew::default() })))
}

/// `Watchdog hpet read timed out. Readout sequence took: Nns`, `Watchdog remote CPU 3 read timed out` (7.1)
fn read_timed_out(body: &str) -> Option<Parsed> {
    let rest = skip(body, "Watchdog")?;
    let mut skipped = CheckSkipped::default();
    if let Some((cpu, _)) = skip(rest, "remote CPU").and_then(number) {
        skipped.cpu = cpu;
    } else {
        let (watchdog, rest) = name(rest)?;
        skip(rest, "read timed out")?;
        skipped.watchdog = Some(watchdog);
        skipped.delay_ns = number_after(rest, "took:");
    }
    Some(Event::CheckSkipped(skipped).into())
}

/// `wd-tsc-wd read-back delay of Nns, clock-skew test skipped!`
fn skipped_part(body: &str) -> Option<Parsed> {
    let (subject, rest) = name(body)?;
    let clocksource = Some(subject.strip_prefix("wd-")?.strip_suffix("-wd")?.to_string());
    let (delay_ns, _) = number(skip(rest, "read-back delay of")?)?;
    Some(Parsed::part(Event::CheckSkipped(CheckSkipped { clocksource, delay_ns, ..CheckSkipped::default() })))
}

/// `Long readout interval, skipping watchdog check: cs_nsec: N wd_nsec: N` (6.8)
fn long_interval(body: &str) -> Option<Parsed> {
    let rest = skip(body, "Long readout interval, skipping watchdog check")?;
    // nothing follows, but a wrong number here has no consequence
    let interval_ns = skip_to(rest, "wd_nsec:").and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Some(Event::CheckSkipped(CheckSkipped { interval_ns, ..CheckSkipped::default() }).into())
}

/// `Checking clocksource tsc synchronization from CPU 4 to CPUs 0,5.` (5.14; in 5.13 up to the CPU)
fn checking(body: &str) -> Option<Parsed> {
    let (clocksource, rest) = name(skip(body, "Checking clocksource")?)?;
    let (cpu, rest) = number(skip(rest, "synchronization from CPU")?)?;
    let compared = skip(rest, "to CPUs").and_then(|rest| list(rest)?.0);
    let clocksource = Some(clocksource);
    Some(Event::SyncCheck(SyncCheck { clocksource, cpu, compared, ..SyncCheck::default() }).into())
}

/// `CPUs 0-3 ahead of CPU 4 for clocksource tsc.`, `CPU 4 check durations Nns - Nns for clocksource tsc.`,
/// and of 7.1 `CPU0  12 < CPU1  34 (cycles)`
fn cpus(body: &str) -> Option<Parsed> {
    let of = |rest| skip_to(rest, "for clocksource").and_then(name).map(|(name, _)| name);
    let mut check = SyncCheck::default();
    if let Some(rest) = skip(body, "CPUs") {
        let (cpus, rest) = list(rest)?;
        let (side, rest) = match skip(rest, "ahead of CPU") {
            Some(rest) => (&mut check.ahead, rest),
            None => (&mut check.behind, skip(rest, "behind CPU")?),
        };
        *side = cpus;
        (check.cpu, check.clocksource) = (number(rest)?.0, of(rest));
        return Some(Parsed::part(Event::SyncCheck(check)));
    }
    let (cpu, rest) = number::<u32>(skip(body, "CPU")?)?;
    if let Some((least, rest)) = skip(rest, "check durations").and_then(number) {
        let (most, rest) = number(skip(rest, "ns -")?)?;
        (check.cpu, check.clocksource, check.took_ns) = (cpu, of(rest), least.zip(most));
        return Some(Parsed::part(Event::SyncCheck(check)));
    }
    let (count, rest) = number(rest)?;
    let (other, rest) = number(skip(rest, "< CPU")?)?;
    let (higher, _) = number(rest)?;
    let (low, high) = (cpu.zip(count), other.zip(higher));
    Some(Parsed::part(Event::CpuSkew(CpuSkew { clocksource: None, low, high })))
}

/// `0,4-7` and what follows. The inner `None`: one of the numbers is too big.
fn list(text: &str) -> Option<(Option<Cpus>, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '-')?;
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    let cpus = text[..end].split(',').map(range).collect::<Option<Vec<_>>>().map(Cpus);
    (end > 0).then_some((cpus, &text[end..]))
}

#[cfg(test)]
mod tests;
