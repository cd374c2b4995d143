//! A strict parser of the text format, for tests.
//!
//! ```text
//! page   = *metric
//! metric = "# HELP " name " " *character LF "# TYPE " name " " ("gauge" / "counter" / "histogram") LF 1*series
//! series = name ["{" label *("," label) "}"] " " number LF
//! label  = name "=" DQUOTE *(character / "\\" / "\" DQUOTE / "\n") DQUOTE
//! name   = (lower-case letter / "_") *(lower-case letter / digit / "_")
//! ```
//!
//! A character is any one except control characters, and, in a label, except a quote and a backslash. It accepts less than
//! Prometheus does: no comments, no time stamps, no empty lines, no NaN and no infinities.

use std::collections::HashSet;

#[derive(Debug)]
pub struct Metric {
    pub name: String,
    pub kind: String,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug)]
pub struct Series {
    /// with the ending of a histogram's series
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Series {
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the metrics of a page, or what is wrong with it.
pub fn parse(page: &str) -> Result<Vec<Metric>, String> {
    if !page.is_empty() && !page.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    let mut lines = page.split_terminator('\n').peekable();
    let mut metrics = Vec::new();
    let (mut names, mut all) = (HashSet::new(), HashSet::new());
    while let Some(line) = lines.next() {
        let help = line.strip_prefix("# HELP ").ok_or_else(|| format!("no HELP: {line}"))?;
        let (metric, text) = help.split_once(' ').ok_or_else(|| format!("no text: {line}"))?;
        let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")?.strip_prefix(metric)?.strip_prefix(' '));
        let kind = kind.filter(|kind| ["gauge", "counter", "histogram"].contains(kind));
        let kind = kind.ok_or_else(|| format!("no TYPE after {line}"))?;
        let is_text = !text.chars().any(|c| c.is_control() || c == '\\');
        if !is_name(metric) || !is_text || !names.insert(metric.to_string()) {
            return Err(format!("{line:?}"));
        }
        let mut found = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let series = series(line).ok_or_else(|| format!("{line:?}"))?;
            let end = series.name.strip_prefix(metric).ok_or_else(|| format!("{line} in {metric}"))?;
            let ends: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            let is_new = all.insert(line.rsplit_once(' ').map(|(series, _)| series));
            if !ends.contains(&end) || !is_new || (kind != "gauge" && series.value < 0.0) {
                return Err(format!("{line:?} in a {kind}"));
            }
            found.push(series);
        }
        if found.is_empty() {
            return Err(format!("{metric} has no series"));
        }
        if kind == "histogram" {
            histogram(&found)?;
        }
        metrics.push(Metric { name: metric.into(), kind: kind.into(), series: found });
    }
    Ok(metrics)
}

fn is_name(text: &str) -> bool {
    let is_start = |b: u8| b.is_ascii_lowercase() || b == b'_';
    text.bytes().next().is_some_and(is_start) && text.bytes().all(|b| is_start(b) || b.is_ascii_digit())
}

fn series(line: &str) -> Option<Series> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inner.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((is_name(label).then(|| label.to_string())?, value));
            match after.strip_prefix(',') {
                Some(next) => inner = next,
                None => break rest = after.strip_prefix('}')?,
            }
        }
    }
    let number = rest.strip_prefix(' ')?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b));
    let value: f64 = number.parse().ok()?;
    (is_name(name) && is_number && value.is_finite()).then(|| Series { name: name.into(), labels, value })
}

/// Returns the value up to the closing quote, and the text after that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c if c.is_control() => return None,
            c => value.push(c),
        }
    }
    None
}

/// Each histogram has increasing bounds, counts that do not fall, a last bucket `+Inf`, a sum and a count.
fn histogram(series: &[Series]) -> Result<(), String> {
    let mut rest = series;
    while !rest.is_empty() {
        let buckets = rest.iter().take_while(|series| series.name.ends_with("_bucket")).count();
        let (Some([.., last]), Some([sum, count])) = (rest.get(..buckets), rest.get(buckets..buckets + 2)) else {
            return Err(format!("incomplete: {:?}", rest[0]));
        };
        let bounds: Vec<f64> = rest[..buckets].iter().filter_map(|series| series.label("le")?.parse().ok()).collect();
        let is_sorted = bounds.len() == buckets && bounds.windows(2).all(|pair| pair[0] < pair[1]);
        let is_cumulative = rest[..buckets].windows(2).all(|pair| pair[0].value <= pair[1].value);
        let is_complete = last.label("le") == Some("+Inf") && last.value == count.value;
        let is_ended = sum.name.ends_with("_sum") && count.name.ends_with("_count") && sum.labels == count.labels;
        let same_labels =
            rest[..buckets].iter().all(|series| series.labels[..series.labels.len() - 1] == sum.labels[..]);
        if !(is_sorted && is_cumulative && is_complete && is_ended && same_labels) {
            return Err(format!("not a histogram: {:?}", &rest[..buckets + 2]));
        }
        rest = &rest[buckets + 2..];
    }
    Ok(())
}

/// The parser must refuse what it is there to find.
#[test]
fn wrong_pages_are_refused() {
    let good = "# HELP a_total A.\n# TYPE a_total counter\na_total{b=\"c\\\\\\\"\"} 1\na_total 2e-9\n";
    assert_eq!(parse(good).unwrap()[0].series[0].label("b"), Some("c\\\""));
    for (part, instead) in [
        ("# HELP a_total A.\n", ""),
        ("# TYPE a_total counter\n", ""),
        ("counter", "summary"),
        ("a_total 2e-9\n", "a_total 2e-9"),
        ("2e-9", "NaN"),
        ("2e-9", "inf"),
        ("2e-9", "-1"),
        ("2e-9", ""),
        ("a_total 2e-9", "a_total{b=\"c\\\\\\\"\"} 2"),
        ("a_total 2e-9", "other 2"),
        ("a_total 2e-9", ""),
        ("c\\\\\\\"", "\""),
        ("c\\\\\\\"", "\\x"),
        ("c\\\\\\\"", "\t"),
        ("A.\n", "A.\n# HELP a_total A.\n"),
    ] {
        let page = good.replace(part, instead);
        assert!(parse(&page).is_err(), "{page}");
    }
    let twice = format!("{good}{good}");
    assert!(parse(&twice).is_err());
    let histogram = "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0\"} 1\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 9\nh_count 3\n";
    parse(histogram).unwrap();
    for (part, instead) in [
        ("\"1\"} 2", "\"0\"} 2"),
        ("\"1\"} 2", "\"1\"} 0"),
        ("Inf\"} 3", "Inf\"} 4"),
        ("h_sum 9\n", ""),
        ("h_bucket{le=\"+Inf\"} 3\n", ""),
    ] {
        let page = histogram.replace(part, instead);
        assert!(parse(&page).is_err(), "{page}");
    }
}
