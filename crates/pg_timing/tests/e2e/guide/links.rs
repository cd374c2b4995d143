//! Relative links in the documentation point to files and headings that exist.

use super::{Page, blocks, pages, repository};
use regex::Regex;
use std::path::Path;

/// Returns the anchor of a heading, as GitHub and mdBook create it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn anchors(path: &Path) -> Vec<String> {
    let page = Page { path: path.into(), text: std::fs::read_to_string(path).unwrap() };
    let headings = page.prose().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#')));
    headings.collect()
}

/// Returns what is wrong with a relative link.
fn problem(page: &Path, link: &str) -> Option<&'static str> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { page.to_path_buf() } else { page.parent().unwrap().join(file) };
    match anchor {
        _ if !path.exists() => Some("no such file"),
        _ if is_outside_of_the_book(page, &path) => Some("not in the book"),
        Some(anchor) if !anchors(&path).iter().any(|found| found == anchor) => Some("no such heading"),
        _ => None,
    }
}

/// Returns whether a link of the guide leaves its folder. It would be broken in the book.
fn is_outside_of_the_book(page: &Path, linked: &Path) -> bool {
    let book = repository().join("docs");
    page.starts_with(&book) && !linked.canonicalize().unwrap().starts_with(&book)
}

fn wrong_links(page: &Page) -> Vec<String> {
    let link = Regex::new(r"\]\(([^) ]+)\)").unwrap();
    let links = page
        .prose()
        .flat_map(|line| link.captures_iter(line).map(|found| found.extract::<1>().1[0]).collect::<Vec<_>>());
    let relative = links.filter(|link| !link.contains("://"));
    relative
        .filter_map(|link| Some(format!("{}: {link}: {}", page.path.display(), problem(&page.path, link)?)))
        .collect()
}

#[test]
fn links_point_to_something() {
    let others =
        ["CONTRIBUTING.md", "CHANGELOG.md", "extension/README.md", "deploy/README.md", "deploy/ansible/README.md"];
    let others = others.map(|name| repository().join(name));
    let others = others.map(|path| Page { text: std::fs::read_to_string(&path).unwrap(), path });
    let wrong: Vec<String> = pages().iter().chain(&others).flat_map(wrong_links).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A page that SUMMARY.md does not list would not be in the book.
#[test]
fn the_summary_lists_each_page() {
    let summary = super::page("SUMMARY.md");
    // The folder of the source can have the name "docs", too.
    let guide = repository().join("docs");
    for page in pages().iter().filter(|page| page.path.parent().unwrap() == guide) {
        let name = page.path.file_name().unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || summary.text.contains(&format!("]({name})")), "{name}");
    }
}

#[test]
fn broken_links_are_found() {
    let text =
        "[a](docs/no-such-page.md) [b](docs/check.md#no-such-heading) [c](docs/check.md) [d](https://example.org/)\n";
    let page = Page { path: repository().join("README.md"), text: text.into() };
    assert_eq!(wrong_links(&page).len(), 2, "{:?}", wrong_links(&page));
    let page = Page { path: repository().join("docs/check.md"), text: "[a](../README.md) [b](findings.md)\n".into() };
    assert_eq!(wrong_links(&page).len(), 1, "{:?}", wrong_links(&page));
    assert_eq!(anchor("What `pg_timing` touches, and why"), "what-pg_timing-touches-and-why");
    assert!(blocks(text).is_empty());
}
