//! Ends that come early: signals, panics, readers that go away.

use super::stage::{Stage, TEN, current, host, request, run, tree};
use crate::error::Error;
use crate::host::clocksource::*;
use crate::host::measure::Budget;
use crate::report::ClockReport;
use crate::report::SwitchEvent;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[test]
fn a_signal_puts_it_back() {
    let stopped_while = |measuring: usize| {
        let root = tree("tsc", "tsc hpet");
        let stop = AtomicBool::new(false);
        let mut stage = Stage::on(&root);
        let set_in_time = |nth| stop.store(nth == measuring, Relaxed);
        stage.measuring = Box::new(set_in_time);
        let wait_for_it = |budget: &Budget| {
            assert!(!budget.interrupted());
            stop.store(true, Relaxed);
        };
        stage.waiting = Box::new(wait_for_it);
        let result = switch(&host(&root), &request("hpet", TEN), &mut stage, &stop);
        assert_eq!(current(&root), "tsc");
        (result.map_err(|e| e.downcast::<Error>().unwrap()), stage.text())
    };
    let (result, _) = stopped_while(0);
    assert_eq!(result.unwrap_err().what, "stopped before anything was changed");
    let (result, text) = stopped_while(1);
    let error = result.unwrap_err();
    assert_eq!((error.what.as_str(), text.contains("one read")), ("stopped before hpet was measured", false));
    assert_eq!(error.hint, "The clock source is tsc again.");
    let (result, text) = stopped_while(usize::MAX);
    result.unwrap();
    assert!(text.contains("Stopped after ") && text.ends_with("The clock source is tsc again.\n"), "{text}");
}

#[test]
fn a_panic_puts_it_back() {
    for panicking in ["measuring", "waiting"] {
        let root = tree("tsc", "tsc hpet");
        let mut stage = Stage::on(&root);
        let measuring = |nth| assert!(panicking != "measuring" || nth == 0 || current(&root) != "hpet", "on purpose");
        stage.measuring = Box::new(measuring);
        let waiting = |_: &Budget| panic!("on purpose");
        stage.waiting = Box::new(waiting);
        let result = catch_unwind(AssertUnwindSafe(|| run(&host(&root), request("hpet", TEN), &mut stage)));
        assert!(result.is_err(), "{panicking}");
        assert_eq!(current(&root), "tsc", "{panicking}");
    }
}

/// A reader of our output that went away.
#[test]
fn output_that_fails_puts_it_back() {
    struct Mute<'a>(Stage<'a>, usize);
    impl SwitchEnv for Mute<'_> {
        fn known_faults(&mut self, _: &str) -> Vec<String> {
            Vec::new()
        }
        fn measure(&mut self) -> ClockReport {
            self.0.measure()
        }
        fn wait(&mut self, budget: &Budget) {
            self.0.wait(budget);
        }
        fn show(&mut self, event: SwitchEvent) -> anyhow::Result<()> {
            anyhow::ensure!(self.0.said.len() < self.1, "broken pipe");
            self.0.show(event)
        }
    }
    for lines in 0..4 {
        let root = tree("tsc", "tsc hpet");
        let mut mute = Mute(Stage::on(&root), lines);
        switch(&host(&root), &request("hpet", TEN), &mut mute, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(current(&root), "tsc");
        assert_eq!(mute.0.measured, [0, 2, 2, 2][lines], "nothing without a way back");
    }
}
