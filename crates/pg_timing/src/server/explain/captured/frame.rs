//! Removes what psql, tickets and pgAdmin put around each line.

/// psql's borders
pub const BARS: [char; 2] = ['|', '│'];

/// Returns a line without the quotation marks of a mail.
pub fn without_quotes(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}

/// Returns a line without quotation marks, psql's borders, and psql's line continuation signs.
pub fn without_frame(line: &str) -> &str {
    let line = line.trim_end();
    if line.is_empty() {
        return line;
    }
    let mut line = without_quotes(line);
    // The expanded display has a second bar after the column of names.
    while let Some(rest) = line.trim_start().strip_prefix(BARS) {
        line = rest.strip_suffix(BARS).unwrap_or(rest).trim_end();
    }
    if let Some(rest) = without_name(line.trim_start()) {
        line = rest;
    }
    for sign in ['+', '↵'] {
        line = line.strip_suffix(sign).unwrap_or(line).trim_end();
    }
    // pgAdmin quotes each line. A line of JSON has a colon after the first quoted text.
    match line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) if !quoted.contains("\": ") => quoted,
        _ => line,
    }
}

/// Returns a line of psql's expanded display without the column's name. The separator depends on the format; Asciidoc
/// has `<l|` before the name, too.
fn without_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("<l|").unwrap_or(line).strip_prefix("QUERY PLAN")?;
    let rest = match rest.strip_prefix(' ') {
        Some(rest) => {
            ["| ", "│ ", "& ", "<l|"].iter().find_map(|separator| rest.strip_prefix(separator)).unwrap_or(rest)
        }
        None => rest.strip_prefix(['|', ','])?,
    };
    (!rest.trim().is_empty()).then_some(rest)
}
