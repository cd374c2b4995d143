//! `pg_timing --generate`: the man pages, one for each command, and the completions of three shells. Everything comes from the
//! definitions of the command line, except sections that no help text has. The texts depend only on the source code, and not
//! on the date.

use super::arguments;
use super::pg_test_timing;
use super::print;
use crate::error::Error;
use clap::{Arg, Command, ValueHint};
use clap_complete::{
    Generator, generate,
    shells::{Bash, Fish, Zsh},
};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// The sections that no help text has: a page begins with `# `, a section with `## `.
const SECTIONS: &str = include_str!("manual.md");

/// Prints what `--generate` names: a kind, and a program if it is not pg_timing. Man pages come one after the other.
pub fn run(words: &[String]) -> anyhow::Result<u8> {
    let mut programs = [arguments::definition(), pg_test_timing::definition("pg_test_timing", false)];
    programs.iter_mut().for_each(Command::build);
    let name = words.get(1).map_or("pg_timing", String::as_str);
    let program = programs.iter().find(|program| program.get_name() == name);
    let text = match (words[0].as_str(), program) {
        ("man", Some(of)) => pages(&programs, of)?,
        ("bash", Some(of)) => completions(of, Bash),
        ("zsh", Some(of)) => own_options_only(&completions(of, Zsh)),
        // An unquoted ? is a wildcard in fish. Its parser of options does not know -?, so it gets only the long name.
        ("fish", Some(of)) => completions(of, Fish).replace(" -s ? ", " -s '?' ").replace(" ?/help", " help"),
        (kind, _) => {
            let what = format!("--generate cannot print \"{kind}\" of \"{name}\"");
            return Err(Error::new(what, "give man, bash, zsh or fish, and then pg_test_timing for its own").into());
        }
    };
    print(&text)?;
    Ok(0)
}

fn completions(program: &Command, shell: impl Generator) -> String {
    let mut script = Vec::new();
    generate(shell, &mut with_hints(program.clone()), program.get_name(), &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the script for zsh with the options of a command only before its own commands. Otherwise zsh takes
/// `pg_timing test --format` for the option of `pg_timing`, which has other values. It does not change commands without
/// commands of their own, because their options can come after a name.
fn own_options_only(zsh: &str) -> String {
    const CALL: &str = r#"_arguments "${_arguments_options[@]}" : \"#;
    const ENDS_WITH_COMMAND: &str = r#"_arguments "${_arguments_options[@]}" -A "-*" : \"#;
    let mut parts = zsh.split(CALL);
    let mut script = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let options = part.split("&& ret=0").next().unwrap_or_default();
        script += if options.contains(r#"_commands" \"#) { ENDS_WITH_COMMAND } else { CALL };
        script += part;
    }
    script
}

fn with_hints(command: Command) -> Command {
    command.mut_args(with_hint).mut_subcommands(with_hints)
}

fn with_hint(arg: Arg) -> Arg {
    // zsh ends a value's name at a colon.
    let zsh_name = |names: &[clap::builder::Str]| names.join(" ").replace(':', "\\:");
    // clap keeps names for the whole run.
    let name = arg.get_value_names().map(|names| &*zsh_name(names).leak());
    let arg = if let Some(name) = name { arg.value_name(name) } else { arg };
    // Otherwise the shells complete files where a number or a text is expected.
    let is_no_file = arg.get_value_hint() == ValueHint::Unknown && arg.get_possible_values().is_empty();
    if is_no_file { arg.value_hint(ValueHint::Other) } else { arg }
}

/// Returns the pages of a program and of all its commands. Each page names all others, also those of the other program.
fn pages(programs: &[Command], program: &Command) -> io::Result<String> {
    let pages: Vec<(&Command, String)> =
        programs.iter().flat_map(|program| with_nested(program, program.get_name())).collect();
    let names: Vec<&str> = pages.iter().map(|(_, name)| name.as_str()).collect();
    let own = pages.iter().filter(|(_, name)| name.split('-').next() == Some(program.get_name()));
    own.map(|(command, name)| page(command, name, &names)).collect()
}

/// Returns a command and the commands in it, with the names of their pages.
fn with_nested<'a>(command: &'a Command, name: &str) -> Vec<(&'a Command, String)> {
    let nested =
        command.get_subcommands().flat_map(|nested| with_nested(nested, &format!("{name}-{}", nested.get_name())));
    std::iter::once((command, name.to_string())).chain(nested).collect()
}

fn page(command: &Command, name: &str, names: &[&str]) -> io::Result<String> {
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
    let statuses = if name == "pg_test_timing" {
        pg_test_timing::EXIT_STATUSES
    } else {
        arguments::exit_statuses(name.split('-').nth(1))
    };
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
    Ok(String::from_utf8_lossy(&text).into_owned())
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
