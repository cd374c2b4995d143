use super::super::nesting::Session;
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
        assert_eq!((parsed.found.unwrap().plan.name, parsed.source), ("Sort".into(), Some(Source::Text(plan.clone()))));
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
    let keys = serde_json::json!({"message": message, "query_id": -7, "session_id": "s", "context": "SQL function f"});
    let in_json = only(Content::Json(keys.to_string()));
    for parsed in [in_csv, in_json] {
        let Nesting { session, callers, .. } =
            Nesting::new(Session::of(None::<&str>, "s"), "SQL function f", Evidence::default());
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
