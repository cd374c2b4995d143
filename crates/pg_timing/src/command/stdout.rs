//! Whether stdout was open when the program started.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether stdout was closed when the program started. Writes to it would succeed: Rust's runtime opens /dev/null
/// in its place.
pub fn was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// The system calls this before Rust's runtime starts.
#[used]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static BEFORE_MAIN: extern "C" fn() = check;

extern "C" fn check() {
    // SAFETY: the call only reads the descriptor's flags.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        CLOSED.store(true, Ordering::Relaxed);
    }
}
