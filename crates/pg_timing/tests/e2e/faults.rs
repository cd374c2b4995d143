//! Checks of a system clock with faults. An LD_PRELOAD library replaces `clock_gettime`. It affects neither RDTSC nor
//! the system calls with which the program measures its own time.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use super::{alarms, assert_status_matches_verdict, json, pg_timing, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The path of the library, which is built once.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/faulty_clock.c");
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("faulty_clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
    assert!(compiler.status().expect("a C compiler is needed").success());
    library
});

fn run_with_fault(fault: &str, arguments: &[&str]) -> (i32, String, String) {
    run(pg_timing().args(arguments).env("LD_PRELOAD", &*LIBRARY).env("FAULTY_CLOCK", fault))
}

fn check_with_fault(fault: &str, seconds: &str) -> (i32, Value) {
    let (status, stdout, stderr) = run_with_fault(fault, &["-d", seconds, "--format", "json"]);
    assert_eq!(stderr, "", "{fault}");
    (status, json(&stdout))
}

fn system_clock(report: &Value) -> &Value {
    let clock = &report["clocks"][0];
    assert_eq!(clock["name"], "system");
    clock
}

fn assert_alarm(report: &Value, alarm: (&str, &str)) {
    assert!(alarms(report).contains(&alarm), "{alarm:?}: {:?}", alarms(report));
}

/// A read takes 20 us, so a buffer of 1024 reads takes 20 ms. In 0.1 s there are too few buffers for a spread, which on
/// a busy machine would be wide and hide the slow clock. `captured.rs` tests the limits of the read cost.
#[test]
fn slow_clock_is_critical() {
    let (status, report) = check_with_fault("slow", "0.1");
    let clock = system_clock(&report);
    assert!(clock["read_ns"].as_f64().unwrap() >= 20_000.0, "{clock}");
    assert_eq!(clock["read_spread_ns"], Value::Null);
    assert_eq!((status, &report["verdict"]["severity"]), (2, &"critical".into()));
    assert_alarm(&report, ("clock-slow", "critical"));
    // The library makes a read cost more than a system call.
    assert_alarm(&report, ("clock-syscall", "warning"));
}

/// The clock steps back in each 500 reads, so even a single buffer of 1024 reads contains a backward step.
#[test]
fn clock_that_steps_back_34_ms_is_critical() {
    let (status, report) = check_with_fault("back", "0.3");
    let clock = system_clock(&report);
    assert!(clock["backward_steps"].as_u64().unwrap() > 0, "{clock}");
    let largest = clock["largest_backward_ns"].as_f64().unwrap();
    assert!((33e6..=34e6).contains(&largest), "{largest}");
    assert_eq!((status, &report["verdict"]["severity"]), (2, &"critical".into()));
    assert_alarm(&report, ("clock-backward", "critical"));
}

/// A program that waits for the clock to move would run into the timeout.
#[test]
fn frozen_clock_is_critical() {
    let (status, report) = check_with_fault("frozen", "0.3");
    assert_eq!(system_clock(&report)["granularity_ns"], Value::Null);
    assert_eq!((status, &report["verdict"]["severity"]), (2, &"critical".into()));
    assert_alarm(&report, ("clock-coarse", "critical"));
}

/// The title names the clock that went back, as in PostgreSQL 19.
#[test]
fn test_command_stops_at_a_backward_step() {
    let (status, stdout, stderr) = run_with_fault("back", &["test", "-d", "1"]);
    let title = "System clock source: clock_gettime (CLOCK_MONOTONIC)\n";
    assert_eq!((status, stdout), (3, format!("Testing timing overhead for 1 second.\n\n{title}")));
    let step = stderr.strip_prefix("Detected clock going backwards in time.\nTime warp: -").unwrap();
    let ns: u64 = step.strip_suffix(" ns\n").unwrap().parse().unwrap();
    assert!((33_000_000..=34_000_000).contains(&ns), "{stderr}");
}

