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
    let fish = fish + &fish_words(name, command, "");
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

/// Returns lines for words without an option, which clap_complete leaves out in fish: fish offers files only where a file is
/// expected, and the clock sources after `clocksource use`. `place` is empty, or the condition that the command was typed.
fn fish_words(program: &str, command: &Command, place: &str) -> String {
    let is_file = |arg: &Arg| arg.get_value_hint() == ValueHint::FilePath && (arg.is_positional() || takes_list(arg));
    let expects_file = command.get_arguments().any(is_file);
    let condition = if place.is_empty() { String::new() } else { format!(" -n \"{place}\"") };
    let words = match command.get_name() {
        "use" => format!(" -a \"({READ_CLOCK_SOURCES} | string split -n ' ')\""),
        _ => String::new(),
    };
    let own = match expects_file || command.has_subcommands() {
        true => String::new(),
        false => format!("complete -c {program}{condition} -f{words}\n"),
    };
    let nested = command.get_subcommands().map(|nested| {
        let name = nested.get_name();
        let after = match place {
            "" => format!("__fish_{program}_using_subcommand {name}"),
            place => format!("{place}; and __fish_seen_subcommand_from {name}"),
        };
        fish_words(program, nested, &after)
    });
    own + &nested.collect::<String>()
}

/// Returns whether an option takes several values, each in its own word.
fn takes_list(arg: &Arg) -> bool {
    !arg.is_positional() && arg.get_num_args().is_some_and(|number| number.max_values() > 1)
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
    // zsh ends a value's name at a colon. Before the name, a pattern ends a list of values: the next option.
    let end_of_list = if takes_list(&arg) { "*-*:" } else { "" };
    let zsh_name = |names: &[clap::builder::Str]| end_of_list.to_string() + &names.join(" ").replace(':', "\\:");
    // clap keeps names for the whole run.
    let value = arg.get_value_names().map(|names| zsh_name(names).leak());
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
