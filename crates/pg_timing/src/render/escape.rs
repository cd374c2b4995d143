//! Makes the texts of a report harmless, see [`crate::escape`].

use crate::error::Error;
use crate::escape::{escaped, is_unsafe, line};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ExplainReport, ExplainedNode};
    use proptest::prelude::*;

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
    }
}
