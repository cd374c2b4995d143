//! What the tests switch instead of a host, and what they see of it.

use crate::error::Error;
use crate::host::clocksource::*;
use crate::host::facts::{CURRENT_CLOCKSOURCE, Host};
use crate::host::measure::Budget;
use crate::report::{AccessPath, ClockReport, Clocksource};
use crate::report::{SwitchEvent, System};
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
    pub faults: Vec<String>,
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
            faults: Vec::new(),
        }
    }

    pub fn text(&self) -> String {
        self.said.iter().map(|(text, _)| anstream::adapter::strip_str(text).to_string()).collect()
    }
}

impl SwitchEnv for Stage<'_> {
    fn known_faults(&mut self, _: &str) -> Vec<String> {
        self.faults.clone()
    }

    fn measure(&mut self) -> ClockReport {
        (self.measuring)(self.measured);
        self.measured += 1;
        ClockReport {
            name: "system".into(),
            read_ns: Some(COSTS[self.measured - 1]),
            read_spread_ns: Some(0.5),
            granularity_ns: Some(10.0),
            through: Some([AccessPath::Vdso, AccessPath::Syscall][self.measured - 1]),
            backward_steps: self.back,
            largest_backward_ns: 1500.0,
            ..ClockReport::default()
        }
    }

    fn wait(&mut self, budget: &Budget) {
        (self.waiting)(budget);
    }

    fn show(&mut self, event: SwitchEvent) -> anyhow::Result<()> {
        self.said.push((crate::render::text::clocksource::event(&event), current(self.root)));
        Ok(())
    }
}

pub const TEN: Duration = Duration::For(Nanos::from_secs(10.0));

pub fn request(name: &str, duration: Duration) -> SwitchRequest<'_> {
    SwitchRequest { name, duration, force: true }
}

/// A switch that nothing stops.
pub fn run(setting: &dyn Setting, request: SwitchRequest, stage: &mut Stage) -> Result<(), Error> {
    switch(setting, &request, stage, &AtomicBool::new(false)).map_err(|e| e.downcast().unwrap())
}

pub fn host(root: &TempDir) -> Host {
    Host::captured(root.path().into())
}

/// Nothing was measured, said or changed.
pub fn refused(root: &TempDir, request: SwitchRequest) -> Error {
    let before = current(root);
    let mut stage = Stage::on(root);
    let error = run(&host(root), request, &mut stage).unwrap_err();
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
    fn read(&self) -> Clocksource {
        Setting::read(&self.host)
    }

    fn lock(&self) -> io::Result<Lock> {
        match self.claim {
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None => self.host.lock(),
        }
    }

    fn write(&self, name: &str) -> io::Result<()> {
        match (self.set)(name) {
            Some(name) => self.host.write(&name),
            None => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }

    fn system(&self) -> System {
        System::Linux
    }
}
