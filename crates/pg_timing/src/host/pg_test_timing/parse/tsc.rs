//! Parses PostgreSQL 19's last lines, which are about the TSC.

use super::TscLines;
use super::line::{after, number_and_rest, unit};

/// Parses a line about the TSC. Returns false if it is another line. The first value of each kind is kept.
///
/// `whole` means that the line ends with a newline. Without it a list of words may be cut off.
pub(super) fn parse_line(body: &str, whole: bool, lines: &mut TscLines) -> bool {
    if let Some(source) = after(body, "TSC frequency source:") {
        let complete = whole && source.ends_with(|c: char| c.is_alphanumeric());
        keep_first(&mut lines.source, complete.then(|| source.into()));
    } else if let Some(rest) = after(body, "TSC frequency in use:") {
        keep_first(&mut lines.in_use_khz, khz(rest));
    } else if let Some(rest) = after(body, "TSC frequency from calibration:") {
        keep_first(&mut lines.calibrated_khz, khz(rest));
    } else if body.contains("TSC calibration did not converge") {
        lines.not_converged = true;
    } else if body.contains("TSC clock source is not usable") {
        lines.not_usable = true;
    } else if body.contains("TSC clock source will be used by default") {
        keep_first(&mut lines.used_by_default, Some(true));
    } else if body.contains("TSC clock source will not be used by default") {
        keep_first(&mut lines.used_by_default, Some(false));
    } else {
        return false;
    }
    true
}

fn keep_first<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

fn khz(text: &str) -> Option<u64> {
    let (number, rest) = number_and_rest(text)?;
    (unit(rest) == "kHz").then(|| number.parse().ok())?
}

/// Returns the lines at the end of the output. The first line alone may be cut off anywhere, so it does not count.
pub(super) fn complete_lines(lines: TscLines) -> Option<TscLines> {
    let first_only = TscLines { source: lines.source.clone(), ..TscLines::default() };
    (lines != first_only).then_some(lines)
}

/// Returns whether the last line of the output is there.
pub(super) fn is_complete(lines: &TscLines) -> bool {
    // If the rates differ by more than 10%, the output ends with a warning on stderr, which is often missing.
    let ended_with_warning = match (lines.in_use_khz, lines.calibrated_khz) {
        (Some(in_use), Some(calibrated)) => (in_use as f64 - calibrated as f64).abs() > 0.1 * in_use as f64,
        _ => false,
    };
    lines.used_by_default.is_some() || lines.not_usable || ended_with_warning
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> TscLines {
        let mut lines = TscLines::default();
        for line in text.lines() {
            assert!(parse_line(line, true, &mut lines), "{line}");
        }
        lines
    }

    #[test]
    fn every_line_is_parsed() {
        let lines = parsed(
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
        assert!(parsed("TSC calibration did not converge").not_converged);
        assert!(parsed("TSC clock source is not usable. Likely unable to determine TSC frequency.").not_usable);
        assert!(!parse_line("TSC frequencies are fun", true, &mut TscLines::default()));
    }

    #[test]
    fn incomplete_values_are_ignored() {
        let lines = parsed("TSC frequency in use: 2297878 kH\nTSC frequency from calibration: 22978");
        assert_eq!(lines, TscLines::default());
        assert_eq!(parsed("TSC frequency in use: 99999999999999999999 kHz").in_use_khz, None);
        let mut lines = TscLines::default();
        assert!(parse_line("TSC frequency source: x86, hyper", false, &mut lines));
        assert!(parse_line("TSC frequency source: x86, hyper...", true, &mut lines));
        assert_eq!(lines.source, None);
    }

    #[test]
    fn a_source_alone_does_not_count() {
        assert_eq!(complete_lines(parsed("TSC frequency source: x86, hyper")), None);
        assert_eq!(complete_lines(TscLines::default()), None);
        let lines = parsed("TSC frequency source: x86\nTSC frequency in use: 7 kHz");
        assert_eq!(complete_lines(lines.clone()), Some(lines));
    }

    #[test]
    fn a_wrong_calibration_ends_the_output() {
        assert!(is_complete(&parsed("TSC frequency in use: 7 kHz\nTSC frequency from calibration: 2500000 kHz")));
        assert!(!is_complete(&parsed(
            "TSC frequency in use: 2500001 kHz\nTSC frequency from calibration: 2500000 kHz"
        )));
        assert!(!is_complete(&parsed("TSC frequency in use: 2500001 kHz")));
    }
}
