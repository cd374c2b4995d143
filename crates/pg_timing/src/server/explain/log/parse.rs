//! Reads the plans of an entry.

use super::entry::{Content, Damage};
use super::evidence::{Command, Evidence};
use super::json_line;
use super::log_line_prefix::ProcessPlace;
use super::mixed::{Mixed, only_root};
use super::nesting::{Nesting, Session};
use super::root::root_at;
use super::server_line::{context, has_part_of_plan, has_rest_of_plan, prefix};
use crate::server::explain::captured::announcement::announced_ms;
use crate::server::explain::captured::csv_record::{self, Message};
use crate::server::explain::captured::structured::Structured;
use crate::server::explain::captured::transport::continued;
use crate::server::explain::captured::{Found, Source, Unreadable, each_plan, text};
use crate::server::explain::plan::Explained;
use std::borrow::Cow;

/// A plan of a log, or why it cannot be read.
#[derive(Debug, PartialEq)]
pub struct Parsed {
    pub found: Result<Explained, Unusable>,
    /// the query's identifier, from the entry or from the plan
    pub query_id: Option<i64>,
    pub nesting: Nesting,
    /// the plan's own text, if it is needed
    pub source: Option<Source<String>>,
}

#[derive(Debug, PartialEq)]
pub enum Unusable {
    Unreadable(Unreadable),
    Damaged(Damage),
}

/// Passes the plans of an entry to `found`. Only a pasted text can have several. A plan can have several MB, so a text is
/// dropped as soon as it was read into another form.
pub fn each(content: Content, needs_source: bool, found: &mut dyn FnMut(Parsed)) {
    let missing = || parsed(Err(Unreadable::Missing), None, Nesting::default());
    match content {
        Content::Announced { ms, text, session, prefix, context } => {
            let nesting = Nesting::new(session, &context, Evidence::of_prefix(&prefix));
            let root = match only_root(&text) {
                Ok(root) => root,
                Err(Mixed) => return found(Parsed { nesting, ..damaged(Damage::Mixed) }),
            };
            let (plan, source) = announced(&text, root, needs_source);
            found(Parsed { source, ..parsed(plan.map(|plan| with_time(plan, ms)), None, nesting) });
        }
        Content::Csv(record) => {
            let read = csv_record::message(&record);
            drop(record);
            let plan =
                read.and_then(|Message { text, query_id, session, command, transaction, time, context, .. }| {
                    let session = session.map_or_else(Session::default, |session| Session::of(NO_HOST, &session));
                    let evidence = Evidence::of_fields(command.as_deref(), transaction.as_deref(), time.as_deref());
                    of_message(&text, query_id, session, &context, evidence, needs_source)
                });
            found(plan.unwrap_or_else(missing));
        }
        Content::Json(line) => {
            let read = json_line::message(&line);
            drop(line);
            match read {
                Ok(json_line::Message { text, query_id, session, context, evidence }) => {
                    let plan = of_message(&text, query_id, session, &context, evidence, needs_source);
                    found(plan.unwrap_or_else(missing));
                }
                Err(error) => found(parsed(Err(Unreadable::Json(error.to_string())), None, Nesting::default())),
            }
        }
        Content::Pasted(text) => pasted(&text, needs_source, &Nesting::default(), found),
        Content::WithoutTabs { text, session, prefix, context } => {
            pasted(&text, needs_source, &Nesting::new(session, &context, Evidence::of_prefix(&prefix)), found);
        }
        Content::Beginning(text) => beginning(&text, needs_source, found),
        Content::Rest(text) => rest(&text, needs_source, found),
        Content::Damaged(damage) => found(damaged(damage)),
        Content::Failed(_) => {}
    }
}

/// Reads the message of a CSV or JSON log. A collector may have joined the lines of a text log. Then the message contains what
/// the other keys of the log do not have.
fn of_message(
    text: &str,
    query_id: Option<i64>,
    session: Session,
    context: &str,
    evidence: Evidence,
    needs_source: bool,
) -> Option<Parsed> {
    let message = message(text)?;
    let session = match message.process {
        Some(process) if !session.is_known() => Session::of(NO_HOST, process),
        _ => session,
    };
    let evidence = if evidence == Evidence::default() { Evidence::of_prefix(message.prefix) } else { evidence };
    let nesting = Nesting::new(session, if context.is_empty() { &message.context } else { context }, evidence);
    let (plan, source) = announced(&message.text, None, needs_source);
    Some(Parsed { source, ..parsed(plan.map(|plan| with_time(plan, message.ms)), query_id, nesting) })
}

