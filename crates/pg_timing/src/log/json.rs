//! Finds the strings in a line of JSON, at any depth, without recursion. A line can be a whole value or a part of one: a string
//! never has a line end.

use memchr::memchr2;

/// A string that is a value, and the key before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value<'a> {
    pub key: &'a str,
    /// with its escapes
    pub raw: &'a str,
    /// the line ends within the string
    pub is_truncated: bool,
}

impl Value<'_> {
    /// Returns the string without its escapes. A damaged escape remains as it is.
    pub fn text(&self) -> String {
        let quoted = ["\"", self.raw, "\""].concat();
        serde_json::from_str(&quoted).unwrap_or_else(|_| self.raw.into())
    }
}

/// The values of a line, in their order.
pub struct Values<'a> {
    line: &'a str,
    at: usize,
    key: &'a str,
}

impl<'a> Values<'a> {
    pub fn of(line: &'a str) -> Values<'a> {
        Values { line, at: 0, key: "" }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        loop {
            let begin = self.at + memchr::memchr(b'"', &self.line.as_bytes()[self.at..])? + 1;
            let end = end_of_string(self.line, begin);
            let raw = &self.line[begin..end.unwrap_or(self.line.len())];
            self.at = end.map_or(self.line.len(), |end| end + 1);
            if self.line[self.at..].trim_start().starts_with(':') {
                self.key = raw;
            } else {
                return Some(Value { key: self.key, raw, is_truncated: end.is_none() });
            }
        }
    }
}

/// Returns where the quotation mark is that ends a string.
fn end_of_string(line: &str, begin: usize) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut at = begin;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Returns the number after a key, also within quotation marks.
pub fn number(line: &str, key: &str) -> Option<i64> {
    let at = memchr::memmem::find(line.as_bytes(), key.as_bytes())? + key.len();
    let rest = line[at..].trim_start_matches([' ', '"', ':']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|number| *number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_at_any_depth_and_in_parts() {
        let found = |line| Values::of(line).map(|value| (value.key, value.text())).collect::<Vec<_>>();
        let of = |key, text: &str| (key, text.to_string());
        assert_eq!(
            found(r#"{"a": {"b": ["x", "y\"\n"]}, "c" : 7, "d":"z"}"#),
            [of("b", "x"), of("b", "y\"\n"), of("d", "z")]
        );
        assert_eq!(found(r#"    "x","#), [of("", "x")]);
        let truncated = Values::of(r#"{"a":"x\""#).next();
        assert_eq!(truncated, Some(Value { key: "a", raw: "x\\\"", is_truncated: true }));
        assert!(found(&"[".repeat(1 << 20)).is_empty());
        assert_eq!(number(r#"{"query_id":-7,"a":1}"#, "\"query_id\":"), Some(-7));
        assert_eq!(number(r#"{"query_id": "12"}"#, "\"query_id\":"), Some(12));
        assert_eq!(number(r#"{"query_id":0}"#, "\"query_id\":"), None);
    }
}
