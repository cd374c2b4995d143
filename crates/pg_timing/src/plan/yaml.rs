//! Rewrites the YAML of EXPLAIN as JSON text. EXPLAIN writes a small part of YAML: one key or element per line, two spaces per
//! level, and strings in quotation marks with JSON's escapes.

use super::json_text::{is_number, is_string, is_written_if_empty};
use serde::de::IgnoredAny;

/// Returns the JSON text of EXPLAIN's YAML, or the line that EXPLAIN does not write in this way.
pub fn as_json(yaml: &str) -> Result<String, &str> {
    let mut json = Json { out: String::with_capacity(yaml.len()), open: Vec::new(), key: None, is_element: false };
    for line in yaml.lines() {
        let text = line.trim_start_matches(' ');
        if !text.is_empty() {
            json.line(line.len() - text.len(), text.trim_end()).ok_or(text)?;
        }
    }
    Ok(json.end())
}

struct Json<'a> {
    out: String,
    open: Vec<Open>,
    /// the key whose list or object begins on the next line
    key: Option<&'a str>,
    /// the object that begins next is an element of the innermost list
    is_element: bool,
}

/// A list or an object whose end has not been read.
struct Open {
    column: usize,
    end: char,
    is_empty: bool,
}

impl<'a> Json<'a> {
    fn line(&mut self, column: usize, text: &'a str) -> Option<()> {
        let Some(element) = text.strip_prefix("- ") else { return self.entry(column, text) };
        self.begin(column, ']')?;
        self.separate();
        self.is_element = key_and_value(element).is_some();
        match self.is_element {
            // The first key of an object has two more columns than its list.
            true => self.entry(column + "- ".len(), element),
            false => self.value(element),
        }
    }

    fn entry(&mut self, column: usize, text: &'a str) -> Option<()> {
        let (key, value) = key_and_value(text)?;
        self.begin(column, '}')?;
        if value.is_empty() {
            self.key = Some(key);
            return Some(());
        }
        self.key(key);
        self.value(value)
    }

    /// Begins a list or an object at this column, or continues the one that is there.
    fn begin(&mut self, column: usize, end: char) -> Option<()> {
        if self.open.last().is_some_and(|open| column <= open.column) {
            self.end_key();
            while self.open.last().is_some_and(|open| open.column > column) {
                self.end_last();
            }
            return self.open.last().filter(|open| open.column == column && open.end == end).map(|_| ());
        }
        match self.key.take() {
            Some(key) => self.key(key),
            None if std::mem::take(&mut self.is_element) || self.out.is_empty() => {}
            None => return None,
        }
        self.out.push(if end == ']' { '[' } else { '{' });
        self.open.push(Open { column, end, is_empty: true });
        Some(())
    }

    /// Adds a key without a value. Only lists can be empty.
    fn end_key(&mut self) {
        if let Some(key) = self.key.take().filter(|key| is_written_if_empty(key)) {
            self.key(key);
            self.out.push_str("[]");
        }
    }

    fn end_last(&mut self) {
        self.out.extend(self.open.pop().map(|open| open.end));
    }

    fn end(mut self) -> String {
        self.end_key();
        while !self.open.is_empty() {
            self.end_last();
        }
        self.out
    }

    fn separate(&mut self) {
        if let Some(last) = self.open.last_mut()
            && !std::mem::replace(&mut last.is_empty, false)
        {
            self.out.push(',');
        }
    }

    fn key(&mut self, key: &str) {
        self.separate();
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
    }

    /// Adds a value, which JSON writes in the same way. An element of GROUPING SETS is a list in JSON's notation.
    fn value(&mut self, value: &str) -> Option<()> {
        self.out.push_str(value);
        let is_value = match value.as_bytes().first() {
            Some(b'"') => is_string(value),
            Some(b'[') => serde_json::from_str::<IgnoredAny>(value).is_ok(),
            _ => is_number(value) || matches!(value, "true" | "false"),
        };
        is_value.then_some(())
    }
}

/// Splits a line at the colon after its key. The keys of EXPLAIN have no character that YAML quotes.
fn key_and_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let is_key = key.bytes().all(|b| b.is_ascii_alphanumeric() || b" _/.-".contains(&b));
    (is_key && (value.is_empty() || value.starts_with(' '))).then(|| (key, value.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn value(text: &str) -> Value {
        serde_json::from_str(&as_json(text).unwrap()).unwrap()
    }

    #[test]
    fn values_have_the_types_of_json() {
        let text = "Query Text: \"select \\\"a: b\\\"\\nb\"\nPlan: \n  Node Type: \"Sort\"\n  Parallel Aware: false\n  Sort Key: \n    - \"a\"\n    - \"b: c\"\n  Grouping Sets: \n    - [\"a\", \"b\"]\n    - [\"c\"]\n  Plans: \n    - Node Type: \"Result\"\n      Actual Rows: 1\n      Workers: \n    - Node Type: \"Hash\"\n  Total Cost: -1.01\nSettings: \n  jit: \"off\"\nJIT: \nTriggers: \n";
        let expected = json!({
            "Query Text": "select \"a: b\"\nb",
            "Plan": {
                "Node Type": "Sort", "Parallel Aware": false, "Sort Key": ["a", "b: c"],
                "Grouping Sets": [["a", "b"], ["c"]],
                "Plans": [{"Node Type": "Result", "Actual Rows": 1, "Workers": []}, {"Node Type": "Hash"}],
                "Total Cost": -1.01
            },
            "Settings": {"jit": "off"}, "Triggers": []
        });
        assert_eq!(value(text), expected);
        let list = value(
            "- Plan: \n    Node Type: \"A\"\n    Group Key: \n      - \"a\"\n  Triggers: \n- Plan: \n    Node Type: \"B\"\n",
        );
        assert_eq!(list.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn other_yaml_is_refused() {
        for text in [
            "a: &x [1]\nb: *x",
            "Plan:\n  a: 1\n b: 2",
            "a: 1\n  b: 2",
            "- 1\nb: 2",
            "a: |\n  b",
            "a: text",
            "\ta: 1",
            "a: \"x",
        ] {
            assert!(as_json(text).is_err(), "{text}");
        }
    }
}
