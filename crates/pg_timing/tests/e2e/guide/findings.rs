//! The chapter about findings has one section for each.

use super::{blocks, page};
use ::pg_timing::host::check::CHECKS;

/// Returns the id and the text of each section.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let sections = text.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.map(|(heading, text)| (heading.trim_matches('`'), text)).collect()
}

#[test]
fn each_finding_has_one_section() {
    let page = page("findings.md");
    let ids: Vec<&str> = sections(&page.text).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, CHECKS.iter().map(|(id, _)| *id).collect::<Vec<_>>());
}

/// The example is the program's own output on a captured host, in which the finding is an alarm. Output in JSON also shows
/// findings that are no alarm, such as `tsc-absent`, or that the screen shows only as a consequence.
#[test]
fn each_section_shows_its_alarm() {
    let page = page("findings.md");
    for (id, text) in sections(&page.text) {
        let is_shown = |line: &&str| {
            let severity = line.strip_prefix(id).map(str::trim_start);
            severity.is_some_and(|rest| rest.starts_with("WARNING  ") || rest.starts_with("CRITICAL  "))
                || line.contains(&format!("\"{id}\""))
        };
        let examples = blocks(text).into_iter().filter(|block| block.info == "console");
        let shows_it = examples.flat_map(|block| block.lines).any(|line| is_shown(&line));
        assert!(shows_it, "{id}");
    }
}
