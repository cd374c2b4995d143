//! The exit statuses of the commands, in words.

/// These commands judge clocks or settings, so each can serve as a monitoring plugin.
const JUDGES: &str = "0 ok, 1 warning, 2 critical, 3 not determined or usage error";
const COMPARES: &str = "0 same or better, 1 worse, 2 much worse, 3 not compared or usage error";
const ACTS: &str = "0 done, 3 failed or usage error";

/// Returns the exit statuses of all commands, for the end of the help text.
pub fn of_all() -> String {
    format!(
        "Exit status of check, read and advise: {JUDGES}. Exit status of compare: {COMPARES}. \
         Exit status of test, clocksource, explain, monitor and report: {ACTS}."
    )
}

/// Returns the exit statuses of a command of `pg_timing`, like "0 done, 3 failed". Without a command, `check` runs.
pub fn of(command: Option<&str>) -> &'static str {
    match command {
        None | Some("check" | "read" | "advise") => JUDGES,
        Some("compare") => COMPARES,
        Some(_) => ACTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::arguments::definition;

    #[test]
    fn the_help_text_has_the_exit_status_of_each_command() {
        let text = of_all();
        for command in definition().get_subcommands() {
            let name = command.get_name();
            let sentence = text.split("Exit status of ").find(|s| s.split(':').next().unwrap().contains(name));
            assert!(sentence.unwrap_or_default().contains(of(Some(name))), "{name}: {text}");
        }
    }
}
