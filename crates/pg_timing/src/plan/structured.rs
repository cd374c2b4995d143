//! Plans in YAML and XML. They are rewritten as the text of EXPLAIN's JSON: a log can have gigabytes of them, and a tree of
//! their values takes twice as long.

use super::text::column;
use super::unusable::Unusable;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde::de::IgnoredAny;
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

    pub fn name(self) -> &'static str {
        if self == Structured::Yaml { "YAML" } else { "XML" }
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
                let first_column = column(first);
                let more = lines.take_while(|line| {
                    let text = line.trim_end();
                    // The keys of a statement and the beginning of the next one have the column of the first line.
                    !text.is_empty() && (column(text) > first_column || is_key(text.trim_start()))
                });
                first.len() + more.map(str::len).sum::<usize>()
            }
        }
    }

    /// Returns the text that EXPLAIN's JSON has for a plan.
    pub fn as_json(self, text: &str) -> Result<String, Unusable> {
        let text = without_indentation(text);
        match self {
            Structured::Yaml => yaml_as_json(&text),
            Structured::Xml => xml_as_json(&text),
        }
    }
}

/// Removes the indentation of the first line from all lines. A log writes a tab before each line, even within a statement in
/// XML.
fn without_indentation(text: &str) -> Cow<'_, str> {
    let indentation = &text[..column(text)];
    if indentation.is_empty() {
        return Cow::Borrowed(text);
    }
    text.split_inclusive('\n').map(|line| line.strip_prefix(indentation).unwrap_or(line)).collect::<String>().into()
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

/// The JSON text so far.
#[derive(Default)]
struct Json {
    out: String,
    open: Vec<Element>,
    /// the keys of all open elements, joined: one string instead of one for each element
    keys: String,
}

/// An element whose end has not been read.
#[derive(Clone, Copy, Default)]
struct Element {
    /// where its key begins
    key: usize,
    /// `]` or `}`, after its first child has begun
    end: Option<char>,
    /// columns of the element and of its children in YAML
    column: Option<usize>,
    children: Option<usize>,
}

impl Json {
    /// Begins an element of the innermost one, which is a list or an object. The key of the new one is at the end of `keys`.
    /// Returns `None` if the innermost one began as the other one.
    fn begin(&mut self, element: Element, is_list: bool) -> Option<()> {
        let end = if is_list { ']' } else { '}' };
        let outer = self.open.last_mut()?;
        match outer.end {
            Some(known) if known != end => return None,
            Some(_) => self.out.push(','),
            None => self.out.push(if is_list { '[' } else { '{' }),
        }
        outer.end = Some(end);
        if !is_list {
            push_string(&self.keys[element.key..], &mut self.out);
            self.out.push(':');
        }
        self.open.push(element);
        Some(())
    }

    /// Ends the innermost element. Without children, it has a value.
    fn end(&mut self, value: impl FnOnce(&str, &mut String)) {
        let Some(element) = self.open.pop() else { return };
        match element.end {
            Some(end) => self.out.push(end),
            None => value(&self.keys[element.key..], &mut self.out),
        }
        self.keys.truncate(element.key);
    }

    /// Adds a line of YAML. Returns `None` if it cannot be read.
    fn yaml_line(&mut self, mut column: usize, mut text: &str) -> Option<()> {
        while self.open.last().is_some_and(|last| last.column >= Some(column)) {
            self.end(push_empty);
        }
        while let Some(element) = text.strip_prefix("- ") {
            self.begin_at(column, "", true)?;
            if key_and_value(element).is_none() {
                return self.yaml_value(element);
            }
            // The first key of an object has two more columns than its list.
            (column, text) = (column + "- ".len(), element);
        }
        let (key, value) = key_and_value(text)?;
        self.begin_at(column, key, false)?;
        // Without a value, a list or an object begins on the next line.
        if value.is_empty() { Some(()) } else { self.yaml_value(value) }
    }

