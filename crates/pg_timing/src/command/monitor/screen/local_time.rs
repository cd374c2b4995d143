//! The local time of day, from the C library: it knows the system's time zone and TZ.

use crate::render::screen::LocalTime;

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
    let small = |n: libc::c_int| u8::try_from(n).ok();
    Some(LocalTime {
        year: local.tm_year + 1900,
        month: small(local.tm_mon + 1)?,
        day: small(local.tm_mday)?,
        hour: small(local.tm_hour)?,
        minute: small(local.tm_min)?,
        second: small(local.tm_sec)?,
        offset_minutes: i32::try_from(local.tm_gmtoff / 60).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_minus_its_offset_is_utc() {
        let local = local_time(1_000_000_000.5).unwrap();
        let minutes = i32::from(local.hour) * 60 + i32::from(local.minute) - local.offset_minutes;
        // 2001-09-09 01:46:40 UTC
        assert_eq!((minutes.rem_euclid(24 * 60), local.second, local.year), (106, 40, 2001));
    }

    #[test]
    fn an_impossible_time_has_no_date() {
        assert_eq!([f64::NAN, f64::INFINITY, -1.0, 1e18].map(local_time), [None; 4]);
    }
}
