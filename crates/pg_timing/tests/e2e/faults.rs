//! Clocks with faults, put in front of the program's: an LD_PRELOAD library wraps `clock_gettime`.
//! It cannot touch RDTSC, nor the system calls by which the program keeps its own time.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use super::{alarms, json, pg_timing, ran};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/faulty_clock.c");
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("faulty_clock.so");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source)
            .status();
        assert!(status.expect("a C compiler").success());
        library
    })
}

fn with_fault(fault: &str, arguments: &[&str]) -> (i32, String, String) {
    ran(pg_timing().args(arguments).env("LD_PRELOAD", library()).env("FAULTY_CLOCK", fault))
}

fn check(fault: &str) -> (i32, Value) {
    let (status, stdout, stderr) = with_fault(fault, &["-d", "1", "--format", "json"]);
    assert_eq!(stderr, "", "{fault}");
    (status, json(&stdout))
}

fn system(report: &Value) -> &Value {
    &report["clocks"][0]
}

fn raises(report: &Value, id: &str, severity: &str) {
    assert!(alarms(report).contains(&(id.into(), severity.into())), "{id}: {:?}", alarms(report));
}

#[test]
fn a_slow_clock() {
    let (status, report) = check("slow");
    let figure = |name: &str| system(&report)[name].as_f64().unwrap();
    assert!(figure("read_ns") > 700.0);
    // What it is at the low end of its spread decides, and three busy processes on two CPUs make that wide.
    let (wanted, severity) = match figure("read_ns") - figure("read_spread_ns") {
        low if low > 500.0 => (2, "critical"),
        low if low > 100.0 => (1, "warning"),
        _ => (0, "ok"),
    };
    // Others may have something to say of a machine that busy.
    assert!(status >= wanted, "{status}");
    let findings = report["findings"].as_array().unwrap();
    let slow = findings.iter().find(|finding| finding["id"] == "clock-slow").unwrap();
    assert_eq!(slow["severity"], severity);
}

#[test]
fn a_clock_that_goes_back_34_ms() {
    let (status, report) = check("back");
    assert_eq!(status, 2);
    assert!(system(&report)["backward_steps"].as_u64().unwrap() > 0);
    let largest = system(&report)["largest_backward_ns"].as_f64().unwrap();
    assert!((33e6..=34e6).contains(&largest), "{largest}");
    raises(&report, "clock-backward", "critical");
}

#[test]
fn a_clock_that_stands_still_ends_in_time() {
    let (status, report) = check("frozen");
    assert_eq!(status, 2);
    assert_eq!(system(&report)["granularity_ns"], Value::Null);
    raises(&report, "clock-coarse", "critical");
}

#[test]
fn the_test_command_ends_at_a_step_back() {
    let (status, _, stderr) = with_fault("back", &["test", "-d", "1"]);
    assert_eq!(status, 3);
    assert!(stderr.starts_with("Detected clock going backwards in time.\nTime warp: -3"), "{stderr}");
}

/// PR_SET_TSC from a constructor: the program finds itself denied as it begins.
#[test]
fn the_counter_is_denied() {
    let (status, report) = check("denied");
    assert_eq!(status, 1);
    raises(&report, "tsc-denied", "warning");
    assert!(system(&report)["unavailable"].as_str().unwrap().contains("PR_SET_TSC"));
    let clocks = report["clocks"].as_array().unwrap();
    let measured: Vec<&str> =
        clocks.iter().filter(|c| c["unavailable"].is_null()).map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(measured, ["system_syscall", "monotonic_coarse"], "what is left is measured");
    let (status, _, stderr) = with_fault("denied", &["test", "-d", "1"]);
    assert_eq!(status, 3);
    assert!(stderr.contains("PR_SET_TSC"), "{stderr}");
}

/// One CPU, no /proc, no /sys, no /dev/kmsg: figures all the same, and no alarm for what is missing.
#[test]
fn a_bare_root_and_one_cpu() {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(env!("CARGO_BIN_EXE_pg_timing"));
    command.args(["-d", "1", "--format", "json"]);
    // SAFETY: system calls only, between fork and exec.
    unsafe { command.pre_exec(bare_root) };
    let output = match command.output() {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            eprintln!("NOT TESTED: this container may not make namespaces");
            return;
        }
        output => output.unwrap(),
    };
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert!(system(&report)["read_ns"].is_number(), "{report}");
    assert!(report["clocksource"]["current"]["unavailable"].is_string(), "{report}");
    assert_eq!(report["tsc"]["independent"], Value::Null, "nobody says what the kernel's clock runs on");
    assert_eq!(report["cpus"]["skew"].as_array().unwrap().len(), 0);
    // What is missing is no alarm; what was measured may be one.
    let about_files = ["clocksource-slow", "tsc-demoted", "tsc-absent", "tsc-rate-mismatch", "cpu-skew"];
    assert!(alarms(&report).iter().all(|(id, _)| !about_files.contains(&id.as_str())), "{:?}", alarms(&report));
}

/// A mount namespace with empty /proc, /sys and /dev, and one CPU.
fn bare_root() -> std::io::Result<()> {
    // SAFETY: plain system calls on constants.
    unsafe {
        let root = libc::geteuid() == 0;
        let flags = libc::CLONE_NEWNS | if root { 0 } else { libc::CLONE_NEWUSER };
        done(libc::unshare(flags))?;
        // Nothing mounted here may spread. In a chroot "/" is no mount, but each directory is one.
        let private = |dir: &std::ffi::CStr| {
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            done(libc::mount(c"none".as_ptr(), dir.as_ptr(), std::ptr::null(), flags, std::ptr::null()))
        };
        let whole = private(c"/");
        for dir in [c"/sys", c"/dev", c"/proc"] {
            if whole.is_err() {
                private(dir)?;
            }
            done(libc::mount(c"none".as_ptr(), dir.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()))?;
        }
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| {
            libc::CPU_ZERO(&mut one);
            libc::CPU_SET(*cpu, &mut one);
            libc::sched_setaffinity(0, size_of_val(&one), &one) == 0
        });
        first.map(|_| ()).ok_or_else(std::io::Error::last_os_error)
    }
}

fn done(rc: libc::c_int) -> std::io::Result<()> {
    if rc == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