fn pasted(text: &str, needs_source: bool, nesting: &Nesting, found: &mut dyn FnMut(Parsed)) {
    each_plan(text, &mut |plan, source| {
        let source = source.filter(|_| needs_source).map(Source::to_owned);
        found(Parsed { source, ..parsed(plan, None, nesting.clone()) });
    });
}

fn damaged(damage: Damage) -> Parsed {
    Parsed { found: Err(Unusable::Damaged(damage)), query_id: None, nesting: Nesting::default(), source: None }
}

/// Passes the plans at the beginning of a file on. If there is none, the text can be the rest of a plan.
fn beginning(text: &str, needs_source: bool, found: &mut dyn FnMut(Parsed)) {
    let mut has_plan = false;
    pasted(text, needs_source, &Nesting::default(), &mut |plan| {
        has_plan = true;
        found(plan);
    });
    if !has_plan && has_part_of_plan(text) {
        found(damaged(Damage::NoBeginning));
    }
}

/// Passes the plans on that are complete. If there is none, the text can be the rest of a plan.
fn rest(text: &str, needs_source: bool, found: &mut dyn FnMut(Parsed)) {
    let mut plans = Vec::new();
    pasted(text, needs_source, &Nesting::default(), &mut |plan| plans.push(plan));
    let has_plan = plans.iter().any(|plan| plan.found.is_ok());
    match !has_plan && has_rest_of_plan(text) {
        true => found(damaged(Damage::NoBeginning)),
        false => plans.into_iter().for_each(found),
    }
}

/// A CSV log does not name its host, and nor does a message.
const NO_HOST: Option<&str> = None;

fn parsed(found: Found, query_id: Option<i64>, nesting: Nesting) -> Parsed {
    // The log's identifier is that of the client's command. A nested plan, and a plan that is logged during a later command,
    // such as BIND, are of another statement.
    let is_own = !matches!(nesting.evidence.command, Some(Command::WithoutPlan | Command::Fetch));
    let of_entry = query_id.filter(|_| !nesting.is_nested() && is_own);
    let query_id = found.as_ref().ok().and_then(|plan| plan.query_id).or(of_entry);
    Parsed { found: found.map_err(Unusable::Unreadable), query_id, nesting, source: None }
}

/// Returns the plan with the log's time, unless the plan has an Execution Time.
fn with_time(plan: Explained, ms: f64) -> Explained {
    Explained { execution_ms: plan.execution_ms.or(Some(ms)), ..plan }
}

/// A message that announces a plan.
struct Announced<'a> {
    ms: f64,
    /// the process in the prefix, and the functions that were being executed, if the message has lines of a text log
    process: Option<&'a str>,
    prefix: &'a str,
    context: String,
    text: Cow<'a, str>,
}

/// Splits a message into the time in its first line, and the plan.
fn message(message: &str) -> Option<Announced<'_>> {
    let (first, text) = message.split_once('\n')?;
    let ms = announced_ms(first)?;
    // A collector that joins the lines of the server's text log keeps their tabs. The context can follow.
    let (plan, after) = if continued(text).is_some() { before_context(text) } else { (text, "") };
    let has_tabs = plan.lines().all(|line| continued(line).is_some());
    let without_tabs = || plan.lines().filter_map(continued).collect::<Vec<_>>().join("\n");
    let text = if has_tabs { without_tabs().into() } else { plan.into() };
    let context = after.lines().map(|line| continued(line).or_else(|| context(line)).unwrap_or_default());
    let prefix = prefix(first);
    Some(Announced {
        ms,
        process: ProcessPlace::default().process(first),
        prefix,
        context: context.collect::<Vec<_>>().join("\n"),
        text,
    })
}

/// Splits a text before the line with the entry's context.
fn before_context(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if continued(line).is_none() && context(line).is_some() {
            break;
        }
        at += line.len();
    }
    text.split_at(at)
}

/// A plan, and its own text if that is needed.
type WithSource = (Found, Option<Source<String>>);

/// Reads the plan below a line that announces it. `root`: where the topmost node of a text plan begins, if that is known.
fn announced(text: &str, root: Option<usize>, needs_source: bool) -> WithSource {
    match one_plan(text, root, needs_source) {
        (Err(damaged), _) => repaired(text, needs_source).unwrap_or((Err(damaged), None)),
        read => read,
    }
}

