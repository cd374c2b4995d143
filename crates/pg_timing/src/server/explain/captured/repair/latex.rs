//! Decodes psql's LaTeX formats.

/// psql's escapes, from `latex_escaped_print()` in print.c. `\\` is a line end.
const ESCAPES: [(&str, &str); 16] = [
    ("\\textgreater{}", ">"),
    ("\\textless{}", "<"),
    ("\\textbackslash{}", "\\"),
    ("\\textbar{}", "|"),
    ("\\^{}", "^"),
    ("\\~{}", "~"),
    ("\\raggedright{", ""),
    ("} \\tabularnewline", "\n"),
    ("\\\\", "\n"),
    ("\\#", "#"),
    ("\\$", "$"),
    ("\\%", "%"),
    ("\\&", "&"),
    ("\\_", "_"),
    ("\\{", "{"),
    ("\\}", "}"),
];

/// Returns the text without LaTeX's escapes.
pub fn decoded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '}']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (escape, character) =
            ESCAPES.into_iter().find(|(escape, _)| rest.starts_with(escape)).unwrap_or((&rest[..1], &rest[..1]));
        plain.push_str(character);
        rest = &rest[escape.len()..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(decoded("  -\\textgreater{}  Seq Scan on a\\_b \\\\\n"), "  ->  Seq Scan on a_b \n\n");
        assert_eq!(decoded("\\raggedright{  Filter: (a = '\\{\\}')} \\tabularnewline\n"), "  Filter: (a = '{}')\n\n");
        assert_eq!(decoded("[\\\\  \\{\\\\ \"a\": \"\\textbackslash{}n\""), "[\n  {\n \"a\": \"\\n\"");
        assert_eq!(decoded("\\begin{tabular}{l}"), "\\begin{tabular}{l}");
    }
}
