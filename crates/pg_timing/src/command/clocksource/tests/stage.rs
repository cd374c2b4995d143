//! What the tests switch instead of a host, and what they see of it.

use super::super::*;
use crate::host::facts::{CURRENT_CLOCKSOURCE, Host};
use crate::host::measure::Budget;
use crate::report::{ClockReport, Clocksource, Through};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use timing_clock::Nanos;

pub fn file(root: &Path) -> PathBuf {
    root.join(CURRENT_CLOCKSOURCE.trim_start_matches('/'))
}

/// A tree with these two files in it.
pub fn tree(current: &str, available: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let file = file(root.path());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file.with_file_name("available_clocksource"), format!("{available} \n")).unwrap();
    std::fs::write(file, format!("{current}\n")).unwrap();
    root
}

pub fn current(root: &TempDir) -> String {
    std::fs::read_to_string(file(root.path())).unwrap().trim().into()
}

pub fn choose(root: &TempDir, name: &str) {
    std::fs::write(file(root.path()), name).unwrap();
}

/// Two costs, the second that of the new clock source.
pub const COSTS: [f64; 2] = [20.0, 800.0];

/// Keeps what was said, with the clock source of that moment.
pub struct Stage<'a> {
    pub root: &'a TempDir,
    pub said: Vec<(String, String)>,
    pub measured: usize,
    pub measuring: Box<dyn Fn(usize) + 'a>,
    pub waiting: Box<dyn Fn(&Budget) + 'a>,
    pub back: u64,
    pub against: Vec<String>,
}

impl<'a> Stage<'a> {
    pub fn on(root: &'a TempDir) -> Stage<'a> {
        Stage {
            root,
            said: Vec::new(),
            measured: 0,
            measuring: Box::new(|_| ()),
            waiting: Box::new(|_| ()),
            back: 0,
            against: Vec::new(),
        }
    }

    pub fn text(&self) -> String {
        self.said.iter().map(|(text, _)| anstream::adapter::strip_str(text).to_string()).collect()
    }
}

impl Around for Stage<'_> {
    fn against(&mut self, _: &str) -> Vec<String> {
        self.against.clone()
    }

    fn measure(&mut self) -> ClockReport {
        (self.measuring)(self.measured);
        self.measured += 1;
        ClockReport {
            name: "system".into(),
            read_ns: Some(COSTS[self.measured - 1]),
            read_spread_ns: Some(0.5),
            granularity_ns: Some(10.0),
            through: Some([Through::Vdso, Through::Syscall][self.measured - 1]),
            backward_steps: self.back,
            largest_backward_ns: 1500.0,
            ..ClockReport::default()
        }
    }

    fn wait(&mut self, budget: &Budget) {
        (self.waiting)(budget);
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        self.said.push((text.into(), current(self.root)));
        Ok(())
    }
}

pub const TEN: Stay = Stay::For(Nanos::from_secs(10.0));

pub fn wish(name: &str, stay: Stay) -> Wish<'_> {
    Wish { name, stay, force: true }
}

/// A switch that nothing stops.
pub fn run(setting: &dyn Setting, wish: Wish, stage: &mut Stage) -> Result<(), NotDone> {
    switch(setting, &wish, stage, &AtomicBool::new(false)).map_err(|e| e.downcast().unwrap())
}

pub fn host(root: &TempDir) -> Host {
    Host::captured(root.path().into())
}

/// Nothing was measured, said or changed.
pub fn refused(root: &TempDir, wish: Wish) -> NotDone {
    let before = current(root);
    let mut stage = Stage::on(root);
    let error = run(&host(root), wish, &mut stage).unwrap_err();
    assert_eq!((stage.measured, stage.text().as_str()), (0, ""));
    assert_eq!(current(root), before);
    error
}

/// A setting with a fault.
pub struct Faulty<'a> {
    pub host: Host,
    pub claim: Option<i32>,
    /// what the write of a name really does: `None` if it fails
    pub set: &'a dyn Fn(&str) -> Option<String>,
}

impl Setting for Faulty<'_> {
    fn look(&self) -> Clocksource {
        self.host.look()
    }

    fn claim(&self) -> io::Result<Claim> {
        match self.claim {
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None => self.host.claim(),
        }
    }

    fn set(&self, name: &str) -> io::Result<()> {
        match (self.set)(name) {
            Some(name) => self.host.set(&name),
            None => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }

    fn system(&self) -> System {
        System::Linux
    }
}
