use crate::error::Error;
use crate::plan::{Explained, Found, Unusable, each_plan};
use crate::report::PlanSource;

const TEXT: &str = " Aggregate  (cost=1.00..2.00 rows=1 width=8) (actual time=20.000..20.000 rows=1 loops=1)
   ->  Seq Scan on t  (cost=0.00..1.00 rows=1 width=0) (actual time=0.012..10.442 rows=100000 loops=1)
         Filter: (k = 1)
 Planning Time: 0.316 ms
 Execution Time: 20.197 ms
";
const JSON: &str = r#"[
  {
    "Plan": {
      "Node Type": "Aggregate",
      "Actual Total Time": 20.000,
      "Actual Rows": 1,
      "Actual Loops": 1
    },
    "Execution Time": 20.197
  }
]
"#;

fn plans(text: &str) -> Vec<Found> {
    let mut plans = Vec::new();
    // The same plan has another line in each frame.
    each_plan(text, false, &mut |plan| plans.push(plan.map(|plan| Explained { line: 0, ..plan })));
    plans
}

fn only_plan(text: &str) -> Explained {
    let mut all = plans(text);
    assert_eq!(all.len(), 1, "{text}\n{all:?}");
    all.remove(0).unwrap_or_else(|unreadable| panic!("{unreadable:?}: {text}"))
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

#[test]
fn text_plans_are_found_in_every_frame() {
    let width = TEXT.lines().map(str::len).max().unwrap();
    let framed: [&dyn Fn(&str) -> String; 9] = [
        &|line| line.into(),
        &|line| line.trim_start_matches(' ').replacen("->", "  ->", 1),
        &|line| format!("> > {line}"),
        &|line| format!("    {line}"),
        &|line| format!("\t{line}"),
        &|line| format!("{line}\r"),
        &|line| format!("|{line:width$} |"),
        &|line| format!("│{line:width$} │"),
        &|line| format!("\"{line}\""),
    ];
    for frame in framed {
        for (before, after) in [("", ""), ("# how it was\n```\nQUERY PLAN\n-----\n", "(4 rows)\n```\nslow!\n")] {
            let text = format!("{before}{}{after}", each_line(TEXT, frame));
            assert_eq!(only_plan(&text), only_plan(TEXT), "{text}");
        }
    }
    let plan = only_plan(TEXT);
    assert_eq!((plan.execution_ms, plan.planning_ms, plan.root.children.len()), (Some(20.197), Some(0.316), 1));
}

#[test]
fn json_plans_are_found_in_every_frame() {
    let framed: [&dyn Fn(&str) -> String; 6] = [
        &|line| line.into(),
        &|line| format!(" {line:40}+"),
        &|line| format!("| {line:40}+|"),
        &|line| format!("> {line}\r"),
        &|line| format!("\t{line}"),
        &|line| line.trim().into(),
    ];
    for frame in framed {
        let text = format!("\u{feff}QUERY PLAN\n---\n{}(1 row)\n", each_line(JSON, frame));
        assert_eq!(only_plan(&text), only_plan(JSON), "{text}");
    }
}

#[test]
fn pasted_yaml_and_xml_have_the_same_plan_as_json() {
    let json = "[{\"Plan\": {\"Node Type\": \"Result\", \"Alias\": \"a<b&c->d\", \"Actual Total Time\": 1.5, \"Actual Rows\": 1, \"Actual Loops\": 1}, \"Execution Time\": 1.6}]";
    let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Plan>\n      <Node-Type>Result</Node-Type>\n      <Alias>a&lt;b&amp;c-&gt;d</Alias>\n      <Actual-Total-Time>1.500</Actual-Total-Time>\n      <Actual-Rows>1</Actual-Rows>\n      <Actual-Loops>1</Actual-Loops>\n    </Plan>\n    <Execution-Time>1.6</Execution-Time>\n  </Query>\n</explain>\n";
    let yaml = "- Plan: \n    Node Type: \"Result\"\n    Alias: \"a<b&c->d\"\n    Actual Total Time: 1.500\n    Actual Rows: 1\n    Actual Loops: 1\n  Execution Time: 1.6\n";
    let in_psql = |text: &str| text.lines().map(|line| format!(" {line:<60}+\n")).collect::<String>();
    for text in [xml, yaml, &in_psql(xml), &in_psql(yaml)] {
        assert_eq!(only_plan(text), only_plan(json), "{text}");
    }
}

#[test]
fn unreadable_plans_say_why() {
    let unreadable = |text: &str| {
        let mut all = plans(text);
        assert_eq!(all.len(), 1, "{text}: {all:?}");
        Error::from(all.remove(0).unwrap_err()).what
    };
    assert!(unreadable(&JSON[..JSON.len() / 2]).starts_with("the plan's JSON is incomplete or damaged: "));
    assert!(unreadable("- Plan: \n    Node Type: \"Res\n").starts_with("the plan's YAML is incomplete or damaged: "));
    let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n";
    assert!(unreadable(xml).starts_with("the plan's XML is incomplete or damaged: "));
    let headless: String = TEXT.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert_eq!(unreadable(&headless), "the beginning of the plan is missing");
    let not_run = unreadable("Result  (cost=0.00..0.01 rows=1 width=4)\n");
    assert_eq!(not_run, "the plan was not executed: EXPLAIN without ANALYZE, or auto_explain.log_analyze is off");
    let deep: String = std::iter::once(TEXT.lines().next().unwrap().to_string())
        .chain((1..600).map(|n| format!("{}->  Sort (actual rows=1 loops=1)", " ".repeat(n * 6))))
        .map(|line| line + "\n")
        .collect();
    let deep_json = format!("[{{\"Plan\": {}", "{\"Node Type\": \"Sort\", \"Plans\": [".repeat(300));
    for text in [deep, deep_json + &"]}".repeat(300) + "}]"] {
        let error = Error::from(plans(&text).remove(0).unwrap_err());
        assert_eq!(error.what, "the plan is nested too deeply");
        assert!(error.hint.starts_with("pg_timing reads up to 500 levels of nodes in text format"), "{error:?}");
    }
    assert_eq!(plans("{\n[\n{ \"a\": 1\nHello\n"), vec![]);
}

#[test]
fn several_values_on_a_line_are_read() {
    let object: String = JSON.lines().filter(|line| !["[", "]"].contains(line)).collect();
    assert_eq!(plans(&format!("[[1]], [{object}] {object}{object}\n{object}")).len(), 4);
}

#[test]
fn a_plan_after_a_damaged_one_is_read() {
    let text = format!("{}Hello\n{JSON}", &JSON[..JSON.len() / 2]);
    let all = plans(&text);
    assert!(matches!(all.as_slice(), [Err(Unusable::InvalidSyntax("JSON", _)), Ok(_)]), "{all:?}");
}

/// The writer relies on this.
#[test]
fn the_text_of_an_indented_plan_is_not_indented() {
    let plan = "Sort (actual time=1.000..2.500 rows=7 loops=1)\n  ->  Seq Scan on t (actual time=1.000..2.000 rows=7 loops=1)\n\
        Planning Time: 0.100 ms\nExecution Time: 3.000 ms\n";
    for indentation in ["", " ", "    ", "\t"] {
        let indented: String = plan.lines().map(|line| format!("{indentation}{line}\n")).collect();
        let mut sources = Vec::new();
        each_plan(&indented, true, &mut |plan| sources.extend(plan.unwrap().source));
        assert!(matches!(&sources[..], [PlanSource::Text(text)] if text == plan), "{indentation:?}: {sources:?}");
    }
}

#[test]
fn any_line_can_stand_between_two_plans() {
    for line in
        ["SET", "Second run", "EXPLAIN ANALYZE select count(*) from t;", "After (TIMING OFF):", "Time: 181.123 ms", "x"]
    {
        for between in [format!("{line}\n"), format!("{line}\n\n"), format!("\n{line}\n")] {
            let text = format!("{TEXT}{between}{TEXT}");
            assert_eq!(plans(&text), [Ok(only_plan(TEXT)), Ok(only_plan(TEXT))], "{text}");
        }
    }
}

#[test]
fn each_plan_has_its_line() {
    let mut lines = Vec::new();
    let text = format!("first\n{TEXT}\nsecond\n{JSON}\n> quoted\n{}", each_line(TEXT, |line| format!("> {line}")));
    each_plan(&text, false, &mut |plan| lines.push(plan.unwrap().line));
    let of_plan = |plan: &str| plan.lines().count() as u64;
    let second = 1 + of_plan(TEXT) + 2;
    assert_eq!(lines, [1, second, second + of_plan(JSON) + 2]);
}
