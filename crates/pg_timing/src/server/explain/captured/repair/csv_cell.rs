//! Removes the quotation marks around the cells of psql's CSV format and of what pgAdmin copies.

/// Returns the text without quotation marks around whole lines, or around a cell of several lines. A cell's own
/// quotation marks are doubled.
pub fn unquoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.strip_prefix("QUERY PLAN,").unwrap_or(rest);
        let cell = line.strip_prefix('"').and_then(cell);
        let length = match cell {
            Some((cell, length)) => {
                plain.push_str(&cell);
                rest.len() - line.len() + 1 + length
            }
            None => {
                let length = line.find('\n').unwrap_or(line.len());
                plain.push_str(&line[..length]);
                rest.len() - line.len() + length
            }
        };
        rest = &rest[length..];
        if let Some(next) = rest.strip_prefix('\n') {
            plain.push('\n');
            rest = next;
        }
    }
    plain
}

/// Returns the cell that begins after a quotation mark, and its length with the mark at its end. The mark must be at
/// the end of a line.
fn cell(text: &str) -> Option<(String, usize)> {
    let mut cell = String::new();
    let mut at = 0;
    loop {
        let quote = at + text[at..].find('"')?;
        cell.push_str(&text[at..quote]);
        at = quote + 1;
        if text[at..].starts_with('"') {
            cell.push('"');
            at += 1;
            continue;
        }
        let at_end = text[at..].trim_start_matches('\r');
        return (at_end.is_empty() || at_end.starts_with('\n')).then_some((cell, at));
    }
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn cells_lose_their_quotation_marks() {
        for (csv, plain) in [
            ("QUERY PLAN\n\"  ->  Seq Scan on \"\"T\"\" a\"\nb\n", "QUERY PLAN\n  ->  Seq Scan on \"T\" a\nb\n"),
            ("\"[\n  {\n    \"\"Plan\"\": \"\"\\\"\"\"\"\n\"", "[\n  {\n    \"Plan\": \"\\\"\"\n"),
            ("QUERY PLAN,\"a, \"\"b\"\"\"\r\nQUERY PLAN,c", "a, \"b\"\r\nc"),
            ("\"Plan\": {\n\"a\": \"b\"\n\"", "\"Plan\": {\n\"a\": \"b\"\n\""),
        ] {
            assert_eq!(unquoted(csv), plain);
        }
    }
}
