//! Checks the names of clock sources, because a captured tree can contain any text.

use crate::report::Fact;

/// Linux allows 31 characters.
const MAX_LENGTH: usize = 64;
const MAX_NAMES: usize = 64;

/// Returns the name of the current clock source. `place` is where it was read.
pub fn current(name: String, place: &str) -> Fact<String> {
    match is_name(&name) {
        true => Fact::Known(name),
        false => Fact::unavailable(format!("{place}: not the name of a clock source")),
    }
}

/// Returns the names that can be the name of a clock source. A kernel has fewer than ten.
pub fn usable<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.filter(|name| is_name(name)).take(MAX_NAMES).map(Into::into).collect()
}

/// Returns whether this can be the name of a clock source. Names appear in commands that users paste into a shell.
fn is_name(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c))
}
