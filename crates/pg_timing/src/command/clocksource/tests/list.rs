//! The list, of trees that look like hosts.

use super::stage::tree;
use crate::host::clocksource::*;
use crate::host::facts::Host;
use crate::render::text;
use crate::report::{ClocksourceList, ClocksourceState};
use std::path::Path;
use tempfile::TempDir;

fn add(root: &TempDir, path: &str, content: &str) {
    let file = root.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, content).unwrap();
}

fn of(root: &Path) -> ClocksourceList {
    list(&Host::captured(root.into()), || panic!("another machine's clock cannot be measured")).unwrap()
}

fn states(root: &TempDir) -> Vec<(String, ClocksourceState)> {
    of(root.path()).rows.into_iter().map(|row| (row.name, row.state)).collect()
}

fn row(name: &str, state: ClocksourceState) -> (String, ClocksourceState) {
    (name.into(), state)
}

const INVARIANT: &str = "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n";

#[test]
fn the_one_in_use_comes_first() {
    let root = tree("kvm-clock", "tsc kvm-clock acpi_pm");
    let wanted = [
        row("kvm-clock", ClocksourceState::Current),
        row("tsc", ClocksourceState::Available),
        row("acpi_pm", ClocksourceState::Available),
    ];
    assert_eq!(states(&root), wanted);
    assert_eq!(of(root.path()).candidate().unwrap().name, "tsc");
    assert!(of(tree("tsc", "tsc hpet").path()).candidate().is_none(), "nobody is led to hpet");
}

#[test]
fn why_there_is_no_tsc() {
    let root = tree("hpet", "hpet");
    assert_eq!(states(&root).len(), 1, "nothing tells that there is one");
    add(&root, "proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc\n");
    assert_eq!(states(&root)[1], row("tsc", ClocksourceState::NotConstant));
    add(&root, "proc/cpuinfo", INVARIANT);
    assert_eq!(states(&root)[1], row("tsc", ClocksourceState::Rejected));
    add(&root, "proc/cmdline", "quiet tsc=unstable\n");
    assert_eq!(states(&root)[1], row("tsc", ClocksourceState::Forbidden("tsc=unstable".into())));
    add(&root, "proc/cpuinfo", "CPU implementer\t: 0x41\n");
    assert_eq!(states(&root).len(), 1, "an ARM CPU has none to miss");
}

#[test]
fn freebsd() {
    let root = tempfile::tempdir().unwrap();
    let choice = "ACPI-fast(900) HPET(950) TSC-low(-100) i8254(0) dummy(-1000000)";
    add(&root, "sysctl", &format!("kern.timecounter.hardware: HPET\nkern.timecounter.choice: {choice}\n"));
    let offered = ["ACPI-fast", "i8254"].map(|name| row(name, ClocksourceState::Available));
    let wanted = [
        vec![row("HPET", ClocksourceState::Current)],
        offered.into(),
        vec![row("TSC-low", ClocksourceState::NegativeQuality)],
    ]
    .concat();
    assert_eq!(states(&root), wanted);
}

#[test]
fn one_of_the_two_files_is_enough() {
    let root = tree("hpet", "hpet acpi_pm");
    let file = super::stage::file(root.path());
    std::fs::remove_file(file.with_file_name("available_clocksource")).unwrap();
    assert_eq!(states(&root), [row("hpet", ClocksourceState::Current)]);
    std::fs::remove_file(file).unwrap();
    let error = list(&Host::captured(root.path().into()), || panic!()).unwrap_err();
    assert!(error.what.contains("current_clocksource: No such file") && error.hint.contains("sysfs"), "{error:?}");
}

#[test]
fn its_text() {
    let root = tree("refined-jiffies", "refined-jiffies flux-capacitor hyperv_clocksource_tsc_page xen");
    add(&root, "proc/cpuinfo", INVARIANT);
    let text = text::clocksource::list(&of(root.path()));
    insta::assert_snapshot!(anstream::adapter::strip_str(&text));
}
