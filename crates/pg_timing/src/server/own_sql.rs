//! All SQL that pg_timing sends on its own. Other files send only statements that the user typed.
//!
//! The owner of a database may create functions, operators and views with any name, and choose the search_path of every
//! session. So each transaction begins with utility statements, which nobody can replace, and empties the search_path. In
//! addition, every name and operator below is qualified: a test parses the statements and refuses the others. They contain
//! no backslash, so they mean the same with any value of `standard_conforming_strings`.

/// Marks our statements, so that reports about a server's statements do not contain them. pg_stat_statements removes a comment
/// before the first word, but keeps this one.
pub const MARK: &str = "/* pg_timing */";

/// Our statements see only `pg_catalog`. The setting ends with the transaction, because a connection pooler can give the session
/// to another client.
pub const EMPTY_SEARCH_PATH: &str = "SET LOCAL /* pg_timing */ search_path = ''";
/// The search_path with which the session began: for the user's statement only.
pub const USERS_SEARCH_PATH: &str = "SET LOCAL /* pg_timing */ search_path TO DEFAULT";
pub const ROLLBACK: &str = "ROLLBACK /* pg_timing */";

/// Without this, a database's settings `geqo_threshold` and `geqo_pool_size` could make the planning of our joins take minutes.
pub const USUAL_PLANNER: &str = "SET LOCAL /* pg_timing */ geqo = off";

/// Returns the SQL that begins a transaction, `READ ONLY` or `READ WRITE`. A deferrable one could wait for other sessions.
pub fn begin(mode: &str) -> String {
    format!("BEGIN {MARK} {mode}, NOT DEFERRABLE")
}

/// Returns the SQL that sets a setting until the end of the transaction.
pub fn set_local(name: &str, value: impl std::fmt::Display) -> String {
    format!("SET LOCAL {MARK} {name} = {value}")
}

/// Keeps the next statements of the transaction out of pg_stat_statements and of auto_explain's log, as far as the server has these
/// settings and this user may set them. The transaction is reported at its end, so it is not counted later, in the window.
pub const KEEP_QUIET: &str = "SELECT /* pg_timing */ pg_catalog.count(pg_catalog.set_config(q.name, q.value, true)),
        pg_catalog.pg_stat_force_next_flush()
    FROM (VALUES ('pg_stat_statements.track', 'none'), ('auto_explain.log_min_duration', '-1')) AS q(name, value)
    WHERE pg_catalog.current_setting(q.name, true) IS NOT NULL
        AND pg_catalog.has_parameter_privilege(q.name, 'SET')";

/// Settings of our own statements in `explain`: neither compilation nor parallel workers. With a limit of 0 workers,
/// debug_parallel_query starts none.
pub const ONE_PROCESS: [&str; 2] =
    ["SET LOCAL /* pg_timing */ jit = off", "SET LOCAL /* pg_timing */ max_parallel_workers_per_gather = 0"];

/// All settings with their values, as a JSON object.
pub const ALL_SETTINGS: &str =
    "SELECT /* pg_timing */ pg_catalog.json_object_agg(name, pg_catalog.current_setting(name))
    FROM pg_catalog.pg_settings";

/// The process of this session; databases that accept connections; whether this user may see all statistics.
pub const SESSION: &str = "SELECT pg_catalog.pg_backend_pid() AS pid, pg_catalog.count(*) AS databases,
        pg_catalog.pg_has_role(current_user, 'pg_monitor', 'USAGE') AS monitor
    FROM pg_catalog.pg_database WHERE datallowconn AND NOT datistemplate";

/// The objects of extensions that we use, each with its name, its schema, and a role that can put other code in its place: the owner of
/// the schema, of the object or of the extension. NULL if all three are superusers or this user. The name pg_database_owner stands for
/// the database's owner.
pub const EXTENSION_OBJECTS: &str = "SELECT o.name, pg_catalog.quote_ident(n.nspname) AS schema, pg_catalog.min(r.rolname::pg_catalog.text)
        FILTER (WHERE NOT (r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) session_user)) AS other_owner
    FROM (SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS class, oid, relname AS name, relnamespace AS schema,
                relowner AS owner FROM pg_catalog.pg_class
        UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, proname, pronamespace, proowner
            FROM pg_catalog.pg_proc) o
    JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) o.class AND d.objid OPERATOR(pg_catalog.=) o.oid
    JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) o.schema
    JOIN pg_catalog.pg_database h ON h.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    CROSS JOIN LATERAL (VALUES (n.nspowner), (o.owner), (e.extowner)) AS owners(id)
    JOIN pg_catalog.pg_roles s ON s.oid OPERATOR(pg_catalog.=) owners.id
    JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=)
        CASE WHEN s.rolname OPERATOR(pg_catalog.=) 'pg_database_owner' THEN h.datdba ELSE s.oid END
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
        AND d.deptype OPERATOR(pg_catalog.=) 'e'
        AND pg_catalog.array_position('{pg_stat_statements,pg_fast_timing}'::pg_catalog.name[], e.extname) IS NOT NULL
        AND pg_catalog.array_position(
            '{pg_stat_statements,pg_stat_statements_info,pg_fast_timing_info,pg_fast_timing_counters,pg_stat_plan_nodes}'
                ::pg_catalog.name[], o.name) IS NOT NULL
    GROUP BY 1, 2";

