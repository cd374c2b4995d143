//! libpq's functions. The library is opened at run time, because only `explain` and `advise` need it. So the build does
//! not need it.
//!
//! <https://www.postgresql.org/docs/current/libpq.html>

use crate::error::Error;
use crate::human::count;
use libc::{c_char, c_int, c_void};
use std::error::Error as _;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// A pointer to `PGconn`, `PGresult` or `PGcancel`, whose contents only libpq knows.
pub type Opaque = *mut c_void;

/// The library's names. The name without the number is only in development packages.
#[cfg(target_os = "macos")]
const NAMES: &[&str] =
    &["libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib", "/usr/local/opt/libpq/lib/libpq.5.dylib"];
#[cfg(not(target_os = "macos"))]
const NAMES: &[&str] = &["libpq.so.5"];

/// `PQconninfoOption` of libpq-fe.h.
#[repr(C)]
pub struct ConnectionOption {
    pub keyword: *const c_char,
    pub environment_variable: *const c_char,
    pub compiled: *const c_char,
    pub value: *const c_char,
    pub label: *const c_char,
    pub display_character: *const c_char,
    pub display_size: c_int,
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that this program uses.
        #[allow(non_snake_case)]
        pub struct Libpq {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            // Contains the functions, and is never closed.
            _library: libloading::Library,
        }

        impl Libpq {
            fn of(library: libloading::Library) -> Result<Libpq, libloading::Error> {
                Ok(Libpq {
                    // SAFETY: the types are those of libpq-fe.h. They never change within libpq.so.5.
                    $($name: *unsafe { library.get(stringify!($name))? },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    PQconnectStartParams(*const *const c_char, *const *const c_char, c_int) -> Opaque;
    PQconnectPoll(Opaque) -> c_int;
    PQconninfo(Opaque) -> *mut ConnectionOption;
    PQconninfoFree(*mut ConnectionOption);
    PQfinish(Opaque);
    PQstatus(Opaque) -> c_int;
    PQerrorMessage(Opaque) -> *const c_char;
    PQserverVersion(Opaque) -> c_int;
    PQparameterStatus(Opaque, *const c_char) -> *const c_char;
    PQconnectionNeedsPassword(Opaque) -> c_int;
    PQconnectionUsedPassword(Opaque) -> c_int;
    PQhost(Opaque) -> *const c_char;
    PQhostaddr(Opaque) -> *const c_char;
    PQport(Opaque) -> *const c_char;
    PQdb(Opaque) -> *const c_char;
    PQsocket(Opaque) -> c_int;
    PQbackendPID(Opaque) -> c_int;
    PQnotifies(Opaque) -> Opaque;
    PQfreemem(*mut c_void);
    PQsetNoticeProcessor(Opaque, unsafe extern "C" fn(*mut c_void, *const c_char), *mut c_void) -> *mut c_void;
    PQsendQueryParams(Opaque, *const c_char, c_int, *const u32, *const *const c_char, *const c_int, *const c_int, c_int) -> c_int;
    PQsetSingleRowMode(Opaque) -> c_int;
    PQsetnonblocking(Opaque, c_int) -> c_int;
    PQflush(Opaque) -> c_int;
    PQconsumeInput(Opaque) -> c_int;
    PQisBusy(Opaque) -> c_int;
    PQgetResult(Opaque) -> Opaque;
    PQgetCancel(Opaque) -> Opaque;
    PQcancel(Opaque, *mut c_char, c_int) -> c_int;
    PQfreeCancel(Opaque);
    PQresultStatus(Opaque) -> c_int;
    PQresultErrorField(Opaque, c_int) -> *const c_char;
    PQntuples(Opaque) -> c_int;
    PQgetvalue(Opaque, c_int, c_int) -> *const c_char;
    PQgetisnull(Opaque, c_int, c_int) -> c_int;
    PQclear(Opaque);
}

/// Constants of libpq-fe.h.
pub mod code {
    use libc::c_int;
    pub const CONNECTION_OK: c_int = 0;
    pub const CONNECTION_BAD: c_int = 1;
    /// the socket is connected; later states have higher numbers
    pub const CONNECTION_MADE: c_int = 3;
    pub const POLLING_READING: c_int = 1;
    pub const POLLING_WRITING: c_int = 2;
    pub const EMPTY_QUERY: c_int = 0;
    pub const COMMAND_OK: c_int = 1;
    pub const TUPLES_OK: c_int = 2;
    pub const FATAL_ERROR: c_int = 7;
    pub const SINGLE_TUPLE: c_int = 9;
    pub const SQLSTATE: c_int = b'C' as c_int;
    pub const MESSAGE: c_int = b'M' as c_int;
    pub const DETAIL: c_int = b'D' as c_int;
    pub const HINT: c_int = b'H' as c_int;
    pub const POSITION: c_int = b'P' as c_int;
}

/// Opens the library once, and returns it.
pub fn libpq() -> Result<&'static Libpq, Error> {
    static LIBPQ: OnceLock<Result<Libpq, String>> = OnceLock::new();
    LIBPQ
        .get_or_init(open)
        .as_ref()
        .map_err(|why| Error::new(format!("could not open libpq, PostgreSQL's client library: {why}"), HINT))
}

const HINT: &str = if cfg!(target_feature = "crt-static") {
    "this program is static and cannot load libpq; install the .deb or .rpm package, or build from source; \
     explain --plan needs no connection"
} else {
    "install the package libpq5 (Debian, Ubuntu), libpq (Red Hat, Homebrew) or postgresql-client (FreeBSD)"
};

fn open() -> Result<Libpq, String> {
    let mut why = String::new();
    for name in NAMES {
        // SAFETY: libpq's initializers only set up its own state.
        match unsafe { libloading::Library::new(*name) }.and_then(Libpq::of) {
            Ok(libpq) => return Ok(libpq),
            // The error's source has the loader's message.
            Err(error) => why = error.source().map_or_else(|| error.to_string(), ToString::to_string),
        }
    }
    Err(why)
}

/// Returns a C string.
pub fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text)
        .map_err(|_| Error::new("the text contains a NUL character", "check that the file is a text file"))
}

/// Longest text of a server in an error, in characters. PostgreSQL's own messages have a few hundred.
const MAX_TEXT: usize = 2000;

/// Returns a copy of a server's text for an error, or `None` for NULL. A long text is cut.
///
/// # Safety
/// `text` must be NULL or end with NUL.
pub unsafe fn shortened(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees it.
    let text = unsafe { owned(text) }?;
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => Some(format!("{}... [cut: {} bytes]", &text[..end], count(text.len() as u64))),
        None => Some(text),
    }
}

/// Returns a copy of a C string, or `None` for NULL.
///
/// # Safety
/// `text` must be NULL or end with NUL.
pub unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
