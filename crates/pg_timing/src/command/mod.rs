//! The commands, one per file. Each takes its arguments, prints its result and returns the exit status.

pub mod advise;
pub mod arguments;
pub mod check;
pub mod clocksource;
pub mod compare;
mod connection;
pub mod explain;
pub mod generate;
pub mod monitor;
pub mod pg_test_timing;
pub mod read;
pub mod report;
pub mod test;
mod values;

use crate::document::Document;
use crate::document::text::{Output, text};
use crate::error::{Error, require};
use crate::escape;
use crate::json::json;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use values::Format;

/// The exit status after a usage error, and of a command that did not do its work.
const NOT_DONE: u8 = 3;

/// Returns whether terminals show UTF-8 in the user's locale, which has a name like `en_US.UTF-8`.
fn is_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    names.iter().filter_map(|name| std::env::var(name).ok()).find(|l| !l.is_empty()).is_some_and(|l| is_utf8_locale(&l))
}

fn is_utf8_locale(name: &str) -> bool {
    name.to_ascii_lowercase().replace('-', "").contains(".utf8")
}

/// Returns what a result on stdout is for.
fn output() -> Output {
    let stdout = std::io::stdout();
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col.into());
    if stdout.is_terminal() { Output::terminal(columns, is_utf8()) } else { Output::PIPE }
}

/// Returns a command with `--details` and with the paths that were given, as a shell reads it.
fn with_details(command: &str, paths: &[(&str, Option<&Path>)]) -> String {
    let paths = paths
        .iter()
        .filter_map(|(option, path)| Some(format!("{option}{}", quoted(&path.as_ref()?.to_string_lossy()))));
    format!("pg_timing {command} --details") + &paths.collect::<String>()
}

/// Returns a word in quotes, if a shell would change it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Prints a document on stdout.
fn show(document: &Document) -> anyhow::Result<()> {
    print(&text(document, output()))
}

/// Prints a report in this format.
fn print_as(format: Format, report: &impl Serialize, document: impl FnOnce() -> Document) -> anyhow::Result<()> {
    match format {
        Format::Text => show(&document()),
        Format::Json => print(&json(report)),
    }
}

/// What a file or stdin contains.
struct Input {
    /// the file name in quotes, or `stdin`, for error messages
    name: String,
    bytes: Vec<u8>,
}

/// Returns whether stdin is a pipe or a file, as in `echo ... | pg_timing`.
fn stdin_may_have_text() -> bool {
    let stdin = std::fs::metadata("/dev/stdin").map(|stdin| stdin.file_type());
    stdin.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// Reads a file, or stdin if the path is `-`. An input of more than `max_bytes` is an error with the given hint: the
/// user probably gave the wrong file.
fn read_input(path: &Path, max_bytes: u64, too_long_hint: &str) -> Result<Input, Error> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "stdin".into() } else { format!("\"{}\"", path.display()) };
    let mut bytes = Vec::new();
    let read = match stdin {
        true => std::io::stdin().take(max_bytes + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Error::io(format!("could not read {name}"), &error, "give a file, or - for stdin"))?;
    let is_short = bytes.len() as u64 <= max_bytes;
    require(is_short, format!("{name} is longer than {} MB", max_bytes >> 20), too_long_hint)?;
    // Some editors on Windows write a byte order mark at the beginning of a file.
    bytes.drain(..if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 });
    Ok(Input { name, bytes })
}

/// Prints a note on stderr while a command runs.
fn note(text: &str) {
    _ = writeln!(std::io::stderr(), "pg_timing: {}", escape::line(text));
}

/// Prints the error of a command. Returns the exit status.
pub fn finish(result: anyhow::Result<u8>) -> u8 {
    result.unwrap_or_else(|error| {
        let hint = error.downcast_ref::<Error>().map_or("", |error| error.hint.as_str());
        // The alternate form contains the causes of the error.
        print_error(&format!("{error:#}"), hint);
        NOT_DONE
    })
}

/// Prints an error in one line, and its hint in another one if it has any.
fn print_error(what: &str, hint: &str) {
    _ = std::io::stderr().write_all(error_text(what, hint).as_bytes());
}

/// Returns the lines of an error. Both texts can come from outside.
fn error_text(what: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("hint: {}\n", escape::line(hint)) };
    format!("pg_timing: error: {}\n{hint}", escape::line(what))
}

