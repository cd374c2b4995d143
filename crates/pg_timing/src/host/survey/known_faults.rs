//! Finds known faults of a clock source before a switch to it.

use super::cpu_skew;
use crate::host::check;
use crate::host::facts::{Host, KernelLog};
use crate::host::measure::Budget;
use crate::report::{COUNTER, Cpus};
use timing_clock::clocksource::is_counter;
use timing_clock::{Counter, Nanos, Ppm, Reference, counter, measure_rate};

/// The skew is shown in ns, so a coarse rate is enough.
const RATE_ERROR: Ppm = Ppm(10.0);
/// The longest time for measuring the rate.
const RATE_TIME: Nanos = Nanos::from_millis(20.0);

/// Returns the known faults: from the kernel's log, and for the CPUs' counter, proven differences between CPUs.
pub fn known_faults(host: &Host, name: &str, budget: &Budget) -> Vec<String> {
    let mut faults = Vec::new();
    if KernelLog::own(host).entries.known().is_some_and(|entries| entries.demoted(name)) {
        faults.push(format!("the kernel log says that {name} was marked unstable"));
    }
    if is_counter(name) {
        faults.extend(cpu_differences(host, budget));
    }
    faults
}

/// Returns the proven differences between the CPUs' counters.
fn cpu_differences(host: &Host, budget: &Budget) -> Vec<String> {
    let permission = counter::permitted();
    let rate = Counter::new().map_err(|e| e.to_string()).and_then(|counter| {
        measure_rate(counter, Reference::default(), RATE_ERROR, RATE_TIME).map_err(|e| e.to_string())
    });
    let cpus =
        Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), skew: Vec::new(), skew_unavailable: None };
    let cpus = cpu_skew::between_cpus(cpus, permission, &rate, budget);
    cpus.skew.iter().filter(|skew| skew.clock == COUNTER).filter_map(check::differs).collect()
}
