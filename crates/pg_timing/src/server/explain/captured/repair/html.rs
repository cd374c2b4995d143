//! Decodes the HTML source of a page with a plan: psql's HTML format, or a page that was copied as source.

/// Tags that are put around or between the lines of a plan.
const TAGS: [&str; 26] = [
    "a",
    "b",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "div",
    "em",
    "font",
    "html",
    "i",
    "kbd",
    "li",
    "mark",
    "p",
    "pre",
    "samp",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "thead",
    "tr",
    "ul",
];
/// Tags that end a line, unless the source has a line end there, too.
const LINE_ENDS: [&str; 7] = ["br", "div", "li", "p", "td", "tr", "pre"];

/// Returns whether a line begins with a tag, or with an arrow or a space that is written as an entity.
pub fn begins_line(line: &str) -> bool {
    line.starts_with("-&gt;") || line.starts_with("&nbsp;") || line.starts_with("&#160;") || tag(line).is_some()
}

/// Returns the text without tags and with its entities decoded.
pub fn decoded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        // psql's expanded format repeats the column's name in a heading.
        if line.trim_start().starts_with("<th") {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find('<') {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            match tag(rest) {
                Some((name, length)) => {
                    rest = &rest[length..];
                    if LINE_ENDS.contains(&name.as_str()) && !rest.is_empty() && !plain.ends_with('\n') {
                        end_line(&mut plain);
                    }
                }
                None => {
                    plain.push('<');
                    rest = &rest[1..];
                }
            }
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    html_escape::decode_html_entities(&plain).into_owned()
}

/// Ends the last line if it has more than indentation, which belongs to the source and not to the plan.
fn end_line(plain: &mut String) {
    let line = plain.rfind('\n').map_or(0, |end| end + 1);
    match plain[line..].trim().is_empty() {
        true => plain.truncate(line),
        false => plain.push('\n'),
    }
}

/// Returns the name in lower case and the length of the tag at the beginning of a text.
fn tag(text: &str) -> Option<(String, usize)> {
    /// No real tag is longer. Without the limit, many `<` in one line would be searched again and again.
    const MAX_LENGTH: usize = 500;
    let inside = text.strip_prefix('<')?;
    let named = inside.strip_prefix('/').unwrap_or(inside);
    let length = named.bytes().take_while(u8::is_ascii_alphabetic).count();
    let name = named[..length].to_ascii_lowercase();
    if !TAGS.contains(&name.as_str()) {
        return None;
    }
    let end = inside.bytes().take(MAX_LENGTH).position(|byte| byte == b'>')?;
    Some((name, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_entities_are_decoded() {
        for (source, plain) in [
            ("<td align=\"left\">&nbsp;&nbsp;-&gt;  Seq Scan on t</td>", "\u{a0}\u{a0}->  Seq Scan on t\n"),
            ("<pre>Result<br/>Filter: (a &lt; &#39;b&#39;)</pre>", "Result\nFilter: (a < 'b')\n"),
            ("    <td align=\"left\">[<br />\n  {<br />\n    &quot;Plan&quot;: 1</td>", "[\n  {\n    \"Plan\": 1\n"),
            ("(a < b) AND (c <> d) <x>", "(a < b) AND (c <> d) <x>\n"),
            ("<th>QUERY PLAN</th>\n<p>a", "a\n"),
        ] {
            assert_eq!(decoded(source), plain);
        }
    }

    #[test]
    fn lines_of_a_plan_are_no_html() {
        for line in ["<= 5", "<explain xmlns=\"http://www.postgresql.org/2009/explain\">", "->  Sort", "-> 'a'", "<-"] {
            assert!(!begins_line(line), "{line}");
        }
        assert!(begins_line("<TD>") && begins_line("</pre>") && begins_line("-&gt;  Sort"));
    }
}
