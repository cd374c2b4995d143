//! Help texts that a user must see before a statement runs many times.

use super::{pg_timing, run};

#[test]
fn explain_says_what_its_runs_can_do() {
    let (status, help, _) = run(pg_timing().args(["explain", "--help"]));
    assert_eq!(status, 0);
    for words in [
        "10 to 206 times",
        "rolled back",
        "dblink_exec",
        "COPY TO",
        "pg_switch_wal",
        "pg_stat_statements",
        "auto_explain",
        "custom plan",
        "generic plan",
        "\\N is NULL",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
}
