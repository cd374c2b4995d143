//! The frame of every page, and its smallest parts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// Nothing is loaded and no script runs, even if a text from outside were not escaped.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Returns a page in one file.
pub fn page(title: &str, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(CONTENT_POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " - pg_timing" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header.masthead { strong { "pg_timing" } span { "what reading the clock costs PostgreSQL" } }
                main { (body) }
                footer { "pg_timing " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
    .into_string()
}

/// Where a document is on a page.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// the level of its heading: 1 if it is alone on the page
    pub level: u8,
    /// the fragment that links to it
    pub id: &'a str,
    /// the file that it is from
    pub file: Option<&'a str>,
}

impl Place<'_> {
    /// The place of a document that is alone on its page.
    pub const ALONE: Place<'static> = Place { level: 1, id: "document", file: None };

    pub fn is_alone(&self) -> bool {
        self.level == 1
    }
}

/// Returns the section of a document: its heading, lines below the heading, and its parts.
pub fn document(place: Place, heading: Markup, lines: Markup, parts: Markup) -> Markup {
    html! {
        section.document.several[!place.is_alone()] id=(place.id) aria-labelledby={ (place.id) "-name" } {
            header {
                @if !place.is_alone() { a.back href="#top" { "back to the table" } }
                (titled(place.level, Some(&format!("{}-name", place.id)), heading))
                @if let Some(file) = place.file { p.muted { (file) } }
                (lines)
            }
            (parts)
        }
    }
}

/// Returns a part of a document with its heading.
pub fn part(place: Place, heading: &str, content: Markup) -> Markup {
    html! {
        section.part { (titled(place.level + 1, None, html! { (heading) })) (content) }
    }
}

/// Returns a heading of this level.
pub fn titled(level: u8, id: Option<&str>, text: Markup) -> Markup {
    match level {
        1 => html! { h1 id=[id] { (text) } },
        2 => html! { h2 id=[id] { (text) } },
        3 => html! { h3 id=[id] { (text) } },
        _ => html! { h4 id=[id] { (text) } },
    }
}

/// Returns a table that scrolls if it is wider than the page. The keyboard can scroll it, too.
pub fn scrolling(label: &str, table: Markup) -> Markup {
    html! { div.scroll role="group" tabindex="0" aria-label=(label) { (table) } }
}

/// Returns names with sentences.
pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        dl.facts {
            @for (name, fact) in facts {
                // A fact without a name belongs to the one before.
                @if !name.is_empty() { dt { (signed(name)) } }
                dd { (signed(&fact)) }
            }
        }
    }
}

/// Returns a text with `±`: a page is always UTF-8.
pub fn signed(text: &str) -> String {
    text.replace("+-", "±")
}

/// Splits a text after its first sentence.
pub fn first_sentence(text: &str) -> (&str, &str) {
    let is_end = |at: &usize| text[at + 2..].starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    match text.match_indices(". ").map(|(at, _)| at).find(is_end) {
        Some(at) => (&text[..=at], &text[at + 2..]),
        None => (text, ""),
    }
}

/// Returns the style of a bar: its start and length as fractions of the axis.
pub fn extent(start: f64, end: f64) -> String {
    let [start, end] = [start, end].map(|part| 100.0 * if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 });
    format!("left: {start:.2}%; width: {:.2}%", (end - start).max(0.0))
}

/// Returns `part` as a fraction of `whole`, or 0 if there is no whole.
pub fn fraction(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stay_on_their_axis() {
        assert_eq!(extent(0.25, 0.5), "left: 25.00%; width: 25.00%");
        assert_eq!(extent(-1.0, 7.0), "left: 0.00%; width: 100.00%");
        assert_eq!(extent(0.5, 0.25), "left: 50.00%; width: 0.00%");
        assert_eq!(extent(f64::NAN, f64::INFINITY), "left: 0.00%; width: 0.00%");
        assert_eq!((fraction(1.0, 4.0), fraction(1.0, 0.0)), (0.25, 0.0));
    }

    #[test]
    fn the_first_sentence_ends_before_a_capital_letter_or_a_number() {
        assert_eq!(first_sentence("It takes 7 ms. 51% is overhead."), ("It takes 7 ms.", "51% is overhead."));
        assert_eq!(first_sentence("It costs 7.3 us. The kernel. Yes."), ("It costs 7.3 us.", "The kernel. Yes."));
        assert_eq!(first_sentence("Linux 6. x, no end"), ("Linux 6. x, no end", ""));
        assert_eq!(first_sentence(""), ("", ""));
    }

    #[test]
    fn a_page_loads_nothing() {
        let page = page("<t>", html! { p { "<script>" } });
        assert!(
            page.contains("<title>&lt;t&gt; - pg_timing</title>") && page.contains("<p>&lt;script&gt;</p>"),
            "{page}"
        );
        for outside in ["<script", "http:", "https:", "url(", "@import", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
