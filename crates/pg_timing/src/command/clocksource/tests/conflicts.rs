//! The kernel selects another clock source than requested, a write fails, or another program switches at the same time.

use super::fakes::{FakeEnv, FaultySetting, TEN_SECONDS, current, forced, host, run, set_current, sysfs};
use crate::host::facts::CURRENT_CLOCKSOURCE;
use std::cell::Cell;

#[test]
fn kernel_that_ignores_the_write_is_reported() {
    let root = sysfs("tsc", "tsc hpet");
    let setting = FaultySetting { host: host(&root), lock_error: None, selected_after_write: &|_| Some("tsc".into()) };
    let error = run(&setting, forced("hpet", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap_err();
    assert_eq!(error.what, "could not switch to hpet: the kernel uses tsc instead");
    assert_eq!(current(&root), "tsc");
}

/// If Linux does not accept a clock source, it selects the one with the best rating instead.
#[test]
fn third_clock_source_selected_by_our_write_is_replaced_by_the_old_one() {
    let root = sysfs("kvm-clock", "tsc kvm-clock hpet");
    let select = |name: &str| Some(if name == "hpet" { "tsc".into() } else { name.into() });
    let setting = FaultySetting { host: host(&root), lock_error: None, selected_after_write: &select };
    let error = run(&setting, forced("hpet", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap_err();
    assert_eq!(error.what, "could not switch to hpet: the kernel uses tsc instead");
    assert_eq!(current(&root), "kvm-clock");
}

#[test]
fn failed_write_is_reported() {
    let root = sysfs("tsc", "tsc hpet");
    let setting = FaultySetting { host: host(&root), lock_error: None, selected_after_write: &|_| None };
    let error = run(&setting, forced("hpet", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap_err();
    assert_eq!(error.what, "could not switch to hpet: Input/output error");
    assert_eq!(current(&root), "tsc");
}

#[test]
fn clock_source_changed_by_others_during_the_wait_is_left_alone() {
    let root = sysfs("tsc", "tsc hpet kvm-clock");
    let mut env = FakeEnv::new(&root);
    env.on_wait = Box::new(|_| set_current(&root, "kvm-clock"));
    let error = run(&host(&root), forced("hpet", TEN_SECONDS), &mut env).unwrap_err();
    assert!(
        error.what.contains("was not restored to tsc") && error.what.contains("changed it to kvm-clock"),
        "{error:?}"
    );
    assert!(error.hint.ends_with(&format!("echo tsc > {CURRENT_CLOCKSOURCE}")), "{error:?}");
    assert_eq!(current(&root), "kvm-clock");
}

#[test]
fn clock_source_restored_by_others_during_the_wait_is_current_again() {
    let root = sysfs("tsc", "tsc hpet kvm-clock");
    let mut env = FakeEnv::new(&root);
    env.on_wait = Box::new(|_| set_current(&root, "tsc"));
    run(&host(&root), forced("hpet", TEN_SECONDS), &mut env).unwrap();
    assert!(env.text().ends_with("The clock source is tsc again.\n"), "{}", env.text());
    assert_eq!(current(&root), "tsc");
}

#[test]
fn clock_source_changed_by_others_before_the_write_is_left_alone() {
    let root = sysfs("tsc", "tsc hpet kvm-clock");
    let mut env = FakeEnv::new(&root);
    env.on_measure = Box::new(|_| set_current(&root, "kvm-clock"));
    let error = run(&host(&root), forced("hpet", TEN_SECONDS), &mut env).unwrap_err();
    assert_eq!(error.what, "another user or program has just changed the clock source from tsc to kvm-clock");
    assert_eq!(current(&root), "kvm-clock");
}

#[test]
fn failed_restore_is_reported_with_the_command_to_type() {
    let root = sysfs("tsc", "tsc hpet");
    let writes = Cell::new(0);
    let only_first_write_works = |name: &str| {
        writes.set(writes.get() + 1);
        (writes.get() == 1).then(|| name.to_string())
    };
    let setting = FaultySetting { host: host(&root), lock_error: None, selected_after_write: &only_first_write_works };
    let error = run(&setting, forced("hpet", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap_err();
    assert_eq!(error.what, "THE CLOCK SOURCE COULD NOT BE RESTORED TO tsc: Input/output error");
    assert_eq!(error.hint, format!("as root, type: echo tsc > {CURRENT_CLOCKSOURCE}"));
    assert_eq!(writes.get(), 2);
}

#[test]
fn restore_that_the_kernel_ignores_is_reported() {
    let root = sysfs("tsc", "tsc hpet");
    let setting = FaultySetting { host: host(&root), lock_error: None, selected_after_write: &|_| Some("hpet".into()) };
    let error = run(&setting, forced("hpet", TEN_SECONDS), &mut FakeEnv::new(&root)).unwrap_err();
    assert_eq!(error.what, "THE CLOCK SOURCE COULD NOT BE RESTORED TO tsc: the kernel uses hpet instead");
    assert_eq!(error.hint, format!("as root, type: echo tsc > {CURRENT_CLOCKSOURCE}"));
}
