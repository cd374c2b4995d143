//! Columns that a text takes on a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

const ELLIPSIS: &str = "...";

/// Returns the number of columns. East Asian characters take two, and accents of other characters none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Returns the text, or its beginning with an ellipsis if it takes more than this number of columns.
pub fn cut(text: &str, most: usize) -> String {
    match columns(text) > most {
        true => format!("{}{ELLIPSIS}", beginning(text, most.saturating_sub(ELLIPSIS.len())).trim_end()),
        false => text.into(),
    }
}

/// Returns the text with spaces after it.
pub fn left(text: &str, width: usize) -> String {
    format!("{text}{:1$}", "", width.saturating_sub(columns(text)))
}

/// Returns the text with spaces before it.
pub fn right(text: &str, width: usize) -> String {
    format!("{:1$}{text}", "", width.saturating_sub(columns(text)))
}

/// Returns as much of the text as fits into these columns.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > most
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Returns the words of the text in lines of at most this number of columns. A longer word has its own line.
pub fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = columns(word);
        if used > 0 && used + 1 + length > most {
            lines.push(String::new());
            used = 0;
        }
        let line = lines.last_mut().expect("there is one");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!([columns("ab"), columns("\u{65e5}\u{672c}"), columns("a\u{301}")], [2, 4, 1]);
        assert_eq!(cut("\u{65e5}\u{672c}\u{8a9e}\u{65e5}", 7), "\u{65e5}\u{672c}...");
        assert_eq!([left("\u{65e5}", 4), right("\u{65e5}", 4)], ["\u{65e5}  ", "  \u{65e5}"]);
    }

    proptest! {
        #[test]
        fn a_cut_text_fits(text in "(a|\u{65e5}|\u{301}| ){0,20}", most in 3..20usize) {
            prop_assert!(columns(&cut(&text, most)) <= most);
        }
    }
}
