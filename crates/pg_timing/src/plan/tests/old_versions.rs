//! Plans in the formats of old versions of PostgreSQL.

use super::published::by_read_cost;
use crate::report::ExplainReport;

fn nodes(report: &ExplainReport) -> Vec<(&str, &str)> {
    report.nodes.iter().map(|node| (node.path.as_str(), node.title.as_str())).collect()
}

/// PostgreSQL 9.3 and older print the total runtime, and no planning time. Rows are whole numbers.
#[test]
fn a_plan_of_9_0_to_9_3_is_read() {
    let text = "                                  QUERY PLAN
----------------------------------------------------------------------------------
 Hash Join  (cost=230.47..713.98 rows=101 width=488) (actual time=0.711..7.427 rows=100 loops=1)
   Hash Cond: (t2.unique2 = t1.unique2)
   ->  Seq Scan on tenk2 t2  (cost=0.00..445.00 rows=10000 width=244) (actual time=0.007..2.583 rows=10000 loops=1)
   ->  Hash  (cost=229.20..229.20 rows=101 width=244) (actual time=0.659..0.659 rows=100 loops=1)
         Buckets: 1024  Batches: 1  Memory Usage: 28kB
         ->  Bitmap Heap Scan on tenk1 t1  (cost=5.07..229.20 rows=101 width=244) (actual time=0.080..0.526 rows=100 loops=1)
               Recheck Cond: (unique1 < 100)
               ->  Bitmap Index Scan on tenk1_unique1  (cost=0.00..5.04 rows=101 width=0) (actual time=0.049..0.049 rows=100 loops=1)
                     Index Cond: (unique1 < 100)
 Trigger for constraint tenk1_fk: time=0.500 calls=3
 Total runtime: 8.008 ms
(11 rows)
";
    let report = by_read_cost(20.0, text);
    assert_eq!(report.reported_ms, 8.008);
    assert_eq!(
        nodes(&report)[3..],
        [("0.1.0", "Bitmap Heap Scan on tenk1 t1"), ("0.1.0.0", "Bitmap Index Scan on tenk1_unique1")]
    );
    // 101 + 10 001 + 1 + 101 + 1 calls of nodes, and 3 of the trigger.
    assert_eq!(report.capture.unwrap().calls.estimate, 10_208.0);
}

/// PostgreSQL 8.3 and older do not number subplans.
#[test]
fn a_plan_of_8_3_is_read() {
    let text = "Seq Scan on t  (cost=0.02..40.02 rows=1 width=4) (actual time=0.100..9.000 rows=5 loops=1)
  Filter: ((i > $0) AND (subplan))
  InitPlan
    ->  Limit  (cost=0.00..0.02 rows=1 width=4) (actual time=0.020..0.021 rows=1 loops=1)
          ->  Seq Scan on u  (cost=0.00..34.00 rows=2400 width=4) (actual time=0.010..0.010 rows=1 loops=1)
  SubPlan
    ->  Index Scan using v_i on v  (cost=0.00..8.27 rows=1 width=4) (actual time=0.001..0.001 rows=0 loops=50)
          Index Cond: (i = $1)
Total runtime: 9.250 ms
";
    let report = by_read_cost(20.0, text);
    assert_eq!(report.reported_ms, 9.25);
    let expected = [
        ("0", "Seq Scan on t"),
        ("0.0", "InitPlan: Limit"),
        ("0.0.0", "Seq Scan on u"),
        ("0.1", "SubPlan: Index Scan using v_i on v"),
    ];
    assert_eq!(nodes(&report), expected);
}

/// `Planning time` and `Execution time` had a small letter from 9.4 to 12, and JSON has `Total Runtime` before 9.4.
#[test]
fn times_of_all_versions_are_read() {
    let root = "Result  (cost=0.00..0.01 rows=1 width=0) (actual time=0.002..0.003 rows=1 loops=1)\n";
    let json = r#"[{"Plan": {"Node Type": "Result", "Actual Startup Time": 0.002, "Actual Total Time": 0.003, "Actual Rows": 1, "Actual Loops": 1}, "Triggers": [], "#;
    for text in [
        format!("{root}Total runtime: 0.125 ms\n"),
        format!("{root} Planning time: 0.050 ms\n Execution time: 0.125 ms\n"),
        format!("{root}Planning Time: 0.050 ms\nExecution Time: 0.125 ms\n"),
        format!("{json}\"Total Runtime\": 0.125}}]"),
        format!("{json}\"Planning Time\": 0.05, \"Execution Time\": 0.125}}]"),
    ] {
        assert_eq!(by_read_cost(20.0, &text).reported_ms, 0.125, "{text}");
    }
}
