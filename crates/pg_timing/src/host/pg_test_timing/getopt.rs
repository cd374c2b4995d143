//! pg_test_timing's options, by the C library's getopt_long: the one that PostgreSQL's tools use,
//! with its messages, abbreviations and order.

use super::{Format, Options};
use std::ffi::{CStr, CString, OsString, c_char, c_int};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

/// What the arguments ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Help,
    Version,
    Test(Options),
    /// the message has been printed
    Refused,
}

unsafe extern "C" {
    static mut optarg: *mut c_char;
    static mut optind: c_int;
}

/// `name` is the program's, for messages.
pub fn request(name: &str, arguments: Vec<OsString>) -> Request {
    // As in PostgreSQL: help and version only as the first argument.
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some("--help" | "-?") => return Request::Help,
        Some("--version" | "-V") => return Request::Version,
        _ => {}
    }
    // An argument cannot hold a NUL: the kernel ends it there.
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
            // getopt_long has said what is wrong.
            _ => return Err(try_help),
        }
    }
    // SAFETY: getopt_long has set it, and this is the only thread that uses it.
    let first = unsafe { optind } as usize;
    match arguments.len() > first {
        // getopt_long has moved what is no option to the end.
        // SAFETY: below the NULL at the end, each pointer is one of `arguments`.
        true => Err(unsafe { CStr::from_ptr(argv[first]) }.to_string_lossy().into_owned())
            .map_err(|surplus| format!("{name}: too many command-line arguments (first is \"{surplus}\")\n{try_help}")),
        false => Ok(options),
    }
}

/// The next option with its value. `?` is one that is wrong.
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

/// As strtoul reads it: white space and a sign in front are fine, anything behind is not.
fn duration(name: &str, text: &str, try_help: &str) -> Result<u32, String> {
    match text.trim_start().parse::<u32>() {
        Ok(0) => Err(format!("{name}: --duration must be in range 1..{}\n", u32::MAX)),
        Ok(seconds) => Ok(seconds),
        Err(_) => Err(format!("{name}: invalid argument for option --duration\n{try_help}")),
    }
}

/// By strtod, as PostgreSQL reads it. It lets "nan" through and then lists everything; we do not.
fn cutoff(name: &str, text: &str, try_help: &str) -> Result<f64, String> {
    let invalid = || format!("{name}: invalid argument for option --cutoff\n{try_help}");
    let text = CString::new(text).map_err(|_| invalid())?;
    let mut end: *mut c_char = std::ptr::null_mut();
    // SAFETY: `text` ends with a NUL, and strtod sets `end` to a place in it.
    let percent = unsafe { libc::strtod(text.as_ptr(), &mut end) };
    // SAFETY: `end` points into `text` or to its NUL.
    let whole = unsafe { *end == 0 } && !text.is_empty();
    // Digits that come out infinite are out of a double's range: an error of strtod's, not of the range.
    let overflowed = percent.is_infinite() && !text.to_string_lossy().to_ascii_lowercase().contains("inf");
    match percent {
        _ if !whole || overflowed => Err(invalid()),
        percent if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(format!("{name}: --cutoff must be in range 0..100\n")),
    }
}
