//! The lines below the tree.

use super::property;
use crate::plan_format::keys::{EXECUTION_TIME, PLANNING_TIME};
use crate::plan_format::lines::{SERIALIZATION, TRIGGER};
use crate::plan_format::{Properties, scalar};
use crate::server::explain::plan::Explained;
use serde_json::{Value, json};

/// The properties of the whole plan.
#[derive(Debug, Default)]
pub struct Totals {
    properties: Properties,
    /// the property that the next indented lines belong to
    section: Option<String>,
}

impl Totals {
    /// Returns whether a line below the tree has been read.
    pub fn have_begun(&self) -> bool {
        !self.properties.is_empty()
    }

    /// Reads a line. An indented one belongs to the line above it.
    pub fn read(&mut self, text: &str, column: usize) {
        if column > 0 {
            let section = self.section.as_ref().and_then(|name| self.properties.get_mut(name)?.as_object_mut());
            match section {
                Some(jit) if self.section.as_deref() == Some("JIT") => read_jit(text, jit),
                Some(section) => property::read(text, section),
                None => {}
            }
            return;
        }
        let (key, value) = match text.strip_suffix(':') {
            Some(group) => (group, json!({})),
            None => match text.split_once(": ") {
                Some(("Serialization", _)) => {
                    ("Serialization", SERIALIZATION.read(text).map_or(Value::Null, Value::from))
                }
                Some((name, _)) if name.starts_with("Trigger") => return self.add_trigger(text),
                Some((key @ (PLANNING_TIME | EXECUTION_TIME), value)) => (key, scalar(value.trim_end_matches(" ms"))),
                Some((key, value)) => (key, scalar(value)),
                None => return,
            },
        };
        self.section = Some(key.into());
        self.properties.insert(key.into(), value);
    }

    /// Reads `Trigger a for constraint b on c: time=1.234 calls=5`. Without VERBOSE, a constraint replaces the name.
    fn add_trigger(&mut self, text: &str) {
        let Some(colon) = text.rfind(": ") else { return };
        let names = text[..colon].trim_start_matches("Trigger").trim();
        let (names, relation) = names.rsplit_once(" on ").map_or((names, None), |(names, on)| (names, Some(on)));
        let (name, constraint) = match names.strip_prefix("for constraint ") {
            Some(constraint) => (None, Some(constraint)),
            None => names
                .split_once(" for constraint ")
                .map_or((Some(names), None), |(name, constraint)| (Some(name), Some(constraint))),
        };
        let mut trigger = Properties::new();
        for (key, name) in [("Trigger Name", name), ("Constraint Name", constraint), ("Relation", relation)] {
            trigger.extend(name.map(|name| (key.to_string(), name.into())));
        }
        trigger.extend(TRIGGER.read(&text[colon..]).unwrap_or_default());
        let triggers = self.properties.entry("Triggers").or_insert_with(|| json!([]));
        triggers.as_array_mut().into_iter().for_each(|triggers| triggers.push(trigger.clone().into()));
    }

    /// Adds these properties to the plan.
    pub fn add_to(mut self, plan: &mut Properties, explained: &Explained) {
        if let Some(settings) = self.properties.get_mut("Settings") {
            *settings = json!(explained.settings);
        }
        plan.extend(self.properties);
    }
}

/// Reads `Options: Inlining false, Expressions true` or `Timing: Generation 0.111 ms (Deform 0.037 ms), Total 2.393 ms`.
fn read_jit(text: &str, jit: &mut Properties) {
    let Some((name, value)) = text.split_once(": ") else { return };
    let mut group = Properties::new();
    for part in value.split(", ") {
        let (part, deform) = part.split_once(" (").map_or((part, None), |(part, rest)| (part, rest.strip_suffix(')')));
        let Some((key, value)) = jit_part(part) else { continue };
        let nested = deform.and_then(jit_part).map(|(deform, time)| json!({ deform: time, "Total": value }));
        group.insert(key.into(), nested.unwrap_or(value));
    }
    jit.insert(name.into(), if group.is_empty() { scalar(value) } else { group.into() });
}

fn jit_part(text: &str) -> Option<(&str, Value)> {
    let (key, value) = text.trim_end_matches(" ms").rsplit_once(' ')?;
    Some((
        key,
        match value {
            "true" => true.into(),
            "false" => false.into(),
            number => scalar(number),
        },
    ))
}
