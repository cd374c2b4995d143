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
    entries("ENVIRONMENT", environment(name).iter().copied()).to_writer(&mut text)?;
    entries("FILES", files(name).iter().copied()).to_writer(&mut text)?;
    examples(command, help).to_writer(&mut text)?;
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
    let more = own_description(name).iter().map(ToString::to_string);
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
    entries("EXIT STATUS", text.split(", ").map(|status| status.split_once(' ').unwrap_or((status, ""))))
}

fn entries<'a>(title: &str, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    for (number, (name, text)) in entries.into_iter().enumerate() {
        if number == 0 {
            roff.control("SH", [title]);
        }
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(text)]);
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
    let others: Vec<&str> = names.iter().copied().filter(|page| *page != name && is_related(page)).collect();
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    for (number, other) in others.iter().enumerate() {
        let comma = if number + 1 < others.len() { "," } else { "" };
        roff.text([bold(*other), roman(format!("(1){comma}"))]);
    }
    roff
}

/// A name, and what it is.
type Entry = (&'static str, &'static str);

/// Returns the description that follows a command's first sentence.
fn own_description(page: &str) -> &'static [&'static str] {
    match page {
        "pg_timing" => &[
            "EXPLAIN ANALYZE reads the clock twice per row and plan node. If the clock is slow, the statement takes longer, \
             and the plan shows wrong times. pg_timing measures each clock of this host, finds the faults of the clocks, and \
             names the command that repairs each of them. It also measures how much of the times of a plan is the cost of \
             timing.",
            "Without a command, pg_timing runs check for 4 seconds. Results go to stdout. Progress, warnings and errors go to \
             stderr. An error has one line that begins with \"pg_timing: error:\", and usually a line with a hint.",
            "pg_timing changes nothing on the host, except that clocksource use switches the clock source. It writes a file \
             only if an option names it. explain rolls back each run of a statement. If no server is named and none answers, \
             explain starts a temporary server in a private directory, and removes both at the end.",
            "Under the name pg_test_timing, the program takes the options of PostgreSQL's pg_test_timing and prints the same \
             output.",
        ],
        "pg_timing-check" => &[
            "check reads each clock of the host many times. It measures the cost of a read, the smallest step, interruptions, \
             backward steps, the rate of the CPU's counter, and the offsets between CPUs. It also reads the kernel's messages \
             about clocks. Then it says whether EXPLAIN ANALYZE can be trusted, and how much time timing adds.",
            "Each alarm has a name, its evidence, its reason, and the commands that repair the fault. The verdict is the worst \
             alarm.",
        ],
        "pg_timing-test" => &[
            "The output is for scripts that read the output of pg_test_timing. It has no verdict; for a verdict, use check.",
        ],
        "pg_timing-read" => {
            &["read judges a host by what its pg_test_timing printed. Facts that this output does not contain are \
             \"not determined\"."]
        }
        "pg_timing-clocksource-use" => &[
            "The command prints the command that restores the old clock source. It measures the old clock source, switches, \
             measures the new one, and compares them. At the end, and after Ctrl-C, it restores the old clock source, except \
             with --keep. It needs root.",
        ],
        "pg_timing-advise" => &[
            "For settings such as track_io_timing and auto_explain.log_timing, the cost is the number of events per second in \
             the server's statistics, times the clock reads per event, times the cost of a read. More than 1% of a core is a \
             warning, and more than 10% is critical.",
            "advise changes nothing and needs no special privileges. With the role pg_monitor it sees more.",
        ],
        "pg_timing-monitor" => &[
            "monitor takes a sample of each clock in each interval, and reports what has changed. On a terminal it shows a live \
             screen with its keys in the last line. Without a terminal, or with --listen, --textfile or --samples, it prints each event \
             as one line.",
        ],
        "pg_timing-report" => &[
            "The page is one file without scripts, and loads nothing. It shows the verdict, the alarms with their commands, the \
             clocks with histograms, and the plans. Several hosts get a table, with the worst host first.",
        ],
        _ => &[],
    }
}

/// Returns the variables that the programs read, on the page of each program.
fn environment(page: &str) -> &'static [Entry] {
    match page {
        "pg_test_timing" => &[(
            pg_timing::command::pg_test_timing::FORMAT,
            "Selects the options and the output: 19 (the default) for PostgreSQL 19, or classic for PostgreSQL 15 to 18.",
        )],
        "pg_timing" => &[
            (
                "NO_COLOR",
                "If it is set and not empty, the output has no colors. Output to a file or a pipe has no colors.",
            ),
            (
                "LC_ALL, LC_CTYPE, LANG",
                "The first of them that is set tells whether the terminal can show the sign for \"plus or minus\".",
            ),
            (
                "PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and others",
                "Defaults of the connection. All variables that libpq reads have the same meaning as for psql(1).",
            ),
            (
                "PATH",
                "Directories with the programs of PostgreSQL, for --ephemeral. The usual directories are searched, too.",
            ),
            ("TMPDIR", "Directory for the temporary server of --ephemeral. The default is /tmp."),
        ],
        _ => &[],
    }
}

/// Returns the files that pg_timing uses without an option.
fn files(page: &str) -> &'static [Entry] {
    match page {
        "pg_timing" => &[
            (
                "/sys/devices/system/clocksource/clocksource0/",
                "The kernel's clock sources. clocksource use writes the name of the new one to current_clocksource, which \
                 needs root.",
            ),
            ("/dev/kmsg", "The kernel log. Most systems allow only root to read it; see check --kernel-log."),
            ("/proc/cpuinfo", "The CPU's model and what its counter can do."),
            ("~/.pgpass", "Passwords, as for psql(1)."),
            ("~/.pg_service.conf", "Names for connections, as for psql(1)."),
        ],
        _ => &[],
    }
}
