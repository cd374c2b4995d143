//! Makes text from outside harmless: plans, logs, settings, file names and messages of servers.
//!
//! Such text can contain sequences that a terminal executes, that hide text, or that look like another line of output.

use crate::error::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The only field that keeps its line breaks and tabs. Its readers fold them, or show them in an HTML block.
const KEEPS_LINES: &str = "statement";

/// Returns the report with each of its texts escaped, for a screen or a page.
///
/// Returns an error if a figure is not finite: JSON has no infinities, so such a figure would be lost.
pub fn report<T: Serialize + DeserializeOwned>(report: &T) -> Result<T, Error> {
    let not_finite = |_| Error::new("a result is not a finite number", "please report this as a bug");
    let mut value = serde_json::to_value(report).map_err(not_finite)?;
    escape(&mut value, false);
    serde_json::from_value(value).map_err(not_finite)
}

fn escape(value: &mut Value, keeps_lines: bool) {
    match value {
        Value::String(text) if keeps_lines => {
            *text = escaped(&text.replace("\r\n", "\n"), |c| is_unsafe(c) && !matches!(c, '\n' | '\t'));
        }
        Value::String(text) => *text = line(text),
        Value::Array(values) => values.iter_mut().for_each(|value| escape(value, false)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    escape(&mut value, name == KEEPS_LINES);
                    (line(&name), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the text as one line: `\n` for a line break, `\u{1b}` for other characters that are not safe to print.
pub fn line(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// Returns JSON that is safe to print. JSON's own escapes do not cover all such characters. Readers get the same
/// values.
pub fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c != '\n' && is_unsafe(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe += &format!("\\u{unit:04x}")),
            false => safe.push(c),
        }
    }
    safe
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unsafe(c) {
            true => safe.extend(c.escape_default()),
            false => safe.push(c),
        }
    }
    safe
}

/// Returns whether a terminal or a browser does not show this character as it is: control characters of both sets, line
/// and paragraph separators, marks that change the direction of text, and characters without width.
fn is_unsafe(c: char) -> bool {
    // U+200C and U+200D are part of words in Persian and in Indian languages.
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || matches!(c, '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ExplainReport, ExplainedNode};
    use proptest::prelude::*;

    #[test]
    fn sequences_that_a_terminal_executes_are_visible() {
        for (text, safe) in [
            ("\x1b[2J\x1b]0;title\x07", "\\u{1b}[2J\\u{1b}]0;title\\u{7}"),
            ("a\r\nOK  fine", "a\\r\\nOK  fine"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("user\u{202e}gpj.exe", "user\\u{202e}gpj.exe"),
            ("Größe \"数\" it's 'naïve' \\d", "Größe \"数\" it's 'naïve' \\d"),
        ] {
            assert_eq!(line(text), safe);
        }
    }

    #[test]
    fn all_texts_of_a_report_are_escaped() {
        let node = ExplainedNode { title: "Seq Scan on \"\x1b[8m\"".into(), ..Default::default() };
        let settings = [("jit\n".to_string(), "\u{9b}".to_string())].into();
        let statement = Some("SELECT 1,\r\n\t2 \x1b".to_string());
        let safe = report(&ExplainReport { nodes: vec![node], settings, statement, ..Default::default() }).unwrap();
        assert_eq!(safe.nodes[0].title, "Seq Scan on \"\\u{1b}[8m\"");
        assert_eq!(safe.settings, [("jit\\n".to_string(), "\\u{9b}".to_string())].into());
        assert_eq!(safe.statement.as_deref(), Some("SELECT 1,\n\t2 \\u{1b}"));
    }

    #[test]
    fn a_figure_that_is_not_finite_is_an_error() {
        for figure in [f64::NAN, f64::INFINITY] {
            assert!(report(&ExplainReport { reported_ms: figure, ..Default::default() }).is_err());
        }
    }

    proptest! {
        #[test]
        fn json_keeps_its_values(text in any::<String>()) {
            let escaped = json(&serde_json::to_string(&text).unwrap());
            prop_assert!(!escaped.chars().any(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }

        #[test]
        fn an_escaped_line_has_no_unsafe_characters(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_unsafe));
        }
    }
}
