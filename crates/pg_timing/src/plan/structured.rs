//! Plans in YAML and XML. They are rewritten as the text of EXPLAIN's JSON: a log can have gigabytes of them, and a tree of
//! their values takes twice as long.

use super::errors::Unreadable;
use super::json_values;
use super::{xml, yaml};
use std::borrow::Cow;

/// A format besides text and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structured {
    Yaml,
    Xml,
}

/// The end of EXPLAIN's XML.
const XML_END: &str = "</explain>";

impl Structured {
    /// Returns the format of a plan that begins with this line. `next` is the line after it.
    pub fn begins<'a>(line: &str, next: impl Fn() -> &'a str) -> Option<Structured> {
        // auto_explain's YAML is not a list.
        let is_plan =
            |line: &str| line.starts_with("Plan:") && !line["Plan:".len()..].contains(|c: char| c.is_alphanumeric());
        let is_yaml =
            line.strip_prefix("- ").is_some_and(is_plan) || is_plan(line) && next().starts_with("Node Type: \"");
        if is_yaml {
            return Some(Structured::Yaml);
        }
        line.starts_with("<explain xmlns=").then_some(Structured::Xml)
    }

    /// Returns the length of the text that is always on the first line.
    pub fn first_token(self, line: &str) -> usize {
        let end = if self == Structured::Yaml { ':' } else { '>' };
        line.find(end).map_or(line.len(), |at| at + 1)
    }

    /// Returns the length of the plan at the beginning of `rest`, in bytes.
    pub fn length(self, rest: &str) -> usize {
        match self {
            Structured::Xml => rest.find(XML_END).map_or(rest.len(), |at| at + XML_END.len()),
            Structured::Yaml => {
                let mut lines = rest.split_inclusive('\n');
                let first = lines.next().unwrap_or_default();
                let column = indentation(first);
                let more = lines.take_while(|line| {
                    let text = line.trim_end();
                    // The keys of a statement and the beginning of the next one have the column of the first line.
                    !text.is_empty() && (indentation(text) > column || is_key(text.trim_start()))
                });
                first.len() + more.map(str::len).sum::<usize>()
            }
        }
    }

    /// Returns the text that EXPLAIN's JSON has for a plan.
    pub fn as_json(self, text: &str) -> Result<String, Unreadable> {
        let text = without_indentation(text);
        match self {
            Structured::Yaml => yaml::as_json(&text).map_err(|line| Unreadable::Yaml(format!("the line {line:?}"))),
            Structured::Xml => xml::as_json(&text),
        }
    }

    /// Returns why the parser of JSON refused a plan.
    pub fn unreadable(self, error: &serde_json::Error) -> Unreadable {
        self.named(json_values::unreadable(error))
    }

    /// Returns the reason with the name of this format instead of JSON.
    pub fn named(self, unreadable: Unreadable) -> Unreadable {
        match (self, unreadable) {
            (Structured::Yaml, Unreadable::Json(why)) => Unreadable::Yaml(why),
            (Structured::Xml, Unreadable::Json(why)) => Unreadable::Xml(why),
            (_, other) => other,
        }
    }
}

/// Removes the indentation of the first line from all lines. A log writes a tab before each line, even within a statement in
/// XML.
fn without_indentation(text: &str) -> Cow<'_, str> {
    let indentation = &text[..indentation(text)];
    if indentation.is_empty() {
        return Cow::Borrowed(text);
    }
    text.split_inclusive('\n').map(|line| line.strip_prefix(indentation).unwrap_or(line)).collect::<String>().into()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns whether a line at the column of the first line is a key of EXPLAIN: `Execution Time: 0.1` or `- Plan: `. In a
/// log, two spaces follow the severity.
fn is_key(text: &str) -> bool {
    let name = text.strip_prefix("- ").unwrap_or(text).split(':').next().unwrap_or_default();
    name.len() < text.len()
        && !text.contains(":  ")
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_excludes_what_follows() {
        for (format, plan) in [
            (
                Structured::Yaml,
                "- Plan: \n    Node Type: \"Result\"\n  Execution Time: 0.1\n- Plan: \n    Node Type: \"Sort\"\n",
            ),
            (Structured::Yaml, " Plan: \n   Node Type: \"Result\"\n Triggers: \n"),
            (Structured::Xml, "<explain xmlns=\"x\">\n  <Query>\n  </Query>\n</explain>"),
        ] {
            for rest in ["", "(1 row)\n", "\nPlan: x", "2026-11-24 LOG:  x\n"] {
                let text = format!("{plan}{}{rest}", if format == Structured::Xml { "\n" } else { "" });
                let next = || text.lines().nth(1).unwrap_or_default().trim();
                let begins = Structured::begins(text.trim_start(), next);
                let (first, _) = text.trim_start().split_once('\n').unwrap();
                assert_eq!(
                    (Structured::begins(first, next), format.length(&text)),
                    (Some(format), plan.len()),
                    "{text} {begins:?}"
                );
            }
        }
        assert_eq!(without_indentation("\t a\n\t  b\nc\n"), "a\n b\nc\n");
        assert_eq!(Structured::begins("Plan: x", || ""), None);
        assert_eq!(Structured::Xml.length("<explain>"), 9);
    }
}
