//! Lines of the text format that show several properties of the JSON format.

use super::keys::LISTS;
use super::{Properties, scalar, shown};
use serde_json::Value;

/// Properties that share a line. The first line that fits is printed.
pub struct Group {
    pub keys: &'static [&'static str],
    lines: &'static [Line],
}

struct Line {
    /// `{Key}` is the value of a property, and `{Key:3}` its value with three decimals
    template: &'static str,
    only_if: &'static [Condition],
}

enum Condition {
    /// the value is more than this
    More(&'static str, f64),
    Differ(&'static str, &'static str),
}

use Condition::{Differ, More};

const fn line(template: &'static str, only_if: &'static [Condition]) -> Line {
    Line { template, only_if }
}

/// Lines of plan nodes, of their workers, and of the planner.
pub const GROUPS: [Group; 8] = [
    Group {
        keys: &["Sort Method", "Sort Space Used", "Sort Space Type"],
        lines: &[line("Sort Method: {Sort Method}  {Sort Space Type}: {Sort Space Used}kB", &[])],
    },
    Group {
        keys: &["Hash Buckets", "Original Hash Buckets", "Hash Batches", "Original Hash Batches", "Peak Memory Usage"],
        lines: &[
            line(ORIGINALLY, &[Differ("Hash Buckets", "Original Hash Buckets")]),
            line(ORIGINALLY, &[Differ("Hash Batches", "Original Hash Batches")]),
            line("Buckets: {Hash Buckets}  Batches: {Hash Batches}  Memory Usage: {Peak Memory Usage}kB", &[]),
        ],
    },
    Group {
        keys: &["Cache Hits", "Cache Misses", "Cache Evictions", "Cache Overflows", "Peak Memory Usage"],
        lines: &[line(
            "Hits: {Cache Hits}  Misses: {Cache Misses}  Evictions: {Cache Evictions}  Overflows: {Cache Overflows}  Memory Usage: {Peak Memory Usage}kB",
            &[],
        )],
    },
    Group {
        keys: &["Planned Partitions", "HashAgg Batches", "Peak Memory Usage", "Disk Usage"],
        lines: &[
            line(
                "Planned Partitions: {Planned Partitions}  Batches: {HashAgg Batches}  Memory Usage: {Peak Memory Usage}kB  Disk Usage: {Disk Usage}kB",
                &[More("Planned Partitions", 0.0), More("HashAgg Batches", 1.0)],
            ),
            line(
                "Planned Partitions: {Planned Partitions}  Batches: {HashAgg Batches}  Memory Usage: {Peak Memory Usage}kB",
                &[More("Planned Partitions", 0.0)],
            ),
            line("Planned Partitions: {Planned Partitions}", &[More("Planned Partitions", 0.0)]),
            line(
                "Batches: {HashAgg Batches}  Memory Usage: {Peak Memory Usage}kB  Disk Usage: {Disk Usage}kB",
                &[More("HashAgg Batches", 1.0)],
            ),
            line("Batches: {HashAgg Batches}  Memory Usage: {Peak Memory Usage}kB", &[]),
            line("", &[]),
        ],
    },
    Group {
        keys: &["Estimated Capacity", "Estimated Distinct Lookup Keys", "Estimated Lookups", "Estimated Hit Percent"],
        lines: &[line(
            "Estimates: capacity={Estimated Capacity} distinct keys={Estimated Distinct Lookup Keys} lookups={Estimated Lookups} hit percent={Estimated Hit Percent:2}%",
            &[],
        )],
    },
    Group {
        keys: &["Storage", "Maximum Storage"],
        lines: &[line("Storage: {Storage}  Maximum Storage: {Maximum Storage}kB", &[])],
    },
    Group {
        keys: &["Sampling Method", "Sampling Parameters", "Repeatable Seed"],
        lines: &[
            line("Sampling: {Sampling Method} ({Sampling Parameters}) REPEATABLE ({Repeatable Seed})", &[]),
            line("Sampling: {Sampling Method} ({Sampling Parameters})", &[]),
        ],
    },
    Group {
        keys: &["Memory Used", "Memory Allocated"],
        lines: &[line("Memory: used={Memory Used}kB  allocated={Memory Allocated}kB", &[])],
    },
];

const ORIGINALLY: &str = "Buckets: {Hash Buckets} (originally {Original Hash Buckets})  Batches: {Hash Batches} (originally {Original Hash Batches})  Memory Usage: {Peak Memory Usage}kB";

/// The line of SERIALIZE.
pub const SERIALIZATION: Group = Group {
    keys: &["Time", "Output Volume", "Format"],
    lines: &[
        line("Serialization: time={Time:3} ms  output={Output Volume}kB  format={Format}", &[]),
        line("Serialization: output={Output Volume}kB  format={Format}", &[]),
    ],
};

/// The line of a trigger, after its name.
pub const TRIGGER: Group = Group {
    keys: &["Time", "Calls"],
    lines: &[line(": time={Time:3} calls={Calls}", &[]), line(": calls={Calls}", &[])],
};

/// What a node's line shows about the planner's estimates.
pub const COSTS: Group = Group {
    keys: &["Startup Cost", "Total Cost", "Plan Rows", "Plan Width"],
    lines: &[line("(cost={Startup Cost:2}..{Total Cost:2} rows={Plan Rows} width={Plan Width})", &[])],
};

impl Group {
    /// Returns the line that shows these properties. It is empty if the text format shows none of them.
    pub fn write(&self, properties: &Properties) -> Option<String> {
        self.lines.iter().find_map(|line| {
            let holds = |condition: &Condition| match condition {
                More(key, limit) => properties.get(*key).and_then(Value::as_f64).is_some_and(|value| value > *limit),
                Differ(a, b) => properties.get(*a) != properties.get(*b),
            };
            line.only_if.iter().all(holds).then(|| fill(line.template, properties)).flatten()
        })
    }

