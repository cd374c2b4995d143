//! Marks pg_timing's own queries, so that its reports about a server's statements do not contain them.

/// A comment after the first word. pg_stat_statements keeps it, but not a comment before the first word.
const MARK: &str = "/* pg_timing */";

/// A condition on the column `query`: pg_timing itself ran the statement. It prepares statements under names with its prefix.
pub const IS_OWN: &str = "(pg_catalog.strpos(query, '/* pg_timing */') > 0 \
    OR query ~ '^(PREPARE|EXECUTE|DEALLOCATE|EXPLAIN [^;]*EXECUTE) pg_timing_')";

/// Returns the query with the mark.
pub fn marked(sql: &str) -> String {
    match sql.strip_prefix("SELECT") {
        Some(rest) if rest.starts_with(char::is_whitespace) => format!("SELECT {MARK}{rest}"),
        _ => sql.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_within_the_query() {
        assert_eq!(marked("SELECT 1"), "SELECT /* pg_timing */ 1");
        assert_eq!(marked("SHOW search_path"), "SHOW search_path");
        assert!(IS_OWN.contains(MARK));
    }
}
