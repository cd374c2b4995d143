//! What the text around an output says about its host: clock sources, and lines of the kernel log.

use super::parse::unquote;
use super::table::Output;
use crate::host::{kernel_log, survey};
use crate::report::{Fact, Report, traits_of};

/// A clock source in the text.
struct Stated<'a> {
    position: usize,
    /// the current one, or the available ones
    current: bool,
    names: Vec<&'a str>,
}

/// Completes the reports of the outputs in a text, in their order.
pub fn complete(text: &str, outputs: &[Output], reports: &mut [Report]) {
    let log = kernel_log::parse(text);
    let kernel = survey::kernel_report(&log);
    let stated = clock_sources(text);
    for (output, report) in outputs.iter().zip(&mut *reports) {
        // Among several outputs, a clock source belongs to those after it.
        let applies = |one: &&Stated| outputs.len() == 1 || one.position < output.position;
        let last = |current: bool| stated.iter().rev().filter(|one| one.current == current).find(applies);
        if let Some(current) = last(true) {
            report.clocksource.current = Fact::Known(current.names[0].into());
        }
        if let Some(available) = last(false) {
            report.clocksource.available = Fact::Known(available.names.iter().map(|name| (*name).into()).collect());
        }
        if kernel.recognized_lines > 0 {
            survey::complete(&log, &mut report.host, &mut report.clocksource);
            report.kernel = Fact::Known(kernel.clone());
        }
        if let Some(names) = report.clocksource.names() {
            report.tsc.independent = Some(!names.uses_counter());
            report.tsc.accepted_by_kernel = Some(names.accepts_counter());
        }
    }
}

/// Returns the clock sources in the text: the output of cat and grep, and what echo wrote. A line of several names lists the
/// available ones.
fn clock_sources(text: &str) -> Vec<Stated<'_>> {
    let mut stated = Vec::new();
    // Whether the last file that the text names is that of the available ones.
    let mut of_available: Option<bool> = None;
    for line in text.lines() {
        let position = line.as_ptr().addr() - text.as_ptr().addr();
        let body = unquote(line);
        if let Some(at) = body.rfind("_clocksource") {
            of_available = Some(body[..at].ends_with("available"));
        }
        let echoed = body.split_once("echo ").filter(|_| body.contains("current_clocksource"));
        let echoed = echoed.and_then(|(_, rest)| names(rest.split_whitespace().next()?.trim_matches(['"', '\''])));
        let value = body.rsplit_once("_clocksource:").map_or(body, |(_, value)| value);
        if let Some(names) = echoed.or_else(|| names(value).filter(|_| of_available.is_some())) {
            stated.push(Stated { position, current: names.len() == 1 && of_available != Some(true), names });
        }
    }
    stated
}

/// Returns the words, if all can be names of clock sources, and one of them is known.
fn names(text: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = text.split_whitespace().collect();
    let is_name =
        |name: &&str| name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    (names.iter().all(is_name) && names.iter().any(|name| traits_of(name).is_some())).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(bool, Vec<&str>)> {
        clock_sources(text).into_iter().map(|one| (one.current, one.names)).collect()
    }

    #[test]
    fn clock_sources_are_found() {
        const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
        let both = vec![(false, vec!["hpet", "acpi_pm"]), (true, vec!["hpet"])];
        for text in [
            format!("$ cat {DIR}/available_clocksource\nhpet acpi_pm \n$ cat {DIR}/current_clocksource\nhpet\n"),
            format!("> $ cat {DIR}/[ac]*_clocksource\n> hpet acpi_pm\n> hpet\n"),
            format!("$ grep . {DIR}/*\n{DIR}/available_clocksource:hpet acpi_pm\n{DIR}/current_clocksource:hpet\n"),
            format!("# cat {DIR}/available_clocksource {DIR}/current_clocksource\nhpet acpi_pm\nhpet\n"),
        ] {
            assert_eq!(found(&text), both, "{text}");
        }
        assert_eq!(found(&format!("$ cat {DIR}/available_clocksource\nhpet\n")), [(false, vec!["hpet"])]);
        assert_eq!(found(&format!("# echo acpi_pm > {DIR}/current_clocksource\n")), [(true, vec!["acpi_pm"])]);
        assert_eq!(found("I looked at current_clocksource, and it is fine.\nThen I ran\n"), []);
    }
}
