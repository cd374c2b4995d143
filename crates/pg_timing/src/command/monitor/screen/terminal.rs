//! The terminal: its modes, and the second screen that hides the first one until the program ends.

use super::signals::Signals;
use crate::command::Hint;
use crate::human::reason;
use anyhow::anyhow;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Stdout, stdin, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HINT: Hint = Hint("run it in a terminal, or use it without a screen: --listen ADDRESS or --textfile FILE");

const PANIC_HINT: Hint = Hint("please report the message above as a bug");

/// How long the screen waits for a key before it checks for a new sample, a signal and another size. Four checks per second
/// take no measurable CPU time, and a new sample appears soon enough.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// The screen uses this many columns and lines at most, because it keeps two copies of each cell. A program can give its
/// terminal any size up to 65535 x 65535. A real one with 8K and cells of 8 x 16 pixels has 960 x 270.
const MOST_COLUMNS: u16 = 1000;
const MOST_LINES: u16 = 300;

/// Whether the terminal is in raw mode and shows the second screen.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Returns an error if stdin and stdout are no terminal, or if the terminal has no second screen.
pub fn check() -> anyhow::Result<()> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(anyhow!("the screen needs a terminal for stdin and stdout").context(HINT));
    }
    let term = std::env::var("TERM").unwrap_or_default();
    if ["", "dumb", "unknown"].contains(&term.as_str()) {
        return Err(anyhow!("this terminal cannot show a screen (TERM is \"{term}\")").context(HINT));
    }
    Ok(())
}

/// Returns whether the screen may use colors: not with NO_COLOR.
pub fn has_color() -> bool {
    anstream::AutoStream::choice(&stdout()) != anstream::ColorChoice::Never
}

/// The screen. The terminal is restored when it is dropped, and before the message of a panic.
pub struct Screen {
    /// not dropped: it would print its own message if the terminal is closed, and [`leave`] shows the cursor
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    pub fn enter() -> anyhow::Result<Screen> {
        restore_before_panics();
        let options = TerminalOptions { viewport: Viewport::Fixed(area().map_err(closed)?) };
        let terminal = Terminal::with_options(CrosstermBackend::new(stdout()), options).map_err(closed)?;
        let screen = Screen { terminal: ManuallyDrop::new(terminal) };
        enter().map_err(|error| anyhow!("could not prepare the terminal: {}", reason(&error)).context(HINT))?;
        Ok(screen)
    }

    /// Prepares the terminal again after another program may have used it.
    pub fn enter_again(&mut self) -> anyhow::Result<()> {
        leave().and_then(|()| enter()).and_then(|()| self.terminal.clear()).map_err(closed)
    }

    /// Uses the present size of the terminal. Returns whether it has changed.
    pub fn resize(&mut self) -> anyhow::Result<bool> {
        let area = area().map_err(closed)?;
        let changed = self.terminal.get_frame().area() != area;
        if changed {
            self.terminal.resize(area).map_err(closed)?;
        }
        Ok(changed)
    }

    /// Returns an error if another thread has panicked. Its message is on the first screen.
    pub fn check(&self) -> anyhow::Result<()> {
        match ACTIVE.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(anyhow!("the monitor has failed").context(PANIC_HINT)),
        }
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> anyhow::Result<()> {
        self.terminal.draw(draw).map(|_| ()).map_err(closed)
    }

    /// Waits for keys for at most [`WAIT`], and returns them.
    pub fn keys(&self) -> anyhow::Result<Vec<Event>> {
        let stdin = stdin();
        let mut input = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut input, Some(&WAIT)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(closed(error.into())),
        }
        // crossterm would read from a closed terminal forever.
        if input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(closed(io::ErrorKind::BrokenPipe.into()));
        }
        let mut keys = Vec::new();
        while event::poll(Duration::ZERO).map_err(closed)? {
            keys.push(event::read().map_err(closed)?);
        }
        Ok(keys)
    }

    /// Restores the terminal, and ends the program as the signal does without a handler.
    pub fn end_by(&self, signal: libc::c_int) -> anyhow::Result<()> {
        leave().map_err(closed)?;
        Ok(signal_hook::low_level::emulate_default_handler(signal)?)
    }

    /// Stops the program until the shell continues it, and shows the first screen meanwhile.
    pub fn suspend(&mut self, signals: &Signals) -> anyhow::Result<()> {
        leave().map_err(closed)?;
        signals.stop_job();
        enter().and_then(|()| self.terminal.clear()).map_err(closed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is closed, there is nothing to restore.
        _ = leave();
    }
}

fn closed(error: io::Error) -> anyhow::Error {
    anyhow!("could not use the terminal: {}", reason(&error))
}

/// Returns the part of the terminal that the screen uses.
fn area() -> io::Result<Rect> {
    let (columns, lines) = size()?;
    Ok(Rect::new(0, 0, columns.min(MOST_COLUMNS), lines.min(MOST_LINES)))
}

fn enter() -> io::Result<()> {
    ACTIVE.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide)
}

/// Restores the terminal, unless that is done already.
fn leave() -> io::Result<()> {
    if !ACTIVE.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    // The modes belong to stdin. They can be restored even if stdout is closed.
    let shown = execute!(stdout(), LeaveAlternateScreen, Show);
    disable_raw_mode().and(shown)
}

/// Restores the modes of a terminal that takes no output: a program that reads it later gets its keys.
pub fn abandon() {
    if ACTIVE.swap(false, Ordering::Relaxed) {
        _ = disable_raw_mode();
    }
}

/// Restores the terminal before the message of a panic, so that the message is readable. Any thread can panic.
fn restore_before_panics() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            _ = leave();
            previous(panic);
        }));
    });
}
