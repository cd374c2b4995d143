//! Clock sources: what each is, and those of a host.

use super::{ClockReport, HostFacts};

type Text = &'static str;

/// One kind of clock source.
#[derive(Debug, PartialEq, Eq)]
pub struct ClocksourceTraits {
    /// the kernels' names: Linux's first
    names: &'static [Text],
    pub what: Text,
    /// typical cost of one read, by the fastest access path of this clock source
    pub read: Text,
    /// the vDSO can read it without a system call, at least with some hypervisors and kernel versions
    pub has_vdso: bool,
    pub grade: Grade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// recommended
    Fast,
    /// acceptable, but no improvement
    Fair,
    /// a read goes to a device, to the hypervisor, or at least into the kernel
    Slow,
    /// slow, and one device for all CPUs: a large host can stall
    Stalls,
    /// the kernel's tick: the steps are too large for timers, so a host can stall; a read need not be slow
    Coarse,
}

const fn of(names: &'static [Text], what: Text, read: Text, has_vdso: bool, grade: Grade) -> ClocksourceTraits {
    ClocksourceTraits { names, what, read, has_vdso, grade }
}

/// Best first.
#[rustfmt::skip]
const TABLE: &[ClocksourceTraits] = &[
    of(&["tsc", "TSC"], "the CPU's counter (TSC)", "15 to 50 ns", true, Grade::Fast),
    of(&["TSC-low"], "the CPU's counter (TSC) without its lowest bits", "15 to 50 ns", true, Grade::Fast),
    of(&["arch_sys_counter", "ARM MPCore Timecounter"], "the CPU's counter (ARM's generic timer)", "15 to 60 ns", true, Grade::Fast),
    of(&["kvm-clock", "kvmclock"], "KVM's clock, based on the TSC", "20 to 70 ns", true, Grade::Fast),
    of(&["hyperv_clocksource_tsc_page", "Hyper-V-TSC"], "Hyper-V's clock, based on the TSC", "20 to 70 ns", true, Grade::Fast),
    of(&["tsc-early"], "the TSC, while the kernel measures its rate", "15 to 50 ns", true, Grade::Fair),
    of(&["xen"], "Xen's clock; older kernels need a system call", "50 to 700 ns", true, Grade::Slow),
    of(&["XENTIMER"], "Xen's clock; needs a system call", "100 to 700 ns", false, Grade::Slow),
    of(&["hyperv_clocksource_msr", "hyperv_clocksource", "Hyper-V"], "Hyper-V's counter; each read calls the hypervisor", "1 us or more", false, Grade::Slow),
    of(&["hpet"], "a timer chip, slowest in virtual machines", "0.5 to 15 us", false, Grade::Stalls),
    of(&["HPET"], "a timer chip, slowest in virtual machines", "0.5 to 15 us", true, Grade::Stalls),
    of(&["acpi_pm", "ACPI-fast"], "the power management timer, in steps of 280 ns", "0.5 us or more", false, Grade::Stalls),
    of(&["ACPI-safe"], "the power management timer, read three times", "1.5 us or more", false, Grade::Stalls),
    of(&["piix"], "the power management timer of old Intel chipsets", "0.5 us or more", false, Grade::Stalls),
    of(&["pit", "i8254"], "the PC's first timer chip", "several us", false, Grade::Stalls),
    of(&["jiffies", "refined-jiffies"], "the kernel's tick, in steps of 1 to 10 ms", "50 to 400 ns", false, Grade::Coarse),
];

/// Returns what is known about a clock source.
pub fn traits_of(name: &str) -> Option<&'static ClocksourceTraits> {
    TABLE.iter().find(|traits| traits.names.contains(&name))
}

/// Returns whether a name is the beginning of a clock source's name, and not a whole name.
pub fn is_cut_name(name: &str) -> bool {
    traits_of(name).is_none() && TABLE.iter().flat_map(|traits| traits.names).any(|whole| whole.starts_with(name))
}

/// Returns the names of the recommended clock sources, the best first.
pub fn best_first() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|traits| traits.grade == Grade::Fast).flat_map(|traits| traits.names).copied()
}

impl ClocksourceTraits {
    /// Returns whether a read is slow on every host.
    pub fn is_slow(&self) -> bool {
        matches!(self.grade, Grade::Slow | Grade::Stalls)
    }

