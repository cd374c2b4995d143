//! A plan has the same tree and the same figures in JSON, YAML and XML.

use super::proptests::json_of;
use crate::plan::tests::generated::{tree, with_consistent_times};
use crate::plan::{Explained, each_plan};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Writes the properties as explain.c does. The first one follows on the same line.
fn write_yaml(properties: &Map<String, Value>, column: usize, out: &mut String) {
    for (number, (key, value)) in properties.iter().enumerate() {
        let indent = if number == 0 { 0 } else { column };
        *out += &format!("{:indent$}{key}: ", "");
        match value {
            Value::Array(list) => {
                out.push('\n');
                for element in list {
                    *out += &format!("{:column$}  - ", "");
                    write_yaml_value(element, column + 4, out);
                }
            }
            Value::Object(_) => {
                *out += &format!("\n{:column$}  ", "");
                write_yaml_value(value, column + 2, out);
            }
            _ => write_yaml_value(value, column, out),
        }
    }
}

fn write_yaml_value(value: &Value, column: usize, out: &mut String) {
    match value {
        Value::Object(properties) => write_yaml(properties, column, out),
        value => *out += &format!("{value}\n"),
    }
}

/// Writes a property as explain.c does.
fn write_xml(key: &str, value: &Value, out: &mut String) {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let tag: String = key.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect();
    *out += &format!("<{tag}>");
    match value {
        Value::Object(properties) => properties.iter().for_each(|(key, value)| write_xml(key, value, out)),
        Value::Array(list) => {
            let of_objects = key.strip_suffix('s').unwrap_or(key);
            list.iter().for_each(|one| write_xml(if one.is_object() { of_objects } else { "Item" }, one, out));
        }
        Value::String(text) => *out += &escaped(text),
        value => *out += &value.to_string(),
    }
    *out += &format!("</{tag}>\n");
}

/// As PostgreSQL's escape_xml().
fn escaped(text: &str) -> String {
    [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#x0d;")]
        .iter()
        .fold(text.to_string(), |text, (sign, entity)| text.replace(sign, entity))
}

fn plans(text: &str) -> Vec<Explained> {
    let mut all = Vec::new();
    each_plan(text, false, &mut |plan| all.push(plan.unwrap_or_else(|why| panic!("{why:?}\n{text}"))));
    all.into_iter().map(|plan| Explained { line: 0, ..plan }).collect()
}

proptest! {
    #[test]
    fn a_tree_reads_back_from_yaml_and_xml_as_from_json(
        root in tree().prop_map(with_consistent_times),
        // In one line: psql and logs add white space at the ends of lines, so it is removed there.
        query in "[a-z][a-z<>&;:#'\"\\\\ \u{e4}\u{2013}-]{0,30}[a-z]",
        is_logged in any::<bool>(),
    ) {
        let list: Vec<Map<String, Value>> = serde_json::from_str(&json_of(&root)).unwrap();
        let mut statement = list[0].clone();
        statement.insert("Triggers".into(), json!([{"Trigger Name": query, "Time": 0.25, "Calls": 3}]));
        let (mut yaml, mut xml) = (String::new(), String::from("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n"));
        // auto_explain writes a statement with its query, and EXPLAIN writes a list.
        if is_logged {
            statement.shift_insert(0, "Query Text".into(), Value::from(query));
            write_yaml(&statement, 0, &mut yaml);
            statement.iter().for_each(|(key, value)| write_xml(key, value, &mut xml));
        } else {
            yaml += "- ";
            write_yaml(&statement, 2, &mut yaml);
            write_xml("Query", &statement.clone().into(), &mut xml);
        }
        let expected = plans(&format!("{:#}", json!([statement])));
        prop_assert_eq!(expected.len(), 1);
        prop_assert_eq!(&plans(&yaml), &expected, "{}", yaml);
        xml += "</explain>\n";
        prop_assert_eq!(&plans(&xml), &expected, "{}", xml);
    }
}
