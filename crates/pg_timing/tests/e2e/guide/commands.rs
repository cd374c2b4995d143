//! The parser of the command line accepts each command in the README and the guide. No command is run.

use super::{Block, Page, pages};
use ::pg_timing::command::arguments;
use regex::Regex;
use std::ffi::OsString;

/// Returns the commands of a block that start pg_timing, as words.
fn commands(block: &Block) -> Vec<Vec<String>> {
    let is_console = block.info.starts_with("console");
    let lines = block.lines.iter().filter_map(|line| if is_console { line.strip_prefix("$ ") } else { Some(*line) });
    // Other languages, such as SQL, contain no commands.
    let is_shell = is_console || block.info.is_empty();
    lines.filter(|_| is_shell).filter(|line| line.contains("pg_timing ")).flat_map(words_of_commands).collect()
}

fn words_of_commands(line: &str) -> Vec<Vec<String>> {
    // A line that is no command, for example of a service file, can have a single quotation mark.
    let words = shlex::split(line).unwrap_or_default();
    let commands = words.split(|word| ["|", "&&", ";"].contains(&word.as_str()));
    let without_redirection =
        commands.map(|words| words.split(|word| [">", "<", "2>"].contains(&word.as_str())).next().unwrap());
    let without_sudo = without_redirection.map(|words| words.strip_prefix(&["sudo".to_string()]).unwrap_or(words));
    without_sudo.filter(|words| words.first().is_some_and(|word| word == "pg_timing")).map(<[_]>::to_vec).collect()
}

/// Returns the commands within sentences and tables, without those that have placeholders, such as `[-d SECONDS]`.
fn commands_in_prose(page: &Page) -> Vec<Vec<String>> {
    let span = Regex::new("`(pg_timing [^`]+)`").unwrap();
    let text = page.prose().collect::<Vec<_>>().join(" ");
    let spans = span.captures_iter(&text).map(|found| found.extract::<1>().1[0].to_string());
    let placeholder = Regex::new(r"[A-Z]{2}|[\[|(]|\.\.\.").unwrap();
    spans.filter(|command| !placeholder.is_match(command)).flat_map(|command| words_of_commands(&command)).collect()
}

#[test]
fn the_parser_accepts_each_command() {
    let mut count = 0;
    for page in pages() {
        for command in page.blocks().iter().flat_map(commands).chain(commands_in_prose(&page)) {
            let words = command.iter().map(OsString::from).collect();
            // `--help` prints a text, with the exit status 0.
            assert!(matches!(arguments::parse(words), Ok(_) | Err(0)), "{}: {command:?}", page.path.display());
            count += 1;
        }
    }
    // The README and the guide have about 80. A parser of pages that finds none would prove nothing.
    assert!(count > 60, "{count}");
}

#[test]
fn commands_are_found() {
    let text = "```\nsudo dmesg | pg_timing check --kernel-log -     # a comment\npg_timing --format json > db1.json\npsql\n```\n\
        ```console live\n$ sudo pg_timing clocksource use tsc\npg_timing: output\n```\n```sql\nselect 'pg_timing '\n```\n";
    let found: Vec<String> = super::blocks(text).iter().flat_map(commands).map(|words| words.join(" ")).collect();
    let page = Page {
        path: "page.md".into(),
        text: "`pg_timing explain` and `pg_timing read FILE`, `pg_timing monitor --listen 9864`\n".into(),
    };
    assert_eq!(commands_in_prose(&page).len(), 2);
    let expected = ["pg_timing check --kernel-log -", "pg_timing --format json", "pg_timing clocksource use tsc"];
    assert_eq!(found, expected);
    assert!(arguments::parse(["pg_timing", "chekc"].map(OsString::from).to_vec()).is_err());
}
