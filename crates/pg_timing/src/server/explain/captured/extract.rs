//! Extracts the plans from a text. It removes what psql, a log or a ticket adds around and before the lines.

use super::csv_log;
use super::node_line::{NodeLine, node_line, number};
use super::prefix::without_log_prefix;
use super::text::{self, TextError};
use crate::server::explain::plan::Explained;
use serde_json::Value;

/// The plans of a text in their order, including those that look like a plan but cannot be read.
pub type Plans = Vec<Result<Explained, Unreadable>>;

/// Why a plan cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Unreadable {
    Text(TextError),
    /// the JSON parser's message
    Json(String),
    /// the JSON has more levels than the parser accepts
    TooDeep,
    Yaml,
    Xml,
}

/// Levels of JSON around a plan: a JSON log whose message contains a plan.
const MAX_NESTING: usize = 2;

/// Returns all plans of a text.
pub fn plans(text: &str) -> Plans {
    plans_in(text, MAX_NESTING)
}

fn plans_in(text: &str, nesting: usize) -> Plans {
    let mut clean = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in csv_log::expand_records(text.trim_start_matches('\u{feff}')).lines() {
        starts.push(clean.len());
        clean.push_str(without_frame(line));
        clean.push('\n');
    }
    let lines: Vec<&str> = clean.lines().collect();
    let mut found = Plans::new();
    // auto_explain's log line and Query Text precede the plan.
    let mut logged_ms: Option<f64> = None;
    let mut query: Option<&str> = None;
    // Report a damaged plan once, not for each of its lines.
    let mut reported_damage = false;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let trimmed = line.trim();
        let mut next = at + 1;
        if let Some(ms) = logged_duration_ms(line) {
            (logged_ms, query, reported_damage) = (Some(ms), None, false);
        } else if let Some(text) = trimmed.strip_prefix("Query Text: ") {
            query = Some(text);
        } else if trimmed.starts_with(['{', '[']) {
            let mut values = serde_json::Deserializer::from_str(&clean[starts[at]..]).into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => {
                    let before = found.len();
                    plans_in_json(value, nesting, &mut found);
                    add_from_log(&mut found[before..], &mut logged_ms, None);
                    let end = starts[at] + values.byte_offset();
                    next = starts.partition_point(|&start| start < end).max(next);
                    reported_damage &= found.len() == before;
                }
                Some(Err(error)) => {
                    let too_deep = error.to_string().contains("recursion limit");
                    if !reported_damage && looks_like_json(&lines[at..]) {
                        found.push(Err(if too_deep { Unreadable::TooDeep } else { Unreadable::Json(reason(&error)) }));
                        reported_damage = true;
                    }
                    // Do not try again from each bracket inside.
                    if too_deep {
                        next = next.max(at + error.line());
                    }
                }
                None => {}
            }
        } else if trimmed.starts_with("- Plan:") {
            found.push(Err(Unreadable::Yaml));
        } else if trimmed.starts_with("<explain xmlns=") {
            found.push(Err(Unreadable::Xml));
        } else if let Some(first) = node_line(line) {
            while next < lines.len() && !ends_text_plan(lines[next]) && !looks_like_json(&lines[next..]) {
                next += 1;
            }
            let plan = match first {
                NodeLine { arrow: Some(_), .. } => Err(TextError::NoBeginning),
                _ => text::plan(&lines[at..next]),
            };
            found.push(plan.map_err(Unreadable::Text));
            let last = found.len() - 1;
            add_from_log(&mut found[last..], &mut logged_ms, query.take());
        } else if trimmed.starts_with("Total runtime: ") {
            found.push(Err(Unreadable::Text(TextError::TooOld)));
        }
        at = next;
    }
    found
}

/// Whether this line cannot belong to the text plan before it.
fn ends_text_plan(line: &str) -> bool {
    logged_duration_ms(line).is_some()
        || line.trim_start().starts_with("- Plan:")
        || line.trim() == "QUERY PLAN"
        || node_line(line).is_some_and(|node| node.arrow.is_none())
}

/// Adds the time and the query that auto_explain prints above a plan.
fn add_from_log(found: &mut [Result<Explained, Unreadable>], logged_ms: &mut Option<f64>, query: Option<&str>) {
    for plan in found.iter_mut().flatten() {
        if plan.execution_ms.is_none() {
            plan.execution_ms = logged_ms.take();
        }
        if plan.query.is_none() {
            plan.query = query.map(str::to_string);
        }
    }
}

/// Returns the time in a line like `... LOG:  duration: 123.456 ms  plan:`.
fn logged_duration_ms(line: &str) -> Option<f64> {
    let (_, rest) = line.trim_end().strip_suffix("plan:")?.rsplit_once("duration: ")?;
    number(rest.trim_end().strip_suffix(" ms")?)
}

