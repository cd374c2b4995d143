//! Texts of the man pages that no help text has.

/// A name, and what it is.
pub type Entry = (&'static str, &'static str);

/// Returns the description that follows a command's first sentence.
pub fn description(page: &str) -> &'static [&'static str] {
    match page {
        "pg_timing" => &[
            "EXPLAIN ANALYZE reads the clock twice per row and plan node. If the clock is slow, the statement takes longer, \
             and the plan shows wrong times. pg_timing measures each clock of this host, finds the faults of the clocks, and \
             names the command that repairs each of them. It also measures how much of the times of a plan is the cost of \
             timing.",
            "Without a command, pg_timing runs check for 4 seconds. Results go to stdout. Progress, warnings and errors go to \
             stderr. An error has one line that begins with \"pg_timing: error:\", and mostly a line with a hint.",
            "Nothing changes the host or a database, except clocksource use and explain --allow-writes.",
            "Under the name pg_test_timing, the program takes the options of PostgreSQL's pg_test_timing and prints the same \
             output.",
        ],
        _ => &[],
    }
}

const SCREEN: &[Entry] = &[
    ("NO_COLOR", "If it is set and not empty, the output has no colors. Output to a file or a pipe never has colors."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "The first of them that is set tells whether the terminal can show the sign for \"plus or minus\".",
    ),
];
const LIBPQ: &[Entry] = &[(
    "PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and others",
    "Defaults of the connection. All variables that libpq reads have the same meaning as for psql(1).",
)];
const EPHEMERAL: &[Entry] = &[
    ("PATH", "Directories with the programs of PostgreSQL, for --ephemeral. The usual directories are searched, too."),
    ("TMPDIR", "Directory for the temporary server of --ephemeral. The default is /tmp."),
];
const FORMAT: &[Entry] = &[(
    pg_timing::command::arguments::drop_in::FORMAT,
    "Selects the options and the output: 19 (the default) for PostgreSQL 19, or classic for PostgreSQL 15 to 18.",
)];

/// Returns the variables that a command reads.
pub fn environment(page: &str) -> Vec<&'static Entry> {
    let groups: &[&[Entry]] = match page {
        "pg_test_timing" => &[FORMAT],
        "pg_timing" | "pg_timing-explain" => &[SCREEN, LIBPQ, EPHEMERAL],
        "pg_timing-advise" | "pg_timing-monitor" => &[SCREEN, LIBPQ],
        _ => &[SCREEN],
    };
    groups.iter().flat_map(|group| group.iter()).collect()
}

const CLOCK_SOURCE: &[Entry] = &[(
    "/sys/devices/system/clocksource/clocksource0/",
    "The kernel's clock sources. clocksource use writes the name of the new one to current_clocksource, which needs root.",
)];
const HOST: &[Entry] = &[
    ("/dev/kmsg", "The kernel log. Most systems allow only root to read it; see check --kernel-log."),
    ("/proc/cpuinfo", "The CPU's model and what its counter can do."),
];
const CONNECTION: &[Entry] =
    &[("~/.pgpass", "Passwords, as for psql(1)."), ("~/.pg_service.conf", "Names for connections, as for psql(1).")];

/// Returns the files that a command uses without an option.
pub fn files(page: &str) -> Vec<&'static Entry> {
    let groups: &[&[Entry]] = match page {
        "pg_timing" => &[CLOCK_SOURCE, HOST, CONNECTION],
        "pg_timing-check" | "pg_timing-report" => &[CLOCK_SOURCE, HOST],
        "pg_timing-monitor" => &[CLOCK_SOURCE, HOST, CONNECTION],
        "pg_timing-explain" | "pg_timing-advise" => &[CONNECTION],
        page if page.starts_with("pg_timing-clocksource") => &[CLOCK_SOURCE],
        _ => &[],
    };
    groups.iter().flat_map(|group| group.iter()).collect()
}
