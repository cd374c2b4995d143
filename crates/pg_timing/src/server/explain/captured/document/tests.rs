use super::*;
use crate::plan_format::keys::CORRECTION;
use crate::render;
use crate::report::{ExplainReport, Range};
use crate::server::explain::captured::repair::tests::real_plans;
use crate::server::explain::captured::{Inputs, ServerClock, captured};
use crate::server::explain::plan::Explained;
use serde_json::Value;

/// A plan with each property for which the text format has a special line.
const PROPERTIES: &str = include_str!("../../../../../tests/fixtures/plans/properties.json");

/// Returns the report of a plan that had no overhead, so that its times stay as they are.
fn without_overhead(plan: &str, format: PlanFormat) -> ExplainReport {
    let inputs = Inputs { clock: None, plain_ms: Some(1.0), document: Some(format) };
    let mut report = captured(plan, &inputs).unwrap();
    let exactly = |ms| Range { low: ms, estimate: ms, high: ms };
    report.corrected_ms = exactly(report.reported_ms);
    report.nodes.iter_mut().for_each(|node| node.corrected_ms = exactly(node.reported_ms));
    report
}

/// Returns the plan in text format, without pg_timing's line at the end.
fn as_text(plan: &str) -> String {
    let text = render::plan::text(&without_overhead(plan, PlanFormat::Text)).unwrap();
    let (text, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(last.starts_with("Time Correction: pg_timing ") && last.contains(" removed 0% "), "{last}");
    format!("{text}\n")
}

fn as_json(plan: &str) -> Value {
    let json = render::plan::json(&without_overhead(plan, PlanFormat::Json)).unwrap();
    serde_json::from_str::<Vec<Value>>(&json).unwrap().pop().unwrap()
}

#[test]
fn each_property_has_the_line_of_the_text_format() {
    insta::assert_snapshot!(as_text(PROPERTIES));
}

#[test]
fn a_plan_stays_in_its_format() {
    let text = as_text(PROPERTIES);
    assert_eq!(as_text(&text), text);
    let mut json = as_json(PROPERTIES);
    json.as_object_mut().unwrap().shift_remove(CORRECTION).unwrap();
    let original = serde_json::from_str::<Vec<Value>>(PROPERTIES).unwrap().pop().unwrap();
    // Comparing the texts compares the order, too.
    assert_eq!(json.to_string(), original.to_string());
}

/// Compares what was read from a text with the original. Returns the keys that the text does not show.
fn not_in_text(read: &Value, original: &Value, missing: &mut Vec<String>) {
    match (read, original) {
        (Value::Object(read), Value::Object(original)) => {
            for (key, value) in original {
                match read.get(key) {
                    Some(read) => not_in_text(read, value, missing),
                    None => missing.push(key.clone()),
                }
            }
            let unknown = read.keys().filter(|key| !original.contains_key(*key) && *key != CORRECTION);
            assert_eq!(Vec::<&String>::from_iter(unknown), [""; 0]);
        }
        (Value::Array(read), Value::Array(original)) => {
            assert_eq!(read.len(), original.len(), "{read:?} {original:?}");
            read.iter().zip(original).for_each(|(read, original)| not_in_text(read, original, missing));
        }
        // The text shows a group that pg_timing does not know as it is in JSON.
        (Value::String(read), Value::Object(_)) => assert_eq!(*read, original.to_string()),
        // The text format has no decimals for the times of a node that was never executed.
        (Value::Number(read), Value::Number(original)) => assert_eq!(read.as_f64(), original.as_f64()),
        _ => assert_eq!(read, original),
    }
}

#[test]
fn a_text_becomes_json_with_the_keys_of_the_server() {
    let original = serde_json::from_str::<Vec<Value>>(PROPERTIES).unwrap().pop().unwrap();
    let mut missing = Vec::new();
    not_in_text(&as_json(&as_text(PROPERTIES)), &original, &mut missing);
    missing.sort();
    missing.dedup();
    // The text format shows these only if they are not false or 0.
    let not_shown = [
        "Disabled",
        "Inner Unique",
        "Local I/O Read Time",
        "Local I/O Write Time",
        "Rows Removed by Filter",
        "Rows Removed by Index Recheck",
        "Shared I/O Read Time",
        "Shared I/O Write Time",
        "WAL FPI",
    ];
    assert_eq!(missing, not_shown);
}

const LOG: &str = "LOG:  duration: 5.100 ms  plan:
\tQuery Text: SELECT 1
\tSeq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=1.000..5.000 rows=7 loops=1)
\t  Filter: ((a = 'x
\ty: 1
\tLOG:  z'::text) AND b)
\t  Rows Removed by Filter: 3
\t  Buffers: shared hit=5
\tSettings: jit = 'off'
LOG:  statement: SELECT 2
HINT:  none
";

#[test]
fn only_the_lines_of_the_plan_are_kept() {
    let mut log = LOG.lines().filter_map(|line| line.strip_prefix('\t')).skip(1).collect::<Vec<_>>().join("\n");
    log.push('\n');
    assert_eq!(as_text(LOG), log);
    let psql = " Sort  (cost=0.00..1.00 rows=1 width=4) (actual time=1.000..5.000 rows=7 loops=1)
   Sort Key: a
   ->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=1.000..4.000 rows=7 loops=1)
         Filter: (a = 'x
 y'::text)
 Planning Time: 0.100 ms
 JIT:
   Functions: 3
 Execution Time: 5.100 ms
(9 rows)

Time: 5.500 ms
";
    assert_eq!(
        as_text(psql),
        "Sort  (cost=0.00..1.00 rows=1 width=4) (actual time=1.000..5.000 rows=7 loops=1)
  Sort Key: a
  ->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=4) (actual time=1.000..4.000 rows=7 loops=1)
        Filter: (a = 'x
y'::text)
Planning Time: 0.100 ms
JIT:
  Functions: 3
Execution Time: 5.100 ms
"
    );
}

/// Returns the inclusive time of a node in all its loops, in ms.
fn total_ms(node: &Value) -> f64 {
    node["Actual Total Time"].as_f64().unwrap_or(0.0) * node["Actual Loops"].as_f64().unwrap_or(0.0)
}

/// EXPLAIN prints times per loop with three decimals.
fn rounding_ms(node: &Value) -> f64 {
    0.0006 * node["Actual Loops"].as_f64().unwrap_or(0.0)
}

/// Returns the children that take longer than their parent. The processes below a Gather take their times in parallel.
fn longer_than_parent(node: &Value, found: &mut Vec<String>) {
    for child in node["Plans"].as_array().into_iter().flatten() {
        let is_gather = node["Node Type"].as_str().is_some_and(|kind| kind.starts_with("Gather"));
        let is_separate = child["Subplan Name"].is_string();
        if !is_gather && !is_separate && total_ms(child) > total_ms(node) + rounding_ms(child) + rounding_ms(node) {
            found.push(format!("{} {} > {}", child["Node Type"], total_ms(child), total_ms(node)));
        }
        longer_than_parent(child, found);
    }
}

#[test]
fn no_node_of_a_real_plan_takes_longer_than_the_statement_or_its_parent() {
    let clock = |_: &Explained| {
        Ok(ServerClock { read_ns: 25.0, timed_call_ns: None, system_read_ns: Some(25.0), cpus: Some(4), note: None })
    };
    let inputs = Inputs { clock: Some(&clock), plain_ms: None, document: Some(PlanFormat::Json) };
    let mut wrong = Vec::new();
    let mut plans = 0;
    for plan in real_plans() {
        let Ok(json) = captured(&plan, &inputs).and_then(|report| render::plan::json(&report)) else { continue };
        let json = serde_json::from_str::<Vec<Value>>(&json).unwrap().pop().unwrap();
        let statement = json["Execution Time"].as_f64().unwrap();
        let root = &json["Plan"];
        if total_ms(root) > statement + rounding_ms(root) {
            wrong.push(format!("{} of {statement}: {plan}", total_ms(root)));
        }
        longer_than_parent(root, &mut wrong);
        plans += 1;
    }
    assert!(wrong.is_empty() && plans > 150, "{plans} {} {wrong:#?}", wrong.len());
}

#[test]
fn the_parameters_of_a_gather_are_a_list() {
    let plan = "Gather  (cost=1.00..2.00 rows=1 width=8) (actual time=1.000..2.000 rows=1 loops=1)\n  Workers Planned: 1\n  \
                Params Evaluated: $1, $2\n  Workers Launched: 1\n  ->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=0) \
                (actual time=0.010..1.000 rows=1 loops=2)\nPlanning Time: 0.050 ms\nExecution Time: 2.000 ms\n";
    assert_eq!(as_json(plan)["Plan"]["Params Evaluated"], serde_json::json!(["$1", "$2"]));
}
