//! Text outside of log entries: `--all` finds the plans that the reader of a single plan finds.

use super::entry::Entry;
use super::lines::Lines;
use super::parse;
use super::splitter::Splitter;
use crate::server::explain::captured::{each_plan, text_of};
use std::path::{Path, PathBuf};

/// The name and the time of each plan; a plan that cannot be read has neither.
type Plans = Vec<Option<(String, Option<f64>)>>;

fn alone(text: &str) -> Plans {
    let mut plans = Vec::new();
    each_plan(text, &mut |plan, _| plans.push(plan.ok().map(|plan| (plan.plan.name, plan.execution_ms))));
    plans
}

fn in_log(text: &str) -> Plans {
    let mut plans = Vec::new();
    let mut found = |entry: Entry| {
        parse::each(entry.content, false, &mut |parsed| {
            plans.push(parsed.found.ok().map(|plan| (plan.plan.name, plan.execution_ms)));
        });
    };
    let mut splitter = Splitter::default();
    let mut lines = Lines::new(text.as_bytes());
    splitter.begin_file(0, &mut found);
    while let Some(line) = lines.next().unwrap() {
        splitter.line(&line, &mut found);
    }
    splitter.end_file(false, &mut found);
    splitter.end(&mut found);
    plans
}

fn files(directory: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let mut files: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

const PLANS: [&str; 4] = [
    "crates/pg_timing/tests/fixtures/plans",
    "crates/pg_timing/tests/fixtures/psql",
    "crates/pg_timing/tests/fixtures/kinds",
    "fuzz/seeds/plan",
];

#[test]
fn each_plan_outside_of_a_log_is_found() {
    const ENTRY: &str = "2026-11-24 [7] LOG:  checkpoint starting\n\ta second line\n";
    let mut count = 0;
    for path in PLANS.into_iter().flat_map(files) {
        let bytes = std::fs::read(&path).unwrap();
        let text = text_of(&bytes);
        let expected = alone(&text);
        count += expected.len();
        assert_eq!(in_log(&text), expected, "{path:?}");
        // Between the entries of a log.
        let expected = [&expected[..], &expected].concat();
        let log = format!("{ENTRY}{0}\n{ENTRY}{0}\n{ENTRY}", text.trim_end_matches('\n'));
        if !text.contains("LOG: ") {
            assert_eq!(in_log(&log), expected, "{path:?} in a log");
        }
    }
    assert!(count > 100, "{count}");
}

/// A log that went through an editor, a ticket or a chat: its tabs became spaces, or they are lost.
#[test]
fn lost_tabs_lose_no_plan() {
    for path in
        files("crates/pg_timing/tests/fixtures/logs").into_iter().filter(|path| path.extension().unwrap() == "log")
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = alone(&text);
        assert_eq!(in_log(&text), expected, "{path:?}");
        for tab in ["", " ", "    ", "        "] {
            let text = text.replace('\t', tab);
            let found = in_log(&text);
            assert_eq!(found, alone(&text), "{tab:?}");
            assert_eq!(found.iter().flatten().count(), expected.iter().flatten().count(), "{tab:?}");
        }
        let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
        assert_eq!(in_log(&quoted), alone(&quoted));
    }
}

/// Only a part of the tabs is lost: what is left does not end the entry.
#[test]
fn a_tab_before_the_query_alone_loses_no_plan() {
    let plan = "Sort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n  Sort Key: a\n";
    let log = format!("LOG:  duration: 5.100 ms  plan:\n\tQuery Text: select a\n{plan}LOG:  x\n");
    assert_eq!(in_log(&log), [Some(("Sort".into(), Some(5.1)))]);
    let two = format!("LOG:  duration: 5.100 ms  plan:\nQuery Text: select a\n{plan}\nthe same again:\n\n{plan}");
    assert_eq!(in_log(&two), [Some(("Sort".into(), Some(5.1))), Some(("Sort".into(), None))]);
}

/// Text without plans that is longer than a piece does not make a plan too long.
#[test]
fn long_text_before_a_plan_is_no_plan() {
    let plan = "Sort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n";
    let line = |sign: &str| format!("a line of {} of another program{sign}\n", "x".repeat(1000)).repeat(9000);
    assert_eq!(in_log(&format!("{0}{plan}{0}", line(""))), [Some(("Sort".into(), None))]);
    assert_eq!(in_log(&format!("{}LOG:  x\n{plan}", line(" rows=1"))), [Some(("Sort".into(), None))]);
}

/// A plan that is too long is one damaged plan, and the plan below it is found.
#[test]
fn the_plan_after_a_plan_that_is_too_long_is_found() {
    let plan = "Sort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n";
    let long = plan.to_string() + &format!("  ->  {}  {plan}", "x".repeat(1000)).repeat(9000);
    assert_eq!(in_log(&format!("{long}\n{plan}")), [None, Some(("Sort".into(), None))]);
}
