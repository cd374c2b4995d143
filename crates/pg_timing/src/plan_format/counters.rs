//! Lines of the text format that show counters, like `Buffers: shared hit=3 read=1, temp written=2`. Counters that are 0
//! are not shown.

use super::{Properties, scalar};
use serde_json::Value;

/// A line with counters.
pub struct Counters {
    label: &'static str,
    /// a node with this property has this line
    marker: &'static str,
    /// every server prints all of these keys in JSON
    is_complete: bool,
    /// the name before some counters (it can be empty), and each counter's name with its key in JSON
    parts: &'static [(&'static str, &'static [(&'static str, &'static str)])],
}

pub const COUNTERS: [Counters; 6] = [
    Counters {
        label: "Buffers:",
        marker: "Shared Hit Blocks",
        is_complete: true,
        parts: &[
            (
                "shared",
                &[
                    ("hit", "Shared Hit Blocks"),
                    ("read", "Shared Read Blocks"),
                    ("dirtied", "Shared Dirtied Blocks"),
                    ("written", "Shared Written Blocks"),
                ],
            ),
            (
                "local",
                &[
                    ("hit", "Local Hit Blocks"),
                    ("read", "Local Read Blocks"),
                    ("dirtied", "Local Dirtied Blocks"),
                    ("written", "Local Written Blocks"),
                ],
            ),
            ("temp", &[("read", "Temp Read Blocks"), ("written", "Temp Written Blocks")]),
        ],
    },
    Counters {
        label: "I/O Timings:",
        marker: "Shared I/O Read Time",
        is_complete: false,
        parts: &[
            ("shared", &[("read", "Shared I/O Read Time"), ("write", "Shared I/O Write Time")]),
            ("local", &[("read", "Local I/O Read Time"), ("write", "Local I/O Write Time")]),
            TEMP_IO,
        ],
    },
    // PostgreSQL 15 and 16
    Counters {
        label: "I/O Timings:",
        marker: "I/O Read Time",
        is_complete: false,
        parts: &[("shared", &[("read", "I/O Read Time"), ("write", "I/O Write Time")]), TEMP_IO],
    },
    Counters {
        label: "WAL:",
        marker: "WAL Records",
        is_complete: false,
        parts: &[(
            "",
            &[
                ("records", "WAL Records"),
                ("fpi", "WAL FPI"),
                ("bytes", "WAL Bytes"),
                ("fpi bytes", "WAL FPI Bytes"),
                ("buffers full", "WAL Buffers Full"),
            ],
        )],
    },
    Counters {
        label: "Heap Blocks:",
        marker: "Exact Heap Blocks",
        is_complete: true,
        parts: &[("", &[("exact", "Exact Heap Blocks"), ("lossy", "Lossy Heap Blocks")])],
    },
    // of MERGE; INSERT has the first of these keys, but its text is `Tuples Inserted: 3`
    Counters {
        label: "Tuples:",
        marker: "Tuples Updated",
        is_complete: true,
        parts: &[(
            "",
            &[
                ("inserted", "Tuples Inserted"),
                ("updated", "Tuples Updated"),
                ("deleted", "Tuples Deleted"),
                ("skipped", "Tuples Skipped"),
            ],
        )],
    },
];

const TEMP_IO: (&str, &[(&str, &str)]) = ("temp", &[("read", "Temp I/O Read Time"), ("write", "Temp I/O Write Time")]);

impl Counters {
    /// Returns the keys of all counters of the line.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.parts.iter().flat_map(|(_, counters)| counters.iter().map(|(_, key)| *key))
    }

    /// Returns whether these properties belong to this line and `key` is one of its counters.
    pub fn include(&self, key: &str, properties: &Properties) -> bool {
        properties.contains_key(self.marker) && self.keys().any(|counter| counter == key)
    }

    /// Returns the line, or `None` if all counters are 0.
    pub fn write(&self, properties: &Properties) -> Option<String> {
        let counter = |(name, key): &(&str, &str)| {
            let value = properties.get(*key).filter(|value| value.as_f64() != Some(0.0))?;
            // Times have three decimals, and counts have none.
            Some(match value.as_f64().filter(|_| value.is_f64()) {
                Some(ms) => format!(" {name}={ms:.3}"),
                None => format!(" {name}={value}"),
            })
        };
        let parts = self.parts.iter().filter_map(|(part, counters)| {
            let shown: String = counters.iter().filter_map(counter).collect();
            (!shown.is_empty()).then(|| if part.is_empty() { shown } else { format!(" {part}{shown}") })
        });
        let parts = parts.collect::<Vec<_>>().join(",");
        (!parts.is_empty()).then(|| format!("{}{parts}", self.label))
    }

    /// Returns the counters that a line shows, and 0 for the others if all servers have them. `None` for other lines.
    pub fn read(&self, text: &str) -> Option<Properties> {
        let zeros = self.keys().filter(|_| self.is_complete).map(|key| (key.to_string(), Value::from(0)));
        let mut properties: Properties = zeros.collect();
        for part in text.strip_prefix(self.label)?.split(',') {
            let mut counters = None;
            let mut name = String::new();
            for word in part.split(' ').filter(|word| !word.is_empty()) {
                let Some((last, value)) = word.split_once('=') else {
                    match self.parts.iter().find(|(part, _)| *part == word) {
                        Some((_, found)) => counters = Some(*found),
                        None => name = format!("{name}{word} "),
                    }
                    continue;
                };
                name += last;
                let counters = counters.or_else(|| Some(self.parts.first().filter(|(part, _)| part.is_empty())?.1))?;
                let (_, key) = counters.iter().find(|(counter, _)| *counter == name)?;
                properties.insert((*key).into(), scalar(value));
                name.clear();
            }
        }
        Some(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_and_read_back() {
        for (line, zeros) in [
            ("Buffers: shared hit=3 read=1, local dirtied=4, temp read=2 written=5", 5),
            ("Buffers: temp written=5", 9),
            ("I/O Timings: shared read=0.012 write=1.500, temp read=0.001", 0),
            ("WAL: records=7 bytes=9 fpi bytes=6 buffers full=1", 0),
            ("Heap Blocks: exact=5", 1),
            ("Tuples: inserted=1 skipped=2", 2),
        ] {
            let (counters, read) = COUNTERS.iter().find_map(|counters| Some((counters, counters.read(line)?))).unwrap();
            assert_eq!(counters.write(&read).as_deref(), Some(line));
            assert_eq!(read.values().filter(|value| value.as_f64() == Some(0.0)).count(), zeros, "{line}");
            assert!(read.keys().all(|key| counters.include(key, &read)));
        }
    }

    #[test]
    fn other_lines_are_not_read() {
        for line in ["Buffers: shared taken=1", "Buffers: hit=1", "Filter: (a = 1)", "WAL: shared records=1"] {
            assert!(COUNTERS.iter().all(|counters| counters.read(line).is_none()), "{line}");
        }
        let insert = serde_json::from_str(r#"{"Tuples Inserted": 3}"#).unwrap();
        assert!(!COUNTERS.iter().any(|counters| counters.include("Tuples Inserted", &insert)));
    }

    #[test]
    fn counters_of_older_servers_have_their_own_keys() {
        let old = serde_json::from_str(r#"{"I/O Read Time": 0.5, "I/O Write Time": 0.0, "Temp I/O Read Time": 0.25}"#);
        let counters = COUNTERS.iter().find(|counters| counters.include("I/O Read Time", old.as_ref().unwrap()));
        assert_eq!(counters.unwrap().write(&old.unwrap()).unwrap(), "I/O Timings: shared read=0.500, temp read=0.250");
    }
}
