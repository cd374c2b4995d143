//! Writes the man pages and shell completions of pg_timing and pg_test_timing.
//!
//!     manual DIR
//!
//! Everything comes from the definitions of the command line, except sections that no help text has. The files depend only on
//! the source code, and not on the date.

mod page;

use anyhow::{Context, Result, anyhow};
use clap::{Arg, Command, ValueHint};
use clap_complete::{Shell, generate};
use pg_timing::command::{arguments, pg_test_timing};
use std::fs;
use std::path::PathBuf;

fn main() -> Result<()> {
    let dir: PathBuf = std::env::args_os().nth(1).ok_or_else(|| anyhow!("usage: manual DIR"))?.into();
    let mut pg_timing = arguments::definition();
    let mut pg_test_timing = pg_test_timing::definition("pg_test_timing", false);
    let mut files = Vec::new();
    for command in [&mut pg_timing, &mut pg_test_timing] {
        command.build();
        files.extend(completions(command));
    }
    files.extend(page::all(&pg_timing, &pg_test_timing)?);
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&dir))
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the completions of a program for bash, zsh and fish: names and contents.
fn completions(command: &Command) -> Vec<(String, String)> {
    let name = command.get_name();
    let with_hints = with_hints(command.clone());
    let script = |shell| {
        let mut script = Vec::new();
        generate(shell, &mut with_hints.clone(), name, &mut script);
        String::from_utf8(script).expect("the help texts are UTF-8")
    };
    vec![
        (format!("bash-completion/completions/{name}"), script(Shell::Bash)),
        (format!("zsh/_{name}"), own_options_only(&script(Shell::Zsh))),
        // An unquoted ? is a wildcard in fish. Its parser of options does not know -?, so it gets only the long name.
        (format!("fish/{name}.fish"), script(Shell::Fish).replace(" -s ? ", " -s '?' ").replace(" ?/help", " help")),
    ]
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
    match arg.get_value_hint() == ValueHint::Unknown && arg.get_possible_values().is_empty() {
        true => arg.value_hint(ValueHint::Other),
        false => arg,
    }
}
