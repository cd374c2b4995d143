//! The screen of `explain`: the answer, the plan as a tree, the facts.

mod tree;

use super::wrapped;
use crate::render::explain_text::ExplainText;
use crate::report::ExplainReport;

pub fn text(report: &ExplainReport) -> String {
    let mut out = String::new();
    let ExplainText { answer, facts } = ExplainText::of(report);
    wrapped(&mut out, "", &answer);
    out.push('\n');
    if report.has_figures() {
        out.push_str(&tree::tree(report));
        out.push('\n');
    }
    for (name, fact) in facts {
        self::fact(&mut out, name, &fact);
    }
    out
}

/// Appends a line below the table.
pub fn fact(out: &mut String, name: &str, fact: &str) {
    // The longest name, "unexplained", and a space.
    wrapped(out, &format!("{name:<12}"), fact);
}
