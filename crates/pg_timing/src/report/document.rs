//! Reads the JSON documents that pg_timing wrote. They come from files, so they can be damaged or from another program.

use super::{ExplainReport, LogReport, Report};
use crate::error::{Error, require};
use crate::json::possible;
use serde_json::Value;

/// The only version of the JSON formats so far.
const SCHEMA_VERSION: u64 = 1;

/// A report that was read back.
#[derive(Clone, Debug)]
pub enum Document {
    /// of `check` or `read`
    Host(Box<Report>),
    /// of `explain`, for one statement or plan
    Explain(Box<ExplainReport>),
    /// of `explain --plan LOG --all`
    Log(Box<LogReport>),
}

const HINT: &str = "give the JSON output of pg_timing, for example: pg_timing --format json > FILE";

/// Returns all reports in a file. The file can contain several JSON documents one after the other, and lists of them. Errors contain
/// the name of the file.
pub fn read_all(name: &str, bytes: &[u8]) -> Result<Vec<Document>, Error> {
    read(bytes).map_err(|Error { what, hint, .. }| Error::new(format!("{name} {what}"), hint))
}

fn read(bytes: &[u8]) -> Result<Vec<Document>, Error> {
    // PowerShell's > writes UTF-16.
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    require(!is_utf16, "is UTF-16 text, and not UTF-8", "convert it, for example with: iconv -f UTF-16 -t UTF-8")?;
    let mut documents = Vec::new();
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        add(&mut documents, value.map_err(|error| not_json(&error))?)?;
    }
    require(!documents.is_empty(), "contains no report", HINT)?;
    Ok(documents)
}

fn not_json(error: &serde_json::Error) -> Error {
    let what = if error.is_eof() { "is JSON text that ends too early" } else { "is not JSON, or it is damaged" };
    Error::new(format!("{what}: line {}, column {}", error.line(), error.column()), HINT)
}

/// Adds the reports in a JSON value.
fn add(documents: &mut Vec<Document>, value: Value) -> Result<(), Error> {
    let not_a_report = || Error::new("is JSON, but not a report of check, read or explain", HINT);
    let fields = match value {
        // `explain --slowest N` writes a list.
        Value::Array(values) => return values.into_iter().try_for_each(|value| add(documents, value)),
        Value::Object(fields) if fields.get("version").is_some_and(Value::is_string) => fields,
        _ => return Err(not_a_report()),
    };
    let Some(Value::Number(version)) = fields.get("schema_version") else { return Err(not_a_report()) };
    let what = format!("has the JSON format {version}; this pg_timing reads the format {SCHEMA_VERSION}");
    require(version.as_u64() == Some(SCHEMA_VERSION), what, "use the version of pg_timing that wrote it")?;
    let has = |names: [&str; 2]| names.iter().all(|name| fields.contains_key(*name));
    if has(["clocks", "verdict"]) {
        documents.push(Document::Host(possible(fields.into()).map_err(damaged)?));
    } else if has(["nodes", "corrected_ms"]) {
        documents.push(Document::Explain(possible(fields.into()).map_err(damaged)?));
    } else {
        require(has(["statements", "total"]), not_a_report().what, HINT)?;
        documents.push(Document::Log(possible(fields.into()).map_err(damaged)?));
    }
    Ok(())
}

fn damaged(why: String) -> Error {
    Error::new(format!("is a damaged report of pg_timing: {why}"), HINT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Origin;
    use proptest::prelude::*;
    use serde_json::json;

    fn host() -> Value {
        serde_json::to_value(Report::empty(Origin::Measured, "x")).unwrap()
    }

    fn explain() -> Value {
        serde_json::to_value(ExplainReport { schema_version: 1, ..ExplainReport::default() }).unwrap()
    }

    fn error(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().what
    }

    fn kinds(text: &str) -> String {
        let documents = read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        let kind = |document: &Document| match document {
            Document::Host(_) => 'h',
            Document::Explain(_) => 'e',
            Document::Log(_) => 'l',
        };
        documents.iter().map(kind).collect()
    }

    fn log() -> Value {
        serde_json::to_value(LogReport { schema_version: 1, ..LogReport::default() }).unwrap()
    }

    #[test]
    fn several_documents_and_lists_are_read_in_order() {
        let [host, explain, log] = [host(), explain(), log()];
        assert_eq!(kinds(&format!("{host}{explain}\n{host:#}\n{log}")), "hehl");
        assert_eq!(kinds(&json!([explain, explain]).to_string()), "ee");
    }

    #[test]
    fn another_version_is_refused() {
        for version in [json!(2), json!(0), json!(1.5), json!(-1)] {
            let mut report = host();
            report["schema_version"] = version.clone();
            assert!(error(&report.to_string()).contains(&format!("the JSON format {version};")), "{version}");
        }
    }

    #[test]
    fn other_json_is_refused() {
        let text = |change: fn(&mut Value)| {
            let mut report = host();
            change(&mut report);
            report.to_string()
        };
        for other in [
            "7".to_string(),
            "\"pg_timing\"".into(),
            "{}".into(),
            r#"{"schema_version": 1, "version": "1.0.0"}"#.into(),
            r#"[{"Plan": {}}]"#.into(),
            // Reports of advise and of test.
            r#"{"schema_version": 1, "version": "1.0.0", "settings": [], "verdict": {}}"#.into(),
            r#"{"schema_version": 1, "version": "1.0.0", "duration_s": 3, "clocks": []}"#.into(),
            text(|report| report["schema_version"] = "1".into()),
            text(|report| report["version"] = Value::Null),
        ] {
            assert_eq!(error(&other), "is JSON, but not a report of check, read or explain", "{other}");
        }
    }

    #[test]
    fn damage_is_an_error_with_its_reason() {
        assert_eq!(error(""), "contains no report");
        assert_eq!(error(" \n[]"), "contains no report");
        assert!(error("{\"a\": 1").starts_with("is JSON text that ends too early: line 1"));
        assert!(error("pg_timing: error").starts_with("is not JSON, or it is damaged: line 1, column"));
        assert!(error(&"[".repeat(100_000)).starts_with("is not JSON"));
        assert!(read(b"\xff\xfe{\0").unwrap_err().what.contains("UTF-16"));
        let mut report = host();
        report["clocks"] = json!([{"name": "system", "read_ns": -1.0}]);
        assert!(error(&report.to_string()).contains("the figure -1.0 of read_ns is impossible"));
        report["clocks"] = json!([{"name": 7}]);
        assert!(error(&report.to_string()).starts_with("is a damaged report of pg_timing: invalid type"));
        let mut report = explain();
        for (name, value) in
            [("a_share", json!(1e7)), ("a_share", json!({"low": 0.0, "high": 1e7})), ("x", json!([1e21]))]
        {
            let mut report = explain();
            report[name] = value;
            let error = error(&report.to_string());
            assert!(error.contains("the figure 1") && error.contains(&format!("of {name} is impossible")), "{error}");
        }
        report["nodes"] = json!([{}]);
        assert!(error(&report.to_string()).contains("missing field"));
    }

    proptest! {
        #[test]
        fn a_shortened_or_changed_document_is_an_error_or_a_report(
            at in any::<prop::sample::Index>(), byte in any::<u8>(), is_cut in any::<bool>()
        ) {
            let mut bytes = host().to_string().into_bytes();
            let at = at.index(bytes.len());
            if is_cut { bytes.truncate(at) } else { bytes[at] = byte }
            let result = read(&bytes);
            prop_assert!(!is_cut || result.is_err());
        }
    }
}