/// Reads a plan as auto_explain writes it.
fn one_plan(text: &str, root: Option<usize>, needs_source: bool) -> WithSource {
    let owned = |source: Source<&str>| needs_source.then(|| source.to_owned());
    let start = text.trim_start();
    if start.starts_with('{') {
        let plan = serde_json::from_str(start).map_err(|error| Unreadable::Json(error.to_string()));
        return (plan, owned(Source::Json(start)));
    }
    if let Some(format) = structured(start) {
        return match format.as_json(start) {
            Ok(json) => {
                let plan = serde_json::from_str(&json).map_err(|error| format.unreadable(&error));
                (plan, needs_source.then_some(Source::Json(json)))
            }
            Err(unreadable) => (Err(unreadable), None),
        };
    }
    let Some(root) = root.or_else(|| root_at(text)) else { return (Err(Unreadable::Missing), None) };
    let (query, plan) = text.split_at(root);
    let query = query.trim_end().strip_prefix("Query Text: ").map(without_parameters).map(str::to_string);
    let explained = text::plan(plan.lines()).map_err(Unreadable::Text);
    let with_query = |explained: Explained| Explained { query: explained.query.or(query), ..explained };
    (explained.map(with_query), owned(Source::Text(plan)))
}

/// Returns the format of a plan that auto_explain wrote in YAML or XML.
fn structured(start: &str) -> Option<Structured> {
    // In YAML, the query is in quotation marks. No statement begins with one.
    if start.starts_with("Query Text: \"") || start.starts_with("Plan:") {
        return Some(Structured::Yaml);
    }
    start.starts_with("<explain").then_some(Structured::Xml)
}

/// Removes the line with the values of the query's parameters.
fn without_parameters(query: &str) -> &str {
    query.split_once("\nQuery Parameters: ").map_or(query, |(query, _)| query)
}

