//! The live screen of `monitor`: the terminal, its keys, and when the screen is drawn.

use crate::command::Hint;
use crate::human::reason;
use crate::render::plus_minus::is_unicode;
use crate::render::screen::{Sort, View, draw};
use crate::report::MonitorReport;
use anyhow::anyhow;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{DefaultTerminal, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use std::io::{self, stdin, stdout};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

const HINT: Hint = Hint("run it in a terminal, or use it without a screen: --listen ADDRESS or --textfile FILE");
const PANIC_HINT: Hint = Hint("please report the message above as a bug");

/// How long the screen waits for a key before it checks for a new sample, a signal and another size. Four checks per second
/// take no measurable CPU time, and a new sample appears soon enough.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Events per press of Page Up or Page Down. A screen of 24 lines shows about as many.
const PAGE: isize = 5;

/// A sample is overdue if it takes three intervals instead of one, and ten seconds longer: slow answers of a server delay it.
const OVERDUE_INTERVALS: f64 = 3.0;
const OVERDUE_S: f64 = 10.0;

/// Whether the terminal is in raw mode and shows the second screen.
static ACTIVE: AtomicBool = AtomicBool::new(false);

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
pub fn run(latest: &Mutex<Latest>, changed: &AtomicU64, stop: &AtomicBool) -> anyhow::Result<()> {
    let term = std::env::var("TERM").unwrap_or_default();
    if ["", "dumb", "unknown"].contains(&term.as_str()) {
        return Err(anyhow!("this terminal cannot show a screen (TERM is \"{term}\")").context(HINT));
    }
    let continued = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGCONT, continued.clone())?;
    restore_before_panics();
    let shown = show(latest, changed, stop, &continued);
    let panicked = !ACTIVE.load(Ordering::Relaxed);
    // If the terminal is closed, there is nothing to restore.
    _ = leave();
    match panicked {
        true => Err(anyhow!("the monitor has failed").context(PANIC_HINT)),
        false => shown.map_err(|error| anyhow!("could not use the terminal: {}", reason(&error)).context(HINT)),
    }
}

/// Returns when the user quits, when `stop` is set, or after another thread has panicked.
fn show(latest: &Mutex<Latest>, changed: &AtomicU64, stop: &AtomicBool, continued: &AtomicBool) -> io::Result<()> {
    enter()?;
    // It is not dropped: it would print its own message if the terminal is closed, and `leave` shows the cursor.
    let mut terminal: ManuallyDrop<DefaultTerminal> =
        ManuallyDrop::new(Terminal::new(CrosstermBackend::new(stdout()))?);
    let mut view = View {
        sort: Sort::default(),
        paused: false,
        overdue: false,
        unwritten: None,
        help: false,
        scroll: 0,
        color: anstream::AutoStream::choice(&stdout()) != anstream::ColorChoice::Never,
        unicode: is_unicode(),
        local_time,
    };
    let mut report = MonitorReport::default();
    let mut last_sample = Instant::now();
    let (mut drawn_sample, mut drawn_size) = (None, None);
    let mut redraw = true;
    while !stop.load(Ordering::Relaxed) && ACTIVE.load(Ordering::Relaxed) {
        if continued.swap(false, Ordering::Relaxed) {
            // Something else may have used the terminal during a stop.
            leave().and_then(|()| enter()).and_then(|()| terminal.clear())?;
            redraw = true;
        }
        let sample = Some(changed.load(Ordering::Acquire));
        if !view.paused && drawn_sample != sample {
            // If a thread panicked while it wrote the report, the report is old or incomplete, and can be shown.
            Latest { report, unwritten: view.unwritten } =
                latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            (drawn_sample, last_sample) = (sample, Instant::now());
            redraw = true;
        }
        let overdue = last_sample.elapsed().as_secs_f64() > OVERDUE_S + OVERDUE_INTERVALS * report.interval_s.max(0.0);
        let size = Some(terminal.size()?);
        if redraw || overdue != view.overdue || size != drawn_size {
            (view.overdue, drawn_size) = (overdue, size);
            terminal.draw(|frame| draw(&report, &view, frame.area(), frame.buffer_mut()))?;
        }
        redraw = false;
        for key in keys()? {
            redraw = true;
            match press(&mut view, key, report.events.len()) {
                Some(Leave::Quit) => return Ok(()),
                Some(Leave::Suspend) => {
                    leave()?;
                    stop_job();
                    enter().and_then(|()| terminal.clear())?;
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
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => keys.push(key),
            _ => {}
        }
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
        (KeyCode::Char('?' | 'h' | 'H'), _) => view.help = !view.help,
        (KeyCode::Esc, _) => view.help = false,
        (KeyCode::Char('p' | 'P' | ' '), _) => view.paused = !view.paused,
        (KeyCode::Char('s' | 'S'), _) => view.sort = view.sort.next(),
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

/// Returns the local time for seconds since 1970, like `2026-11-25 18:55:06 UTC`, from the C library: it knows the system's time
/// zone and TZ. `None` if it is no possible time.
fn local_time(at: f64) -> Option<String> {
    /// Year 9999: a later time has no date of four digits.
    const LAST_S: f64 = 253_402_300_799.0;
    let seconds = Some(at).filter(|at| (0.0..=LAST_S).contains(at))? as libc::time_t;
    let mut text = [0_u8; 64];
    // SAFETY: zero is a valid value of each field of `local`, and the calls write at most the length of each buffer.
    let length = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&seconds, &mut local).is_null() {
            return None;
        }
        libc::strftime(text.as_mut_ptr().cast(), text.len(), c"%Y-%m-%d %H:%M:%S %Z".as_ptr(), &local)
    };
    Some(String::from_utf8_lossy(&text[..length]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_view() {
        let mut view = View {
            sort: Sort::default(),
            paused: false,
            overdue: false,
            unwritten: None,
            help: false,
            scroll: 0,
            color: false,
            unicode: false,
            local_time,
        };
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        use KeyCode::*;
        for (code, scroll) in [(Down, 1), (PageDown, 6), (PageDown, 9), (Up, 8), (PageUp, 3), (PageUp, 0)] {
            assert_eq!(press(&mut view, key(code), 10), None);
            assert_eq!(view.scroll, scroll, "{code:?}");
        }
        for c in ['?', ' ', 's', 'x'] {
            assert_eq!(press(&mut view, key(Char(c)), 10), None);
        }
        assert!(view.help && view.paused && view.sort == Sort::default().next());
        for code in [Esc, Char('p')] {
            press(&mut view, key(code), 10);
        }
        assert!(!view.help && !view.paused);
        assert_eq!(press(&mut view, key(Char('q')), 10), Some(Leave::Quit));
        let mut control = |c| press(&mut view, KeyEvent::new(Char(c), KeyModifiers::CONTROL), 10);
        assert_eq!(['c', 'z', 'q'].map(&mut control), [Some(Leave::Quit), Some(Leave::Suspend), None]);
    }

    #[test]
    fn local_time_is_that_of_some_zone() {
        let local = local_time(1_000_000_000.5).unwrap();
        // 2001-09-09 01:46:40 UTC
        assert!(local.starts_with("2001-09-0") && local.contains(":40 ") && !local.ends_with(' '), "{local:?}");
        assert_eq!([f64::NAN, f64::INFINITY, -1.0, 1e18].map(local_time), [const { None }; 4]);
    }
}