    fn begin_at(&mut self, column: usize, key: &str, is_list: bool) -> Option<()> {
        let outer = self.open.last_mut()?;
        if *outer.children.get_or_insert(column) != column {
            return None;
        }
        let at = self.keys.len();
        self.keys.push_str(key);
        self.begin(Element { key: at, column: Some(column), ..Element::default() }, is_list)
    }

    /// Ends an element with a value, which JSON writes in the same way. An element of GROUPING SETS is a list in JSON's notation.
    fn yaml_value(&mut self, value: &str) -> Option<()> {
        self.end(|_, out| out.push_str(value));
        is_json(value).then_some(())
    }

    /// Begins an element. `Plans` contains `Plan`; other lists contain `Item`.
    fn begin_xml(&mut self, name: &str) {
        let element = Element { key: self.keys.len(), ..Element::default() };
        push_key(name, &mut self.keys);
        let Some(outer) = self.open.last() else { return self.open.push(element) };
        let (list, key) = (&self.keys[outer.key..element.key], &self.keys[element.key..]);
        let is_element = || key == "Item" || list.strip_suffix('s') == Some(key) || list == "explain" && key == "Query";
        let is_list = outer.end.map_or_else(is_element, |end| end == ']');
        _ = self.begin(element, is_list);
    }
}

/// Adds the value of an element without children. Only lists, and the settings, can be empty.
fn push_empty(key: &str, out: &mut String) {
    out.push_str(if key == "Settings" { "{}" } else { "[]" });
}

/// Adds a JSON string with its quotation marks. Most texts need no escapes.
fn push_string(text: &str, out: &mut String) {
    if text.bytes().any(|b| b < b' ' || b == b'"' || b == b'\\') {
        out.push_str(&serde_json::to_string(text).expect("a string is valid JSON"));
    } else {
        out.extend(["\"", text, "\""]);
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the JSON text of EXPLAIN's YAML. EXPLAIN writes a small part of YAML: one key or element per line, two spaces per
/// level, and strings in quotation marks with JSON's escapes.
fn yaml_as_json(yaml: &str) -> Result<String, Unusable> {
    // An element around all others is open.
    let mut json = Json { out: String::with_capacity(yaml.len()), open: vec![Element::default()], ..Json::default() };
    for line in yaml.lines() {
        let text = line.trim_start_matches(' ');
        if !text.is_empty() {
            let is_read = json.yaml_line(line.len() - text.len(), text.trim_end()).is_some();
            is_read.then_some(()).ok_or_else(|| Unusable::InvalidSyntax("YAML", format!("the line {text:?}")))?;
        }
    }
    while !json.open.is_empty() {
        json.end(push_empty);
    }
    Ok(json.out)
}

/// Splits a line at the colon after its key. The keys of EXPLAIN have no character that YAML quotes.
fn key_and_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    let is_key = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'_' | b'/' | b'.' | b'-'));
    (is_key && (value.is_empty() || value.starts_with(' '))).then(|| (key, value.trim_start()))
}

/// Returns the JSON text of an `<explain>` element. EXPLAIN writes each statement as a `<Query>`, so its JSON is a list.
/// auto_explain writes one statement without that element, so its JSON is an object.
fn xml_as_json(xml: &str) -> Result<String, Unusable> {
    let damaged = |why: &str| Unusable::InvalidSyntax("XML", why.into());
    let mut reader = Reader::from_str(xml);
    let mut json = Json { out: String::with_capacity(xml.len()), ..Json::default() };
    // since the last begin or end of an element
    let mut text = String::new();
    loop {
        match reader.read_event().map_err(|error| damaged(&error.to_string()))? {
            Event::Start(start) => {
                text.clear();
                json.begin_xml(start.local_name().as_ref());
            }
            Event::Empty(_) if json.open.is_empty() => return Err(damaged("missing field `Plan`")),
            Event::Empty(empty) => {
                json.begin_xml(empty.local_name().as_ref());
                json.end(push_empty);
            }
            Event::End(_) => {
                json.end(|key, out| push_xml_value(key, &text, out));
                text.clear();
                if json.open.is_empty() {
                    return Ok(json.out);
                }
            }
            Event::Text(part) => text.push_str(&part.into_inner()),
            Event::CData(part) => text.push_str(&part.into_inner()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten();
                match (character, quick_xml::escape::resolve_predefined_entity(&reference.into_inner())) {
                    (Some(character), _) => text.push(character),
                    (None, Some(part)) => text.push_str(part),
                    (None, None) => return Err(damaged("an unknown entity")),
                }
            }
            Event::Eof => return Err(damaged("the text has ended")),
            _ => {}
        }
    }
}

