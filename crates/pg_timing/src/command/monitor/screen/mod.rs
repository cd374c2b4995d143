//! The live screen of `monitor`: waits for samples and keys, and draws.

mod keys;
mod local_time;
mod signals;
mod terminal;

use crate::command::is_utf8;
use crate::render::screen::{Sort, View, draw};
use crate::report::MonitorReport;
use keys::{Action, action};
use signals::Signals;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use terminal::Screen;
pub use terminal::abandon;

/// Events per press of Page Up or Page Down. A screen of 24 lines shows about as many.
const PAGE: isize = 5;

/// A sample is overdue if it takes three intervals instead of one, and ten seconds longer: slow answers of a server delay it.
const OVERDUE_INTERVALS: f64 = 3.0;
const OVERDUE_S: f64 = 10.0;

/// What the screen shows of the last sample.
#[derive(Clone, Default)]
pub struct Latest {
    pub report: MonitorReport,
    /// the events that are not in the file of events, and the reason
    pub unwritten: Option<String>,
}

/// Shows the latest report until the user quits or `stop` is set. `changed` counts the samples.
///
/// The terminal is restored in all cases. Returns an error with a hint if the terminal cannot show the screen, and an error
/// if the terminal closes.
pub fn run(latest: &Mutex<Latest>, changed: &AtomicU64, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    terminal::check()?;
    let signals = Signals::register(stop)?;
    let mut screen = Screen::enter()?;
    let mut view = View {
        sort: Sort::default(),
        paused: false,
        overdue: false,
        unwritten: None,
        help: false,
        scroll: 0,
        color: terminal::has_color(),
        unicode: is_utf8() && std::io::stdout().is_terminal(),
        local_time: local_time::local_time,
    };
    let mut report = MonitorReport::default();
    let mut last_sample = Instant::now();
    let (mut drawn_sample, mut redraw) = (None, true);
    while !stop.load(Ordering::Relaxed) {
        screen.check()?;
        if signals.suspended() {
            screen.suspend(&signals)?;
            redraw = true;
        }
        if signals.continued() {
            // Something else may have used the terminal, for example after SIGSTOP.
            screen.enter_again()?;
            redraw = true;
        }
        let sample = changed.load(Ordering::Acquire);
        if !view.paused && drawn_sample != Some(sample) {
            // If a thread panicked while it wrote the report, the report is old or incomplete, and can be shown.
            Latest { report, unwritten: view.unwritten } =
                latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            drawn_sample = Some(sample);
            last_sample = Instant::now();
            redraw = true;
        }
        let overdue = last_sample.elapsed().as_secs_f64() > OVERDUE_S + OVERDUE_INTERVALS * report.interval_s.max(0.0);
        redraw |= overdue != view.overdue;
        view.overdue = overdue;
        redraw |= screen.resize()?;
        if redraw {
            screen.draw(|frame| draw(&report, &view, frame.area(), frame.buffer_mut()))?;
        }
        redraw = false;
        for key in screen.keys()? {
            match action(key) {
                Some(Action::Quit) => return Ok(()),
                Some(Action::Suspend) => screen.suspend(&signals)?,
                Some(action) => select(&mut view, action, report.events.len()),
                None => continue,
            }
            redraw = true;
        }
    }
    if let Some(signal) = signals.deadly() {
        screen.end_by(signal)?;
    }
    Ok(())
}

/// Changes the view.
fn select(view: &mut View, action: Action, events: usize) {
    match action {
        Action::Help => view.help = !view.help,
        Action::CloseHelp => view.help = false,
        Action::Pause => view.paused = !view.paused,
        Action::Sort => view.sort = view.sort.next(),
        Action::Older => view.scroll_by(1, events),
        Action::Newer => view.scroll_by(-1, events),
        Action::PageOlder => view.scroll_by(PAGE, events),
        Action::PageNewer => view.scroll_by(-PAGE, events),
        Action::Quit | Action::Suspend => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_change_the_view() {
        let local_time = local_time::local_time;
        let sort = crate::render::screen::Sort::default();
        let mut view = View {
            sort,
            paused: false,
            overdue: false,
            unwritten: None,
            help: false,
            scroll: 0,
            color: false,
            unicode: false,
            local_time,
        };
        use Action::*;
        for (action, scroll) in [(Older, 1), (PageOlder, 6), (PageOlder, 9), (Newer, 8), (PageNewer, 3), (PageNewer, 0)]
        {
            select(&mut view, action, 10);
            assert_eq!(view.scroll, scroll, "{action:?}");
        }
        [Help, Pause, Sort].into_iter().for_each(|action| select(&mut view, action, 10));
        assert!(view.help && view.paused && view.sort == sort.next());
        [CloseHelp, Pause].into_iter().for_each(|action| select(&mut view, action, 10));
        assert!(!view.help && !view.paused);
    }
}
