//! Man pages, one for each command.

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use pg_timing::command::arguments::exit_statuses as statuses_of;
use pg_timing::command::pg_test_timing::EXIT_STATUSES;

/// The sections that no help text has: a page begins with `# `, a section with `## `.
const SECTIONS: &str = include_str!("sections.md");

/// Returns the pages of both programs and of all commands: names and contents.
pub fn all(pg_timing: &Command, pg_test_timing: &Command) -> Result<Vec<(String, String)>> {
    let programs = [pg_timing, pg_test_timing].map(|program| (program, program.get_name().to_string()));
    let commands = with_nested(pg_timing, "pg_timing");
    let pages: Vec<(&Command, String)> = programs.into_iter().chain(commands).collect();
    let names: Vec<&str> = pages.iter().map(|(_, name)| name.as_str()).collect();
    pages.iter().map(|(command, name)| Ok((format!("man1/{name}.1"), page(command, name, &names)?))).collect()
}

/// Returns the commands of a command, with the names of their pages.
fn with_nested<'a>(command: &'a Command, parent: &str) -> Vec<(&'a Command, String)> {
    let with_own = |nested: &'a Command| {
        let name = format!("{parent}-{}", nested.get_name());
        let own = with_nested(nested, &name);
        std::iter::once((nested, name)).chain(own)
    };
    command.get_subcommands().flat_map(with_own).collect()
}

fn page(command: &Command, name: &str, names: &[&str]) -> Result<String> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_string();
    let man = Man::new(command.clone().override_usage(usage).subcommand_help_heading("COMMANDS"));
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // In the help, lines to type have an indentation. The exit statuses of all commands have their own section.
    let paragraphs = help.split("\n\n").filter(|text| !text.is_empty() && name != "pg_timing");
    let (examples, description): (Vec<&str>, Vec<&str>) = paragraphs.partition(|text| text.contains("\n  "));
    let mut text = title(name).into_bytes();
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    let about = command.get_about().map(|about| format!("{about}.")).unwrap_or_default();
    let own = SECTIONS.split("\n# ").find_map(|page| page.strip_prefix(name)?.strip_prefix('\n')).unwrap_or_default();
    let mut own = own.split("\n## ");
    let more = own.next().unwrap_or_default().split("\n\n");
    let more = more.filter(|text| !text.trim().is_empty());
    section("DESCRIPTION", std::iter::once(about.as_str()).chain(more).chain(description)).to_writer(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    man.render_options_section(&mut text)?;
    let statuses = if name == "pg_test_timing" { EXIT_STATUSES } else { statuses_of(name.split('-').nth(1)) };
    let statuses = statuses.split(", ").map(|status| status.split_once(' ').unwrap_or((status, "")));
    entries("EXIT STATUS", statuses).to_writer(&mut text)?;
    for (title, lines) in own.filter_map(|own| own.split_once('\n')) {
        entries(title, lines.lines().filter_map(|line| line.split_once(": "))).to_writer(&mut text)?;
    }
    if !examples.is_empty() {
        section("EXAMPLES", examples).to_writer(&mut text)?;
    }
    let others: Vec<String> = names.iter().filter(|page| **page != name).map(|page| format!("{page}(1)")).collect();
    section("SEE ALSO", [others.join(", ").as_str()]).to_writer(&mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Returns the first lines of a page. The third word is a date. It is empty, because it would differ from build to build.
/// clap_mangen omits an empty date, and the words after it then have another meaning.
fn title(name: &str) -> String {
    let (title, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    format!(".TH {title} 1 \"\" \"pg_timing {version}\" \"pg_timing manual\"\n{LAYOUT}")
}

/// No hyphenation, because a name with a hyphen in it cannot be copied, and no wide gaps between words.
const LAYOUT: &str = ".nh\n.ad l\n";

/// Returns a section of paragraphs. A line with an indentation is shown as it is.
fn section<'a>(title: &str, paragraphs: impl IntoIterator<Item = &'a str>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for paragraph in paragraphs {
        roff.control("PP", []);
        for line in paragraph.lines() {
            match line.strip_prefix("  ") {
                Some(typed) => {
                    roff.control("RS", ["4"]).control("nf", []).text([roman(typed)]);
                    roff.control("fi", []).control("RE", []);
                }
                None => _ = roff.text([roman(line)]),
            }
        }
    }
    roff
}

fn entries<'a>(title: &str, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (name, text) in entries {
        roff.control("TP", []).text([bold(name)]).text([roman(text)]);
    }
    roff
}
