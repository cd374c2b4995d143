//! Reads EXPLAIN's YAML into the values that its JSON has.

use super::lists::is_written_if_empty;
use super::unreadable::Unreadable;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// A plan has two levels per node. JSON's parser has a similar limit.
const MAX_DEPTH: usize = 1000;

/// Returns the value of a YAML document.
pub fn value(text: &str) -> Result<Value, Unreadable> {
    let mut open: Vec<Open> = Vec::new();
    let mut parser = Parser::new_from_str(text);
    loop {
        let event = match parser.next() {
            Some(Ok((event, _))) => event,
            Some(Err(error)) => return Err(damaged(error.info())),
            None => return Err(damaged("the text has ended")),
        };
        let done = match event {
            Event::Scalar(text, style, ..) => Some(scalar(text.into_owned(), style)),
            Event::MappingStart(..) if open.len() < MAX_DEPTH => {
                open.push(Open::Map(Map::new(), None));
                None
            }
            Event::SequenceStart(..) if open.len() < MAX_DEPTH => {
                open.push(Open::List(Vec::new()));
                None
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => return Err(Unreadable::TooDeep),
            Event::MappingEnd | Event::SequenceEnd => open.pop().map(Open::value),
            // EXPLAIN writes no references. One could repeat a large value many times.
            Event::Alias(_) => return Err(damaged("a reference")),
            _ => None,
        };
        if let Some(done) = done {
            match open.last_mut() {
                Some(outer) => outer.add(done),
                None => return Ok(done),
            }
        }
    }
}

fn damaged(why: &str) -> Unreadable {
    Unreadable::Yaml(why.into())
}

/// Returns a number or a Boolean if the text is not in quotation marks.
fn scalar(text: String, style: ScalarStyle) -> Value {
    match style {
        ScalarStyle::Plain if text.is_empty() || text == "~" => Value::Null,
        ScalarStyle::Plain => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        _ => Value::String(text),
    }
}

/// A value whose end has not been read.
enum Open {
    /// with the key whose value comes next
    Map(Map<String, Value>, Option<String>),
    List(Vec<Value>),
}

impl Open {
    fn add(&mut self, value: Value) {
        match self {
            Open::List(list) => list.push(value),
            Open::Map(map, key) => match key.take() {
                // An empty list has no value at all.
                Some(key) if value.is_null() => {
                    if is_written_if_empty(&key) {
                        map.insert(key, Value::Array(Vec::new()));
                    }
                }
                Some(key) => _ = map.insert(key, value),
                None => *key = Some(value.as_str().map_or_else(|| value.to_string(), str::to_string)),
            },
        }
    }

    fn value(self) -> Value {
        match self {
            Open::Map(map, _) => Value::Object(map),
            Open::List(list) => Value::Array(list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_the_types_of_json() {
        let text = "Query Text: \"select \\\"a\\\"\\nb\"\nPlan: \n  Node Type: \"Sort\"\n  Parallel Aware: false\n  Total Cost: 1.01\n  Sort Key: \n    - \"a\"\n  Plans: \n    - Node Type: \"Result\"\n      Actual Rows: 1\nTriggers: \n";
        let expected = json!({
            "Query Text": "select \"a\"\nb",
            "Plan": {
                "Node Type": "Sort", "Parallel Aware": false, "Total Cost": 1.01, "Sort Key": ["a"],
                "Plans": [{"Node Type": "Result", "Actual Rows": 1}]
            },
            "Triggers": []
        });
        assert_eq!(value(text).unwrap(), expected);
        assert_eq!(value("- Plan: \n    Node Type: \"1\"\n").unwrap(), json!([{"Plan": {"Node Type": "1"}}]));
    }

    #[test]
    fn damaged_texts_are_errors() {
        for text in ["", "a: &x [1]\nb: *x", "Plan: \n  \"a", &"- ".repeat(5000)] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
