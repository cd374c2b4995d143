//! The live screen of `monitor`: the terminal, its keys, and when the screen is drawn.

use crate::command::is_utf8;
use crate::error::{Error, require};
use crate::monitor::screen::{View, draw};
use crate::report::MonitorReport;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, is_raw_mode_enabled,
};
use ratatui::{DefaultTerminal, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use std::io::{self, stdin, stdout};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

const HINT: &str = "run it in a terminal, or use it without a screen: --listen ADDRESS or --textfile FILE";

/// How long the screen waits for a key before it checks for a new sample, a signal and another size. Four checks per second
/// take no measurable CPU time, and a new sample appears soon enough.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Events per press of Page Up or Page Down. A screen of 24 lines shows about as many.
const PAGE: isize = 5;

/// Shows the last of these reports until the user quits or `stop` is set.
///
/// The terminal is restored in all cases. Returns an error with a hint if the terminal cannot show the screen, and an error
/// if the terminal closes.
pub fn run(reports: &Receiver<MonitorReport>, stop: &AtomicBool) -> anyhow::Result<()> {
    let term = std::env::var("TERM").unwrap_or_default();
    let is_able = !["", "dumb", "unknown"].contains(&term.as_str());
    require(is_able, format!("this terminal cannot show a screen (TERM is \"{term}\")"), HINT)?;
    let continued = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGCONT, continued.clone())?;
    // A panic of any thread ends a release build. Its message must be readable, and the shell must get a usable terminal.
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        _ = leave();
        previous(panic);
    }));
    let shown = show(reports, stop, &continued);
    // If the terminal is closed, there is nothing to restore.
    _ = leave();
    Ok(shown.map_err(|error| Error::io("could not use the terminal", &error, HINT))?)
}

/// Returns when the user quits, or when `stop` is set.
fn show(reports: &Receiver<MonitorReport>, stop: &AtomicBool, continued: &AtomicBool) -> io::Result<()> {
    enter()?;
    // It is not dropped: it would print its own message if the terminal is closed, and `leave` shows the cursor.
    let mut terminal: ManuallyDrop<DefaultTerminal> =
        ManuallyDrop::new(Terminal::new(CrosstermBackend::new(stdout()))?);
    let color = anstream::AutoStream::choice(&stdout()) != anstream::ColorChoice::Never;
    let mut view = View { color, unicode: is_utf8(), ..View::default() };
    let (mut report, mut newer) = (MonitorReport::default(), None);
    let (mut redraw, mut drawn_size) = (true, None);
    while !stop.load(Ordering::Relaxed) {
        if continued.swap(false, Ordering::Relaxed) {
            // Something else may have used the terminal during a stop.
            leave().and_then(|()| enter()).and_then(|()| terminal.clear())?;
            redraw = true;
        }
        newer = reports.try_iter().last().or(newer);
        if !view.paused
            && let Some(newer) = newer.take()
        {
            report = newer;
            redraw = true;
        }
        let size = Some(terminal.size()?);
        if redraw || size != drawn_size {
            terminal.draw(|frame| draw(&report, &view, frame.area(), frame.buffer_mut()))?;
            drawn_size = size;
        }
        redraw = false;
        for key in keys()? {
            redraw = true;
            match press(&mut view, key, report.events.len()) {
                Some(Leave::Quit) => return Ok(()),
                Some(Leave::Suspend) => {
                    leave()?;
                    stop_job();
                    continued.store(true, Ordering::Relaxed);
                }
                None => {}
            }
        }
    }
    Ok(())
}

/// Waits for keys for at most [`WAIT`], and returns them.
fn keys() -> io::Result<Vec<KeyEvent>> {
    let stdin = stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut input, Some(&WAIT)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
        ready => ready?,
    };
    // crossterm would read from a closed terminal forever.
    if input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let mut keys = Vec::new();
    while event::poll(Duration::ZERO)? {
        keys.extend(event::read()?.as_key_press_event());
    }
    Ok(keys)
}

/// Why the terminal shows the first screen again.
#[derive(Debug, PartialEq)]
enum Leave {
    Quit,
    Suspend,
}

/// Does what a key does. The newest event is at the top, so `down` shows older ones.
fn press(view: &mut View, key: KeyEvent, events: usize) -> Option<Leave> {
    match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
        (KeyCode::Char('c'), true) | (KeyCode::Char('q' | 'Q'), false) => return Some(Leave::Quit),
        (KeyCode::Char('z'), true) => return Some(Leave::Suspend),
        (_, true) => {}
        (KeyCode::Char('p' | 'P' | ' '), _) => view.paused = !view.paused,
        (KeyCode::Down, _) => view.scroll_by(1, events),
        (KeyCode::Up, _) => view.scroll_by(-1, events),
        (KeyCode::PageDown, _) => view.scroll_by(PAGE, events),
        (KeyCode::PageUp, _) => view.scroll_by(-PAGE, events),
        _ => {}
    }
    None
}

/// Stops all processes of this job, as Ctrl-Z does. Returns when the shell continues them, or at once if no shell could
/// continue them.
fn stop_job() {
    /// The kernel stops a process within microseconds. If it did not, it never does.
    const UNTIL_STOPPED: Duration = Duration::from_millis(100);
    // SAFETY: sends a signal, whose default action the kernel takes.
    unsafe { libc::kill(0, SIGTSTP) };
    std::thread::sleep(UNTIL_STOPPED);
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)
}

/// Restores the terminal, unless that is done already.
fn leave() -> io::Result<()> {
    if !is_raw_mode_enabled()? {
        return Ok(());
    }
    // The modes belong to stdin. They can be restored even if stdout is closed.
    let shown = execute!(stdout(), LeaveAlternateScreen, Show);
    disable_raw_mode().and(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_view() {
        let mut view = View::default();
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        use KeyCode::*;
        for (code, scroll) in [(Down, 1), (PageDown, 6), (PageDown, 9), (Up, 8), (PageUp, 3), (PageUp, 0)] {
            assert_eq!(press(&mut view, key(code), 10), None);
            assert_eq!(view.scroll, scroll, "{code:?}");
        }
        for (c, paused) in [(' ', true), ('x', true), ('p', false)] {
            assert_eq!(press(&mut view, key(Char(c)), 10), None);
            assert_eq!(view.paused, paused);
        }
        assert_eq!(press(&mut view, key(Char('q')), 10), Some(Leave::Quit));
        let mut control = |c| press(&mut view, KeyEvent::new(Char(c), KeyModifiers::CONTROL), 10);
        assert_eq!(['c', 'z', 'q'].map(&mut control), [Some(Leave::Quit), Some(Leave::Suspend), None]);
    }
}
