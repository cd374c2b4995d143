//! A kernel with a mind of its own, and other people on the host.

use super::stage::{Faulty, Stage, TEN, choose, current, host, request, run, tree};
use crate::host::facts::CURRENT_CLOCKSOURCE;
use std::cell::Cell;

#[test]
fn the_kernel_refuses_without_a_word() {
    let root = tree("tsc", "tsc hpet");
    let setting = Faulty { host: host(&root), claim: None, set: &|_| Some("tsc".into()) };
    let error = run(&setting, request("hpet", TEN), &mut Stage::on(&root)).unwrap_err();
    assert_eq!(error.what, "could not switch to hpet: the kernel still uses tsc");
    assert_eq!(current(&root), "tsc");
}

/// Linux takes what it thinks best in place of a name that it will not have.
#[test]
fn the_kernel_takes_a_third_one() {
    let root = tree("kvm-clock", "tsc kvm-clock hpet");
    let set = |name: &str| Some(if name == "hpet" { "tsc".into() } else { name.into() });
    let setting = Faulty { host: host(&root), claim: None, set: &set };
    let error = run(&setting, request("hpet", TEN), &mut Stage::on(&root)).unwrap_err();
    assert_eq!(error.what, "could not switch to hpet: the kernel switched to tsc instead");
    assert_eq!(current(&root), "kvm-clock", "our write has done that, so it is put back");
}

#[test]
fn a_write_that_fails() {
    let root = tree("tsc", "tsc hpet");
    let setting = Faulty { host: host(&root), claim: None, set: &|_| None };
    let error = run(&setting, request("hpet", TEN), &mut Stage::on(&root)).unwrap_err();
    assert_eq!(error.what, "could not switch to hpet: Input/output error");
}

#[test]
fn somebody_else_changes_it_meanwhile() {
    let root = tree("tsc", "tsc hpet kvm-clock");
    let mut stage = Stage::on(&root);
    stage.waiting = Box::new(|_| choose(&root, "kvm-clock"));
    let error = run(&host(&root), request("hpet", TEN), &mut stage).unwrap_err();
    assert!(error.what.contains("has changed it to kvm-clock"), "{error:?}");
    assert!(error.hint.contains("echo tsc > "), "{error:?}");
    assert_eq!(current(&root), "kvm-clock", "theirs is left alone");

    let root = tree("tsc", "tsc hpet kvm-clock");
    let mut stage = Stage::on(&root);
    stage.waiting = Box::new(|_| choose(&root, "tsc"));
    run(&host(&root), request("hpet", TEN), &mut stage).unwrap();
    assert!(stage.text().ends_with("The clock source is tsc already: someone else restored it.\n"));
}

#[test]
fn somebody_else_changes_it_before_the_write() {
    let root = tree("tsc", "tsc hpet kvm-clock");
    let mut stage = Stage::on(&root);
    stage.measuring = Box::new(|_| choose(&root, "kvm-clock"));
    let error = run(&host(&root), request("hpet", TEN), &mut stage).unwrap_err();
    assert_eq!(error.what, "another user or program has just changed the clock source from tsc to kvm-clock");
    assert_eq!(current(&root), "kvm-clock");
}

#[test]
fn what_cannot_be_put_back_is_told_loudly() {
    let root = tree("tsc", "tsc hpet");
    let writes = Cell::new(0);
    let set = |name: &str| {
        writes.set(writes.get() + 1);
        (writes.get() == 1).then(|| name.to_string())
    };
    let setting = Faulty { host: host(&root), claim: None, set: &set };
    let error = run(&setting, request("hpet", TEN), &mut Stage::on(&root)).unwrap_err();
    assert_eq!(error.what, "THE CLOCK SOURCE COULD NOT BE RESTORED TO tsc: Input/output error");
    assert_eq!(error.hint, format!("as root, type: echo tsc > {CURRENT_CLOCKSOURCE}"));

    writes.set(0);
    choose(&root, "tsc");
    let set = |_: &str| Some("hpet".into());
    let setting = Faulty { host: host(&root), claim: None, set: &set };
    let error = run(&setting, request("hpet", TEN), &mut Stage::on(&root)).unwrap_err();
    assert_eq!(error.what, "THE CLOCK SOURCE COULD NOT BE RESTORED TO tsc: the kernel still uses hpet");
}
