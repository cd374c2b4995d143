//! Entries that are not complete.

use super::*;

#[test]
fn the_end_of_the_file_may_truncate_the_last_entry() {
    let log = "LOG:  duration: 5.100 ms  plan:\n\tQuery Text: a\n\tSort";
    assert_eq!(entries(log), [(1, Damaged(Damage::Truncated))]);
    assert_eq!(entries(&format!("{log}\n")), [(1, announced(5.1, "Query Text: a\nSort\n"))]);
}

#[test]
fn a_log_that_begins_within_a_plan_is_reported_once() {
    let rest = "\tx\n\t  ->  Sort (actual time=1..2 rows=1 loops=1)\n";
    assert_eq!(entries(&format!("{rest}{OTHER}")), [(2, Rest(rest.into()))]);
    // The file can begin within a line.
    let rest = &rest[1..];
    assert_eq!(entries(&format!("{rest}{OTHER}")), [(2, Rest(rest.into()))]);
    let escaped = "Nov 22 01:02:03 db1 postgres[1]: [3-7] #011(actual time=1..2 rows=1 loops=1)\n";
    assert_eq!(entries(escaped), [(1, Rest("\t(actual time=1..2 rows=1 loops=1)\n".into()))]);
    assert_eq!(entries(&format!("{OTHER}\t(actual time=1..2 rows=1 loops=1)\n")), []);
}

#[test]
fn lost_parts_of_a_message_are_damage() {
    let line = |message: u32, part: u32, text: &str| format!("Nov 22 01:02:03 db1 pg[1]: [{message}-{part}] {text}\n");
    let plan = "#011Sort (actual time=1..2 rows=1 loops=1)";
    let log = [
        line(4, 1, "LOG:  duration: 5.100 ms  plan:"),
        line(4, 2, "#011Query Text: a"),
        line(4, 4, plan),
        line(5, 1, "LOG:  x"),
        line(6, 3, plan),
        line(7, 1, "LOG:  duration: 7.0 ms  plan:"),
        line(7, 2, plan),
    ];
    let text = plan.replace("#011", "") + "\n";
    let expected = [
        (1, Damaged(Damage::LostParts)),
        (5, Rest(plan.replace("#011", "\t") + "\nLOG:  a record\n")),
        (6, announced(7.0, &text)),
    ];
    assert_eq!(entries(&log.concat()), expected);
}

#[test]
fn lost_parts_do_not_join_two_messages() {
    let line = |message: u32, part: u32, text: &str| format!("Nov 22 01:02:03 db1 pg[1]: [{message}-{part}] {text}\n");
    let plan = "#011  ->  Sort (actual time=1..2 rows=1 loops=1)";
    let begin = [line(5, 1, "LOG:  duration: 5.100 ms  plan:"), line(5, 2, "#011Query Text: a"), line(5, 3, plan)];
    let rest = |line| (line, Rest(plan.replace("#011", "\t") + "\n"));
    // Parts 5-4 and 6-1 to 6-3 are lost, so part 6-4 has the number after 5-3.
    for next in [4, 2, 9] {
        let log = begin.concat() + &line(6, next, plan) + &line(7, 1, "LOG:  x");
        assert_eq!(entries(&log), [(1, Damaged(Damage::LostParts)), rest(4)], "{next}");
    }
    // Of message 5 only the first part was read, or no part of a plan.
    let log = line(5, 1, "LOG:  x") + &line(6, 2, plan);
    assert_eq!(entries(&log), [rest(2)]);
    // A new message of the process does not show that something is lost.
    let text = plan.replace("#011", "") + "\n";
    let log = begin.concat() + &line(6, 1, "LOG:  x") + &line(6, 2, "#011y");
    assert_eq!(entries(&log), [(1, announced(5.1, &format!("Query Text: a\n{text}")))]);
    // Without a sign of a plan, the lost parts are not those of a plan.
    let log = [line(4, 1, "LOG:  x"), line(5, 3, "#011y"), line(5, 7, "#011z"), line(6, 1, "LOG:  x")];
    assert_eq!(entries(&log.concat()), []);
}

#[test]
fn a_cut_line_truncates_the_entry_before_it() {
    let truncated = [(1, Damaged(Damage::Truncated))];
    let docker = |text: &str| format!("{{\"log\":\"{text}\\n\",\"stream\":\"stderr\"}}\n");
    let container = |text: &str| format!("2026-11-22T01:02:03.1Z stderr F {text}\n");
    for lines in [
        ["LOG:  duration: 5.100 ms  plan:", "\\tSort", "\\t  ->  Seq Scan"].map(docker),
        ["LOG:  duration: 5.100 ms  plan:", "\tSort", "\t  ->  Seq Scan"].map(container),
    ] {
        let log = lines.concat();
        let last = log.len() - lines[2].len();
        for length in last + 2..log.len() {
            assert_eq!(entries(&log[..length]), truncated, "{}", &log[..length]);
        }
        assert_ne!(entries(&log[..last]), truncated);
    }
    // The cut line begins the next entry.
    let log = "LOG:  duration: 5.100 ms  plan:\n\tSort\nLOG:  dura";
    assert_eq!(entries(log), [(1, announced(5.1, "Sort\n"))]);
    let json = "{\"message\":\"duration: 5.1 ms  plan:\\nSo";
    assert_eq!(entries(json), truncated);
}

#[test]
fn too_long_entries_are_not_stored() {
    let line = format!("\t{}\n", "x".repeat(1 << 20));
    let log = format!("LOG:  duration: 5.100 ms  plan:\n{}{OTHER}LOG:  duration: 1.0 ms  plan:\n\ta\n", line.repeat(9));
    assert_eq!(entries(&log), [(1, Damaged(Damage::TooLong)), (13, announced(1.0, "a\n"))]);
}

#[test]
fn nul_bytes_damage_the_entries_around_them() {
    let plan = "LOG:  duration: 5.100 ms  plan:\n\tQuery Text: a\n\tSort\n";
    let expected = |line| (line, announced(5.1, "Query Text: a\nSort\n"));
    let damaged = |line| (line, Damaged(Damage::Nul));
    // Within a plan's line, at the beginning of a line, and in the middle of an announcement.
    assert_eq!(entries(&format!("{plan}{OTHER}{plan}\tx\0LOG:  x\n{plan}")), [expected(1), damaged(6), expected(10)]);
    assert_eq!(entries(&format!("{plan}\0{plan}")), [damaged(1), expected(4)]);
    assert_eq!(entries(&format!("{OTHER}LOG:  dura\0{plan}")), [expected(3)]);
    assert_eq!(entries(&format!("{OTHER}\0\n{plan}\0")), [damaged(4)]);
    // The end of a plan remains.
    let end = "\t  ->  Sort (actual time=1..2 rows=1 loops=1)\n";
    assert_eq!(entries(&format!("{OTHER}x\0{end}{OTHER}{plan}")), [(3, Rest(end.into())), expected(6)]);
}
