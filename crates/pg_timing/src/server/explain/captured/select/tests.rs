use super::super::tests::{by_read_cost, count_plan, estimate, join_plan};

#[test]
fn the_last_usable_plan_is_used() {
    let two = count_plan(10, 1.0) + &count_plan(10, 2.0);
    let report = by_read_cost(20.0, &two);
    assert_eq!((report.reported_ms, report.notes[0].as_str()), (2.0, "the input has 2 plans; this is the last one"));
    let cut = two + "Result  (cost=0.00..0.01 rows=1 width=4)\n";
    let report = by_read_cost(20.0, &cut);
    assert_eq!(report.notes[0], "the input has 3 plans; this is number 2, the last usable one");
    assert_eq!(report.notes[1], "plan 3 is not usable: the plan was not executed (EXPLAIN without ANALYZE)");
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
    assert!(
        error.what.contains("several trees are possible: Seq Scan on a can be below Append or below Append"),
        "{}",
        error.what
    );
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
