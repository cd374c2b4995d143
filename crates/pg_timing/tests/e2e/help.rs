//! Help texts that a user must see before a statement runs many times.

use super::{pg_timing, run};
use ::pg_timing::server::explain::NOT_ROLLED_BACK;

#[test]
fn explain_says_what_its_runs_can_do() {
    let (status, help, _) = run(pg_timing().args(["explain", "--help"]));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(status, 0);
    for words in [
        "13 to 165 times",
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

/// The note of each run with --allow-writes lists the same effects.
#[test]
fn explain_says_what_is_not_rolled_back() {
    let (_, help, _) = run(pg_timing().args(["explain", "--help"]));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, effects) = NOT_ROLLED_BACK.split_once(": ").unwrap();
    for effect in effects.split(", ") {
        assert!(help.contains(effect), "{effect}: {help}");
    }
}
