//! Rewrites the YAML of EXPLAIN as JSON text. A log can have gigabytes of it, and a parser of all YAML takes six times as
//! long. EXPLAIN writes a small part of YAML: one key or element per line, two spaces per level, and strings in quotation
//! marks with JSON's escapes.

use super::json_text::{is_number, is_string};
use super::lists::is_written_if_empty;
use serde::de::IgnoredAny;

/// Returns the JSON text of a plan in YAML, or `None` if the text has a line that EXPLAIN does not write.
pub fn as_json(yaml: &str) -> Option<String> {
    let mut json = Json { out: String::with_capacity(yaml.len()), open: Vec::new(), key: None, is_element: false };
    for line in yaml.lines() {
        let text = line.trim_start_matches(' ');
        if !text.is_empty() {
            json.line(line.len() - text.len(), text.trim_end())?;
        }
    }
    Some(json.end())
}

struct Json<'a> {
    out: String,
    open: Vec<Open>,
    /// a key whose value begins on the next line
    key: Option<&'a str>,
    /// an object that is an element of a list begins
    is_element: bool,
}

/// A list or an object whose end has not been read.
struct Open {
    /// of its elements or keys
    column: usize,
    /// `]` or `}`
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

    /// Adds a key and its value.
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

    /// Begins an element of a list or a key of an object in this column. Ends what is further to the right.
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

    /// Ends a key without a value: an empty list, or nothing.
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

    /// Adds a string, a list on one line, a number or a Boolean.
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

/// Splits a line into a key and its value, which is empty if it begins on the next line.
fn key_and_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let is_key = key.bytes().all(|b| b.is_ascii_alphanumeric() || b" _/.-".contains(&b));
    (is_key && (value.is_empty() || value.starts_with(' '))).then(|| (key, value.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::explain::captured::yaml;
    use proptest::prelude::*;
    use serde_json::Value;

    #[track_caller]
    fn check(text: &str) -> Value {
        let value: Value = serde_json::from_str(&as_json(text).unwrap()).unwrap();
        assert_eq!(value, yaml::value(text).unwrap(), "{text}");
        value
    }

    #[test]
    fn the_values_are_those_of_yaml() {
        check(
            "Query Text: \"select \\\"a: b\\\"\\nb\"\nPlan: \n  Node Type: \"Sort\"\n  Parallel Aware: false\n  Sort Key: \n    - \"a\"\n    - \"b: c\"\n  Grouping Sets: \n    - [\"a\", \"b\"]\n    - [\"c\"]\n  Plans: \n    - Node Type: \"Result\"\n      Actual Rows: 1\n      Workers: \n    - Node Type: \"Hash\"\n  Total Cost: -1.01\nSettings: \n  jit: \"off\"\nJIT: \nTriggers: \n",
        );
        let list = check(
            "- Plan: \n    Node Type: \"A\"\n    Group Key: \n      - \"a\"\n  Triggers: \n- Plan: \n    Node Type: \"B\"\n",
        );
        assert_eq!(list.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn other_yaml_is_left_to_the_parser() {
        for text in
            ["a: &x [1]\nb: *x", "Plan:\n  a: 1\n b: 2", "a: 1\n  b: 2", "- 1\nb: 2", "a: |\n  b", "a: text", "\ta: 1"]
        {
            assert_eq!(as_json(text), None, "{text}");
        }
    }

    proptest! {
        /// If both parsers read a text, they read the same values.
        #[test]
        fn any_text_has_the_values_of_yaml(text in "([ ]{0,4}(- )?([ab]:( |( (1|true|\"x\"|\\[1\\]|x))?)|1|\"a\")\n){1,8}") {
            let ours = as_json(&text).map(|json| serde_json::from_str::<Value>(&json).expect(&json));
            if let (Some(ours), Ok(theirs)) = (ours, yaml::value(&text)) {
                prop_assert_eq!(ours, theirs, "{}", text);
            }
        }
    }
}
