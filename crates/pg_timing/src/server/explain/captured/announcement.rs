//! The line of a server's log that announces a plan.

use super::node_line::number;

/// Returns the time in a line like `... LOG:  duration: 123.456 ms  plan:`.
pub fn announced_ms(line: &str) -> Option<f64> {
    let (before, rest) = line.trim_end().strip_suffix("plan:")?.rsplit_once("duration: ")?;
    // In a statement, the same text can follow a quotation mark, a bracket or a word.
    let is_message = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || "'(,=".contains(c));
    number(rest.trim_end().strip_suffix(" ms")?).filter(|_| is_message(before.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_of_a_plan_has_its_time() {
        for (line, ms) in [
            ("LOG:  duration: 123.456 ms  plan:", Some(123.456)),
            ("2026-11-21 UTC,,\"duration: 0.004 ms  plan:", Some(0.004)),
            ("LOG:  duration: 123.456 ms  statement: select 'plan:'", None),
            ("LOG:  00000: duration: 123.456 ms  plan:", Some(123.456)),
            ("LOG:  statement: select 'duration: 123.456 ms  plan:", None),
            ("ERROR:  no duration: 123.456 ms  plan:", None),
            ("LOG:  duration: 123.456 ms", None),
            ("plan:", None),
        ] {
            assert_eq!(announced_ms(line), ms, "{line}");
        }
    }
}
