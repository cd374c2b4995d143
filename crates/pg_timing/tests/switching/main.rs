//! Tests of `clocksource use` that switch the clock source of this machine, each for about a second, and restore it.
//!
//! They are a separate test program, because no other test may measure a clock at the same time.

#![cfg(target_os = "linux")]

mod in_directory;
mod not_permitted;
mod signals;
mod trial;

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// Clock sources that every host can use without harm.
const FAST: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
/// The deadline of each step. No step takes that long, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Only one test at a time may switch.
static LOCK: Mutex<()> = Mutex::new(());

/// The current clock source of this machine and another fast one. Dropping it restores the current one.
struct Switchable {
    old: String,
    other: String,
    _lock: MutexGuard<'static, ()>,
}

impl Switchable {
    /// Returns `None` and prints the reason if this machine cannot switch.
    fn new() -> Option<Switchable> {
        match Switchable::try_new() {
            Ok(switchable) => Some(switchable),
            Err(reason) => {
                eprintln!("SKIPPED: {reason}");
                None
            }
        }
    }

    /// Returns the reason as an error if this machine cannot switch.
    fn try_new() -> Result<Switchable, String> {
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let available = std::fs::read_to_string(AVAILABLE).map_err(|_| "this machine has no clock sources in sysfs")?;
        let old = current();
        if !FAST.contains(&old.as_str()) {
            return Err(format!("this machine uses {old}, which is not switched for a test"));
        }
        let other = available.split_whitespace().find(|name| FAST.contains(name) && *name != old);
        let other =
            other.ok_or_else(|| format!("this machine has no second fast clock source: {}", available.trim()))?;
        if std::fs::OpenOptions::new().write(true).open(CURRENT).is_err() {
            return Err(format!("no permission to write {CURRENT}"));
        }
        Ok(Switchable { old, other: other.into(), _lock: lock })
    }
}

impl Drop for Switchable {
    fn drop(&mut self) {
        if current() != self.old {
            std::fs::write(CURRENT, &self.old).unwrap();
        }
    }
}

fn current() -> String {
    std::fs::read_to_string(CURRENT).unwrap().trim().into()
}

fn clocksource(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.arg("clocksource").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the exit status, stdout and stderr.
fn parts(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    parts(clocksource(arguments).output().unwrap())
}
