//! Completions for bash, zsh and fish.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::{Shell, generate};

/// Stands for the names of the clock sources, until the script reads them from the kernel.
const CLOCK_SOURCES: &str = "CLOCK_SOURCES";
/// Prints the clock sources that the kernel has, and nothing on a system without this file.
const READ_CLOCK_SOURCES: &str = "cat /sys/devices/system/clocksource/clocksource0/available_clocksource 2>/dev/null";

/// Details of an option follow these signs.
const DETAILS: [&str; 4] = [". ", "; ", ": ", " ["];

/// Returns the completions of a program: names and contents.
pub fn of(command: &Command) -> Vec<(String, Vec<u8>)> {
    let name = command.get_name();
    let with_hints = with_hints(command.clone());
    let script = |shell| {
        let mut script = Vec::new();
        generate(shell, &mut with_hints.clone(), name, &mut script);
        String::from_utf8(script).expect("the help texts are UTF-8")
    };
    let bash = script(Shell::Bash).replace(CLOCK_SOURCES, &format!("$({READ_CLOCK_SOURCES})"));
    let zsh = own_options_only(&script(Shell::Zsh))
        .replace(&format!("({CLOCK_SOURCES})"), &format!("{{compadd -- $({READ_CLOCK_SOURCES})}}"));
    // An unquoted ? is a wildcard in fish. Its parser of options does not know -?, so it gets only the long name.
    let fish = script(Shell::Fish).replace(" -s ? ", " -s '?' ").replace(" ?/help", " help");
    let fish = fish + &fish_clock_sources(command);
    [
        (format!("bash-completion/completions/{name}"), bash),
        (format!("zsh/_{name}"), zsh),
        (format!("fish/{name}.fish"), fish),
    ]
    .map(|(file, script)| (file, script.into_bytes()))
    .into()
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

/// Returns the line for `clocksource use` in fish, because clap_complete does not complete names without an option there.
fn fish_clock_sources(command: &Command) -> String {
    if command.find_subcommand("clocksource").is_none() {
        return String::new();
    }
    let name = command.get_name();
    let after_use = format!("__fish_{name}_using_subcommand clocksource; and __fish_seen_subcommand_from use");
    format!("complete -c {name} -n \"{after_use}\" -f -a \"({READ_CLOCK_SOURCES} | string split -n ' ')\"\n")
}

fn with_hints(command: Command) -> Command {
    let is_use = command.get_name() == "use";
    command.mut_args(|arg| with_hint(arg, is_use)).mut_subcommands(with_hints)
}

fn with_hint(arg: Arg, is_of_use: bool) -> Arg {
    // The screen has one line for each option, so it shows the text before the details.
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let end = DETAILS.iter().filter_map(|sign| help.find(sign)).min().unwrap_or(help.len());
    let arg = arg.help(help[..end].to_string());
    // zsh ends a value's name at a colon. clap keeps names for the whole run.
    let value = arg.get_value_names().map(|names| names.join(" ").replace(':', "\\:").leak());
    let arg = match value {
        Some(value) => arg.value_name(&*value),
        None => arg,
    };
    match arg.get_value_hint() {
        _ if is_of_use && arg.is_positional() => arg.value_parser(PossibleValuesParser::new([CLOCK_SOURCES])),
        // Otherwise the shells complete files where a number or a text is expected.
        ValueHint::Unknown if arg.get_possible_values().is_empty() => arg.value_hint(ValueHint::Other),
        _ => arg,
    }
}