/// Returns a line without log prefixes, quotation marks, psql's borders, and psql's line continuation signs.
fn without_frame(line: &str) -> &str {
    let mut line = without_log_prefix(line.trim_end());
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    for bar in ['|', '│'] {
        if let Some(rest) = line.trim_start().strip_prefix(bar) {
            line = rest.strip_suffix(bar).unwrap_or(rest).trim_end();
        }
    }
    // psql's expanded display repeats the column name.
    if let Some(rest) = line.trim_start().strip_prefix("QUERY PLAN ").map(str::trim_end).filter(|rest| !rest.is_empty())
    {
        line = rest.strip_prefix('|').or(rest.strip_prefix('│')).unwrap_or(rest);
    }
    for sign in ['+', '↵'] {
        line = line.strip_suffix(sign).unwrap_or(line).trim_end();
    }
    // pgAdmin quotes each line. A line of JSON has a colon after the first quoted text.
    match line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) if !quoted.contains("\": ") => quoted,
        _ => line,
    }
}

/// Finds the plans in a JSON value: EXPLAIN's list, auto_explain's single plan, a table row that contains a plan, or a
/// log line whose message contains one.
fn plans_in_json(value: Value, nesting: usize, found: &mut Plans) {
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| plans_in_json(value, nesting, found)),
        Value::Object(ref object) if object.contains_key("Plan") => {
            found.push(serde_json::from_value(value).map_err(|error| Unreadable::Json(reason(&error))));
        }
        Value::Object(mut object) if nesting > 0 => {
            for key in ["QUERY PLAN", "message"] {
                match object.remove(key) {
                    Some(Value::String(text)) => found.extend(plans_in(&text, nesting - 1)),
                    Some(value) => plans_in_json(value, nesting - 1, found),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether a JSON plan begins here. Log lines may begin with a bracket, too.
fn looks_like_json(lines: &[&str]) -> bool {
    const NEAR: usize = 10;
    let opens = lines.first().and_then(|line| line.trim().strip_prefix(['{', '[']));
    opens.is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with(['{', '[', '"']))
        && lines.iter().take(NEAR).any(|line| line.contains("\"Plan\""))
}

/// Returns the parser's message without its position, which does not refer to the original file.
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
        assert_eq!((plan.execution_ms, plan.planning_ms, plan.plan.plans.len()), (Some(20.197), Some(0.316), 1));
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
    fn plans_are_found_in_logs() {
        let tree: String = TEXT.lines().take(3).map(|line| format!("\t{}\n", &line[1..])).collect();
        let log = format!(
            "2026-11-21 22:20:13.745 UTC [4080] postgres@postgres LOG:  duration: 26.105 ms  plan:\n\tQuery Text: SELECT 1\n{tree}2026-11-21 22:20:14 UTC [4080] LOG:  checkpoint starting: time\n"
        );
        let plan = only_plan(&log);
        assert_eq!((plan.execution_ms, plan.query.as_deref()), (Some(26.105), Some("SELECT 1")));
        let kept: String = log
            .lines()
            .enumerate()
            .map(|(n, line)| format!("Nov 21 22:20:13 db postgres[7]: [4-{}] {}\n", n + 1, line.replace('\t', "#011")))
            .collect();
        assert_eq!(only_plan(&kept), plan, "{kept}");
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
        assert_eq!(only_plan(&format!("{line}\n")).execution_ms, Some(1.5));
    }

    #[test]
    fn unreadable_plans_say_why() {
        let unreadable = |text: &str| {
            let mut all = plans(text);
            assert_eq!(all.len(), 1, "{text}: {all:?}");
            all.remove(0).unwrap_err()
        };
        assert!(matches!(unreadable(&JSON[..JSON.len() / 2]), Unreadable::Json(_)));
        assert_eq!(unreadable("- Plan: \n    Node Type: \"Result\"\n"), Unreadable::Yaml);
        assert_eq!(unreadable("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n"), Unreadable::Xml);
        let headless: String = TEXT.lines().skip(1).map(|line| format!("{line}\n")).collect();
        assert_eq!(unreadable(&headless), Unreadable::Text(TextError::NoBeginning));
        assert_eq!(unreadable(&TEXT.replace("Execution Time", "Total runtime")), Unreadable::Text(TextError::TooOld));
        assert_eq!(unreadable("Result  (cost=0.00..0.01 rows=1 width=4)\n"), Unreadable::Text(TextError::NotRun));
        let deep: String = std::iter::once(TEXT.lines().next().unwrap().to_string())
            .chain((1..600).map(|n| format!("{}->  Sort (actual rows=1 loops=1)", " ".repeat(n * 6))))
            .map(|line| line + "\n")
            .collect();
        assert_eq!(unreadable(&deep), Unreadable::Text(TextError::TooDeep));
        assert_eq!(plans("{\n[\n{ \"a\": 1\nHello\n"), vec![]);
    }
}
