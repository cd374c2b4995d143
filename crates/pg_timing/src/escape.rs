//! Makes text from outside harmless: plans, logs, settings, file names and messages of servers.
//!
//! Such text can contain sequences that a terminal executes, that hide text, or that look like another line of output.

/// Returns the text as one line: `\n` for a line break, `\u{1b}` for other characters that are not safe to print.
pub fn line(text: &str) -> String {
    escaped(text, is_unsafe)
}

/// Returns the text with escapes instead of the characters for which `is_unsafe` is true: `\n` or `\u{1b}`.
pub fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    safe
}

/// Returns whether a terminal or a browser does not show this character as it is: control characters of both sets, line
/// and paragraph separators, marks that change the direction of text, and characters without width.
pub fn is_unsafe(c: char) -> bool {
    // U+200C and U+200D are part of words in Persian and in Indian languages.
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        || matches!(c, '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequences_that_a_terminal_executes_are_visible() {
        for (text, safe) in [
            ("\x1b[2J\x1b]0;title\x07", "\\u{1b}[2J\\u{1b}]0;title\\u{7}"),
            ("a\r\nOK  fine", "a\\r\\nOK  fine"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("user\u{202e}gpj.exe", "user\\u{202e}gpj.exe"),
            ("Größe \"数\" it's 'naïve' \\d", "Größe \"数\" it's 'naïve' \\d"),
        ] {
            assert_eq!(line(text), safe);
        }
    }

    proptest! {
        #[test]
        fn an_escaped_line_has_no_unsafe_characters(text in any::<String>()) {
            prop_assert!(!line(&text).chars().any(is_unsafe));
        }
    }
}
