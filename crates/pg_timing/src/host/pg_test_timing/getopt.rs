//! pg_test_timing's options, parsed by the C library's getopt_long. PostgreSQL's tools use it, too, so messages,
//! abbreviations and the order of options are the same.

use super::{Format, Options};
use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

/// The request in the arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Help,
    Version,
    Test(Options),
    /// invalid arguments; the message has been printed
    Refused,
}

unsafe extern "C" {
    static mut optarg: *mut c_char;
    static mut optind: c_int;
}

/// Parses the arguments. `name` is the program's name in messages.
pub fn request(name: &str, arguments: Vec<OsString>) -> Request {
    // As in PostgreSQL, help and version are recognized only as the first argument.
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some("--help" | "-?") => return Request::Help,
        Some("--version" | "-V") => return Request::Version,
        _ => {}
    }
    // No argument contains a NUL, because the kernel ends arguments there.
    let arguments: Vec<CString> = arguments.into_iter().filter_map(|a| CString::new(a.into_vec()).ok()).collect();
    parse(name, &arguments).map_or_else(
        |message| {
            _ = write!(std::io::stderr(), "{message}");
            Request::Refused
        },
        Request::Test,
    )
}

fn parse(name: &str, arguments: &[CString]) -> Result<Options, String> {
    let try_help = format!("Try \"{name} --help\" for more information.\n");
    let mut options = Options { duration_s: 3, cutoff: 99.99, format: Format::Nineteen };
    let mut argv: Vec<*mut c_char> = arguments.iter().map(|a| a.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    while let Some((letter, value)) = next(&mut argv) {
        match letter {
            b'd' => options.duration_s = duration(name, &value, &try_help)?,
            b'c' => options.cutoff = cutoff(name, &value, &try_help)?,
            // getopt_long has printed the error.
            _ => return Err(try_help),
        }
    }
    // SAFETY: getopt_long has set it, and only this thread uses it.
    let first = unsafe { optind } as usize;
    match arguments.len() > first {
        // getopt_long has moved arguments that are no options to the end.
        // SAFETY: below the NULL at the end, each pointer is one of `arguments`.
        true => Err(unsafe { CStr::from_ptr(argv[first]) }.to_string_lossy().into_owned())
            .map_err(|surplus| format!("{name}: too many command-line arguments (first is \"{surplus}\")\n{try_help}")),
        false => Ok(options),
    }
}

/// Returns the next option with its value. `?` is an invalid option.
fn next(argv: &mut [*mut c_char]) -> Option<(u8, String)> {
    let long = |name: &'static CStr, letter: u8| libc::option {
        name: name.as_ptr(),
        has_arg: 1, // required_argument
        flag: std::ptr::null_mut(),
        val: letter.into(),
    };
    let end = libc::option { name: std::ptr::null(), has_arg: 0, flag: std::ptr::null_mut(), val: 0 };
    let longs = [long(c"duration", b'd'), long(c"cutoff", b'c'), end];
    let argc = (argv.len() - 1) as c_int;
    // SAFETY: argv has argc strings and a NULL, longs ends with zeros, and no other thread parses options.
    let letter =
        unsafe { libc::getopt_long(argc, argv.as_mut_ptr(), c"d:c:".as_ptr(), longs.as_ptr(), std::ptr::null_mut()) };
    let letter = u8::try_from(letter).ok()?;
    // SAFETY: optarg is NULL or points into one of argv's strings.
    let value = unsafe { if optarg.is_null() { c"" } else { CStr::from_ptr(optarg) } };
    Some((letter, value.to_string_lossy().into_owned()))
}

/// Parses the duration like strtoul: leading white space and a sign are accepted, trailing text is not.
fn duration(name: &str, text: &str, try_help: &str) -> Result<u32, String> {
    match text.trim_start().parse::<u32>() {
        Ok(0) => Err(format!("{name}: --duration must be in range 1..{}\n", u32::MAX)),
        Ok(seconds) => Ok(seconds),
        Err(_) => Err(format!("{name}: invalid argument for option --duration\n{try_help}")),
    }
}

/// Parses the cutoff by strtod, as PostgreSQL does. PostgreSQL accepts "nan" and then lists everything; this program
/// refuses it.
fn cutoff(name: &str, text: &str, try_help: &str) -> Result<f64, String> {
    let invalid = || format!("{name}: invalid argument for option --cutoff\n{try_help}");
    let text = CString::new(text).map_err(|_| invalid())?;
    let mut end: *mut c_char = std::ptr::null_mut();
    // SAFETY: `text` ends with a NUL, and strtod sets `end` to a place in it.
    let percent = unsafe { libc::strtod(text.as_ptr(), &mut end) };
    // SAFETY: `end` points into `text` or to its NUL.
    let whole = unsafe { *end == 0 } && !text.is_empty();
    // Digits that give an infinite number exceed a double's range. That is an error of strtod, and not of the range.
    let overflowed = percent.is_infinite() && !text.to_string_lossy().to_ascii_lowercase().contains("inf");
    match percent {
        _ if !whole || overflowed => Err(invalid()),
        percent if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(format!("{name}: --cutoff must be in range 0..100\n")),
    }
}
