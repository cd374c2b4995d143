//! What is known against a clock source before it is in use.

use super::cpu_skew;
use crate::host::check;
use crate::host::facts::{Host, KernelLog};
use crate::host::measure::Budget;
use crate::report::{COUNTER, Cpus};
use timing_clock::{Counter, Nanos, Ppm, Reference, counter, is_counter, measure_rate};

/// The skew is wanted in ns, of a counter that is read for milliseconds: any rate will do.
const ENOUGH: Ppm = Ppm(10.0);
const RATE: Nanos = Nanos::from_millis(20.0);

/// The kernel's log against it; and if it is the CPUs' own counter, what differs between CPUs.
pub fn known_faults(host: &Host, name: &str, budget: &Budget) -> Vec<String> {
    let mut against = Vec::new();
    if KernelLog::own(host).said.known().is_some_and(|said| said.gave_up(name)) {
        against.push(format!("the kernel's log says that {name} was marked unstable"));
    }
    if is_counter(name) {
        against.extend(skewed(host, budget));
    }
    against
}

/// How the counters of CPUs differ, where that is sure.
fn skewed(host: &Host, budget: &Budget) -> Vec<String> {
    let permission = counter::permitted();
    let rate = Counter::new()
        .map_err(|e| e.to_string())
        .and_then(|counter| measure_rate(counter, Reference::default(), ENOUGH, RATE).map_err(|e| e.to_string()));
    let cpus =
        Cpus { online: host.online_cpus(), allowed: host.allowed_cpus(), skew: Vec::new(), skew_unavailable: None };
    let cpus = cpu_skew::between_cpus(cpus, permission, &rate, budget);
    cpus.skew.iter().filter(|skew| skew.clock == COUNTER).filter_map(check::differs).collect()
}
