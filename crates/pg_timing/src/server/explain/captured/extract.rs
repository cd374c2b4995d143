//! The plans in a file: what psql, a log or a ticket has put around them is taken off.

use super::csv_log;
use super::node_line::{NodeLine, node_line, number};
use super::prefix::logged;
use super::text::{self, Problem};
use crate::server::explain::plan::Explained;
use serde_json::Value;

/// Plans as they stand in a file, in its order, and those that look like one and cannot be read.
pub type Plans = Vec<Result<Explained, Trouble>>;

/// Why something is no plan that can be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    Text(Problem),
    /// what the reader of JSON says
    Json(String),
    /// its JSON has more levels than that reads
    TooDeep,
    Yaml,
    Xml,
}

/// A program's output within a program's output: a log in JSON with a plan as its message.
const NESTED: usize = 2;

pub fn plans(text: &str) -> Plans {
    plans_in(text, NESTED)
}

fn plans_in(text: &str, nested: usize) -> Plans {
    let mut clean = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in csv_log::unfolded(text.trim_start_matches('\u{feff}')).lines() {
        starts.push(clean.len());
        clean.push_str(bare(line));
        clean.push('\n');
    }
    let lines: Vec<&str> = clean.lines().collect();
    let mut found = Plans::new();
    let mut logged: Option<f64> = None;
    let mut query: Option<&str> = None;
    // One complaint a broken plan, not one for each of its lines.
    let mut broken = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let trimmed = line.trim();
        let mut next = at + 1;
        if let Some(ms) = duration(line) {
            (logged, query, broken) = (Some(ms), None, false);
        } else if let Some(text) = trimmed.strip_prefix("Query Text: ") {
            query = Some(text);
        } else if trimmed.starts_with(['{', '[']) {
            let mut values = serde_json::Deserializer::from_str(&clean[starts[at]..]).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => {
                    let before = found.len();
                    of_value(value, nested, &mut found);
                    from_log(&mut found[before..], &mut logged, None);
                    let end = starts[at] + values.byte_offset();
                    next = starts.partition_point(|&start| start < end).max(next);
                    broken &= found.len() == before;
                }
                Some(Err(error)) => {
                    let too_deep = error.to_string().contains("recursion limit");
                    if !broken && looks_like_json(&lines[at..]) {
                        found.push(Err(if too_deep { Trouble::TooDeep } else { Trouble::Json(reason(&error)) }));
                        broken = true;
                    }
                    // It is not tried again from each of its brackets.
                    if too_deep {
                        next = next.max(at + error.line());
                    }
                }
                None => {}
            }
        } else if trimmed.starts_with("- Plan:") {
            found.push(Err(Trouble::Yaml));
        } else if trimmed.starts_with("<explain xmlns=") {
            found.push(Err(Trouble::Xml));
        } else if let Some(first) = node_line(line) {
            while next < lines.len() && !ends(lines[next]) && !looks_like_json(&lines[next..]) {
                next += 1;
            }
            let plan = match first {
                NodeLine { arrow: Some(_), .. } => Err(Problem::NoBeginning),
                _ => text::plan(&lines[at..next]),
            };
            found.push(plan.map_err(Trouble::Text));
            let last = found.len() - 1;
            from_log(&mut found[last..], &mut logged, query.take());
        } else if trimmed.starts_with("Total runtime: ") {
            found.push(Err(Trouble::Text(Problem::TooOld)));
        }
        at = next;
    }
    found
}

/// Whether a text plan does not go on here.
fn ends(line: &str) -> bool {
    duration(line).is_some()
        || line.trim_start().starts_with("- Plan:")
        || line.trim() == "QUERY PLAN"
        || node_line(line).is_some_and(|node| node.arrow.is_none())
}

/// auto_explain prints the time that a statement took above its plan and not below.
fn from_log(found: &mut [Result<Explained, Trouble>], logged: &mut Option<f64>, query: Option<&str>) {
    for plan in found.iter_mut().flatten() {
        if plan.execution_ms.is_none() {
            plan.execution_ms = logged.take();
        }
        if plan.query.is_none() {
            plan.query = query.map(str::to_string);
        }
    }
}

/// The ms of `... LOG:  duration: 123.456 ms  plan:`, whatever stands before.
fn duration(line: &str) -> Option<f64> {
    let (_, rest) = line.trim_end().strip_suffix("plan:")?.rsplit_once("duration: ")?;
    number(rest.trim_end().strip_suffix(" ms")?)
}

/// A line without what a log's keeper puts before it, the marks of a quotation, psql's borders, and its sign that the line goes on.
fn bare(line: &str) -> &str {
    let mut line = logged(line.trim_end());
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    for bar in ['|', '│'] {
        if let Some(rest) = line.trim_start().strip_prefix(bar) {
            line = rest.strip_suffix(bar).unwrap_or(rest).trim_end();
        }
    }
    // psql's expanded display names the column in each row.
    if let Some(rest) = line.trim_start().strip_prefix("QUERY PLAN ").map(str::trim_end).filter(|rest| !rest.is_empty())
    {
        line = rest.strip_prefix('|').or(rest.strip_prefix('│')).unwrap_or(rest);
    }
    for sign in ['+', '↵'] {
        line = line.strip_suffix(sign).unwrap_or(line).trim_end();
    }
    // pgAdmin quotes each line; one of JSON has a colon behind its first quote.
    match line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) if !quoted.contains("\": ") => quoted,
        _ => line,
    }
}

