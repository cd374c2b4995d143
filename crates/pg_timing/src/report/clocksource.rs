//! The clock sources of a host, and the steps of switching to another one.

use super::{ClockReport, ClocksourceTraits, Fact, Grade, HostFacts, best_first};
use timing_clock::Nanos;

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
    /// FreeBSD gives it a negative quality
    NegativeQuality,
}

impl ClocksourceList {
    /// Returns the best available clock source that is not the current one and not slow.
    pub fn candidate(&self) -> Option<&ClocksourceRow> {
        let available = || self.rows.iter().filter(|row| row.state == ClocksourceState::Available);
        let fast = best_first().find_map(|fast| available().find(|row| row.name == fast.name));
        fast.or_else(|| available().find(|row| row.traits.is_some_and(|traits| traits.is_good())))
    }

    /// Returns whether the current clock source is the best one of this list.
    pub fn is_best(&self) -> bool {
        use ClocksourceState::{Available, Current};
        let state_of = |name: &str| self.rows.iter().find(|row| row.name == name).map(|row| &row.state);
        let best = best_first().find(|known| matches!(state_of(known.name), Some(Current | Available)));
        best.is_some_and(|best| state_of(best.name) == Some(&Current))
    }
}

/// A step of switching the clock source, to be shown at once.
#[derive(Clone, Copy, Debug)]
pub enum SwitchEvent<'a> {
    /// nothing to do
    AlreadyCurrent { name: &'a str },
    /// how to undo the switch by hand; comes before any change
    UndoCommand { command: &'a str },
    /// both clock sources were measured; `overhead_ns` is the bound per row and plan node, with the old and the new one
    Measured { old: (&'a str, &'a ClockReport), new: (&'a str, &'a ClockReport), overhead_ns: Option<[f64; 2]> },
    /// the old clock source will be restored after `left`
    Waiting { old: &'a str, left: Nanos },
    /// the old clock source is current again; `stopped_after` if a signal ended the wait early
    Restored { message: &'a str, stopped_after: Option<Nanos> },
    /// the new clock source stays
    Kept { name: &'a str, grade: Option<Grade>, old: &'a str, system: System },
}

/// Where sysfs shows the clock sources.
const DIR: &str = "/sys/devices/system/clocksource/clocksource0";

/// The operating system. It determines how the clock source is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Linux,
    FreeBsd,
}

impl System {
    /// Returns the system from the kernel's name. An unknown kernel counts as Linux.
    pub fn of_facts(facts: &HostFacts) -> System {
        match &facts.kernel {
            Fact::Known(kernel) if kernel.starts_with("FreeBSD") => System::FreeBsd,
            _ => System::Linux,
        }
    }

    /// Returns the system's term for a clock source.
    pub fn clocksource_term(self) -> &'static str {
        match self {
            System::Linux => "clock source",
            System::FreeBsd => "timecounter",
        }
    }

    /// Returns the command that shows the current and the available clock sources.
    pub fn show_command(self) -> String {
        match self {
            System::Linux => format!("cat {DIR}/[ac]*_clocksource"),
            System::FreeBsd => "sysctl kern.timecounter.hardware kern.timecounter.choice".into(),
        }
    }

    /// Returns the command that switches to `name`, as root.
    pub fn switch_command(self, name: &str) -> String {
        match self {
            System::Linux => format!("echo {name} > {DIR}/current_clocksource"),
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
