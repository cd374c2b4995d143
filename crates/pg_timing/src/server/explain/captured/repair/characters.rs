//! Replaces the characters that web pages and word processors put in the place of ASCII characters.

/// Returns whether a text has characters that are replaced.
pub fn has_special(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| is_space(c) || is_invisible(c) || is_quote(c) || is_arrow(c) || is_dash(c))
}

/// Returns the text with ASCII spaces, arrows, and quotation marks around JSON's texts and the values of settings.
pub fn plain(text: &str) -> String {
    let quoted = ["“Plan”", "”Plan”", "„Plan“", " = ‘", " = ’"].iter().any(|sign| text.contains(sign));
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut line = line;
        let begin = line.trim_start_matches(|c: char| c == ' ' || c == '\t' || is_space(c) || is_invisible(c));
        let arrow = begin.strip_prefix(is_arrow).or_else(|| begin.strip_prefix(is_dash)?.strip_prefix('>'));
        if let Some(rest) = arrow {
            let spaces = &line[..line.len() - begin.len()];
            plain.extend(spaces.chars().filter(|&c| !is_invisible(c)).map(|c| if is_space(c) { ' ' } else { c }));
            plain.push_str("->");
            line = rest;
        }
        plain.extend(line.chars().filter(|&c| !is_invisible(c)).map(|c| match c {
            _ if is_space(c) => ' ',
            '“' | '”' | '„' | '‟' if quoted => '"',
            '‘' | '’' | '‚' | '‛' if quoted => '\'',
            _ => c,
        }));
    }
    plain
}

/// Spaces that are not ASCII. Each one is as wide as a space in a fixed-width font.
fn is_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}')
}

/// Characters without a width: zero-width spaces, soft hyphens, and marks of the writing direction.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{feff}')
}

fn is_quote(c: char) -> bool {
    ('\u{2018}'..='\u{201f}').contains(&c)
}

fn is_arrow(c: char) -> bool {
    matches!(c, '→' | '⟶' | '➔' | '➜' | '⇒')
}

fn is_dash(c: char) -> bool {
    ('\u{2010}'..='\u{2015}').contains(&c) || c == '−'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_become_ascii() {
        for (special, ascii) in [
            ("\u{a0}\u{a0}→\u{a0} Sort\u{200b}", "  ->  Sort"),
            (" —> Sort\n  –>  Sort", " -> Sort\n  ->  Sort"),
            ("{“Plan”: {“Node Type”: “Sort”", "{\"Plan\": {\"Node Type\": \"Sort\""),
            ("Settings: jit = ‘off’", "Settings: jit = 'off'"),
        ] {
            assert!(has_special(special));
            assert_eq!(plain(special), ascii);
        }
        // In a condition, they belong to a text.
        let condition = "Filter: (a = 'b → “c” d’'::text)";
        assert_eq!(plain(condition), condition);
        assert!(!has_special("Filter: (a = 'ä')"));
    }
}
