//! `--capture` writes a tree.

use super::super::{findings, json, pg_timing, run};
use super::report;

/// `--root` reads what `--capture` writes. The figures are the same; the host's name is left out.
#[test]
fn captured_tree_gives_the_same_report() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    let (live_status, live, stderr) = run(pg_timing().args(["-d", "0.5", "--format", "json", "--capture"]).arg(&tree));
    assert_eq!(stderr, "");
    let (status, captured) = report(&tree);
    assert_eq!(status, live_status);
    let live = json(&live);
    for key in ["clocks", "clocksource", "drift"] {
        assert_eq!(live[key], captured[key], "{key}");
    }
    assert_eq!(findings(&live), findings(&captured));
    assert_eq!(live["tsc"]["frequency_khz"], captured["tsc"]["frequency_khz"]);
    assert_eq!(live["host"]["virtualization"], captured["host"]["virtualization"]);
    assert!(captured["host"]["name"]["unavailable"].is_string());

    let (status, stdout, stderr) = run(pg_timing().args(["-d", "0.5", "--capture"]).arg(&tree));
    assert_eq!((status, stdout.as_str()), (3, ""), "an existing tree is not overwritten");
    assert!(stderr.starts_with(&format!("pg_timing: error: \"{}\"", tree.display())), "{stderr}");
}

/// A limit on the size of files, or a full disk: the new tree disappears, although the kernel sends a signal by default.
#[test]
fn failed_capture_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let script = "ulimit -f 0 && exec \"$@\"";
    let mut command = assert_cmd::Command::new("sh");
    let program = pg_timing();
    command.args(["-c", script, "sh"]).arg(program.get_program()).args(program.get_args());
    command.args(["check", "-d", "0.1", "--capture"]).arg(dir.path().join("tree"));
    let (status, _, stderr) = run(&mut command);
    assert!(status == 3 && stderr.contains("File too large"), "{status} {stderr}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
