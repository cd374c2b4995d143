//! The lines about the TSC that 19 ends with.

use super::TscLines;
use super::line::{after, number_and_rest, unit};

/// Notes what a line says of the TSC; false if it says nothing. What was said first stays.
///
/// `whole`: the line has its newline. Without it a list of words may go on.
pub(super) fn note(body: &str, whole: bool, lines: &mut TscLines) -> bool {
    if let Some(source) = after(body, "TSC frequency source:") {
        let all = whole && source.ends_with(|c: char| c.is_alphanumeric());
        keep(&mut lines.source, all.then(|| source.into()));
    } else if let Some(rest) = after(body, "TSC frequency in use:") {
        keep(&mut lines.in_use_khz, khz(rest));
    } else if let Some(rest) = after(body, "TSC frequency from calibration:") {
        keep(&mut lines.calibrated_khz, khz(rest));
    } else if body.contains("TSC calibration did not converge") {
        lines.not_converged = true;
    } else if body.contains("TSC clock source is not usable") {
        lines.not_usable = true;
    } else if body.contains("TSC clock source will be used by default") {
        keep(&mut lines.used_by_default, Some(true));
    } else if body.contains("TSC clock source will not be used by default") {
        keep(&mut lines.used_by_default, Some(false));
    } else {
        return false;
    }
    true
}

fn keep<T>(place: &mut Option<T>, said: Option<T>) {
    if place.is_none() {
        *place = said;
    }
}

fn khz(text: &str) -> Option<u64> {
    let (number, rest) = number_and_rest(text)?;
    (unit(rest) == "kHz").then(|| number.parse().ok())?
}

/// The lines once no more come. The first alone may be cut anywhere, so that it is worth nothing.
pub(super) fn settled(lines: TscLines) -> Option<TscLines> {
    let first_only = TscLines { source: lines.source.clone(), ..TscLines::default() };
    (lines != first_only).then_some(lines)
}

/// Whether the last line is there, as far as 19 gets to print one.
pub(super) fn is_complete(lines: &TscLines) -> bool {
    // over 10% apart it ends with a warning, on stderr, that is often not in the report
    let gave_up = match (lines.in_use_khz, lines.calibrated_khz) {
        (Some(in_use), Some(calibrated)) => (in_use as f64 - calibrated as f64).abs() > 0.1 * in_use as f64,
        _ => false,
    };
    lines.used_by_default.is_some() || lines.not_usable || gave_up
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(text: &str) -> TscLines {
        let mut lines = TscLines::default();
        for line in text.lines() {
            assert!(note(line, true, &mut lines), "{line}");
        }
        lines
    }

    #[test]
    fn every_line() {
        let lines = noted(
            "TSC frequency source: x86, hypervisor, calibration\nTSC frequency in use: 2297878 kHz\n\
             TSC frequency from calibration: 2297800 kHz\n\
             TSC clock source will not be used by default, unless timing_clock_source is set to 'tsc'.",
        );
        assert_eq!(
            lines,
            TscLines {
                source: Some("x86, hypervisor, calibration".into()),
                in_use_khz: Some(2_297_878),
                calibrated_khz: Some(2_297_800),
                used_by_default: Some(false),
                ..TscLines::default()
            }
        );
        assert!(is_complete(&lines));
        assert!(noted("TSC calibration did not converge").not_converged);
        assert!(noted("TSC clock source is not usable. Likely unable to determine TSC frequency.").not_usable);
        assert!(!note("TSC frequencies are fun", true, &mut TscLines::default()));
    }

    #[test]
    fn what_is_cut_is_not_taken() {
        let lines = noted("TSC frequency in use: 2297878 kH\nTSC frequency from calibration: 22978");
        assert_eq!(lines, TscLines::default());
        assert_eq!(noted("TSC frequency in use: 99999999999999999999 kHz").in_use_khz, None);
        let mut lines = TscLines::default();
        assert!(note("TSC frequency source: x86, hyper", false, &mut lines));
        assert!(note("TSC frequency source: x86, hyper...", true, &mut lines));
        assert_eq!(lines.source, None);
    }

    #[test]
    fn a_source_alone_is_nothing() {
        assert_eq!(settled(noted("TSC frequency source: x86, hyper")), None);
        assert_eq!(settled(TscLines::default()), None);
        let lines = noted("TSC frequency source: x86\nTSC frequency in use: 7 kHz");
        assert_eq!(settled(lines.clone()), Some(lines));
    }

    #[test]
    fn a_wild_calibration_ends_the_output() {
        assert!(is_complete(&noted("TSC frequency in use: 7 kHz\nTSC frequency from calibration: 2500000 kHz")));
        assert!(!is_complete(&noted("TSC frequency in use: 2500001 kHz\nTSC frequency from calibration: 2500000 kHz")));
        assert!(!is_complete(&noted("TSC frequency in use: 2500001 kHz")));
    }
}