    /// Returns the properties that a line shows, or `None` for other lines.
    pub fn read(&self, text: &str) -> Option<Properties> {
        self.lines.iter().find_map(|line| matched(line.template, text))
    }
}

/// Splits a template at its first property. Returns the text before it, its key, its decimals and the rest.
fn next_property(template: &str) -> Option<(&str, &str, Option<usize>, &str)> {
    let (before, rest) = template.split_once('{')?;
    let (property, rest) = rest.split_once('}')?;
    let (key, decimals) = property.split_once(':').unwrap_or((property, ""));
    Some((before, key, decimals.parse().ok(), rest))
}

fn fill(template: &str, properties: &Properties) -> Option<String> {
    let (mut line, mut rest) = (String::new(), template);
    while let Some((before, key, decimals, after)) = next_property(rest) {
        let value = properties.get(key)?;
        line += before;
        line += &match (value.as_f64(), decimals) {
            (Some(number), Some(decimals)) => format!("{number:.decimals$}"),
            _ => shown(value),
        };
        rest = after;
    }
    Some(line + rest)
}

fn matched(template: &str, text: &str) -> Option<Properties> {
    let (mut properties, mut template, mut text) = (Properties::new(), template, text);
    while let Some((before, key, _, after)) = next_property(template) {
        text = text.strip_prefix(before)?;
        let literal = &after[..after.find('{').unwrap_or(after.len())];
        let end = if literal.is_empty() { text.len() } else { text.find(literal)? };
        let value = &text[..end];
        // Two spaces are between the parts of a line.
        if value.contains("  ") {
            return None;
        }
        let list = || value.split(", ").map(Value::from).collect();
        properties.insert(key.into(), if LISTS.contains(&key) { Value::Array(list()) } else { scalar(value) });
        (template, text) = (after, &text[end..]);
    }
    (text == template && !properties.is_empty()).then_some(properties)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> impl Iterator<Item = &'static Group> {
        GROUPS.iter().chain(&[SERIALIZATION, TRIGGER, COSTS])
    }

    #[test]
    fn each_line_reads_back() {
        for group in groups() {
            for line in group.lines.iter().filter(|line| !line.template.is_empty()) {
                let mut properties = Properties::new();
                let mut rest = line.template;
                while let Some((_, key, decimals, after)) = next_property(rest) {
                    assert!(group.keys.contains(&key), "{key}");
                    let number = 5 + properties.len();
                    let value = match key {
                        _ if LISTS.contains(&key) => Value::from(vec!["'5'::real", "7"]),
                        "Sort Method" => "external merge".into(),
                        _ if decimals.is_some() => Value::from(number as f64 + 0.25),
                        _ => number.into(),
                    };
                    properties.insert(key.into(), value);
                    rest = after;
                }
                let text = fill(line.template, &properties).unwrap();
                assert_eq!(group.read(&text), Some(properties), "{text}");
                assert_eq!(group.read(&format!("{text}x")).is_some(), line.template.ends_with('}'), "{text}");
            }
        }
    }

    #[test]
    fn the_line_depends_on_the_values() {
        let line = |json: &str, group: usize| GROUPS[group].write(&serde_json::from_str(json).unwrap()).unwrap();
        let hash = r#"{"Hash Buckets": 4, "Original Hash Buckets": 4, "Hash Batches": 2, "Original Hash Batches": 1, "Peak Memory Usage": 9}"#;
        assert_eq!(line(hash, 1), "Buckets: 4 (originally 4)  Batches: 2 (originally 1)  Memory Usage: 9kB");
        let equal = hash.replace("\": 1", "\": 2");
        assert_eq!(line(&equal, 1), "Buckets: 4  Batches: 2  Memory Usage: 9kB");
        assert_eq!(line(r#"{"Planned Partitions": 0}"#, 3), "");
        assert_eq!(line(r#"{"Planned Partitions": 4}"#, 3), "Planned Partitions: 4");
        let batches = r#"{"Planned Partitions": 0, "HashAgg Batches": 5, "Peak Memory Usage": 9, "Disk Usage": 8}"#;
        assert_eq!(line(batches, 3), "Batches: 5  Memory Usage: 9kB  Disk Usage: 8kB");
    }
}