/// Settings of roles and databases that `advise` is about, because they override postgresql.conf in their sessions, like
/// `track_io_timing (role app)`. Values are not read: they can have the encoding of another database.
pub const OTHER_SETTINGS: &str = "SELECT /* pg_timing */ pg_catalog.concat(pg_catalog.split_part(made, '=', 1), ' (',
        pg_catalog.concat_ws(', ', CASE WHEN r.rolname IS NOT NULL THEN pg_catalog.concat('role ', r.rolname) END,
            CASE WHEN d.datname IS NOT NULL THEN pg_catalog.concat('database ', d.datname) END,
            CASE WHEN r.rolname IS NULL AND d.datname IS NULL THEN 'all roles' END), ')')
    FROM pg_catalog.pg_db_role_setting
        CROSS JOIN LATERAL pg_catalog.unnest(setconfig) AS made
        JOIN pg_catalog.unnest('{auto_explain.,pg_fast_timing.,pg_stat_statements.,track_,timing_clock_source,log_duration,
            log_min_duration,session_preload,local_preload}'::pg_catalog.text[]) AS prefix
            ON pg_catalog.starts_with(made, prefix)
        LEFT JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) setrole
        LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) setdatabase
    ORDER BY 1";

/// Returns the query of the rows of another query, as a list of JSON objects. The other query needs no mark.
pub fn as_json(query: &str) -> String {
    format!("SELECT {MARK} pg_catalog.json_agg(q) FROM ({query}) AS q")
}

/// Returns the query of pg_fast_timing's clock and counters. The functions are qualified.
pub fn fast_timing(info: &str, counters: &str) -> String {
    format!("SELECT {MARK} * FROM {info}() CROSS JOIN {counters}()")
}

/// Returns the query of the nodes with the longest times: of the 20 plans with the longest times, 5 nodes each. `view` is the
/// qualified `pg_stat_plan_nodes`.
pub fn plan_nodes(view: &str) -> String {
    format!(
        "SELECT {MARK} * FROM (
            SELECT queryid, plan, node, kind, seconds, seconds OPERATOR(pg_catalog./) plan_seconds AS share, plan_age_s,
                pg_catalog.dense_rank() OVER (ORDER BY plan_seconds DESC, queryid, plan) AS plan_rank,
                pg_catalog.row_number() OVER (PARTITION BY queryid, plan ORDER BY seconds DESC, node) AS node_rank
            FROM (
                SELECT queryid::pg_catalog.text AS queryid, planid::pg_catalog.text AS plan, node,
                    pg_catalog.min(pg_catalog.concat(kind, ' on '::pg_catalog.text OPERATOR(pg_catalog.||) relation)) AS kind,
                    pg_catalog.sum(self_ms OPERATOR(pg_catalog./) 1000) AS seconds,
                    pg_catalog.sum(pg_catalog.sum(self_ms OPERATOR(pg_catalog./) 1000)) OVER (PARTITION BY queryid, planid) AS plan_seconds,
                    EXTRACT(epoch FROM pg_catalog.now() OPERATOR(pg_catalog.-) pg_catalog.min(since)) AS plan_age_s
                FROM {view} GROUP BY queryid, planid, node) AS n
            WHERE plan_seconds OPERATOR(pg_catalog.>) 0) AS r
         WHERE plan_rank OPERATOR(pg_catalog.<=) 20 AND node_rank OPERATOR(pg_catalog.<=) 5"
    )
}

/// Statistics of all databases together.
pub const DATABASES: &str = "SELECT pg_catalog.sum(xact_commit OPERATOR(pg_catalog.+) xact_rollback) AS transactions,
        pg_catalog.sum(temp_bytes) AS temp_bytes, pg_catalog.sum(blks_read) AS blks_read,
        EXTRACT(epoch FROM pg_catalog.max(stats_reset)) AS reset
    FROM pg_catalog.pg_stat_database";

