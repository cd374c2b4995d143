//! A node's name as EXPLAIN's text format prints it. JSON has its parts in several properties.

use super::tree::Node;

/// The properties that only the name needs. The others are in the node.
#[derive(Debug, Default)]
pub struct NameParts {
    pub relation: Option<String>,
    pub index: Option<String>,
    pub join: Option<String>,
    /// `Update`, `Insert` and so on, if the node changes data
    pub operation: Option<String>,
    pub strategy: Option<String>,
    pub parallel_aware: bool,
    pub async_capable: bool,
    /// `Partial`, `Finalize` or `Simple`
    pub partial_mode: Option<String>,
    /// name of an extension's node
    pub provider: Option<String>,
    /// `Intersect All` and so on
    pub command: Option<String>,
    /// `Forward` or `Backward`
    pub direction: Option<String>,
    /// only with VERBOSE
    pub schema: Option<String>,
    /// function, table function or tuplestore that the node scans
    pub function: Option<String>,
    pub alias: Option<String>,
}

impl NameParts {
    /// Returns the name that `ExplainNode()` in explain.c prints: `Parallel Index Scan Backward using i on t a`.
    pub fn name_of(&self, node: &Node) -> String {
        let prefix = match (self.parallel_aware, self.async_capable) {
            (true, true) => "Parallel Async ",
            (true, false) => "Parallel ",
            (false, true) => "Async ",
            (false, false) => "",
        };
        [prefix, &self.operator(node), &self.index_part(node), &self.target(node)].concat()
    }

    /// Returns what the node does, without its objects.
    fn operator(&self, node: &Node) -> String {
        let text = |property: &Option<String>| property.clone().unwrap_or_default();
        let strategy = self.strategy.as_deref();
        match node.kind.as_str() {
            "ModifyTable" => self.operation.clone().unwrap_or_else(|| node.kind.clone()),
            "Foreign Scan" => match self.operation.as_deref() {
                None | Some("Select") => node.kind.clone(),
                Some(operation) => format!("Foreign {operation}"),
            },
            "Custom Scan" => {
                self.provider.as_ref().map_or("Custom Scan".into(), |name| format!("Custom Scan ({name})"))
            }
            "Aggregate" => {
                let aggregate = match strategy {
                    Some("Sorted") => "GroupAggregate",
                    Some("Hashed") => "HashAggregate",
                    Some("Mixed") => "MixedAggregate",
                    _ => "Aggregate",
                };
                match self.partial_mode.as_deref() {
                    None | Some("Simple") => aggregate.into(),
                    Some(mode) => format!("{mode} {aggregate}"),
                }
            }
            "SetOp" => {
                let name = if strategy == Some("Hashed") { "HashSetOp" } else { "SetOp" };
                format!("{name} {}", text(&self.command)).trim_end().into()
            }
            "Nested Loop" | "Hash Join" | "Merge Join" => joined(&node.kind, self.join.as_deref()),
            kind => kind.into(),
        }
    }

    fn index_part(&self, node: &Node) -> String {
        let Some(index) = self.index.as_deref().map(quoted) else { return String::new() };
        match node.kind.as_str() {
            "Bitmap Index Scan" => format!(" on {index}"),
            _ if self.direction.as_deref() == Some("Backward") => format!(" Backward using {index}"),
            _ => format!(" using {index}"),
        }
    }

    /// Returns the table, function or CTE, with its alias if that differs: ` on schema.object alias`.
    fn target(&self, node: &Node) -> String {
        let object = self.relation.as_ref().or(self.function.as_ref()).or(node.cte.as_ref()).map(|name| quoted(name));
        let alias = self.alias.as_deref().map(quoted);
        let schema = self.schema.as_deref().map_or(String::new(), |schema| quoted(schema) + ".");
        match (object, alias) {
            (Some(object), Some(alias)) if object != alias => format!(" on {schema}{object} {alias}"),
            (Some(object), _) => format!(" on {schema}{object}"),
            (None, Some(alias)) => format!(" on {alias}"),
            (None, None) => String::new(),
        }
    }
}