/// Prints a result on stdout, with colors only on a terminal. A full disk is an error, because the user
/// did not get the result. A pipe whose reader has ended is no error: `head` has read what it wanted.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("could not write to stdout: {}", crate::human::reason(&error)))
        }
        _ => Ok(()),
    }
}

/// Signal handlers that set a flag.
mod interrupt {
    use crate::guardian::without_signals;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// Returns a flag that the first SIGINT, SIGTERM or SIGHUP sets. The command then cancels its statement on the server
    /// and prints what it has measured. A second signal ends the program at once.
    pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
        let stop = Arc::new(AtomicBool::new(false));
        let signals = [SIGINT, SIGTERM, SIGHUP];
        // A signal between the two handlers would be lost.
        without_signals(|| {
            for signal in not_ignored(&signals) {
                // This handler comes first: it ends the program if an earlier signal has set the flag.
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
            }
            set_by(&signals, stop)
        })
    }

    /// Returns a flag for a command that must restore a setting before it ends. All signals that a terminal or `kill` sends
    /// set the flag, and repeated signals do not end the program. SIGTSTP (Ctrl-Z) is included, because a stopped program
    /// restores nothing.
    pub fn flag_until_restored() -> anyhow::Result<Arc<AtomicBool>> {
        set_by(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP], Arc::default())
    }

    /// Returns a flag for a command that runs as a service. SIGINT and SIGTERM set it, and repeated signals do not end the program.
    /// SIGHUP has no effect: services get it to read their configuration again, and there is none.
    pub fn flag_of_service() -> anyhow::Result<Arc<AtomicBool>> {
        set_by(&[SIGHUP], Arc::default())?;
        set_by(&[SIGINT, SIGTERM], Arc::default())
    }

    fn set_by(signals: &[libc::c_int], flag: Arc<AtomicBool>) -> anyhow::Result<Arc<AtomicBool>> {
        for signal in not_ignored(signals) {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(flag)
    }

    /// Ignores the signal of a too large file, so that the write fails instead and the program can remove its files.
    pub fn ignore_file_size_signal() {
        // SAFETY: no handler runs.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }

    /// Returns the signals without SIGHUP if it is ignored. nohup ignores SIGHUP so that a program outlives its terminal.
    fn not_ignored(signals: &[libc::c_int]) -> impl Iterator<Item = libc::c_int> {
        signals.iter().copied().filter(|&signal| signal != SIGHUP || !is_ignored(signal))
    }

    fn is_ignored(signal: libc::c_int) -> bool {
        // SAFETY: an action of zero bytes is valid, and the next call overwrites it.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: without a new action, the call only writes the current one to `action`.
        let status = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
        status == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Returns what shows a fraction from 0 to 1 in a progress bar on stderr, and removes the bar at 1. There is no bar without a
/// terminal, or if the process may not read the counter: indicatif reads a clock, and the kernel would kill the process.
fn progress(label: &'static str) -> impl Fn(f64) {
    const STEPS: u64 = 100;
    let is_possible = std::io::stderr().is_terminal() && timing_clock::counter::permitted().is_ok();
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent} %").ok().filter(|_| is_possible);
    let bar = style.map(|style| {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        bar.with_style(style).with_message(label)
    });
    move |done| match &bar {
        Some(bar) if done >= 1.0 => bar.finish_and_clear(),
        Some(bar) => bar.set_position((done * STEPS as f64) as u64),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_change_have_quotes() {
        let paths = [(" --root ", Some(Path::new("a b"))), (" --kernel-log ", None)];
        assert_eq!(with_details("check", &paths), "pg_timing check --details --root 'a b'");
        let words = ["--root", "a b", "it's", ""].map(quoted);
        assert_eq!(words, ["--root", "'a b'", r"'it'\''s'", "''"]);
    }

    #[test]
    fn only_utf8_locales_have_the_sign() {
        for (locale, expected) in [
            ("en_US.UTF-8", true),
            ("C.UTF-8", true),
            ("de_DE.utf8@euro", true),
            ("C", false),
            ("de_DE.ISO-8859-1", false),
            ("UTF-8", false),
        ] {
            assert_eq!(is_utf8_locale(locale), expected, "{locale}");
        }
    }
}
