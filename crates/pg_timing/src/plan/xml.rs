//! Rewrites EXPLAIN's XML as the text of its JSON. A log can have gigabytes of XML, and a tree of its values takes twice as
//! long as this text.

use super::errors::Unreadable;
use super::json_text::{is_number, is_written_if_empty, push_string};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// A plan has two levels per node. JSON's parser has a lower limit.
const MAX_DEPTH: usize = 1000;

/// Returns the JSON text of an `<explain>` element. EXPLAIN writes each statement as a `<Query>`, so its JSON is a list.
/// auto_explain writes one statement without that element, so its JSON is an object.
pub fn as_json(text: &str) -> Result<String, Unreadable> {
    let mut reader = Reader::from_str(text);
    let mut json = Json::with_capacity(text.len());
    loop {
        match reader.read_event().map_err(|error| damaged(&error.to_string()))? {
            Event::Start(start) => json.begin(&start)?,
            Event::Empty(_) if json.open.is_empty() => return Err(damaged("the element is empty")),
            Event::Empty(empty) => {
                json.begin(&empty)?;
                json.end();
            }
            Event::End(_) => {
                json.end();
                if json.open.is_empty() {
                    return Ok(json.out);
                }
            }
            Event::Text(text) => json.text.push_str(&text.into_inner()),
            Event::CData(text) => json.text.push_str(&text.into_inner()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten();
                match (character, quick_xml::escape::resolve_predefined_entity(&reference.into_inner())) {
                    (Some(character), _) => json.text.push(character),
                    (None, Some(text)) => json.text.push_str(text),
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

struct Json {
    out: String,
    open: Vec<Element>,
    /// the keys of the open elements, one after the other
    keys: String,
    /// text since the last begin or end of an element
    text: String,
}

/// An element whose end has not been read.
struct Element {
    /// where its key begins in the keys
    key: usize,
    /// `]` or `}`, after its first child has begun
    end: Option<char>,
}

impl Json {
    fn with_capacity(bytes: usize) -> Json {
        Json { out: String::with_capacity(bytes), open: Vec::new(), keys: String::new(), text: String::new() }
    }

    /// Begins an element, and its list or object with its first child.
    fn begin(&mut self, start: &BytesStart) -> Result<(), Unreadable> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Unreadable::TooDeep);
        }
        let key = self.keys.len();
        push_key(&mut self.keys, start.local_name().as_ref());
        self.text.clear();
        if let Some(outer) = self.open.last_mut() {
            let child = &self.keys[key..];
            match outer.end {
                Some(_) => self.out.push(','),
                None => {
                    let is_list = is_list(&self.keys[outer.key..key], child);
                    self.out.push(if is_list { '[' } else { '{' });
                    outer.end = Some(if is_list { ']' } else { '}' });
                }
            }
            if outer.end == Some('}') {
                push_string(&mut self.out, child);
                self.out.push(':');
            }
        }
        self.open.push(Element { key, end: None });
        Ok(())
    }

    /// Ends the innermost element. Adds its value, if it has no children.
    fn end(&mut self) {
        let Some(Element { key, end }) = self.open.pop() else { return };
        match end {
            Some(end) => self.out.push(end),
            None => push_value(&mut self.out, &self.keys[key..], &self.text),
        }
        self.keys.truncate(key);
        self.text.clear();
    }
}

/// Returns whether an element is a list, if this is the key of its first child. `Plans` contains `Plan`; other lists contain
/// `Item`.
fn is_list(key: &str, child: &str) -> bool {
    child == "Item" || key.strip_suffix('s') == Some(child) || key == "explain" && child == "Query"
}

/// Adds the value of an element without children.
fn push_value(out: &mut String, key: &str, text: &str) {
    // A list without elements, as in `GROUP BY ()`, has a line break. A text has none.
    if is_written_if_empty(key) || text.contains('\n') && text.trim().is_empty() {
        out.push_str("[]");
    } else if !is_text(key) && (is_number(text) || matches!(text, "true" | "false")) {
        out.push_str(text);
    } else {
        push_string(out, text);
    }
}

/// Returns whether a property is a text, even if the text looks like a number or a Boolean.
fn is_text(key: &str) -> bool {
    const ENDS: [&str; 12] =
        ["Name", "Alias", "Schema", "Filter", "Cond", "Key", "Item", "Text", "Type", "Command", "Output", "Parameters"];
    let is_count = key.starts_with("Rows Removed ");
    !is_count && ENDS.iter().any(|end| key.ends_with(end)) || key.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Adds the key that JSON has for an element. The server writes `-` for each character that a name cannot have.
fn push_key(keys: &mut String, element: &str) {
    // The names of settings have no capital letters.
    if element.starts_with(|c: char| c.is_ascii_lowercase()) {
        return keys.push_str(element);
    }
    let mut words = element.split('-');
    let mut last = words.next().unwrap_or_default();
    keys.push_str(last);
    for word in words {
        keys.push(match (last, word) {
            ("I", "O") => '/',
            ("One", "Time") | ("Full", "sort") | ("Pre", "sorted") => '-',
            _ => ' ',
        });
        keys.push_str(word);
        last = word;
    }
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
        assert_eq!(value(&explain(&format!("<Query>{query}</Query>"))), json!([expected]));
        assert_eq!(value(&explain(query)), expected);
    }

    #[test]
    fn damaged_texts_are_errors() {
        let deep = "<a>".repeat(5000);
        for text in ["", "<explain>", "<explain><a></b></explain>", "<explain>&x;</explain>", "</explain>", &deep] {
            assert!(as_json(text).is_err(), "{text}");
        }
    }
}