/// Returns the query of the totals of pg_stat_statements, without our own statements. `statements` and `info` are qualified views.
/// `asked` are calls of plan nodes that certainly happened: one for each row of a plan and one for its end, and one more for the node
/// that writes.
pub fn statements(statements: &str, info: &str) -> String {
    format!(
        "SELECT {MARK} s.calls, s.plans, s.asked, s.hidden, i.dealloc, EXTRACT(epoch FROM i.stats_reset) AS reset
         FROM (SELECT pg_catalog.sum(calls) AS calls, pg_catalog.sum(plans) AS plans,
                pg_catalog.sum(calls OPERATOR(pg_catalog.+) rows) FILTER (WHERE toplevel AND query OPERATOR(pg_catalog.~*)
                    '^[[:space:]]*(select|with|insert|update|delete|merge|values|table)[[:>:]]')
                OPERATOR(pg_catalog.+) coalesce(pg_catalog.sum(calls) FILTER (WHERE toplevel
                    AND query OPERATOR(pg_catalog.~*) '^[[:space:]]*(insert|update|delete|merge)[[:>:]]'), 0) AS asked,
                pg_catalog.count(*) FILTER (WHERE query OPERATOR(pg_catalog.=) '<insufficient privilege>') AS hidden
            FROM {statements}
            WHERE query IS NULL OR pg_catalog.strpos(query, '{MARK}') OPERATOR(pg_catalog.=) 0) s, {info} i"
    )
}

/// Writes of PostgreSQL 15, which counts no other operations.
pub const WRITES_OF_15: &str = "SELECT buffers_checkpoint OPERATOR(pg_catalog.+) buffers_clean AS writes,
        buffers_backend AS backend, EXTRACT(epoch FROM stats_reset) AS reset
    FROM pg_catalog.pg_stat_bgwriter";

/// Operations on files except WAL, since PostgreSQL 16.
pub const IO: &str =
    "SELECT coalesce(pg_catalog.sum(reads), 0) AS reads, coalesce(pg_catalog.sum(writes), 0) AS writes,
        coalesce(pg_catalog.sum(extends), 0) AS extends, coalesce(pg_catalog.sum(fsyncs), 0) AS fsyncs,
        coalesce(pg_catalog.sum(writebacks), 0) AS writebacks, EXTRACT(epoch FROM pg_catalog.max(stats_reset)) AS reset
    FROM pg_catalog.pg_stat_io WHERE object OPERATOR(pg_catalog.<>) 'wal'";

/// Operations on WAL until PostgreSQL 17.
pub const WAL_UNTIL_17: &str = "SELECT wal_write OPERATOR(pg_catalog.+) wal_sync AS operations,
        EXTRACT(epoch FROM stats_reset) AS reset FROM pg_catalog.pg_stat_wal";

/// Operations on WAL since PostgreSQL 18.
pub const WAL_IO: &str = "SELECT coalesce(pg_catalog.sum(coalesce(reads, 0) OPERATOR(pg_catalog.+) coalesce(writes, 0)
            OPERATOR(pg_catalog.+) coalesce(fsyncs, 0)), 0) AS operations,
        EXTRACT(epoch FROM pg_catalog.max(stats_reset)) AS reset
    FROM pg_catalog.pg_stat_io WHERE object OPERATOR(pg_catalog.=) 'wal'";

/// Calls of functions in this database. The view has no time of the last reset.
pub const FUNCTION_CALLS: &str =
    "SELECT coalesce(pg_catalog.sum(calls), 0) AS calls FROM pg_catalog.pg_stat_user_functions";

/// Scans and changed rows in this database: calls of plan nodes that certainly happened.
pub const TABLES: &str = "SELECT coalesce(pg_catalog.sum(seq_scan OPERATOR(pg_catalog.+) n_tup_upd
        OPERATOR(pg_catalog.+) n_tup_del), 0) AS asked FROM pg_catalog.pg_stat_user_tables";

/// Returns the query of pg_fast_timing's counters. If only this session has loaded the library, they say nothing about the others,
/// and `of_server` is 0. `function` is the qualified `pg_fast_timing_counters`.
pub fn counted_calls(function: &str) -> String {
    format!(
        "SELECT {MARK} CASE WHEN scope OPERATOR(pg_catalog.=) 'server' THEN 1 ELSE 0 END AS of_server, node_calls,
            without_tsc AS failed, EXTRACT(epoch FROM since) AS reset
         FROM {function}()"
    )
}

