//! Requests that are carried out, with their screens, and requests that are refused.

use super::fakes::{
    FakeEnv, FaultySetting, TEN_SECONDS, current, current_file, forced, host, refused, run, sysfs, unforced,
};
use crate::host::clocksource::*;

#[test]
fn old_clock_source_is_restored_after_the_wait() {
    let root = sysfs("tsc", "tsc hpet acpi_pm");
    let mut env = FakeEnv::new(&root);
    env.on_wait = Box::new(|budget| assert!((0.0..=10.0).contains(&budget.left().secs()), "{:?}", budget.left()));
    run(&host(&root), forced("hpet", TEN_SECONDS), &mut env).unwrap();
    assert_eq!(current(&root), "tsc");
    let current_at_each_text: Vec<&str> = env.shown.iter().map(|(_, current)| current.as_str()).collect();
    assert_eq!(current_at_each_text, ["tsc", "hpet", "hpet", "tsc"], "the undo command is shown before the switch");
    assert!(env.shown[0].0.contains("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"));
    insta::assert_snapshot!(env.text());
}

#[test]
fn kept_clock_source_is_not_restored() {
    let root = sysfs("kvm-clock", "kvm-clock tsc");
    let mut env = FakeEnv::new(&root);
    env.on_wait = Box::new(|_| panic!("--keep does not wait"));
    run(&host(&root), forced("tsc", None), &mut env).unwrap();
    assert_eq!(current(&root), "tsc");
    insta::assert_snapshot!(env.text());
}

#[test]
fn clock_source_that_steps_back_is_kept_only_with_force() {
    let root = sysfs("kvm-clock", "kvm-clock tsc");
    let mut env = FakeEnv { backward_steps: 3, ..FakeEnv::new(&root) };
    let error = run(&host(&root), unforced("tsc", None), &mut env).unwrap_err();
    assert_eq!(error.what, "tsc is not kept: the time went back by up to 1.5 us during the measurement");
    assert_eq!(error.hint, "the clock source is still kvm-clock; --force keeps tsc anyway");
    assert!(env.text().contains("Warning: with tsc the time went back 3 times"), "{}", env.text());
    assert_eq!(current(&root), "kvm-clock");

    let mut env = FakeEnv { backward_steps: 3, ..FakeEnv::new(&root) };
    run(&host(&root), forced("tsc", None), &mut env).unwrap();
    assert_eq!(current(&root), "tsc");
}

#[test]
fn unavailable_clock_source_is_refused() {
    let root = sysfs("hpet", "hpet acpi_pm");
    let error = refused(&root, forced("tsc", TEN_SECONDS));
    assert_eq!(error.what, "the kernel does not offer a clock source \"tsc\"");
    assert!(error.hint.starts_with("available: hpet acpi_pm; if the kernel marked the TSC unstable"), "{}", error.hint);
    let error = refused(&root, forced("tsc\n\x1b[31m", TEN_SECONDS));
    assert_eq!(error.what, r#"the kernel does not offer a clock source "tsc\n\u{1b}[31m""#);
    assert_eq!(error.hint, "available: hpet acpi_pm");
}

#[test]
fn current_clock_source_needs_no_switch() {
    let root = sysfs("hpet", "hpet acpi_pm");
    let mut env = FakeEnv::new(&root);
    // hpet can stall a large host, but nothing is written, so no --force is needed.
    run(&host(&root), unforced("hpet", TEN_SECONDS), &mut env).unwrap();
    assert_eq!((env.measurements, env.text().as_str()), (0, "The clock source is hpet already. Nothing to do.\n"));
}

#[test]
fn clock_source_that_can_stall_a_host_needs_force() {
    for name in ["hpet", "acpi_pm", "jiffies", "refined-jiffies"] {
        let root = sysfs("tsc", "tsc hpet acpi_pm jiffies refined-jiffies kvm-clock");
        let error = refused(&root, unforced(name, TEN_SECONDS));
        assert!(error.what.starts_with(&format!("{name} can stall a large host: ")), "{error:?}");
        assert!(error.hint.ends_with(&format!("pg_timing clocksource use {name} --for 1 --force")), "{error:?}");
        let mut env = FakeEnv::new(&root);
        run(&host(&root), forced(name, TEN_SECONDS), &mut env).unwrap();
        assert_eq!((env.measurements, current(&root).as_str()), (2, "tsc"));
    }
    let root = sysfs("tsc", "tsc kvm-clock");
    run(&host(&root), unforced("kvm-clock", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap();
}

#[test]
fn clock_source_with_known_faults_needs_force() {
    let root = sysfs("kvm-clock", "kvm-clock tsc");
    let fault = "rdtsc: CPU 8 is 1115 to 1343 ns ahead of CPU 0";
    let env_with_fault = || FakeEnv { known_faults: vec![fault.into()], ..FakeEnv::new(&root) };
    let mut env = env_with_fault();
    let error = run(&host(&root), unforced("tsc", None), &mut env).unwrap_err();
    assert_eq!(error.what, format!("tsc has known faults on this host: {fault}"));
    assert_eq!((current(&root).as_str(), env.measurements, env.text().as_str()), ("kvm-clock", 0, ""));
    run(&host(&root), forced("tsc", TEN_SECONDS), &mut env_with_fault()).unwrap();
}

#[test]
fn missing_sysfs_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let error = run(&host(&root), forced("tsc", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap_err();
    assert!(error.what.ends_with("current_clocksource: No such file or directory"), "{error:?}");
    assert!(error.hint.contains("sysfs"), "{error:?}");
}

#[test]
fn missing_permission_is_reported_before_the_measurement() {
    let root = sysfs("tsc", "tsc hpet");
    let mut env = FakeEnv::new(&root);
    let setting = FaultySetting {
        host: host(&root),
        lock_error: Some(libc::EROFS),
        selected_after_write: &|_| panic!("without the lock, nothing is written"),
    };
    let error = run(&setting, forced("hpet", TEN_SECONDS), &mut env).unwrap_err();
    assert!(error.what.starts_with("cannot write /sys/") && error.hint.contains("container"), "{error:?}");
    assert_eq!((env.measurements, env.text().as_str()), (0, ""));
    // An impossible request is reported as such, not as a missing permission.
    let error = run(&setting, forced("acpi_pm", TEN_SECONDS), &mut env).unwrap_err();
    assert_eq!(error.what, "the kernel does not offer a clock source \"acpi_pm\"");
}

#[test]
fn lock_fails_on_a_directory() {
    let root = sysfs("tsc", "tsc hpet");
    std::fs::remove_file(current_file(root.path())).unwrap();
    std::fs::create_dir(current_file(root.path())).unwrap();
    let error = host(&root).lock().err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory);
}
