//! Names as the text format prints them.

use super::keywords;

/// Returns ` on schema.object alias`. The alias is shown only if it differs.
pub fn target(schema: Option<&str>, object: Option<&str>, alias: Option<&str>) -> String {
    let schema = schema.map_or(String::new(), |schema| quoted(schema) + ".");
    match (object, alias) {
        (Some(object), Some(alias)) if object != alias => format!(" on {schema}{} {}", quoted(object), quoted(alias)),
        (Some(object), _) => format!(" on {schema}{}", quoted(object)),
        (None, Some(alias)) => format!(" on {}", quoted(alias)),
        (None, None) => String::new(),
    }
}

/// Returns a name as `quote_identifier()` prints it: in quotes, unless it is a lower-case word that needs none. Key
/// words need quotes.
pub fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    match is_plain && !keywords::is_quoted(name) {
        true => name.into(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
