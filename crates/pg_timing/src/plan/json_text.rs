//! Writes JSON text, for plans in YAML and XML.

/// Returns whether EXPLAIN writes this list even if it has no elements. YAML and XML do not show that it is a list.
pub fn is_written_if_empty(key: &str) -> bool {
    ["Triggers", "Workers", "Plans"].contains(&key)
}

/// Adds a JSON string with its quotation marks.
pub fn push_string(out: &mut String, text: &str) {
    if text.bytes().any(is_special) {
        out.push_str(&serde_json::Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// Returns whether a text is a JSON string with its quotation marks.
pub fn is_string(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_plain = inner.is_some_and(|inner| !inner.bytes().any(is_special));
    is_plain || serde_json::from_str::<String>(text).is_ok()
}

/// Returns whether JSON writes this byte of a string in another way.
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Returns whether a text is a number as EXPLAIN writes it, and as JSON allows it: without an exponent.
pub fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, decimals) = digits.split_once('.').map_or((digits, None), |(whole, decimals)| (whole, Some(decimals)));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_digits(whole) && (whole == "0" || !whole.starts_with('0')) && decimals.is_none_or(is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Number, Value};

    proptest! {
        #[test]
        fn each_number_is_valid(text in "[-0-9.]{1,6}") {
            prop_assert_eq!(is_number(&text), serde_json::from_str::<Number>(&text).is_ok());
        }

        #[test]
        fn strings_are_read_back(text in any::<String>()) {
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert!(is_string(&json));
            prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), Value::String(text));
        }

        #[test]
        fn each_string_is_valid(text in "[a\"\\\\\n]{1,6}") {
            prop_assert_eq!(is_string(&text), serde_json::from_str::<String>(&text).is_ok());
        }
    }
}
