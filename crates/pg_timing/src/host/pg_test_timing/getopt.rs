//! pg_test_timing's options, parsed by the C library's getopt_long. PostgreSQL's tools use it, too, so messages,
//! abbreviations and the order of options are the same.

use super::{Format, Options};
use errno::{Errno, errno, set_errno};
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

/// Parses the arguments of the version that prints `format`. `name` is the program's name in messages.
pub fn request(name: &str, arguments: Vec<OsString>, format: Format) -> Request {
    // As in PostgreSQL, help and version are recognized only as the first argument.
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some("--help" | "-?") => return Request::Help,
        Some("--version" | "-V") => return Request::Version,
        _ => {}
    }
    // No argument contains a NUL, because the kernel ends arguments there.
    let arguments: Vec<CString> = arguments.into_iter().filter_map(|a| CString::new(a.into_vec()).ok()).collect();
    parse(name, &arguments, format).map_or_else(
        |message| {
            _ = std::io::stderr().write_all(&message);
            Request::Refused
        },
        Request::Test,
    )
}

/// Returns the options, or an error message. The message can contain an argument that is not UTF-8.
fn parse(name: &str, arguments: &[CString], format: Format) -> Result<Options, Vec<u8>> {
    let try_help = format!("Try \"{name} --help\" for more information.\n");
    let mut options = Options { duration_s: 3, cutoff: 99.99, format };
    let mut argv: Vec<*mut c_char> = arguments.iter().map(|a| a.as_ptr().cast_mut()).collect();
    argv.push(std::ptr::null_mut());
    while let Some((letter, value)) = next(&mut argv, format) {
        match letter {
            b'd' => options.duration_s = duration(name, &value, &try_help)?,
            b'c' => options.cutoff = cutoff(name, &value, &try_help)?,
            // getopt_long has printed the error.
            _ => return Err(try_help.into()),
        }
    }
    // SAFETY: getopt_long has set it, and only this thread uses it.
    let first = unsafe { optind } as usize;
    if arguments.len() <= first {
        return Ok(options);
    }
    // getopt_long has moved arguments that are not options to the end.
    // SAFETY: below the NULL at the end, each pointer is one of `arguments`.
    let surplus = unsafe { CStr::from_ptr(argv[first]) }.to_bytes();
    let start = format!("{name}: too many command-line arguments (first is \"");
    Err([start.as_bytes(), surplus, b"\")\n", try_help.as_bytes()].concat())
}

/// Returns the next option with its value. `?` is an invalid option.
fn next(argv: &mut [*mut c_char], format: Format) -> Option<(u8, CString)> {
    let long = |name: &'static CStr, letter: u8| libc::option {
        name: name.as_ptr(),
        has_arg: 1, // required_argument
        flag: std::ptr::null_mut(),
        val: letter.into(),
    };
    let end = libc::option { name: std::ptr::null(), has_arg: 0, flag: std::ptr::null_mut(), val: 0 };
    // The cutoff is new in version 19.
    let (letters, longs) = match format {
        Format::Classic => (c"d:", vec![long(c"duration", b'd'), end]),
        _ => (c"d:c:", vec![long(c"cutoff", b'c'), long(c"duration", b'd'), end]),
    };
    let argc = (argv.len() - 1) as c_int;
    // SAFETY: argv has argc strings and a NULL, longs ends with zeros, and no other thread parses options.
    let letter =
        unsafe { libc::getopt_long(argc, argv.as_mut_ptr(), letters.as_ptr(), longs.as_ptr(), std::ptr::null_mut()) };
    let letter = u8::try_from(letter).ok()?;
    // SAFETY: optarg is NULL or points into one of argv's strings.
    let value = unsafe { if optarg.is_null() { c"" } else { CStr::from_ptr(optarg) } };
    Some((letter, value.to_owned()))
}

/// Parses the duration by strtoul, as PostgreSQL does: white space and a sign may come first, and "-0" is 0.
fn duration(name: &str, text: &CStr, try_help: &str) -> Result<u32, String> {
    // SAFETY: `text` ends with a NUL, and strtoul sets `end` to a place in it.
    let seconds = number(text, |text, end| unsafe { libc::strtoul(text, end, 10) });
    match seconds.and_then(|seconds| u32::try_from(seconds).ok()) {
        Some(0) => Err(format!("{name}: --duration must be in range 1..{}\n", u32::MAX)),
        Some(seconds) => Ok(seconds),
        None => Err(format!("{name}: invalid argument for option --duration\n{try_help}")),
    }
}

/// Parses the cutoff by strtod, as PostgreSQL does. It accepts "nan", which lists all durations.
fn cutoff(name: &str, text: &CStr, try_help: &str) -> Result<f64, String> {
    // SAFETY: `text` ends with a NUL, and strtod sets `end` to a place in it.
    match number(text, |text, end| unsafe { libc::strtod(text, end) }) {
        Some(percent) if percent.is_nan() || (0.0..=100.0).contains(&percent) => Ok(percent),
        Some(_) => Err(format!("{name}: --cutoff must be in range 0..100\n")),
        None => Err(format!("{name}: invalid argument for option --cutoff\n{try_help}")),
    }
}

/// Returns the number, unless the text has other characters or the number exceeds the range of its type.
fn number<T>(text: &CStr, convert: impl FnOnce(*const c_char, *mut *mut c_char) -> T) -> Option<T> {
    let mut end: *mut c_char = std::ptr::null_mut();
    // strtod sets errno to ERANGE for 1e-400, too. The value alone does not show that.
    set_errno(Errno(0));
    let number = convert(text.as_ptr(), &mut end);
    let in_range = errno() == Errno(0);
    // SAFETY: `end` points into `text` or to its NUL.
    (in_range && end.cast_const() != text.as_ptr() && unsafe { *end } == 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_strtoul() {
        let of = |text: &str| duration("x", &CString::new(text).unwrap(), "");
        for (text, seconds) in [("1", 1), (" 4294967295", u32::MAX), ("+7", 7), ("\t\n5", 5), ("007", 7)] {
            assert_eq!(of(text), Ok(seconds), "{text}");
        }
        // strtoul negates in 64 bits.
        assert_eq!(of("-18446744073709551615"), Ok(1));
        for zero in ["0", "-0", "+0", "00"] {
            assert!(of(zero).unwrap_err().contains("must be in range 1..4294967295"), "{zero}");
        }
        for bad in ["", " ", "-1", "1.5", "1s", "5 ", "0x10", "4294967296", "99999999999999999999999", "\u{a0}5"] {
            assert!(of(bad).unwrap_err().contains("invalid argument"), "{bad}");
        }
    }

    #[test]
    fn cutoffs_are_those_of_strtod() {
        let of = |text: &str| cutoff("x", &CString::new(text).unwrap(), "");
        for (text, percent) in
            [("0", 0.0), ("100", 100.0), (" 5e1", 50.0), ("0x10", 16.0), ("-0", 0.0), ("1e-300", 1e-300)]
        {
            assert_eq!(of(text), Ok(percent), "{text}");
        }
        for nan in ["nan", "NaN", "-nan", "nan(1)"] {
            assert!(of(nan).unwrap().is_nan(), "{nan}");
        }
        for bad in ["-1", "100.1", "inf", "-inf", "infinity", "1e3"] {
            assert!(of(bad).unwrap_err().contains("must be in range 0..100"), "{bad}");
        }
        for bad in ["", " ", "x", "5%", "50 ", "1,5", "1e-400", "1e400", "1e-310", "--"] {
            assert!(of(bad).unwrap_err().contains("invalid argument"), "{bad}");
        }
    }
}
