//! A fake sysfs and a fake environment for the tests of a switch.

use super::super::{SwitchEnv, UseArguments, switch};
use crate::document::Document;
use crate::document::text::{Output, text};
use crate::error::Error;
use crate::guardian::GuardianProcess;
use crate::host::clocksource::*;
use crate::host::facts::{CURRENT_CLOCKSOURCE, Host};
use crate::host::measure::Budget;
use crate::report::{AccessPath, ClockReport, Clocksource};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use timing_clock::Nanos;

/// Returns the path of the file `current_clocksource` in a tree.
pub fn current_file(root: &Path) -> PathBuf {
    root.join(CURRENT_CLOCKSOURCE.trim_start_matches('/'))
}

/// Creates a tree with the files `current_clocksource` and `available_clocksource`.
pub fn sysfs(current: &str, available: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let file = current_file(root.path());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file.with_file_name("available_clocksource"), format!("{available} \n")).unwrap();
    std::fs::write(file, format!("{current}\n")).unwrap();
    root
}

pub fn current(root: &TempDir) -> String {
    std::fs::read_to_string(current_file(root.path())).unwrap().trim().into()
}

pub fn set_current(root: &TempDir, name: &str) {
    std::fs::write(current_file(root.path()), name).unwrap();
}

/// Read costs in ns of the first and the second measurement.
const READ_NS: [f64; 2] = [20.0, 800.0];

/// An environment that records what is shown, and runs a callback in each measurement and wait.
pub struct FakeEnv<'a> {
    pub root: &'a TempDir,
    /// each text that was shown, with the clock source at that moment
    pub shown: Vec<(String, String)>,
    /// number of measurements
    pub measurements: usize,
    /// called with the number of earlier measurements
    pub on_measure: Box<dyn Fn(usize) + 'a>,
    pub on_wait: Box<dyn Fn(&Budget) + 'a>,
    /// backward steps that each measurement finds
    pub backward_steps: u64,
    pub known_faults: Vec<String>,
}

impl<'a> FakeEnv<'a> {
    pub fn new(root: &'a TempDir) -> FakeEnv<'a> {
        FakeEnv {
            root,
            shown: Vec::new(),
            measurements: 0,
            on_measure: Box::new(|_| ()),
            on_wait: Box::new(|_| ()),
            backward_steps: 0,
            known_faults: Vec::new(),
        }
    }

    /// Returns everything that was shown, without colors.
    pub fn text(&self) -> String {
        self.shown.iter().map(|(text, _)| anstream::adapter::strip_str(text).to_string()).collect()
    }
}

impl SwitchEnv for FakeEnv<'_> {
    fn known_faults(&mut self, _: &str) -> Vec<String> {
        self.known_faults.clone()
    }

    fn guard(&mut self, _: &dyn Setting, _: &str, _: &str, _: Nanos) -> Result<Option<GuardianProcess>, Error> {
        Ok(None)
    }

    fn measure(&mut self) -> ClockReport {
        let nth = self.measurements;
        (self.on_measure)(nth);
        self.measurements += 1;
        ClockReport {
            name: "system".into(),
            read_ns: Some(READ_NS[nth]),
            read_spread_ns: Some(0.5),
            granularity_ns: Some(10.0),
            access_path: Some([AccessPath::Vdso, AccessPath::Syscall][nth]),
            backward_steps: self.backward_steps,
            largest_backward_ns: 1500.0,
            ..ClockReport::default()
        }
    }

    fn wait(&mut self, budget: &Budget) {
        (self.on_wait)(budget);
    }

    fn show(&mut self, document: &Document) -> anyhow::Result<()> {
        let text = text(document, Output::PIPE);
        if text != "\n" {
            self.shown.push((text, current(self.root)));
        }
        Ok(())
    }
}

pub const TEN_SECONDS: Option<Nanos> = Some(Nanos::from_secs(10.0));

fn request(name: &str, trial: Option<Nanos>, force: bool) -> UseArguments {
    UseArguments { name: name.into(), seconds: trial.unwrap_or(Nanos(0.0)), keep: trial.is_none(), force }
}

/// Returns a request with `--force`.
pub fn forced(name: &str, trial: Option<Nanos>) -> UseArguments {
    request(name, trial, true)
}

/// Returns a request without `--force`.
pub fn unforced(name: &str, trial: Option<Nanos>) -> UseArguments {
    request(name, trial, false)
}

/// Runs a switch that no signal stops.
pub fn run(setting: &dyn Setting, request: UseArguments, env: &mut FakeEnv) -> Result<(), Error> {
    switch(setting, &request, env, &AtomicBool::new(false)).map_err(|e| e.downcast().unwrap())
}

pub fn host(root: &TempDir) -> Host {
    Host::captured(root.path().into())
}

/// Runs a switch that must fail before it measures, shows or changes anything. Returns the error.
pub fn refused(root: &TempDir, request: UseArguments) -> Error {
    let before = current(root);
    let mut env = FakeEnv::new(root);
    let error = run(&host(root), request, &mut env).unwrap_err();
    assert_eq!((env.measurements, env.text().as_str()), (0, ""));
    assert_eq!(current(root), before);
    error
}

/// A setting that fails like a kernel or a file system.
pub struct FaultySetting<'a> {
    pub host: Host,
    /// the error number that `lock` fails with
    pub lock_error: Option<i32>,
    /// returns the clock source that the kernel selects after a write, or `None` if the write fails
    pub selected_after_write: &'a dyn Fn(&str) -> Option<String>,
}

impl Setting for FaultySetting<'_> {
    fn read(&self) -> Clocksource {
        Setting::read(&self.host)
    }

    fn lock(&self) -> io::Result<Lock> {
        match self.lock_error {
            Some(code) => Err(io::Error::from_raw_os_error(code)),
            None => self.host.lock(),
        }
    }

    fn write(&self, name: &str) -> io::Result<()> {
        match (self.selected_after_write)(name) {
            Some(name) => self.host.write(&name),
            None => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }
}
