//! Man pages, one for each command.

use crate::sections::{self, Entry};
use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use pg_timing::command::arguments::exit_statuses as statuses_of;
use pg_timing::command::pg_test_timing::EXIT_STATUSES;

/// Returns the pages of both programs and of all commands: names and contents.
pub fn all(pg_timing: &Command, pg_test_timing: &Command) -> Result<Vec<(String, Vec<u8>)>> {
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

fn page(command: &Command, name: &str, names: &[&str]) -> Result<Vec<u8>> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_string();
    let shown = command.clone().override_usage(usage).subcommand_help_heading("COMMANDS");
    let man = Man::new(shown);
    let help = Help::of(command);
    let mut text = title(name).into_bytes();
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    description(command, name, &help).to_writer(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    man.render_options_section(&mut text)?;
    exit_statuses(name).to_writer(&mut text)?;
    entries("ENVIRONMENT", sections::environment(name)).to_writer(&mut text)?;
    entries("FILES", sections::files(name)).to_writer(&mut text)?;
    examples(command, help).to_writer(&mut text)?;
    see_also(name, names).to_writer(&mut text)?;
    Ok(text)
}

/// Returns the first lines of a page. The third word is a date. It is empty, because it would differ from build to build.
/// clap_mangen omits an empty date, and the words after it then have another meaning.
fn title(name: &str) -> String {
    let (title, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    format!(".TH {title} 1 \"\" \"pg_timing {version}\" \"pg_timing manual\"\n{LAYOUT}")
}

/// No hyphenation, because a name with a hyphen in it cannot be copied, and no wide gaps between words.
const LAYOUT: &str = ".nh\n.ad l\n";

/// The text after the options in the help.
#[derive(Default)]
struct Help {
    paragraphs: Vec<String>,
    /// an introduction, and the lines to type
    examples: Vec<(String, Vec<String>)>,
}

impl Help {
    /// Returns the text of a command. In the help, lines to type have an indentation. A line that does not end a sentence
    /// continues in the next one.
    fn of(command: &Command) -> Help {
        let mut help = Help::default();
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // The page of a program with commands has a section for the exit statuses.
        let text = if command.get_name() == "pg_timing" { "" } else { &text };
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            let (typed, words): (Vec<&str>, Vec<&str>) = paragraph.lines().partition(|line| line.starts_with("  "));
            if typed.is_empty() {
                help.paragraphs.extend(sentences(&words));
            } else {
                let typed = typed.iter().map(|line| line.trim().to_string()).collect();
                help.examples.push((words.join(" "), typed));
            }
        }
        help
    }
}

fn sentences(lines: &[&str]) -> Vec<String> {
    let ends = |line: &&str| line.ends_with(['.', ':']);
    lines.split_inclusive(ends).map(|lines| lines.join(" ")).collect()
}

fn description(command: &Command, name: &str, help: &Help) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    let about = command.get_about().map(|about| format!("{about}.")).unwrap_or_default();
    let more = sections::description(name).iter().map(ToString::to_string);
    for paragraph in std::iter::once(about).chain(more).chain(help.paragraphs.iter().cloned()) {
        roff.control("PP", []);
        roff.text([roman(paragraph)]);
    }
    roff
}

fn exit_statuses(name: &str) -> Roff {
    let text = match name {
        "pg_test_timing" => EXIT_STATUSES,
        _ => statuses_of(name.split('-').nth(1)),
    };
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    if name == "pg_timing" {
        roff.text([roman("Without a command, or with check. The page of each command has its own list.")]);
    }
    for status in text.split(", ") {
        let (number, meaning) = status.split_once(' ').unwrap_or((status, ""));
        roff.control("TP", []);
        roff.text([bold(number)]);
        roff.text([roman(meaning)]);
    }
    roff
}

fn entries(title: &str, entries: Vec<&Entry>) -> Roff {
    let mut roff = Roff::new();
    if !entries.is_empty() {
        roff.control("SH", [title]);
    }
    for (name, text) in entries {
        roff.control("TP", []);
        roff.text([bold(*name)]);
        roff.text([roman(*text)]);
    }
    roff
}

/// Returns the examples of a command. A program with commands shows the first example of each.
fn examples(command: &Command, help: Help) -> Roff {
    let of_commands = command.get_subcommands().filter_map(|nested| Help::of(nested).examples.into_iter().next());
    let mut roff = Roff::new();
    for (number, (words, typed)) in help.examples.into_iter().chain(of_commands).enumerate() {
        match number {
            0 => roff.control("SH", ["EXAMPLES"]),
            _ => roff.control("PP", []),
        };
        roff.text([roman(words)]);
        roff.control("PP", []);
        roff.control("RS", ["4"]);
        roff.control("nf", []);
        for line in typed {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
        roff.control("RE", []);
    }
    roff
}

/// Names the pages of both programs, of the commands that a command has, and of the one that it belongs to.
fn see_also(name: &str, names: &[&str]) -> Roff {
    let is_program = |page: &str| ["pg_timing", "pg_test_timing"].contains(&page);
    let is_related = |page: &str| is_program(page) || page.starts_with(name) || name.starts_with(page);
    let others = names.iter().copied().filter(|page| *page != name && is_related(page));
    let others: Vec<&str> = others.chain(sections::see_also(name).iter().copied()).collect();
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    for (number, other) in others.iter().enumerate() {
        let comma = if number + 1 < others.len() { "," } else { "" };
        roff.text([bold(*other), roman(format!("(1){comma}"))]);
    }
    roff
}