/// Returns a name in quotation marks, unless it is a lower-case word that needs none. EXPLAIN also quotes key words.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if is_plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Returns the name of a join. Its type is between the two words, as in `Hash Left Join`.
fn joined(kind: &str, join_type: Option<&str>) -> String {
    let method = kind.strip_suffix(" Join").unwrap_or(kind);
    match join_type {
        None | Some("Inner") => kind.into(),
        Some(join_type) => format!("{method} {join_type} Join"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(properties: &str) -> String {
        serde_json::from_str::<Node>(&format!("{{{properties}}}")).unwrap().title()
    }

    #[test]
    fn operators_have_the_names_of_the_text_format() {
        for (properties, expected) in [
            (
                r#""Node Type": "Aggregate", "Strategy": "Sorted", "Partial Mode": "Finalize""#,
                "Finalize GroupAggregate",
            ),
            (r#""Node Type": "Aggregate", "Strategy": "Hashed", "Partial Mode": "Partial""#, "Partial HashAggregate"),
            (r#""Node Type": "Aggregate", "Strategy": "Mixed", "Partial Mode": "Simple""#, "MixedAggregate"),
            (r#""Node Type": "Aggregate", "Strategy": "Plain""#, "Aggregate"),
            (r#""Node Type": "Nested Loop", "Join Type": "Inner""#, "Nested Loop"),
            (r#""Node Type": "Nested Loop", "Join Type": "Left""#, "Nested Loop Left Join"),
            (r#""Node Type": "Hash Join", "Join Type": "Inner", "Parallel Aware": true"#, "Parallel Hash Join"),
            (r#""Node Type": "Hash Join", "Join Type": "Right Semi""#, "Hash Right Semi Join"),
            (r#""Node Type": "Merge Join", "Join Type": "Full""#, "Merge Full Join"),
            (r#""Node Type": "Merge Join""#, "Merge Join"),
            (r#""Node Type": "Hash", "Parallel Aware": true, "Async Capable": false"#, "Parallel Hash"),
            (r#""Node Type": "SetOp", "Strategy": "Hashed", "Command": "Intersect All""#, "HashSetOp Intersect All"),
            (r#""Node Type": "SetOp", "Strategy": "Sorted", "Command": "Except""#, "SetOp Except"),
            (r#""Node Type": "Custom Scan", "Custom Plan Provider": "Citus Adaptive""#, "Custom Scan (Citus Adaptive)"),
            (r#""Node Type": "Custom Scan""#, "Custom Scan"),
            (r#""Node Type": "Gather Merge", "Parallel Aware": false"#, "Gather Merge"),
        ] {
            assert_eq!(title(properties), expected);
        }
    }

    #[test]
    fn objects_have_the_names_of_the_text_format() {
        for (properties, expected) in [
            (r#""Node Type": "ModifyTable", "Operation": "Insert", "Relation Name": "t", "Alias": "t""#, "Insert on t"),
            (
                r#""Node Type": "Seq Scan", "Parallel Aware": true, "Relation Name": "t", "Schema": "s", "Alias": "a""#,
                "Parallel Seq Scan on s.t a",
            ),
            (
                r#""Node Type": "Index Scan", "Scan Direction": "Backward", "Index Name": "i", "Relation Name": "t", "Alias": "t""#,
                "Index Scan Backward using i on t",
            ),
            (
                r#""Node Type": "Index Only Scan", "Scan Direction": "Forward", "Index Name": "I", "Relation Name": "user", "Alias": "user""#,
                "Index Only Scan using \"I\" on user",
            ),
            (r#""Node Type": "Bitmap Index Scan", "Index Name": "i""#, "Bitmap Index Scan on i"),
            (
                r#""Node Type": "Foreign Scan", "Operation": "Select", "Async Capable": true, "Relation Name": "f", "Alias": "f_1""#,
                "Async Foreign Scan on f f_1",
            ),
            (
                r#""Node Type": "Foreign Scan", "Operation": "Update", "Relation Name": "f", "Alias": "f""#,
                "Foreign Update on f",
            ),
            (r#""Node Type": "Foreign Scan", "Operation": "Select""#, "Foreign Scan"),
            (
                r#""Node Type": "Custom Scan", "Custom Plan Provider": "x", "Relation Name": "t", "Alias": "t""#,
                "Custom Scan (x) on t",
            ),
            (
                r#""Node Type": "Function Scan", "Function Name": "generate_series", "Alias": "g""#,
                "Function Scan on generate_series g",
            ),
            (
                r#""Node Type": "Table Function Scan", "Table Function Name": "xmltable", "Alias": "x""#,
                "Table Function Scan on xmltable x",
            ),
            (r#""Node Type": "Values Scan", "Alias": "*VALUES*""#, "Values Scan on \"*VALUES*\""),
            (r#""Node Type": "CTE Scan", "CTE Name": "c", "Alias": "a""#, "CTE Scan on c a"),
            (r#""Node Type": "WorkTable Scan", "CTE Name": "c", "Alias": "c""#, "WorkTable Scan on c"),
            (
                r#""Node Type": "Seq Scan", "Relation Name": "a\"B", "Alias": "a\"B", "Subplan Name": "CTE c""#,
                "CTE c: Seq Scan on \"a\"\"B\"",
            ),
        ] {
            assert_eq!(title(properties), expected);
        }
    }
}
