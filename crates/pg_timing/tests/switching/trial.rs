//! A switch of this machine's clock source, for a second or permanently.

use super::{CURRENT, Switchable, current, run};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Calls `action`. Returns the clock sources that the machine used meanwhile, without repetitions, and the result.
fn watch<T>(action: impl FnOnce() -> T) -> (Vec<String>, T) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut names = vec![current()];
            loop {
                let is_last = done.load(Relaxed);
                let now = current();
                if names.last() != Some(&now) {
                    names.push(now);
                }
                if is_last {
                    return names;
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let result = action();
        done.store(true, Relaxed);
        (watcher.join().unwrap(), result)
    })
}

#[test]
fn old_clock_source_is_restored_after_the_trial() {
    let Some(host) = Switchable::new() else { return };
    let (old, other) = (host.old.as_str(), host.other.as_str());
    let start = Instant::now();
    let (names, (status, stdout, stderr)) = watch(|| run(&["use", other, "--for", "1"]));
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert_eq!(names, [old, other, old]);
    assert!(start.elapsed() >= Duration::from_secs(1));
    let position = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("{text}: {stdout}"));
    let positions = [position(&format!("echo {old} > {CURRENT}")), position("before  "), position("now  ")];
    assert!(positions.is_sorted(), "{stdout}");
    assert!(stdout.ends_with(&format!("The clock source is {old} again.\n")), "{stdout}");
    let costs = stdout.lines().filter(|line| line.contains(" +- ") && line.ends_with("vDSO"));
    assert_eq!(costs.count(), 2, "the read costs of both clock sources: {stdout}");
}

#[test]
fn kept_clock_source_stays_after_the_program_ends() {
    let Some(host) = Switchable::new() else { return };
    let other = host.other.as_str();
    let (status, stdout, stderr) = run(&["use", other, "--keep"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert_eq!(current(), other);
    assert!(stdout.contains(&format!("clocksource={other}")) && stdout.contains("risk: "), "{stdout}");
}
