//! The sign between an estimate and its margin: `±` on a UTF-8 terminal, `+-` elsewhere.

use std::sync::OnceLock;

const ASCII: &str = "+-";
const UNICODE: &str = "±";

static SIGN: OnceLock<&str> = OnceLock::new();

/// Returns the sign for this process. Reports contain `+-`, so that JSON is the same everywhere.
pub fn plus_minus() -> &'static str {
    SIGN.get().copied().unwrap_or(ASCII)
}

/// Returns whether this process writes UTF-8 to a terminal that shows it.
pub fn is_unicode() -> bool {
    plus_minus() == UNICODE
}

/// Selects the sign, once at the start of the program, before anything is rendered.
pub fn select(stdout_is_terminal: bool, locale: Option<&str>) {
    _ = SIGN.set(sign(stdout_is_terminal, locale));
}

/// Replaces the sign in a text of a report.
pub fn with_sign(text: &str) -> String {
    text.replace(" +- ", &format!(" {} ", plus_minus()))
}

/// `locale` is a name like `en_US.UTF-8`.
fn sign(stdout_is_terminal: bool, locale: Option<&str>) -> &'static str {
    let encoding = locale.and_then(|name| name.split_once('.')).map_or("", |(_, encoding)| encoding);
    // A modifier may follow, as in `de_DE.UTF-8@euro`.
    let encoding = encoding.split('@').next().unwrap_or("").to_ascii_lowercase();
    if stdout_is_terminal && matches!(encoding.as_str(), "utf-8" | "utf8") { UNICODE } else { ASCII }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_utf8_terminal_shows_the_unicode_sign() {
        for locale in ["en_US.UTF-8", "C.UTF-8", "de_DE.utf8@euro"] {
            assert_eq!((sign(true, Some(locale)), sign(false, Some(locale))), ("±", "+-"), "{locale}");
        }
        for locale in [None, Some("C"), Some(""), Some("de_DE.ISO-8859-1"), Some("UTF-8")] {
            assert_eq!(sign(true, locale), "+-", "{locale:?}");
        }
    }

    #[test]
    fn a_text_of_a_report_has_the_same_sign() {
        assert_eq!(with_sign("30 +- 1 ns"), format!("30 {} 1 ns", plus_minus()));
        assert_eq!(with_sign("a+-b"), "a+-b");
    }
}
