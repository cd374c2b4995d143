//! Completions for bash, zsh and fish.

use clap::{Arg, Command, ValueHint};
use clap_complete::{Shell, generate};

/// Returns the completions of a program: names and contents.
pub fn of(command: &Command) -> Vec<(String, String)> {
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
    let arg = match arg.get_value_names().map(|names| zsh_name(names).leak()) {
        Some(name) => arg.value_name(&*name),
        None => arg,
    };
    // Otherwise the shells complete files where a number or a text is expected.
    match arg.get_value_hint() == ValueHint::Unknown && arg.get_possible_values().is_empty() {
        true => arg.value_hint(ValueHint::Other),
        false => arg,
    }
}