/// Sessions that may run statements: how many this user may not see, and the times of the oldest transaction and of the oldest
/// running statement in s. The server hides the type of a session, too. A statement that waits for a lock makes no calls of plan
/// nodes, and some kinds of statements have none.
pub const SESSIONS: &str = "SELECT pg_catalog.count(*) FILTER (WHERE query OPERATOR(pg_catalog.=) '<insufficient privilege>') AS hidden,
        coalesce(EXTRACT(epoch FROM pg_catalog.max(pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) xact_start)), 0) AS oldest,
        coalesce(EXTRACT(epoch FROM pg_catalog.max(pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) query_start)
            FILTER (WHERE state OPERATOR(pg_catalog.=) 'active'
                AND (wait_event_type IS NULL OR wait_event_type OPERATOR(pg_catalog.<>) 'Lock')
                AND query OPERATOR(pg_catalog.!~*)
                    '^[[:space:]]*(vacuum|analyze|reindex|copy[[:space:]]+[^([:space:]])')), 0) AS running
    FROM pg_catalog.pg_stat_activity
    WHERE pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid() AND datid IS NOT NULL
        AND (backend_type IS NULL
            OR backend_type OPERATOR(pg_catalog.!~) '^(autovacuum worker|walsender|logical replication)')";

/// Returns an EXPLAIN of a query that calls a function of `pg_catalog` for each row: `clock_timestamp` reads the clock, and
/// `statement_timestamp` does not.
pub fn explain_timestamps(function: &str, rows: u32) -> String {
    format!(
        "EXPLAIN {MARK} (ANALYZE, TIMING OFF, BUFFERS OFF, SUMMARY ON, FORMAT JSON) \
         SELECT pg_catalog.count(pg_catalog.{function}()) FROM pg_catalog.generate_series(1, {rows})"
    )
}

/// Returns the query of the number of a prepared statement's executions with a generic plan. `name` is one of ours.
pub fn generic_plans_of_prepared(name: &str) -> String {
    format!(
        "SELECT {MARK} generic_plans FROM pg_catalog.pg_prepared_statements
         WHERE name OPERATOR(pg_catalog.=) '{name}'"
    )
}

