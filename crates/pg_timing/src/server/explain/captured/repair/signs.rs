//! Finds out in one cheap pass which repairs a text may need. A server's log needs none, and it can be long.

use super::{characters, html};

/// The repairs that a text may need.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Signs {
    pub html: bool,
    pub special_characters: bool,
    pub latex: bool,
    pub asciidoc: bool,
    pub troff: bool,
    pub csv: bool,
    pub wrap: bool,
}

impl Signs {
    pub fn of(text: &str) -> Signs {
        let mut signs = Signs { special_characters: characters::has_special(text), ..Signs::default() };
        for line in text.lines() {
            let begin = line.trim_start_matches([' ', '\t', '>', '|']);
            match begin.as_bytes().first() {
                Some(b'<' | b'&' | b'-') => signs.html |= html::begins_line(begin),
                Some(b'{' | b'"') => {
                    signs.html |= begin.contains("&quot;Plan&quot;");
                    signs.csv |= begin.starts_with("\"[") || begin.starts_with("\"{") || begin.contains("\"\"");
                }
                Some(b'*') => signs.wrap |= begin.starts_with("* Record "),
                Some(b'\\') => signs.latex |= begin.starts_with("\\begin{") || begin.contains("\\tabularnewline"),
                Some(b'Q') => {
                    signs.csv |= begin.starts_with("QUERY PLAN,\"");
                    signs.latex |= begin.starts_with("QUERY PLAN &");
                }
                Some(b'=') => signs.asciidoc |= line.starts_with("|===="),
                Some(b'.') => signs.troff |= begin == ".TS",
                _ => {}
            }
            signs.latex |= begin.starts_with("-\\textgreater");
            // psql's wrap marks are at the end of a line. Old-ascii has a space as its mark.
            signs.wrap |= matches!(line.trim_end_matches(['\r', '|', '│']).as_bytes().last(), Some(b'.' | b' ' | 0xa6))
                || begin.starts_with([';', ':']);
        }
        // Entities in the middle of a page that begins in another way.
        signs.html |= text.contains("-&gt;") || text.contains("&quot;Plan&quot;");
        // XML has entities, too: they are decoded with the plan.
        signs.html &= !text.contains("<explain xmlns=");
        signs
    }
}
