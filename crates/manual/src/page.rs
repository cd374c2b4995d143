//! Man pages, one for each command.

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use pg_timing::command::arguments::exit_statuses as statuses_of;
use pg_timing::command::pg_test_timing::EXIT_STATUSES;

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
    let more = more(name).split("\n\n").filter(|text| !text.is_empty());
    section("DESCRIPTION", std::iter::once(about.as_str()).chain(more).chain(description)).to_writer(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    man.render_options_section(&mut text)?;
    let statuses = if name == "pg_test_timing" { EXIT_STATUSES } else { statuses_of(name.split('-').nth(1)) };
    let statuses = statuses.split(", ").map(|status| status.split_once(' ').unwrap_or((status, "")));
    entries("EXIT STATUS", statuses).to_writer(&mut text)?;
    match name {
        "pg_timing" => {
            entries("ENVIRONMENT", named(ENVIRONMENT)).to_writer(&mut text)?;
            entries("FILES", named(FILES)).to_writer(&mut text)?;
        }
        "pg_test_timing" => entries("ENVIRONMENT", [FORMAT_VARIABLE]).to_writer(&mut text)?,
        _ => {}
    }
    if !examples.is_empty() {
        section("EXAMPLES", examples).to_writer(&mut text)?;
    }
    see_also(name, names).to_writer(&mut text)?;
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

/// Names the pages of both programs, of the commands that a command has, and of the one that it belongs to.
fn see_also(name: &str, names: &[&str]) -> Roff {
    let is_program = |page: &str| ["pg_timing", "pg_test_timing"].contains(&page);
    let is_related = |page: &str| is_program(page) || page.starts_with(name) || name.starts_with(page);
    let others: Vec<&str> = names.iter().copied().filter(|page| *page != name && is_related(page)).collect();
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    for (left, other) in (0..others.len()).rev().zip(others) {
        roff.text([bold(other), roman(if left > 0 { "(1)," } else { "(1)" })]);
    }
    roff
}

/// A name, and what it is.
type Entry = (&'static str, &'static str);

/// Returns paragraphs that follow a command's first sentence.
fn more(page: &str) -> &'static str {
    match page {
        "pg_timing" => {
            "EXPLAIN ANALYZE reads the clock twice per row and plan node. If the clock is slow, the statement takes longer, and the \
             plan shows wrong times. pg_timing measures each clock of this host, finds the faults of the clocks, and names the \
             command that repairs each of them. It also measures how much of the times of a plan is the cost of timing.\n\n\
             Without a command, pg_timing runs check for 4 seconds. Results go to stdout. Progress, warnings and errors go to \
             stderr.\n\n\
             pg_timing changes nothing on the host, except that clocksource use switches the clock source. It writes a file only if \
             an option names it. explain rolls back each run of a statement. If no server is named and none answers, explain \
             starts a temporary server in a private directory, and removes both at the end.\n\n\
             Under the name pg_test_timing, the program takes the options of PostgreSQL's pg_test_timing and prints the same output."
        }
        "pg_timing-check" => {
            "check reads each clock of the host many times, and the kernel's messages about clocks. Then it says whether EXPLAIN \
             ANALYZE can be trusted, and how much time timing adds. Each alarm has a name, its evidence, its reason, and the \
             commands that repair the fault."
        }
        "pg_timing-clocksource-use" => {
            "The command prints the command that restores the old clock source. It measures the old clock source, switches, \
             measures the new one, and compares them. At the end, and after Ctrl-C, it restores the old clock source, except with \
             --keep. It needs root."
        }
        "pg_timing-advise" => {
            "advise changes nothing and needs no special privileges. With the role pg_monitor it sees more."
        }
        "pg_timing-monitor" => {
            "On a terminal, monitor shows a live screen with its keys in the last line. Without a terminal, or with --listen, \
             --textfile or --samples, it prints each event as one line."
        }
        _ => "",
    }
}

const FORMAT_VARIABLE: Entry = (
    pg_timing::command::pg_test_timing::FORMAT,
    "Selects the options and the output: 19 (the default) for PostgreSQL 19, or classic for PostgreSQL 15 to 18.",
);

/// The variables that pg_timing reads: a name and a colon, and then the text.
const ENVIRONMENT: &str = "\
NO_COLOR: If it is set and not empty, the output has no colors. Output to a file or a pipe has no colors.
PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and others: Defaults of the connection. All variables that libpq reads have the same \
meaning as for psql(1).
PATH: Directories with the programs of PostgreSQL, for --ephemeral. The usual directories are searched, too.
TMPDIR: Directory for the temporary server of --ephemeral. The default is /tmp.";

/// The files that pg_timing uses without an option.
const FILES: &str = "\
/sys/devices/system/clocksource/clocksource0/: The kernel's clock sources. clocksource use writes the name of the new one to \
current_clocksource, which needs root.
/dev/kmsg: The kernel log. Most systems allow only root to read it; see check --kernel-log.
/proc/cpuinfo: The CPU's model and what its counter can do.
~/.pgpass and ~/.pg_service.conf: Passwords and names for connections, as for psql(1).";

/// Returns the names and texts in these lines.
fn named(lines: &'static str) -> impl Iterator<Item = Entry> {
    lines.lines().filter_map(|line| line.split_once(": "))
}
