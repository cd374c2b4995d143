//! libpq's functions. The library is opened at run time, because only `explain` and `advise` need it. So the build does
//! not need it.
//!
//! <https://www.postgresql.org/docs/current/libpq.html>

use crate::error::Error;
use libc::{c_char, c_int, c_void};
use std::error::Error as _;
use std::ffi::CStr;
use std::sync::OnceLock;

/// A pointer to `PGconn`, `PGresult` or `PGcancel`, whose contents only libpq knows.
pub type Opaque = *mut c_void;

/// The library's names. The name without the number is only in development packages.
#[cfg(target_os = "macos")]
const NAMES: &[&str] =
    &["libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib", "/usr/local/opt/libpq/lib/libpq.5.dylib"];
#[cfg(not(target_os = "macos"))]
const NAMES: &[&str] = &["libpq.so.5"];

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
    PQconnectdbParams(*const *const c_char, *const *const c_char, c_int) -> Opaque;
    PQpingParams(*const *const c_char, *const *const c_char, c_int) -> c_int;
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
    PQsetNoticeProcessor(Opaque, unsafe extern "C" fn(*mut c_void, *const c_char), *mut c_void) -> *mut c_void;
    PQsendQueryParams(Opaque, *const c_char, c_int, *const u32, *const *const c_char, *const c_int, *const c_int, c_int) -> c_int;
    PQsetSingleRowMode(Opaque) -> c_int;
    PQconsumeInput(Opaque) -> c_int;
    PQisBusy(Opaque) -> c_int;
    PQgetResult(Opaque) -> Opaque;
    PQgetCancel(Opaque) -> Opaque;
    PQcancel(Opaque, *mut c_char, c_int) -> c_int;
    PQfreeCancel(Opaque);
    PQresultStatus(Opaque) -> c_int;
    PQresultErrorField(Opaque, c_int) -> *const c_char;
    PQntuples(Opaque) -> c_int;
    PQnfields(Opaque) -> c_int;
    PQgetvalue(Opaque, c_int, c_int) -> *const c_char;
    PQgetisnull(Opaque, c_int, c_int) -> c_int;
    PQclear(Opaque);
}

/// Constants of libpq-fe.h.
pub mod code {
    use libc::c_int;
    pub const CONNECTION_OK: c_int = 0;
    pub const PING_NO_RESPONSE: c_int = 2;
    pub const EMPTY_QUERY: c_int = 0;
    pub const COMMAND_OK: c_int = 1;
    pub const TUPLES_OK: c_int = 2;
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

const HINT: &str = if cfg!(target_env = "musl") {
    "this is the musl build, which cannot load libraries; use the other build with the package libpq5 (Debian, Ubuntu) or libpq (Red Hat, FreeBSD, Homebrew)"
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

/// Returns a copy of a C string, or `None` for NULL.
///
/// # Safety
/// `text` must be NULL or end with NUL.
pub unsafe fn owned(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
