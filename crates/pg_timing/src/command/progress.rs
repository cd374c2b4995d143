//! The progress bar: on stderr, and only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

const STEPS: u64 = 100;

/// A bar over `what`, or nothing. Where the counter is denied there is none either: the bar's
/// library looks at a clock that would kill the process.
pub fn bar(what: &'static str) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() || timing_clock::counter::permitted().is_err() {
        return None;
    }
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent} %").ok()?;
    Some(ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr()).with_style(style).with_message(what))
}

/// Moves the bar to `done`, of 1; at 1 it goes away.
pub fn show(bar: Option<&ProgressBar>, done: f64) {
    let Some(bar) = bar else { return };
    match done >= 1.0 {
        true => bar.finish_and_clear(),
        false => bar.set_position((done * STEPS as f64) as u64),
    }
}
