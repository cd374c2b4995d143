//! A signal, a panic or a closed output ends the switch early. The old clock source must be restored.

use super::super::*;
use super::fakes::{FakeEnv, TEN_SECONDS, current, forced, host, run, sysfs};
use crate::error::Error;
use crate::guardian::GuardianProcess;
use crate::host::measure::Budget;
use crate::report::ClockReport;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use timing_clock::Nanos;

/// Runs a switch. A signal arrives during the given measurement, or during the wait if there is no such measurement.
/// Asserts that the old clock source is restored. Returns the result and the text that was shown.
fn run_with_signal(during_measurement: Option<usize>) -> (Result<(), Error>, String) {
    let root = sysfs("tsc", "tsc hpet");
    let stop = AtomicBool::new(false);
    let mut env = FakeEnv::new(&root);
    env.on_measure = Box::new(|nth| stop.store(Some(nth) == during_measurement, Relaxed));
    env.on_wait = Box::new(|budget| {
        assert!(!budget.interrupted());
        stop.store(true, Relaxed);
    });
    let result = switch(&host(&root), &forced("hpet", TEN_SECONDS), &mut env, &stop);
    assert_eq!(current(&root), "tsc");
    (result.map_err(|e| e.downcast::<Error>().unwrap()), env.text())
}

#[test]
fn signal_before_the_switch_changes_nothing() {
    let (result, _) = run_with_signal(Some(0));
    let error = result.unwrap_err();
    assert_eq!(error.what, "stopped before anything was changed");
    assert_eq!(error.hint, "the clock source is still tsc");
}

#[test]
fn signal_while_the_new_clock_source_is_measured_restores_the_old_one() {
    let (result, text) = run_with_signal(Some(1));
    let error = result.unwrap_err();
    assert_eq!(error.what, "stopped before hpet was measured");
    assert_eq!(error.hint, "The clock source is tsc again.");
    assert!(!text.contains("one read"), "an incomplete comparison is not shown: {text}");
}

#[test]
fn signal_during_the_wait_restores_the_old_clock_source() {
    let (result, text) = run_with_signal(None);
    result.unwrap();
    assert!(text.contains("Stopped after ") && text.ends_with("The clock source is tsc again.\n"), "{text}");
}

#[test]
fn panic_restores_the_old_clock_source() {
    for place in ["measurement", "wait"] {
        let root = sysfs("tsc", "tsc hpet");
        let mut env = FakeEnv::new(&root);
        env.on_measure = Box::new(|nth| {
            if nth == 1 {
                assert_eq!(current(&root), "hpet");
                assert_ne!(place, "measurement", "panics on purpose");
            }
        });
        env.on_wait = Box::new(|_| panic!("panics on purpose"));
        let result = catch_unwind(AssertUnwindSafe(|| run(&host(&root), forced("hpet", TEN_SECONDS), &mut env)));
        assert!(result.is_err(), "{place}");
        assert_eq!(current(&root), "tsc", "{place}");
    }
}

/// An environment whose output is closed after some texts.
struct ClosedOutput<'a> {
    env: FakeEnv<'a>,
    texts: usize,
}

impl SwitchEnv for ClosedOutput<'_> {
    fn known_faults(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn guard(&mut self, _: &dyn Setting, _: &str, _: &str, _: Nanos) -> Result<Option<GuardianProcess>, Error> {
        Ok(None)
    }

    fn measure(&mut self) -> ClockReport {
        self.env.measure()
    }

    fn wait(&mut self, budget: &Budget) {
        self.env.wait(budget);
    }

    fn show(&mut self, document: &Document) -> anyhow::Result<()> {
        self.texts = self.texts.checked_sub(1).ok_or_else(|| anyhow::anyhow!("broken pipe"))?;
        self.env.show(document)
    }
}

#[test]
fn closed_output_restores_the_old_clock_source() {
    // The undo command and an empty line are the first texts. Without them, nothing may be changed or measured.
    for (texts, measurements) in [(0, 0), (2, 2), (3, 2), (4, 2)] {
        let root = sysfs("tsc", "tsc hpet");
        let mut env = ClosedOutput { env: FakeEnv::new(&root), texts };
        let request = forced("hpet", TEN_SECONDS);
        let error = switch(&host(&root), &request, &mut env, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.to_string(), "broken pipe");
        assert_eq!(current(&root), "tsc");
        assert_eq!(env.env.measurements, measurements, "{texts}");
    }
}
