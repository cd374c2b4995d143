//! Reads EXPLAIN's XML into the values that its JSON has.

use super::lists::is_written_if_empty;
use super::unreadable::Unreadable;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Map, Value};

/// A plan has two levels per node. JSON's parser has a similar limit.
const MAX_DEPTH: usize = 1000;

/// Returns the list of statements in an `<explain>` element, as JSON shows it. EXPLAIN writes each statement as a `<Query>`,
/// and auto_explain does not.
pub fn value(text: &str) -> Result<Value, Unreadable> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    loop {
        match reader.read_event().map_err(|error| damaged(&error.to_string()))? {
            Event::Start(_) if open.len() >= MAX_DEPTH => return Err(Unreadable::TooDeep),
            Event::Start(start) => {
                open.push(Element { key: key(start.local_name().as_ref()), text: String::new(), children: Vec::new() });
            }
            Event::Empty(empty) => {
                let Some(outer) = open.last_mut() else { return Err(damaged("the element is empty")) };
                outer.children.push((key(empty.local_name().as_ref()), Value::String(String::new())));
            }
            Event::End(_) => {
                let Some(element) = open.pop() else { return Err(damaged("an element ends before it begins")) };
                match open.last_mut() {
                    Some(outer) => {
                        let key = element.key.clone();
                        outer.children.push((key, element.value()));
                    }
                    None => return statements(element),
                }
            }
            Event::Text(text) => add(&mut open, &text.into_inner()),
            Event::CData(text) => add(&mut open, &text.into_inner()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten();
                match (character, quick_xml::escape::resolve_predefined_entity(&reference.into_inner())) {
                    (Some(character), _) => add(&mut open, character.encode_utf8(&mut [0; 4])),
                    (None, Some(text)) => add(&mut open, text),
                    (None, None) => return Err(damaged("an unknown entity")),
                }
            }
            Event::Eof => return Err(damaged("the text has ended")),
            _ => {}
        }
    }
}

fn damaged(why: &str) -> Unreadable {
    Unreadable::Xml(why.into())
}

fn add(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn statements(explain: Element) -> Result<Value, Unreadable> {
    let is_list = explain.children.iter().all(|(key, _)| key == "Query");
    let list = match is_list {
        true => explain.children.into_iter().map(|(_, statement)| statement).collect(),
        false => vec![Value::Object(explain.children.into_iter().collect())],
    };
    Ok(Value::Array(list))
}

/// An element whose end has not been read.
struct Element {
    key: String,
    text: String,
    children: Vec<(String, Value)>,
}

impl Element {
    fn value(self) -> Value {
        let Element { key, text, children } = self;
        // `Plans` contains `Plan`; other lists contain `Item`.
        let is_list = |child: &str| child == "Item" || key.strip_suffix('s') == Some(child);
        match children.first() {
            Some((child, _)) if is_list(child) => Value::Array(children.into_iter().map(|(_, value)| value).collect()),
            Some(_) => Value::Object(children.into_iter().collect::<Map<_, _>>()),
            None if is_written_if_empty(&key) => Value::Array(Vec::new()),
            // An empty list, as in `GROUP BY ()`. A text has no line break.
            None if text.contains('\n') && text.trim().is_empty() => Value::Array(Vec::new()),
            None if is_text(&key) => Value::String(text),
            None => match serde_json::from_str(&text) {
                Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
                _ => Value::String(text),
            },
        }
    }
}

/// Returns whether a property is a text, even if the text looks like a number or a Boolean.
fn is_text(key: &str) -> bool {
    const ENDS: [&str; 12] =
        ["Name", "Alias", "Schema", "Filter", "Cond", "Key", "Item", "Text", "Type", "Command", "Output", "Parameters"];
    let is_count = key.starts_with("Rows Removed ");
    !is_count && ENDS.iter().any(|end| key.ends_with(end)) || key.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns the key that JSON has for an element. The server writes `-` for each character that a name cannot have.
fn key(element: &str) -> String {
    const OTHERS: [(&str, &str); 4] =
        [("I O ", "I/O "), ("One Time ", "One-Time "), ("Full sort ", "Full-sort "), ("Pre sorted ", "Pre-sorted ")];
    // The names of settings have no capital letters.
    if element.starts_with(|c: char| c.is_ascii_lowercase()) {
        return element.into();
    }
    let mut key = element.replace('-', " ");
    for (written, name) in OTHERS {
        key = key.replace(written, name);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_the_types_of_json() {
        let query = "<Plan><Node-Type>Sort</Node-Type><Parallel-Aware>false</Parallel-Aware><Alias>1</Alias>\
             <Total-Cost>1.01</Total-Cost><Sort-Key><Item>a &lt; 1 &#65;</Item></Sort-Key><I-O-Read-Time>0.1</I-O-Read-Time>\
             <Rows-Removed-by-Filter>7</Rows-Removed-by-Filter><Group-Keys><Group-Key>\n  </Group-Key></Group-Keys>\
             <Plans><Plan><Node-Type>Result</Node-Type><One-Time-Filter>false</One-Time-Filter></Plan></Plans></Plan>\
             <Settings><work_mem>1</work_mem></Settings><Triggers>\n</Triggers>";
        let expected = json!({
            "Plan": {
                "Node Type": "Sort", "Parallel Aware": false, "Alias": "1", "Total Cost": 1.01, "Sort Key": ["a < 1 A"],
                "I/O Read Time": 0.1, "Rows Removed by Filter": 7, "Group Keys": [[]], "Plans": [{"Node Type": "Result", "One-Time Filter": "false"}]
            },
            "Settings": {"work_mem": "1"}, "Triggers": []
        });
        let explain =
            |content: &str| format!("<explain xmlns=\"http://www.postgresql.org/2009/explain\">{content}</explain>");
        assert_eq!(value(&explain(&format!("<Query>{query}</Query>"))).unwrap(), json!([expected]));
        assert_eq!(value(&explain(query)).unwrap(), json!([expected]));
    }

    #[test]
    fn damaged_texts_are_errors() {
        let deep = "<a>".repeat(5000);
        for text in ["", "<explain>", "<explain><a></b></explain>", "<explain>&x;</explain>", "</explain>", &deep] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