/// The library's constructor calls PR_SET_TSC, so the counter is denied before `main` starts.
#[test]
fn denied_counter_is_a_warning() {
    let (status, report) = check_with_fault("denied", "0.3");
    assert_eq!((status, &report["verdict"]["severity"]), (1, &"warning".into()));
    // A busy machine can interrupt the measurement, and a machine for tests may have no time service.
    let mut alarms = alarms(&report);
    alarms.retain(|(id, _)| !["clock-gaps", "wall-clock"].contains(id));
    assert_eq!(alarms, [("tsc-denied", "warning")]);
    assert!(system_clock(&report)["unavailable"].as_str().unwrap().contains("PR_SET_TSC"));
    let clocks = report["clocks"].as_array().unwrap();
    let measured = clocks.iter().filter(|clock| clock["unavailable"].is_null());
    let measured: Vec<&str> = measured.map(|clock| clock["name"].as_str().unwrap()).collect();
    assert_eq!(measured, ["system_syscall", "monotonic_coarse"], "clocks that need no counter are measured");

    let (status, stdout, stderr) = run_with_fault("denied", &["test", "-d", "1"]);
    assert_eq!((status, stdout.as_str()), (3, "Testing timing overhead for 1 second.\n"));
    assert!(stderr.starts_with("pg_timing: error: ") && stderr.contains("PR_SET_TSC"), "{stderr}");
}

/// With one CPU and without /proc, /sys and /dev/kmsg, the clocks are measured, and a missing file raises no alarm.
#[test]
fn missing_proc_and_sys_raise_no_alarm() {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["-d", "0.3", "--format", "json"]);
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(hide_proc_and_sys) };
    let output = match command.output() {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            return eprintln!("SKIPPED: this process may not create a mount namespace");
        }
        output => output.unwrap(),
    };
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert_status_matches_verdict(output.status.code().unwrap(), &report);
    assert!(system_clock(&report)["read_ns"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["clocksource"]["current"]["unavailable"].is_string(), "{report}");
    assert_eq!(report["tsc"]["independent"], Value::Null, "the kernel's clock source is unknown");
    assert_eq!(report["cpus"]["skew"], json("[]"), "one CPU has no skew");
    // A busy machine or a slow clock can raise the other alarms.
    let depend_on_files = ["clocksource-slow", "tsc-demoted", "tsc-absent", "tsc-rate-mismatch", "cpu-skew"];
    let alarms = alarms(&report);
    assert!(alarms.iter().all(|(id, _)| !depend_on_files.contains(id)), "{alarms:?}");
}

/// Enters a mount namespace with empty /proc, /sys and /dev, and restricts the process to one CPU.
fn hide_proc_and_sys() -> std::io::Result<()> {
    // SAFETY: plain system calls on constants.
    unsafe {
        let is_root = libc::geteuid() == 0;
        let flags = libc::CLONE_NEWNS | if is_root { 0 } else { libc::CLONE_NEWUSER };
        check_status(libc::unshare(flags))?;
        // The mounts must not propagate to the host. In a chroot, "/" is not a mount point, but each directory is one.
        let make_private = |dir: &std::ffi::CStr| {
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            check_status(libc::mount(c"none".as_ptr(), dir.as_ptr(), std::ptr::null(), flags, std::ptr::null()))
        };
        let root_is_mount_point = make_private(c"/").is_ok();
        for dir in [c"/sys", c"/dev", c"/proc"] {
            if !root_is_mount_point {
                make_private(dir)?;
            }
            check_status(libc::mount(c"none".as_ptr(), dir.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()))?;
        }
        let mut one_cpu: libc::cpu_set_t = std::mem::zeroed();
        let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| {
            libc::CPU_ZERO(&mut one_cpu);
            libc::CPU_SET(*cpu, &mut one_cpu);
            libc::sched_setaffinity(0, size_of_val(&one_cpu), &one_cpu) == 0
        });
        first.map(|_| ()).ok_or_else(std::io::Error::last_os_error)
    }
}

fn check_status(status: libc::c_int) -> std::io::Result<()> {
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
