//! What to type to switch the clock source by hand, and to make it last.

use crate::host::facts::{CLOCKSOURCE_DIR, Host};
use crate::report::{Fact, HostFacts};

/// The systems differ in where the clock source is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Linux,
    FreeBsd,
}

impl System {
    pub fn of(host: &Host) -> System {
        if host.sysctls().is_some() { System::FreeBsd } else { System::Linux }
    }

    /// Told by the kernel's name; of an unknown kernel, what most are.
    pub fn of_facts(facts: &HostFacts) -> System {
        match &facts.kernel {
            Fact::Known(kernel) if kernel.starts_with("FreeBSD") => System::FreeBsd,
            _ => System::Linux,
        }
    }

    /// What its administrators call a clock source.
    pub fn word(self) -> &'static str {
        match self {
            System::Linux => "clock source",
            System::FreeBsd => "timecounter",
        }
    }

    /// The line that shows what is in use and what is offered.
    pub fn look(self) -> String {
        match self {
            System::Linux => format!("cat {CLOCKSOURCE_DIR}/[ac]*_clocksource"),
            System::FreeBsd => "sysctl kern.timecounter.hardware kern.timecounter.choice".into(),
        }
    }

    /// The line that switches to `name`, as root.
    pub fn set(self, name: &str) -> String {
        match self {
            System::Linux => format!("echo {name} > {CLOCKSOURCE_DIR}/current_clocksource"),
            System::FreeBsd if name.contains(' ') => format!("sysctl 'kern.timecounter.hardware={name}'"),
            System::FreeBsd => format!("sysctl kern.timecounter.hardware={name}"),
        }
    }

    /// How `name` outlasts a restart.
    pub fn lasting(self, name: &str) -> String {
        match self {
            System::Linux => format!(
                "the boot parameter clocksource={name} (Debian, Ubuntu: add it to GRUB_CMDLINE_LINUX in \
                 /etc/default/grub, then run update-grub)"
            ),
            System::FreeBsd => format!("kern.timecounter.hardware={name} in /etc/sysctl.conf"),
        }
    }
}