/// The plans of a JSON value: EXPLAIN's list, auto_explain's single one, a row of a table with one in it, or a
/// line of a log with one as its message.
fn of_value(value: Value, nested: usize, found: &mut Plans) {
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| of_value(value, nested, found)),
        Value::Object(ref object) if object.contains_key("Plan") => {
            found.push(serde_json::from_value(value).map_err(|error| Trouble::Json(reason(&error))));
        }
        Value::Object(mut object) if nested > 0 => {
            for key in ["QUERY PLAN", "message"] {
                match object.remove(key) {
                    Some(Value::String(text)) => found.extend(plans_in(&text, nested - 1)),
                    Some(value) => of_value(value, nested - 1, found),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// Not every bracket is a plan's: a log's lines may begin with one.
fn looks_like_json(lines: &[&str]) -> bool {
    const NEAR: usize = 10;
    let opens = lines.first().and_then(|line| line.trim().strip_prefix(['{', '[']));
    opens.is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with(['{', '[', '"']))
        && lines.iter().take(NEAR).any(|line| line.contains("\"Plan\""))
}

/// serde's words, without a place that is not that of the file.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn one(text: &str) -> Explained {
        let mut all = plans(text);
        assert_eq!(all.len(), 1, "{text}\n{all:?}");
        all.remove(0).unwrap_or_else(|trouble| panic!("{trouble:?}: {text}"))
    }

    fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
        text.lines().map(|line| change(line) + "\n").collect()
    }

    #[test]
    fn a_plan_in_every_frame() {
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
                assert_eq!(one(&text), one(TEXT), "{text}");
            }
        }
        let plan = one(TEXT);
        assert_eq!((plan.execution_ms, plan.planning_ms, plan.plan.plans.len()), (Some(20.197), Some(0.316), 1));
    }

    #[test]
    fn json_in_every_frame() {
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
            assert_eq!(one(&text), one(JSON), "{text}");
        }
    }

    #[test]
    fn a_log() {
        let tree: String = TEXT.lines().take(3).map(|line| format!("\t{}\n", &line[1..])).collect();
        let log = format!(
            "2026-11-21 22:20:13.745 UTC [4080] postgres@postgres LOG:  duration: 26.105 ms  plan:\n\tQuery Text: SELECT 1\n{tree}2026-11-21 22:20:14 UTC [4080] LOG:  checkpoint starting: time\n"
        );
        let plan = one(&log);
        assert_eq!((plan.execution_ms, plan.query.as_deref()), (Some(26.105), Some("SELECT 1")));
        let kept: String = log
            .lines()
            .enumerate()
            .map(|(n, line)| format!("Nov 21 22:20:13 db postgres[7]: [4-{}] {}\n", n + 1, line.replace('\t', "#011")))
            .collect();
        assert_eq!(one(&kept), plan, "{kept}");
        let json = JSON.replace("    \"Execution Time\": 20.197\n", "    \"Query Text\": \"SELECT 2\"\n");
        let object: String =
            json.lines().filter(|line| !["[", "]"].contains(line)).map(|line| format!("\t{line}\n")).collect();
        let both = format!("{log}x LOG:  duration: 3.5 ms  plan:\n{object}");
        let all = plans(&both);
        assert_eq!(all.len(), 2, "{all:?}");
        let second = all[1].as_ref().unwrap();
        assert_eq!((second.execution_ms, second.query.as_deref()), (Some(3.5), Some("SELECT 2")));
        let message = format!(
            "duration: 1.5 ms  plan:\nQuery Text: x\n{}",
            TEXT.lines().take(3).map(|line| line[1..].to_string() + "\n").collect::<String>()
        );
        let line = serde_json::json!({"timestamp": "now", "message": message}).to_string();
        assert_eq!(one(&format!("{line}\n")).execution_ms, Some(1.5));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let trouble = |text: &str| {
            let mut all = plans(text);
            assert_eq!(all.len(), 1, "{text}: {all:?}");
            all.remove(0).unwrap_err()
        };
        assert!(matches!(trouble(&JSON[..JSON.len() / 2]), Trouble::Json(_)));
        assert_eq!(trouble("- Plan: \n    Node Type: \"Result\"\n"), Trouble::Yaml);
        assert_eq!(trouble("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n"), Trouble::Xml);
        let headless: String = TEXT.lines().skip(1).map(|line| format!("{line}\n")).collect();
        assert_eq!(trouble(&headless), Trouble::Text(Problem::NoBeginning));
        assert_eq!(trouble(&TEXT.replace("Execution Time", "Total runtime")), Trouble::Text(Problem::TooOld));
        assert_eq!(trouble("Result  (cost=0.00..0.01 rows=1 width=4)\n"), Trouble::Text(Problem::NotRun));
        let deep: String = std::iter::once(TEXT.lines().next().unwrap().to_string())
            .chain((1..2000).map(|n| format!("{}->  Sort (actual rows=1 loops=1)", " ".repeat(n * 6))))
            .map(|line| line + "\n")
            .collect();
        assert_eq!(trouble(&deep), Trouble::Text(Problem::TooDeep));
        assert_eq!(plans("{\n[\n{ \"a\": 1\nHello\n"), vec![]);
    }
}
