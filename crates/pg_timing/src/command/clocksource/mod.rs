//! `pg_timing clocksource`: lists the kernel's clock sources, or switches to another one.

use super::arguments::{ClocksourceArguments, ClocksourceCommand, UseArguments};
use super::{check, interrupt, print};
use crate::host::clocksource::{Around, Stay, Wish, list, switch, wait};
use crate::host::facts::Host;
use crate::host::measure::Budget;
use crate::host::survey;
use crate::render::text;
use crate::report::ClockReport;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use timing_clock::Nanos;

/// The clock source in use, for the list.
const GLANCE: Nanos = Nanos::from_millis(200.0);
/// Each of the two that are compared.
const LOOK: Nanos = Nanos::from_millis(500.0);

pub fn run(arguments: ClocksourceArguments) -> anyhow::Result<u8> {
    match arguments.command {
        None => show(None),
        Some(ClocksourceCommand::List { root }) => show(root.as_deref()),
        Some(ClocksourceCommand::Use(arguments)) => use_other(&arguments),
    }
    .map(|()| 0)
}

fn show(root: Option<&Path>) -> anyhow::Result<()> {
    let host = check::host(root)?;
    let measure = || survey::system_clock(GLANCE, &AtomicBool::new(false));
    print(&text::clocksource::list(&list(&host, measure)?))
}

fn use_other(arguments: &UseArguments) -> anyhow::Result<()> {
    let stay = if arguments.keep { Stay::Keep } else { Stay::For(arguments.seconds) };
    let wish = Wish { name: &arguments.name, stay, force: arguments.force };
    let stop = interrupt::until_put_back()?;
    switch(&Host::live(), &wish, &mut Live { stop: &stop }, &stop)
}

/// This machine's clock, this process's time and output.
struct Live<'a> {
    stop: &'a AtomicBool,
}

impl Around for Live<'_> {
    fn against(&mut self, name: &str) -> Vec<String> {
        survey::against(&Host::live(), name, &Budget::new(LOOK, self.stop))
    }

    fn measure(&mut self) -> ClockReport {
        survey::system_clock(LOOK, self.stop)
    }

    fn wait(&mut self, budget: &Budget) {
        wait(budget);
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        print(text)
    }
}
