//! The list of clock sources in captured trees.

use super::fakes::{current_file, sysfs};
use crate::document::{
    self,
    text::{Output, text},
};
use crate::host::clocksource::*;
use crate::host::facts::Host;
use crate::report::{ClocksourceList, ClocksourceState};
use std::path::Path;
use tempfile::TempDir;

fn add_file(root: &TempDir, path: &str, content: &str) {
    let file = root.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, content).unwrap();
}

fn list_of(root: &Path) -> ClocksourceList {
    list(&Host::captured(root.into()), || panic!("the clock of a captured tree cannot be measured")).unwrap()
}

fn rows(root: &TempDir) -> Vec<(String, ClocksourceState)> {
    list_of(root.path()).rows.into_iter().map(|row| (row.name, row.state)).collect()
}

fn row(name: &str, state: ClocksourceState) -> (String, ClocksourceState) {
    (name.into(), state)
}

const CPU_WITH_INVARIANT_TSC: &str = "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n";

#[test]
fn current_clock_source_is_the_first_row() {
    let root = sysfs("kvm-clock", "tsc kvm-clock acpi_pm");
    let expected = [
        row("kvm-clock", ClocksourceState::Current),
        row("tsc", ClocksourceState::Available),
        row("acpi_pm", ClocksourceState::Available),
    ];
    assert_eq!(rows(&root), expected);
}

#[test]
fn candidate_is_never_slower_than_the_current_clock_source() {
    assert_eq!(list_of(sysfs("kvm-clock", "tsc kvm-clock acpi_pm").path()).candidate().unwrap().name, "tsc");
    assert!(list_of(sysfs("tsc", "tsc hpet").path()).candidate().is_none());
}

#[test]
fn reason_for_a_missing_tsc_is_shown() {
    let root = sysfs("hpet", "hpet");
    assert_eq!(rows(&root), [row("hpet", ClocksourceState::Current)], "without cpuinfo, a TSC is not expected");
    let tsc_row = || rows(&root)[1].clone();
    add_file(&root, "proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc\n");
    assert_eq!(tsc_row(), row("tsc", ClocksourceState::NotConstant));
    add_file(&root, "proc/cpuinfo", CPU_WITH_INVARIANT_TSC);
    assert_eq!(tsc_row(), row("tsc", ClocksourceState::Rejected));
    add_file(&root, "proc/cmdline", "quiet tsc=unstable\n");
    assert_eq!(tsc_row(), row("tsc", ClocksourceState::Forbidden("tsc=unstable".into())));
    add_file(&root, "proc/cpuinfo", "CPU implementer\t: 0x41\n");
    assert_eq!(rows(&root), [row("hpet", ClocksourceState::Current)], "an ARM CPU has no TSC");
}

#[test]
fn current_clocksource_file_is_enough() {
    let root = sysfs("hpet", "hpet acpi_pm");
    let file = current_file(root.path());
    std::fs::remove_file(file.with_file_name("available_clocksource")).unwrap();
    assert_eq!(rows(&root), [row("hpet", ClocksourceState::Current)]);
    std::fs::remove_file(file).unwrap();
    let error = list(&Host::captured(root.path().into()), || panic!()).unwrap_err();
    assert!(error.what.ends_with("current_clocksource: No such file or directory"), "{error:?}");
    assert!(error.hint.contains("sysfs"), "{error:?}");
}

#[test]
fn text_of_unusual_clock_sources() {
    let root = sysfs("refined-jiffies", "refined-jiffies flux-capacitor hyperv_clocksource_tsc_page xen");
    add_file(&root, "proc/cpuinfo", CPU_WITH_INVARIANT_TSC);
    let text = text(&document::clocksource::list(&list_of(root.path())), Output::PIPE);
    insta::assert_snapshot!(anstream::adapter::strip_str(&text));
}
