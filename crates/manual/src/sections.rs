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

const SCREEN: &[Entry] = &[
    ("NO_COLOR", "If it is set and not empty, the output has no colors. Output to a file or a pipe has no colors."),
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
    pg_timing::command::pg_test_timing::FORMAT,
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

/// Returns the pages of other programs that a reader may need.
pub fn see_also(page: &str) -> &'static [&'static str] {
    match page {
        "pg_timing" | "pg_timing-explain" | "pg_timing-advise" | "pg_timing-monitor" => &["psql"],
        "pg_timing-check" => &["dmesg"],
        _ => &[],
    }
}
