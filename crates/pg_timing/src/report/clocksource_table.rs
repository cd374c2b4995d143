//! What each clock source is: the one table that the list, the switch and the findings go by.

/// One kind of hardware that a kernel can keep time by.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// as the kernel calls it
    pub name: &'static str,
    pub what: &'static str,
    /// what a read typically takes, through the fastest way that this source allows
    pub read: &'static str,
    pub vdso: Vdso,
    pub grade: Grade,
}

/// Whether the kernel's code inside the program can read it, without a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vdso {
    Yes,
    No,
    /// the hypervisor decides, or the kernel's age
    Depends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// worth switching to
    Fast,
    /// neither worth switching to nor a fault by itself
    Fair,
    /// costs a trip to a device, to the hypervisor or at least into the kernel
    Slow,
    /// slow, and one device for all CPUs, or so coarse that timers come late: a large host can stall
    Stalls,
}

const fn of(name: &'static str, what: &'static str, read: &'static str, vdso: Vdso, grade: Grade) -> Known {
    Known { name, what, read, vdso, grade }
}

/// Best first. Linux's names, then FreeBSD's.
#[rustfmt::skip]
const TABLE: &[Known] = &[
    of("tsc", "the CPU's own counter (TSC)", "15 to 50 ns", Vdso::Yes, Grade::Fast),
    of("arch_sys_counter", "the CPU's own counter (ARM's generic timer)", "15 to 60 ns", Vdso::Yes, Grade::Fast),
    of("kvm-clock", "KVM's clock, made of the TSC", "20 to 70 ns", Vdso::Yes, Grade::Fast),
    of("hyperv_clocksource_tsc_page", "Hyper-V's clock, made of the TSC", "20 to 70 ns", Vdso::Yes, Grade::Fast),
    of("tsc-early", "the TSC, while the kernel still measures its rate", "15 to 50 ns", Vdso::Yes, Grade::Fair),
    of("xen", "Xen's clock; older kernels read it by a system call only", "50 to 700 ns", Vdso::Depends, Grade::Slow),
    of("hyperv_clocksource_msr", "Hyper-V's counter, each read a call to the hypervisor", "1 us or more", Vdso::No, Grade::Slow),
    of("hpet", "a timer chip on the bus, slowest in virtual machines", "0.5 to 15 us", Vdso::No, Grade::Stalls),
    of("acpi_pm", "the power management's timer, in steps of 280 ns", "0.5 us or more", Vdso::No, Grade::Stalls),
    of("pit", "the PC's first timer chip", "several us", Vdso::No, Grade::Stalls),
    of("jiffies", "the kernel's tick, in steps of 1 to 10 ms", "50 to 400 ns", Vdso::No, Grade::Stalls),
    of("refined-jiffies", "the kernel's tick, in steps of 1 to 10 ms", "50 to 400 ns", Vdso::No, Grade::Stalls),

    of("TSC-low", "the CPU's own counter (TSC), its lowest bits cut off", "15 to 50 ns", Vdso::Yes, Grade::Fast),
    of("TSC", "the CPU's own counter (TSC)", "15 to 50 ns", Vdso::Yes, Grade::Fast),
    of("ARM MPCore Timecounter", "the CPU's own counter (ARM's generic timer)", "15 to 60 ns", Vdso::Yes, Grade::Fast),
    of("kvmclock", "KVM's clock, made of the TSC", "20 to 70 ns", Vdso::Depends, Grade::Fast),
    of("Hyper-V-TSC", "Hyper-V's clock, made of the TSC", "20 to 70 ns", Vdso::Yes, Grade::Fast),
    of("XENTIMER", "Xen's clock, read by a system call only", "100 to 700 ns", Vdso::No, Grade::Slow),
    of("Hyper-V", "Hyper-V's counter, each read a call to the hypervisor", "1 us or more", Vdso::No, Grade::Slow),
    of("HPET", "a timer chip on the bus, slowest in virtual machines", "0.5 to 15 us", Vdso::Depends, Grade::Stalls),
    of("ACPI-fast", "the power management's timer, in steps of 280 ns", "0.5 us or more", Vdso::No, Grade::Stalls),
    of("ACPI-safe", "the power management's timer, read three times over", "1.5 us or more", Vdso::No, Grade::Stalls),
    of("i8254", "the PC's first timer chip", "several us", Vdso::No, Grade::Stalls),
];

/// What is known of the clock source of that name.
pub fn known(name: &str) -> Option<&'static Known> {
    TABLE.iter().find(|known| known.name == name)
}

/// Those worth switching to, best first.
pub fn best_first() -> impl Iterator<Item = &'static Known> {
    TABLE.iter().filter(|known| known.grade == Grade::Fast)
}

impl Known {
    /// Whether a host on it has a slow clock.
    pub fn is_slow(&self) -> bool {
        matches!(self.grade, Grade::Slow | Grade::Stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_twice() {
        for (at, one) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|other| other.name != one.name), "{}", one.name);
        }
    }

    #[test]
    fn what_can_stall_a_host_is_slow_and_not_advised() {
        for name in ["hpet", "acpi_pm", "jiffies", "refined-jiffies"] {
            assert_eq!(known(name).map(|known| known.grade), Some(Grade::Stalls), "{name}");
        }
        assert!(best_first().all(|known| !known.is_slow() && known.vdso != Vdso::No));
        assert_eq!(best_first().next().map(|known| known.name), Some("tsc"));
        assert_eq!(known("flux-capacitor"), None);
    }
}
