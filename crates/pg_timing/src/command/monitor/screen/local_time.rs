//! The local time of day, from the C library: it knows the system's time zone and TZ.

use crate::render::screen::LocalTime;
use std::ffi::CStr;

/// Returns the local time for seconds since 1970. `None` if it is no possible time.
pub fn local_time(at: f64) -> Option<LocalTime> {
    /// Year 9999: a later time has no date of four digits.
    const LAST_S: f64 = 253_402_300_799.0;
    if !(0.0..=LAST_S).contains(&at) {
        return None;
    }
    let seconds = at.floor() as libc::time_t;
    // SAFETY: zero is a valid value of each field, and the call overwrites them.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid during the call.
    if unsafe { libc::localtime_r(&seconds, &mut local) }.is_null() {
        return None;
    }
    let format = |format| text(&local, format);
    Some(LocalTime { date: format(c"%Y-%m-%d"), time: format(c"%H:%M:%S"), zone: format(c"%Z") })
}

fn text(local: &libc::tm, format: &CStr) -> String {
    let mut text = [0_u8; 64];
    // SAFETY: the call writes at most the length of the buffer, and the other pointers are valid.
    let length = unsafe { libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), local) };
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_is_that_of_some_zone() {
        let local = local_time(1_000_000_000.5).unwrap();
        // 2001-09-09 01:46:40 UTC
        assert!(
            local.date.starts_with("2001-09-0") && local.time.ends_with(":40") && !local.zone.is_empty(),
            "{local:?}"
        );
        assert_eq!([f64::NAN, f64::INFINITY, -1.0, 1e18].map(local_time), [const { None }; 4]);
    }
}
