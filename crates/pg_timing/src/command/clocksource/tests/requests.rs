//! What may be wished, and what it shows.

use super::stage::{Faulty, Stage, TEN, current, file, host, refused, request, run, tree};
use crate::host::clocksource::*;

#[test]
fn there_and_back() {
    let root = tree("tsc", "tsc hpet acpi_pm");
    let mut stage = Stage::on(&root);
    stage.waiting = Box::new(|budget| assert!((0.0..=10.0).contains(&budget.left().secs()), "{:?}", budget.left()));
    run(&host(&root), request("hpet", TEN), &mut stage).unwrap();
    assert_eq!(current(&root), "tsc");
    let at: Vec<&str> = stage.said.iter().map(|(_, at)| at.as_str()).collect();
    assert_eq!(at, ["tsc", "hpet", "hpet", "tsc"], "the way back is told before anything is written");
    assert!(stage.said[0].0.contains("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"));
    insta::assert_snapshot!(stage.text());
}

#[test]
fn kept() {
    let root = tree("kvm-clock", "kvm-clock tsc");
    let mut stage = Stage::on(&root);
    stage.waiting = Box::new(|_| panic!("nothing to wait for"));
    run(&host(&root), request("tsc", Duration::Keep), &mut stage).unwrap();
    assert_eq!(current(&root), "tsc");
    insta::assert_snapshot!(stage.text());
}

#[test]
fn not_kept_if_the_time_goes_back() {
    let root = tree("kvm-clock", "kvm-clock tsc");
    let mut stage = Stage { back: 3, ..Stage::on(&root) };
    let error =
        run(&host(&root), SwitchRequest { force: false, ..request("tsc", Duration::Keep) }, &mut stage).unwrap_err();
    assert_eq!(error.what, "tsc is not kept: the time went back by up to 1.5 us during the measurement");
    assert!(stage.text().contains("Warning: with tsc the time went back 3 times"), "{}", stage.text());
    assert_eq!(current(&root), "kvm-clock");
    let mut stage = Stage { back: 3, ..Stage::on(&root) };
    run(&host(&root), request("tsc", Duration::Keep), &mut stage).unwrap();
    assert_eq!(current(&root), "tsc", "who forces it, gets it");
}

#[test]
fn not_available() {
    let error = refused(&tree("hpet", "hpet acpi_pm"), request("tsc", TEN));
    assert_eq!(error.what, "the kernel does not offer a clock source \"tsc\"");
    assert!(error.hint.starts_with("available: hpet acpi_pm; if the kernel marked the TSC unstable"), "{}", error.hint);
    let error = refused(&tree("hpet", "hpet acpi_pm"), request("tsc\n\x1b[31m", TEN));
    assert!(error.what.contains(r#""tsc\n\u{1b}[31m""#), "{}", error.what);
    assert_eq!(error.hint, "available: hpet acpi_pm");
}

#[test]
fn in_use_already() {
    let root = tree("hpet", "hpet acpi_pm");
    let mut stage = Stage::on(&root);
    // Nothing is written, so no right and no force is asked for.
    run(&host(&root), SwitchRequest { force: false, ..request("hpet", TEN) }, &mut stage).unwrap();
    assert_eq!((stage.measured, stage.text().as_str()), (0, "The clock source is hpet already. Nothing to do.\n"));
}

#[test]
fn what_can_stall_a_host_takes_force() {
    for name in ["hpet", "acpi_pm", "jiffies", "refined-jiffies"] {
        let root = tree("tsc", "tsc hpet acpi_pm jiffies refined-jiffies kvm-clock");
        let error = refused(&root, SwitchRequest { force: false, ..request(name, TEN) });
        assert!(error.what.contains("stall") && error.hint.ends_with(&format!("{name} --for 1 --force")), "{error:?}");
        run(&host(&root), request(name, TEN), &mut Stage::on(&root)).unwrap();
    }
    let root = tree("tsc", "tsc kvm-clock");
    run(&host(&root), SwitchRequest { force: false, ..request("kvm-clock", TEN) }, &mut Stage::on(&root)).unwrap();
}

#[test]
fn what_is_known_to_be_bad_takes_force() {
    let root = tree("kvm-clock", "kvm-clock tsc");
    let faults = || vec!["rdtsc: CPU 8 is 1115 to 1343 ns ahead of CPU 0".to_string()];
    let mut stage = Stage { faults: faults(), ..Stage::on(&root) };
    let error =
        run(&host(&root), SwitchRequest { force: false, ..request("tsc", Duration::Keep) }, &mut stage).unwrap_err();
    assert_eq!(error.what, format!("tsc has known faults on this host: {}", faults()[0]));
    assert_eq!((current(&root).as_str(), stage.measured, stage.text().as_str()), ("kvm-clock", 0, ""));
    run(&host(&root), request("tsc", TEN), &mut Stage { faults: faults(), ..Stage::on(&root) }).unwrap();
}

#[test]
fn no_sysfs() {
    let root = tempfile::tempdir().unwrap();
    let error = run(&host(&root), request("tsc", TEN), &mut Stage::on(&root)).unwrap_err();
    assert!(error.what.contains("No such file or directory") && error.hint.contains("sysfs"), "{error:?}");
}

#[test]
fn no_right_to_write() {
    let root = tree("tsc", "tsc hpet");
    let mut stage = Stage::on(&root);
    let set = |_: &str| panic!("it may not");
    let setting = Faulty { host: host(&root), claim: Some(libc::EROFS), set: &set };
    let error = run(&setting, request("hpet", TEN), &mut stage).unwrap_err();
    assert!(error.what.starts_with("cannot write /sys/") && error.hint.contains("containers"), "{error:?}");
    assert_eq!((stage.measured, stage.text().as_str()), (0, ""));
    // What cannot be had needs no right.
    let error = run(&setting, request("acpi_pm", TEN), &mut stage).unwrap_err();
    assert!(error.what.contains("does not offer"), "{error:?}");
}

#[test]
fn a_directory_in_place_of_the_file() {
    let root = tree("tsc", "tsc hpet");
    std::fs::remove_file(file(root.path())).unwrap();
    std::fs::create_dir(file(root.path())).unwrap();
    assert!(host(&root).lock().is_err());
}
