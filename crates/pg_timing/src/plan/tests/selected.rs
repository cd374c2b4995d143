use super::published::{by_read_cost, count_plan, estimate, join_plan};

#[test]
fn the_last_usable_plan_is_used() {
    let two = count_plan(10, 1.0) + &count_plan(10, 2.0);
    let report = by_read_cost(20.0, &two);
    assert_eq!(
        (report.reported_ms, report.notes[0].as_str()),
        (2.0, "the input has 2 plans; this is the last one; --nth N shows another one")
    );
    let cut = two + "Result  (cost=0.00..0.01 rows=1 width=4)\n";
    let report = by_read_cost(20.0, &cut);
    assert_eq!(report.notes[0], "the input has 3 plans; this is number 2, the last usable one");
    assert!(report.notes[1].starts_with("1 plan is not usable: the plan was not executed"));
}

#[test]
fn lost_indentation_is_restored() {
    let plan = join_plan(100.0);
    let trimmed: String = plan.lines().map(|line| line.trim().to_string() + "\n").collect();
    // HTML shows several spaces as one.
    let collapsed = trimmed.replace("->  ", "-> ");
    let shifted: String = plan.lines().map(|line| format!("> {}\n", line.trim())).collect();
    let one_space = plan
        .lines()
        .map(|line| if line.contains("->") { format!(" {}\n", line.trim()) } else { format!("{line}\n") })
        .collect();
    let paths = |text: &str| by_read_cost(20.0, text).nodes.into_iter().map(|node| node.path).collect::<Vec<_>>();
    let tabs = plan.replace("        ", "\t");
    for lost in [&trimmed, &collapsed, &shifted, &one_space, &tabs] {
        assert_eq!(paths(lost), paths(&plan), "{lost}");
        assert!(by_read_cost(20.0, lost).notes[0].starts_with("the plan had lost its indentation"), "{lost}");
    }
    let several = "Append (actual time=3.000..3.000 rows=0 loops=1)\n-> Append (actual time=2.000..2.000 rows=0 loops=1)\n\
        -> Seq Scan on a (actual time=1.000..1.000 rows=0 loops=1)\nExecution Time: 3.000 ms\n";
    let error = estimate(Some(20.0), None, several).unwrap_err();
    assert!(error.what.contains("do not show the tree: Seq Scan on a can be below Append or below Append"), "{error}");
}

#[test]
fn without_an_execution_time_the_root_counts() {
    let plan = count_plan(100_000, 20.0);
    let cut = plan.split_once("Planning").unwrap().0;
    let json = r#"[{"Plan": {"Node Type": "Seq Scan", "Actual Total Time": 20.0, "Actual Rows": 9, "Actual Loops": 1},
        "Triggers": [{"Calls": 1000000}]}]"#;
    for text in [cut, json] {
        let report = by_read_cost(20.0, text);
        assert_eq!(report.reported_ms, 20.0);
        assert!(report.notes[0].starts_with("the plan has no Execution Time, so its topmost"), "{:?}", report.notes);
        assert!(report.capture.unwrap().calls.high < 1e6);
    }
    // A plan without nodes that ran, or with sampled times, has no time of its own.
    for text in ["Result (never executed)\n", "Result (actual time=1.000..1.000 rows=1 loops=1)\n  Timing: estimated\n"]
    {
        let error = estimate(None, Some(1.0), text).unwrap_err();
        assert_eq!(error.what, "the plan has no Execution Time");
    }
}

#[test]
fn a_plan_that_is_not_usable_is_mentioned() {
    let good = format!("LOG:  duration: 2.500 ms  plan:\n{}", count_plan(10, 2.0).split_once("Planning").unwrap().0);
    let log = "LOG:  duration: 3.500 ms  plan:\n";
    let yaml = format!("{log}\tQuery Text: \"SELECT 1\"\n\tPlan: \n\t  Node Type: \"Result\"\n\t  Actual Rows: 1\n");
    let xml = format!(
        "{log}\t<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n\t  <Query-Text>SELECT 1</Query-Text>\n\t</explain>\n"
    );
    let unknown = format!("{log}\tPlán: 1\n");
    for (bad, why) in [
        (&yaml, "the plan was not executed: EXPLAIN without ANALYZE, or auto_explain.log_analyze is off"),
        (&xml, "the plan's XML is incomplete or damaged: missing field `Plan`"),
        (&unknown, "no readable plan follows the log line \"duration: ... plan:\""),
    ] {
        let error = estimate(Some(20.0), None, bad).unwrap_err();
        assert_eq!(error.what, why);
        // The second plan stands directly below the first one, or after another line of the log.
        for between in ["", "LOG:  checkpoint starting: time\n"] {
            let report = by_read_cost(20.0, &format!("{good}{between}{bad}"));
            assert_eq!(
                (report.reported_ms, &*report.notes[0]),
                (2.5, "the input has 2 plans; this is number 1, the last usable one")
            );
            assert!(report.notes[1].starts_with(&format!("1 plan is not usable: {why} (first: ")), "{report:?}");
        }
        let report = by_read_cost(20.0, &format!("{bad}{good}"));
        assert_eq!(report.notes[0], "the input has 2 plans; this is the last one; --nth N shows another one");
        assert!(report.notes[1].starts_with(&format!("1 plan is not usable: {why}")), "{report:?}");
        let report = by_read_cost(20.0, &format!("{good}{bad}{bad}"));
        assert!(report.notes[1].starts_with(&format!("2 plans are not usable: {why}")), "{report:?}");
    }
    // A plan in another format ends the text plan above it, also without a log line between them.
    let report = by_read_cost(20.0, &format!("{good}{}", xml.split_once('\n').unwrap().1));
    assert!(report.notes[1].starts_with("1 plan is not usable: the plan's XML is incomplete"), "{:?}", report.notes);
}

#[test]
fn a_log_lines_time_is_only_for_its_plan() {
    let cut = count_plan(10, 2.0).split_once("Planning").unwrap().0.to_string();
    let yaml = "LOG:  duration: 99.000 ms  plan:\n\tQuery Text: SELECT 9\n\tPlan: \n\t  Node Type: \"Result\"\n";
    let with_its_own_time =
        format!("LOG:  duration: 99.000 ms  plan:\n\tQuery Text: SELECT 9\n{}", count_plan(10, 3.0));
    for before in [yaml, &with_its_own_time] {
        let report = by_read_cost(20.0, &format!("{before}{cut}"));
        assert_eq!((report.reported_ms, report.statement), (2.0, None), "{before}");
    }
}