/// Adds the value of an element without children.
fn push_xml_value(key: &str, text: &str, out: &mut String) {
    let is_number = || text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && is_json(text);
    // A list without elements, as in `GROUP BY ()`, has a line break. A text has none.
    if text.contains('\n') && text.trim().is_empty() {
        push_empty(key, out);
    } else if !is_text(key) && (is_number() || matches!(text, "true" | "false")) {
        out.push_str(text);
    } else {
        push_string(text, out);
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
fn push_key(element: &str, keys: &mut String) {
    // The names of settings have no capital letters.
    if element.starts_with(|c: char| c.is_ascii_lowercase()) {
        return keys.push_str(element);
    }
    let mut before = None;
    for word in element.split('-') {
        match (before, word) {
            (None, _) => {}
            (Some("I"), "O") => keys.push('/'),
            (Some("One"), "Time") | (Some("Full"), "sort") | (Some("Pre"), "sorted") => keys.push('-'),
            _ => keys.push(' '),
        }
        keys.push_str(word);
        before = Some(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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

    fn value(json: Result<String, Unusable>) -> Value {
        serde_json::from_str(&json.unwrap()).unwrap()
    }

    #[test]
    fn values_of_xml_have_the_types_of_json() {
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
        assert_eq!(value(xml_as_json(&explain(&format!("<Query>{query}</Query>")))), json!([expected]));
        assert_eq!(value(xml_as_json(&explain(query))), expected);
        let empty = value(xml_as_json(&explain("<Settings>\n</Settings>")));
        assert_eq!(empty, json!({"Settings": {}}));
    }

    #[test]
    fn damaged_xml_is_refused() {
        let deep = "<a>".repeat(5000);
        for text in ["", "<explain>", "<explain><a></b></explain>", "<explain>&x;</explain>", "</explain>", &deep] {
            assert!(xml_as_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_of_yaml_have_the_types_of_json() {
        let text = "Query Text: \"select \\\"a: b\\\"\\nb\"\nPlan: \n  Node Type: \"Sort\"\n  Parallel Aware: false\n  Sort Key: \n    - \"a\"\n    - \"b: c\"\n  Grouping Sets: \n    - [\"a\", \"b\"]\n    - [\"c\"]\n  Plans: \n    - Node Type: \"Result\"\n      Actual Rows: 1\n      Workers: \n    - Node Type: \"Hash\"\n  Total Cost: -1.01\nSettings: \nTriggers: \n";
        let expected = json!({
            "Query Text": "select \"a: b\"\nb",
            "Plan": {
                "Node Type": "Sort", "Parallel Aware": false, "Sort Key": ["a", "b: c"],
                "Grouping Sets": [["a", "b"], ["c"]],
                "Plans": [{"Node Type": "Result", "Actual Rows": 1, "Workers": []}, {"Node Type": "Hash"}],
                "Total Cost": -1.01
            },
            "Settings": {}, "Triggers": []
        });
        assert_eq!(value(yaml_as_json(text)), expected);
        let list = value(yaml_as_json(
            "- Plan: \n    Node Type: \"A\"\n    Group Key: \n      - \"a\"\n  Triggers: \n- Plan: \n    Node Type: \"B\"\n",
        ));
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
            assert!(yaml_as_json(text).is_err(), "{text}");
        }
    }
}