/// Reads a plan that something has changed after the server wrote it.
fn repaired(text: &str, needs_source: bool) -> Option<WithSource> {
    let mut last = None;
    each_plan(text, &mut |plan, source| last = Some((plan, source.filter(|_| needs_source).map(Source::to_owned))));
    last.filter(|(plan, _)| plan.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Query Text: select a\n  from t\nQuery Parameters: $1 = '7'\nSort  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..2.500 rows=7 loops=1)\n  Sort Key: a\n";

    fn only(content: Content) -> Parsed {
        let mut all = Vec::new();
        each(content.clone(), false, &mut |plan| all.push(plan));
        assert_eq!(all.len(), 1, "{all:?}");
        let only = all.remove(0);
        each(content, true, &mut |plan| all.push(plan));
        let (found, source) = (&all[0].found, &all[0].source);
        assert!(only.found.is_err() || *found == only.found && source.is_some(), "{:?} {:?}", only, all[0]);
        only
    }

    fn entry(ms: f64, text: &str) -> Content {
        Content::Announced {
            ms,
            text: text.into(),
            session: Session::default(),
            prefix: Box::default(),
            context: String::new(),
        }
    }

    fn of_text(text: &str) -> Explained {
        only(entry(3.5, text)).found.unwrap()
    }

    #[test]
    fn the_query_is_above_the_plan() {
        let plan = of_text(TEXT);
        assert_eq!((plan.query.as_deref(), plan.execution_ms), (Some("select a\n  from t"), Some(3.5)));
        assert_eq!((plan.plan.name.as_str(), plan.plan.total_ms), ("Sort", Some(2.5)));
    }

    #[test]
    fn a_plan_has_its_own_text_if_the_query_looks_like_a_plan() {
        let plan = TEXT.split_inclusive('\n').skip(3).collect::<String>();
        let text = format!("Query Text: select \"\nNested Loop \"(cost=0.56 x\n{plan}");
        each(entry(3.5, &text), true, &mut |parsed| {
            assert_eq!(
                (parsed.found.unwrap().plan.name, parsed.source),
                ("Sort".into(), Some(Source::Text(plan.clone())))
            );
        });
    }

    #[test]
    fn a_plan_in_the_query_is_a_part_of_the_query() {
        let pasted = "Seq Scan on u  (cost=1.00..2.00 rows=1 width=1) (actual time=1.000..7.500 rows=7 loops=1)";
        let plan = TEXT.split_inclusive('\n').skip(3).collect::<String>();
        for query in
            [format!("select 1 /* was:\n{pasted}\n  Filter: (a > 1)\n*/ + 1"), format!("select '\n{pasted}\n'\nfrom t")]
        {
            let read = of_text(&format!("Query Text: {query}\n{plan}"));
            assert_eq!((read.query.as_deref(), read.plan.name.as_str()), (Some(&*query), "Sort"));
        }
    }

    #[test]
    fn all_formats_have_the_same_figures() {
        let json = "{\n  \"Query Text\": \"select a\\n  from t\",\n  \"Plan\": {\"Node Type\": \"Sort\", \"Actual Total Time\": 2.5, \"Actual Rows\": 7, \"Actual Loops\": 1}\n}";
        let yaml = "Query Text: \"select a\\n  from t\"\nPlan: \n  Node Type: \"Sort\"\n  Actual Total Time: 2.500\n  Actual Rows: 7\n  Actual Loops: 1\n";
        let xml = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query-Text>select a\n  from t</Query-Text>\n  <Plan><Node-Type>Sort</Node-Type><Actual-Total-Time>2.500</Actual-Total-Time><Actual-Rows>7</Actual-Rows><Actual-Loops>1</Actual-Loops></Plan>\n</explain>";
        for text in [json, yaml, xml] {
            assert_eq!(of_text(text), of_text(TEXT), "{text}");
        }
    }

    #[test]
    fn messages_of_csv_and_json_logs_have_the_query_id() {
        let fields = "t,u,d,1,h,s,1,SELECT,t,v,0,LOG,00000";
        let record = format!("{fields},\"duration: 3.5 ms  plan:\n{}\",,,,,,,,,,,,-7\n", TEXT.replace('"', "\"\""));
        let in_csv = only(Content::Csv(record));
        let line = |message: &str| serde_json::json!({"message": message, "query_id": -7}).to_string();
        let in_json = only(Content::Json(line(&format!("duration: 3.5 ms  plan:\n{TEXT}"))));
        let tabbed: String = TEXT.lines().map(|line| format!("\n\t{line}")).collect();
        let joined = only(Content::Json(line(&format!("2026-11-24 LOG:  duration: 3.5 ms  plan:{tabbed}"))));
        for parsed in [in_csv, in_json, joined] {
            assert_eq!((parsed.query_id, parsed.found.unwrap()), (Some(-7), of_text(TEXT)));
        }
    }

    /// With the extended protocol, the plan is logged when the next statement is bound.
    #[test]
    fn a_plan_does_not_have_the_query_id_of_a_later_command() {
        let query_id = |command: &str| {
            let message = format!("duration: 3.5 ms  plan:\n{TEXT}");
            let keys = serde_json::json!({"message": message, "query_id": -7, "ps": command});
            only(Content::Json(keys.to_string())).query_id
        };
        assert_eq!(["SELECT", "BIND", "COMMIT"].map(query_id), [Some(-7), None, None]);
    }

    #[test]
    fn a_nested_plan_does_not_have_the_query_id_of_its_caller() {
        let fields = "t,u,d,1,h,s,1,SELECT,t,v,0,LOG,00000";
        let record = format!("{fields},\"duration: 3.5 ms  plan:\n{TEXT}\",,,,,SQL function f,,,,,,,-7\n");
        let in_csv = only(Content::Csv(record));
        let message = format!("duration: 3.5 ms  plan:\n{TEXT}");
        let keys =
            serde_json::json!({"message": message, "query_id": -7, "session_id": "s", "context": "SQL function f"});
        let in_json = only(Content::Json(keys.to_string()));
        for parsed in [in_csv, in_json] {
            let Nesting { session, callers, .. } =
                Nesting::new(Session::of(NO_HOST, "s"), "SQL function f", Evidence::default());
            assert_eq!((parsed.query_id, parsed.nesting.session, parsed.nesting.callers), (None, session, callers));
        }
        let with_id = format!("{TEXT}Query Identifier: 9\n");
        let Content::Announced { ms, text, session, prefix, .. } = entry(3.5, &with_id) else { unreachable!() };
        let nested = Content::Announced { ms, text, session, prefix, context: "SQL function f".into() };
        assert_eq!(only(nested).query_id, Some(9));
    }

    #[test]
    fn what_is_no_plan_is_named() {
        let unreadable = |text: &str| match only(entry(1.0, text)).found {
            Err(Unusable::Unreadable(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(unreadable("Query Text: select 1\n"), Unreadable::Missing);
        assert!(matches!(unreadable("{\"Plan\": {"), Unreadable::Json(_)));
        assert!(matches!(unreadable("<explain><Plan>"), Unreadable::Xml(_)));
        let damaged = only(Content::Damaged(Damage::Truncated)).found;
        assert_eq!(damaged, Err(Unusable::Damaged(Damage::Truncated)));
    }
}