    /// Returns whether programs can use it as PostgreSQL's clock without a loss.
    pub fn is_good(&self) -> bool {
        matches!(self.grade, Grade::Fast | Grade::Fair)
    }

    /// Returns whether a host can stall while it is the clock source.
    pub fn can_stall(&self) -> bool {
        matches!(self.grade, Grade::Stalls | Grade::Coarse)
    }
}

/// The clock sources of a host.
#[derive(Debug)]
pub struct ClocksourceList {
    pub rows: Vec<ClocksourceRow>,
    /// figures of the current clock source, if it could be measured
    pub measured: Option<ClockReport>,
    /// this is the host that we run on, so the user can switch it
    pub live: bool,
}

#[derive(Debug, PartialEq)]
pub struct ClocksourceRow {
    pub name: String,
    pub state: ClocksourceState,
    pub traits: Option<&'static ClocksourceTraits>,
}

/// What the kernel does with a clock source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClocksourceState {
    Current,
    Available,
    /// the CPU calls the counter reliable, but the kernel does not offer it
    Rejected,
    /// a boot parameter forbids it
    Forbidden(String),
    /// the CPU does not guarantee a constant rate of the counter
    NotConstant,
}

impl ClocksourceList {
    /// Returns the best available clock source that is not the current one and not slow.
    pub fn candidate(&self) -> Option<&ClocksourceRow> {
        let available = || self.rows.iter().filter(|row| row.state == ClocksourceState::Available);
        let fast = best_first().find_map(|fast| available().find(|row| row.name == fast));
        fast.or_else(|| available().find(|row| row.traits.is_some_and(|traits| traits.is_good())))
    }

    /// Returns whether the current clock source is the best one of this list.
    pub fn is_best(&self) -> bool {
        use ClocksourceState::{Available, Current};
        let state_of = |name: &str| self.rows.iter().find(|row| row.name == name).map(|row| &row.state);
        let best = best_first().find(|name| matches!(state_of(name), Some(Current | Available)));
        best.is_some_and(|best| state_of(best) == Some(&Current))
    }
}

/// The command that shows the current and the available clock sources of a Linux.
pub const SHOW_CLOCKSOURCES: &str = "cat /sys/devices/system/clocksource/clocksource0/[ac]*_clocksource";

/// The operating system. It determines how the clock source is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Linux,
    FreeBsd,
}

impl System {
    /// Returns the system from the kernel's name. An unknown kernel counts as Linux.
    pub fn of_facts(facts: &HostFacts) -> System {
        let is_freebsd = facts.kernel.known().is_some_and(|kernel| kernel.starts_with("FreeBSD"));
        if is_freebsd { System::FreeBsd } else { System::Linux }
    }

    /// Returns the command that switches to `name`, as root.
    pub fn switch_command(self, name: &str) -> String {
        match self {
            System::Linux => format!("echo {name} > /sys/devices/system/clocksource/clocksource0/current_clocksource"),
            System::FreeBsd if name.contains(' ') => format!("sysctl 'kern.timecounter.hardware={name}'"),
            System::FreeBsd => format!("sysctl kern.timecounter.hardware={name}"),
        }
    }

    /// Returns how to keep `name` after a restart.
    pub fn make_permanent(self, name: &str) -> String {
        match self {
            System::Linux => format!(
                "the boot parameter clocksource={name} (Debian, Ubuntu: add it to GRUB_CMDLINE_LINUX in \
                 /etc/default/grub, then run update-grub)"
            ),
            System::FreeBsd => format!("kern.timecounter.hardware={name} in /etc/sysctl.conf"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let names: Vec<&str> = TABLE.iter().flat_map(|traits| traits.names).copied().collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn clock_sources_that_stall_a_host_are_not_recommended() {
        for (name, slow) in [("hpet", true), ("acpi_pm", true), ("jiffies", false), ("refined-jiffies", false)] {
            let traits = traits_of(name).unwrap();
            assert_eq!((traits.can_stall(), traits.is_slow(), traits.is_good()), (true, slow, false), "{name}");
        }
        assert!(best_first().filter_map(traits_of).all(|traits| !traits.is_slow() && traits.has_vdso));
        assert_eq!(best_first().next(), Some("tsc"));
        assert_eq!(traits_of("flux-capacitor"), None);
    }
}
