//! By what a clock is read: the vDSO, or a system call.

use crate::report::{AccessPath, COUNTER, ClockReport, SYSTEM, Vdso, known};

/// From so much of a bare system call's cost on, a read must have made one; the vDSO's takes a
/// twentieth to a third of it.
const LIKE_A_CALL: f64 = 0.75;
/// And from so much on, something else is in the way as well.
const BEYOND_A_CALL: f64 = 1.5;

/// Tells the vDSO from the system call by what a read costs, in ns, while nothing disturbs it: of a machine that is
/// slow now and then, one clock may have met more than the other.
pub fn tell(clocks: &mut [ClockReport], costs: &[Option<f64>]) {
    let cost = |name| clocks.iter().zip(costs).find(|(clock, _)| clock.name == name).and_then(|(_, cost)| *cost);
    let Some(call) = cost("system_syscall") else { return };
    // Where reading the counter itself is trapped, the vDSO is as dear as a call: cost tells nothing.
    if cost(COUNTER).is_some_and(|counter| counter > call * LIKE_A_CALL / 2.0) {
        return;
    }
    for (clock, cost) in clocks.iter_mut().zip(costs).filter(|(clock, _)| clock.through.is_none()) {
        clock.through = cost.filter(|_| clock.read_ns.is_some()).map(|cost| match cost / call {
            _ if clock.name == "system_syscall" => AccessPath::Syscall,
            ratio if ratio < LIKE_A_CALL => AccessPath::Vdso,
            // PostgreSQL's clock alone is compared with the very call that it would make.
            ratio if ratio > BEYOND_A_CALL && clock.name == SYSTEM => AccessPath::Interposed,
            _ => AccessPath::Syscall,
        });
    }
}

/// The kernel reads these clock sources by system calls only, whatever costs seem to tell; of a machine that
/// is busy enough, they tell the wrong way.
pub fn correct(clocks: &mut [ClockReport], clocksource: &str) {
    if known(clocksource).is_none_or(|known| known.vdso != Vdso::No) {
        return;
    }
    // The coarse clocks are the kernel's last tick, which the vDSO knows whatever it was counted by.
    for clock in clocks.iter_mut().filter(|clock| !clock.name.ends_with("_coarse")) {
        if clock.through == Some(AccessPath::Vdso) {
            clock.through = Some(AccessPath::Syscall);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(costs: [f64; 3]) -> Option<AccessPath> {
        // Medians of a busy virtual machine, whose clock was read by system calls.
        let medians = [(SYSTEM, 1308.0), ("system_syscall", 2000.0), (COUNTER, 38.0)];
        let mut clocks =
            medians.map(|(name, ns)| ClockReport { name: name.into(), read_ns: Some(ns), ..ClockReport::default() });
        tell(&mut clocks, &costs.map(Some));
        clocks[0].through
    }

    #[test]
    fn what_disturbs_one_clock_more_than_the_other_makes_no_vdso() {
        assert_eq!(told([950.0, 1000.0, 30.0]), Some(AccessPath::Syscall));
        assert_eq!(told([100.0, 1000.0, 30.0]), Some(AccessPath::Vdso));
        assert_eq!(told([2000.0, 1000.0, 30.0]), Some(AccessPath::Interposed));
    }

    #[test]
    fn where_the_counter_is_trapped_cost_tells_nothing() {
        assert_eq!(told([1000.0, 1100.0, 900.0]), None);
    }

    #[test]
    fn a_device_has_no_vdso() {
        let through = |clocksource: &str| {
            let mut clocks = ["system", "rdtsc", "monotonic_coarse"].map(|name| ClockReport {
                name: name.into(),
                through: Some(if name == "rdtsc" { AccessPath::Instruction } else { AccessPath::Vdso }),
                ..ClockReport::default()
            });
            correct(&mut clocks, clocksource);
            clocks.map(|clock| clock.through.unwrap())
        };
        assert_eq!(through("hpet"), [AccessPath::Syscall, AccessPath::Instruction, AccessPath::Vdso]);
        assert_eq!(through("tsc"), [AccessPath::Vdso, AccessPath::Instruction, AccessPath::Vdso]);
        assert_eq!(through("of-next-year"), [AccessPath::Vdso, AccessPath::Instruction, AccessPath::Vdso]);
    }
}
