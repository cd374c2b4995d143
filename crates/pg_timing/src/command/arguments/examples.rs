//! Examples at the end of the help texts. The man pages show them, too. Lines to type have an indentation.

pub const CHECK: &str = "\
Check this host if your user may not read the kernel log:
  sudo dmesg | pg_timing check --kernel-log -

Print one line for a monitoring system, and warn if a read of the clock costs more than 100 ns:
  pg_timing check --nagios -w read=100ns -c read=1us

Write the facts of one host into a directory, and check them on another host:
  pg_timing check --capture db1
  pg_timing check --root db1";

pub const TEST: &str = "\
Print what pg_test_timing of PostgreSQL 15 to 18 prints:
  pg_timing test --format classic";

pub const READ: &str = "\
Judge the clock of a host that has pg_test_timing, but not pg_timing:
  pg_test_timing | pg_timing read -";

pub const CLOCKSOURCE: &str = "\
List the clock sources, and try tsc for 10 seconds:
  pg_timing clocksource
  sudo pg_timing clocksource use tsc";

pub const USE: &str = "\
Try tsc for a minute, and then use it until the next restart:
  sudo pg_timing clocksource use tsc --for 60
  sudo pg_timing clocksource use tsc --keep";

pub const ADVISE: &str = "\
Watch the statistics of a server for a minute:
  pg_timing advise --window 60 -h db1 -U postgres";

pub const MONITOR: &str = "\
Show a live screen with a new sample every second. With less than 10 s, lost time is not judged:
  pg_timing monitor --interval 1

Serve metrics for Prometheus, and write a log of events:
  pg_timing monitor --listen 9864 --events events.jsonl";

pub const REPORT: &str = "\
Write a page about this host:
  pg_timing report -o db1.html

Write a page about several hosts. Type the first line on each of them:
  pg_timing check --format json > db1.json
  pg_timing report -o hosts.html db1.json db2.json";

#[cfg(test)]
mod tests {
    use crate::command::arguments::definition;

    /// Returns the examples in the help texts of a command and of its commands.
    fn examples(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = text.lines().filter_map(|line| line.strip_prefix("  ")).map(ToString::to_string);
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn each_example_is_valid() {
        let examples = examples(&definition());
        assert!(examples.len() > 15, "{examples:?}");
        for example in examples {
            // A shell runs the parts between | and before >. It takes the text between two quotes as one word.
            let program =
                example.split(" | ").map(|part| part.trim_start_matches("sudo ")).find(|p| p.starts_with("pg_timing"));
            let line = program.unwrap_or_else(|| panic!("{example}")).split(" > ").next().unwrap();
            let parts = line.split('\'').enumerate().flat_map(|(number, part)| match number % 2 {
                0 => part.split_whitespace().collect(),
                _ => vec![part],
            });
            definition().try_get_matches_from(parts).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
