//! The progress bar on stderr. It is shown only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

const STEPS: u64 = 100;

/// Returns a progress bar with a label, or `None` if stderr is not a terminal. There is no bar either
/// if the process may not read the counter: indicatif reads a clock, and the kernel would kill the process.
pub fn bar(label: &'static str) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() || timing_clock::counter::permitted().is_err() {
        return None;
    }
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent} %").ok()?;
    Some(ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr()).with_style(style).with_message(label))
}

/// Moves the bar to `done`, a fraction from 0 to 1. Removes the bar at 1.
pub fn show(bar: Option<&ProgressBar>, done: f64) {
    let Some(bar) = bar else { return };
    match done >= 1.0 {
        true => bar.finish_and_clear(),
        false => bar.set_position((done * STEPS as f64) as u64),
    }
}
