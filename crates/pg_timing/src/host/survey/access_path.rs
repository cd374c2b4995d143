//! Determines whether a clock is read by the vDSO or by a system call.

use crate::report::{AccessPath, COUNTER, ClockReport, SYSTEM, Vdso, traits_of};

/// A read that costs at least this share of a system call contains one. A read by the vDSO costs a twentieth to a third
/// of a system call.
const SYSCALL_SHARE: f64 = 0.75;
/// If a read costs more than this share of a system call, something intercepts it.
const INTERPOSED_SHARE: f64 = 1.5;

/// Sets the access path of each clock by its undisturbed read cost, in ns.
///
/// The medians are not reliable: if the machine is slow from time to time, one clock may be affected more than another.
pub fn determine(clocks: &mut [ClockReport], costs: &[Option<f64>]) {
    let cost = |name| clocks.iter().zip(costs).find(|(clock, _)| clock.name == name).and_then(|(_, cost)| *cost);
    let Some(call) = cost("system_syscall") else { return };
    let call_median = clocks.iter().find(|clock| clock.name == "system_syscall").and_then(|clock| clock.read_ns);
    // If the hypervisor traps counter reads, a vDSO read costs as much as a system call. Then the cost shows nothing.
    if cost(COUNTER).is_some_and(|counter| counter > call * SYSCALL_SHARE / 2.0) {
        return;
    }
    for (clock, cost) in clocks.iter_mut().zip(costs).filter(|(clock, _)| clock.access_path.is_none()) {
        clock.access_path = cost.filter(|_| clock.read_ns.is_some()).map(|cost| match cost / call {
            _ if clock.name == "system_syscall" => AccessPath::Syscall,
            ratio if ratio < SYSCALL_SHARE => AccessPath::Vdso,
            // system_syscall is the system call behind PostgreSQL's clock. Other clocks use others, so a higher cost
            // proves nothing. The undisturbed cost must exceed the median, too: with noise on a busy virtual machine,
            // the undisturbed costs of two equal clocks differed by more than 50%.
            _ if clock.name == SYSTEM
                && call_median.is_some_and(|median| cost > INTERPOSED_SHARE * call.max(median)) =>
            {
                AccessPath::Interposed
            }
            _ => AccessPath::Syscall,
        });
    }
}

/// Corrects the access paths for clock sources that the vDSO cannot read. On a busy machine the costs can mislead.
pub fn correct(clocks: &mut [ClockReport], clocksource: &str) {
    if traits_of(clocksource).is_none_or(|traits| traits.vdso != Vdso::No) {
        return;
    }
    // The coarse clocks return the time of the kernel's last tick, which the vDSO can read with every clock source.
    for clock in clocks.iter_mut().filter(|clock| !clock.name.ends_with("_coarse")) {
        if clock.access_path == Some(AccessPath::Vdso) {
            clock.access_path = Some(AccessPath::Syscall);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of_system(costs: [f64; 3]) -> Option<AccessPath> {
        // Medians from a busy virtual machine whose clock is read by system calls.
        let medians = [(SYSTEM, 1308.0), ("system_syscall", 2000.0), (COUNTER, 38.0)];
        let mut clocks =
            medians.map(|(name, ns)| ClockReport { name: name.into(), read_ns: Some(ns), ..ClockReport::default() });
        determine(&mut clocks, &costs.map(Some));
        clocks[0].access_path
    }

    #[test]
    fn the_undisturbed_cost_decides_and_not_the_median() {
        assert_eq!(path_of_system([950.0, 1000.0, 30.0]), Some(AccessPath::Syscall));
        assert_eq!(path_of_system([100.0, 1000.0, 30.0]), Some(AccessPath::Vdso));
        assert_eq!(path_of_system([3100.0, 1000.0, 30.0]), Some(AccessPath::Interposed));
    }

    #[test]
    fn noise_is_no_interception() {
        // The median of the system calls is 2000 ns.
        assert_eq!(path_of_system([2000.0, 1000.0, 30.0]), Some(AccessPath::Syscall));
    }

    #[test]
    fn the_path_is_unknown_if_counter_reads_are_trapped() {
        assert_eq!(path_of_system([1000.0, 1100.0, 900.0]), None);
    }

    #[test]
    fn a_device_is_never_read_by_the_vdso() {
        let paths = |clocksource: &str| {
            let mut clocks = ["system", "rdtsc", "monotonic_coarse"].map(|name| ClockReport {
                name: name.into(),
                access_path: Some(if name == "rdtsc" { AccessPath::Instruction } else { AccessPath::Vdso }),
                ..ClockReport::default()
            });
            correct(&mut clocks, clocksource);
            clocks.map(|clock| clock.access_path.unwrap())
        };
        assert_eq!(paths("hpet"), [AccessPath::Syscall, AccessPath::Instruction, AccessPath::Vdso]);
        assert_eq!(paths("tsc"), [AccessPath::Vdso, AccessPath::Instruction, AccessPath::Vdso]);
        assert_eq!(paths("unknown-clock-source"), [AccessPath::Vdso, AccessPath::Instruction, AccessPath::Vdso]);
    }
}