/// Returns a statement that counts rows. They are in the select list, so they are not stored: the plan consists of calls.
pub fn count_rows(rows: u32) -> String {
    format!("SELECT pg_catalog.count(*) FROM (SELECT pg_catalog.generate_series(1, {rows})) AS rows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::ast::{BinaryOperator, UnaryOperator};
    use sqlparser::ast::{DataType, Expr, ObjectName, Query, Statement as Parsed, TableFactor, Visit, Visitor};
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;
    use std::ops::ControlFlow;

    /// Every query in this file.
    fn queries() -> Vec<String> {
        vec![
            ALL_SETTINGS.into(),
            SESSION.into(),
            KEEP_QUIET.into(),
            EXTENSION_OBJECTS.into(),
            OTHER_SETTINGS.into(),
            DATABASES.into(),
            statements("extension.pg_stat_statements", "extension.pg_stat_statements_info"),
            WRITES_OF_15.into(),
            IO.into(),
            WAL_UNTIL_17.into(),
            WAL_IO.into(),
            FUNCTION_CALLS.into(),
            TABLES.into(),
            counted_calls("extension.pg_fast_timing_counters"),
            SESSIONS.into(),
            as_json(&fast_timing("extension.pg_fast_timing_info", "extension.pg_fast_timing_counters")),
            plan_nodes("extension.pg_stat_plan_nodes"),
            explain_timestamps("clock_timestamp", 7),
            generic_plans_of_prepared("pg_timing_statement"),
            count_rows(7),
        ]
    }

    /// Returns what a hostile search_path could replace in a statement.
    fn unqualified(sql: &str) -> Vec<String> {
        let mut names = Names::default();
        let parsed = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
        let _: ControlFlow<()> = parsed.visit(&mut names);
        names.0
    }

    #[derive(Default)]
    struct Names(Vec<String>);

    impl Names {
        fn check(&mut self, is_safe: bool, what: impl std::fmt::Display) -> ControlFlow<()> {
            self.0.extend((!is_safe).then(|| what.to_string()));
            ControlFlow::Continue(())
        }
    }

    /// Returns whether the name begins with a schema. `extension` stands for the schema of an extension.
    fn is_qualified(name: &str) -> bool {
        name.starts_with("pg_catalog.") || name.starts_with("extension.")
    }

    impl Visitor for Names {
        type Break = ();

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            self.check(is_qualified(&relation.to_string()), relation)
        }

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.check(query.with.is_none(), query)
        }

        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
            match table {
                TableFactor::Function { name, .. } => self.check(is_qualified(&name.to_string()), name),
                TableFactor::Table { .. } | TableFactor::Derived { .. } | TableFactor::UNNEST { .. } => {
                    self.check(true, table)
                }
                other => self.check(false, other),
            }
        }

        fn pre_visit_statement(&mut self, statement: &Parsed) -> ControlFlow<()> {
            self.check(matches!(statement, Parsed::Query(_) | Parsed::Explain { .. }), statement)
        }

        /// Every kind of expression that is not known to be safe is refused: IN, BETWEEN, LIKE, CASE x WHEN and others use
        /// operators of the search_path.
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_safe = match expr {
                Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::Value(_)
                | Expr::Nested(_)
                | Expr::Subquery(_) => true,
                Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::Extract { .. } => true,
                Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
                Expr::BinaryOp { op, .. } => is_safe_operator(op),
                Expr::Case { operand, .. } => operand.is_none(),
                Expr::Cast { data_type, .. } => is_qualified(&type_name(data_type)),
                // The grammar has these, and finds the type's default operators without the search_path.
                Expr::Function(function) => match function.name.to_string().to_lowercase().as_str() {
                    "coalesce" | "greatest" | "current_user" | "session_user" => true,
                    name => is_qualified(name),
                },
                _ => false,
            };
            self.check(is_safe, expr)
        }
    }

    fn type_name(data_type: &DataType) -> String {
        match data_type {
            DataType::Array(sqlparser::ast::ArrayElemTypeDef::SquareBracket(inner, _)) => type_name(inner),
            other => other.to_string(),
        }
    }

    fn is_safe_operator(operator: &BinaryOperator) -> bool {
        match operator {
            BinaryOperator::And | BinaryOperator::Or => true,
            BinaryOperator::PGCustomBinaryOperator(names) => names.first().is_some_and(|schema| schema == "pg_catalog"),
            _ => false,
        }
    }

    #[test]
    fn every_name_is_qualified() {
        for sql in queries() {
            assert_eq!(unqualified(&sql), Vec::<String>::new(), "{sql}");
            // USING compares with an operator of the search_path.
            assert!(!sql.contains('\\') && !sql.contains(" USING ") && !sql.contains("NATURAL"), "{sql}");
        }
    }

    #[test]
    fn what_a_search_path_can_replace_is_found() {
        for sql in [
            "SELECT count(*) FROM pg_catalog.pg_class",
            "SELECT a OPERATOR(e.=) b FROM pg_catalog.pg_class",
            "SELECT oid FROM pg_class",
            "SELECT oid FROM pg_catalog.pg_class WHERE oid = 1",
            "SELECT oid FROM pg_catalog.pg_class WHERE oid IN (1)",
            "SELECT oid FROM pg_catalog.pg_class WHERE relname LIKE 'a'",
            "SELECT oid FROM pg_catalog.pg_class WHERE oid BETWEEN 1 AND 2",
            "SELECT oid FROM pg_catalog.pg_class WHERE relname IS DISTINCT FROM 'a'",
            "SELECT CASE relname WHEN 'a' THEN 1 END FROM pg_catalog.pg_class",
            "SELECT nullif(relname, 'a') FROM pg_catalog.pg_class",
            "SELECT relname::text FROM pg_catalog.pg_class",
            "SELECT -oid FROM pg_catalog.pg_class",
            "SELECT i FROM generate_series(1, 2) i",
            "SELECT i FROM pg_catalog.pg_class, LATERAL unnest(relacl) i",
            "SELECT 1 FROM pg_catalog.pg_class ORDER BY relname || 'a'",
            "EXPLAIN (ANALYZE) SELECT count(*) FROM pg_catalog.pg_class",
        ] {
            assert_ne!(unqualified(sql), Vec::<String>::new(), "{sql}");
        }
    }

    /// Other files of the program send only utility statements and statements of the user.
    #[test]
    fn no_other_file_has_a_query() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![source.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_string();
                if path.is_dir() && name != "tests" {
                    folders.push(path);
                } else if name.ends_with(".rs") && !["own_sql.rs", "tests.rs", "proptests.rs"].contains(&name.as_str())
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
                    let code: Vec<&str> = code.lines().filter(|line| !line.trim().starts_with("//")).collect();
                    let code = code.join("\n");
                    assert!(!code.contains("pg_catalog.") && !code.contains("FROM pg_"), "{}", path.display());
                }
            }
        }
    }
}
