//! A session that only reads: the server's settings, the extensions that pg_timing uses, and the figures of pg_fast_timing.

use crate::error::{Error, SqlState, require};
use crate::report::{FastTiming, PlanNode};
use crate::server::connection::{Connection, Rows};
use crate::server::own_sql;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit of a query. Queries of statistics take milliseconds; the limit ends a wait for a lock.
const LIMIT: Duration = Duration::from_secs(10);

/// The setting of pg_fast_timing that selects the timing method.
pub const FAST_TIMING_METHOD: &str = "pg_fast_timing.method";

/// A session on a connection, for queries only.
pub struct Session<'a> {
    pub connection: &'a mut Connection,
    /// settings that keep the queries out of statistics and logs: after the server's own settings were read
    quiet: Vec<String>,
}

impl<'a> Session<'a> {
    pub fn new(connection: &'a mut Connection) -> Session<'a> {
        Session { connection, quiet: Vec::new() }
    }

    /// Returns the rows of one query.
    ///
    /// Each query runs in its own read-only transaction, because statistics do not change within a transaction. Settings
    /// end with the transaction, because a connection pooler can give the session to another client.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        if self.connection.is_stopped() {
            let state = SqlState(SqlState::QUERY_CANCELED.into());
            return Err(Error { state, ..Error::new("stopped", "the queries changed nothing") });
        }
        let result = self.query_in_transaction(sql);
        self.connection.roll_back(result)
    }

    /// Returns the rows of one query as objects, or none if an object does not have the fields of `T`.
    pub fn objects<T: DeserializeOwned>(&mut self, sql: &str) -> Result<Vec<T>, Error> {
        Ok(self.query(&own_sql::as_json(sql))?.json())
    }

    fn query_in_transaction(&mut self, sql: &str) -> Result<Rows, Error> {
        self.connection.begin("READ ONLY", LIMIT)?;
        self.connection.execute(own_sql::USUAL_PLANNER)?;
        self.quiet.iter().try_for_each(|sql| self.connection.execute(sql))?;
        self.connection.run(sql)
    }
}

/// The setting of pg_fast_timing that selects the statements whose node calls it counts.
pub const COUNT_CALLS: &str = "pg_fast_timing.count_calls";

/// A view or a function of an extension.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ExtensionObject {
    name: String,
    /// quoted
    schema: String,
    /// a role that can replace it by other code, at any time, also between two of our statements; `None` if only superusers and
    /// this user can do that
    other_owner: Option<String>,
}

/// What this session may see.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Role {
    /// process of this session's backend
    pub pid: i64,
    /// number of databases, each with its own statistics of functions and tables
    pub databases: u32,
    /// whether this user may see all statistics (pg_monitor)
    pub monitor: bool,
}

/// Facts about the server and this session.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// major version, like 18
    pub major: i32,
    /// version, like `18.6`
    pub version: String,
    /// database and address
    pub name: String,
    pub settings: BTreeMap<String, String>,
    pub role: Role,
    /// views and functions of extensions that pg_timing uses
    pub extension_objects: Vec<ExtensionObject>,
    /// settings of roles and databases, like `track_io_timing (role app)`
    pub other_settings: Vec<String>,
}

impl Server {
    /// Reads the facts. pg_fast_timing does not count the session's next queries.
    pub fn of(session: &mut Session) -> Result<Server, Error> {
        let major = session.connection.server_version() / 10_000;
        let version = session.connection.supported_version()?;
        let name = session.connection.name();
        let settings: BTreeMap<_, _> = session.query(own_sql::ALL_SETTINGS)?.json();
        // Every user may set the method. A query that sets it would itself be counted.
        let uncounted =
            settings.contains_key(FAST_TIMING_METHOD).then(|| own_sql::set_local(FAST_TIMING_METHOD, "off"));
        session.quiet = uncounted.into_iter().chain([own_sql::KEEP_QUIET.into()]).collect();
        let role = session.objects::<Role>(own_sql::SESSION)?.pop().unwrap_or_default();
        let extension_objects = session.objects(own_sql::EXTENSION_OBJECTS)?;
        let other_settings = session.query(own_sql::OTHER_SETTINGS)?.values;
        Ok(Server { major, version, name, settings, role, extension_objects, other_settings })
    }

    /// Returns the qualified name of an extension's view or function. `None` if the extension is not installed in this database. It is
    /// an error if another role could replace it.
    pub fn extension_object(&self, name: &str) -> Result<Option<String>, Error> {
        // A view and its function have the same name. Whoever owns one of them can replace it.
        let objects: Vec<_> = self.extension_objects.iter().filter(|object| object.name == name).collect();
        let other_owner = objects.iter().find_map(|object| Some((object.other_owner.as_ref()?, &object.schema)));
        let why = other_owner.map_or(String::new(), |(owner, schema)| {
            format!("the role {owner} owns {name}, its extension or its schema {schema}, and could put other code in its place")
        });
        let hint = "connect to a database that a superuser owns, for example -d postgres, and CREATE EXTENSION there as a superuser";
        require(other_owner.is_none(), why, hint)?;
        Ok(objects.first().map(|object| format!("{}.{name}", object.schema)))
    }

    /// Returns the value of a setting, if the server has it.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// Returns whether a setting has this value.
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.setting(name) == Some(value)
    }

    /// Returns the number in a setting without its unit, or `None` if the server does not have the setting or if the
    /// number is not plausible. Settings have at most 31 bits.
    pub fn number_in(&self, name: &str) -> Option<f64> {
        let text = self.setting(name)?;
        text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok().filter(|number: &f64| number.abs() < 1e10)
    }

    /// Returns whether PostgreSQL 19 reads the CPU's counter: `tsc` or `auto (tsc)`.
    pub fn uses_tsc(&self) -> bool {
        self.setting("timing_clock_source").is_some_and(|value| value == "tsc" || value.ends_with("(tsc)"))
    }

    /// Returns whether auto_explain times the plans of statements.
    pub fn times_plans(&self) -> bool {
        self.is("auto_explain.log_analyze", "on")
            && self.is("auto_explain.log_timing", "on")
            && !self.is("auto_explain.log_min_duration", "-1")
            && self.sampled_plans() > 0.0
    }

    /// Returns the share of statements that auto_explain times, if it times any.
    pub fn sampled_plans(&self) -> f64 {
        self.number_in("auto_explain.sample_rate").unwrap_or(1.0)
    }

    /// Returns whether pg_fast_timing times plan nodes with a method that stays cheap for many rows. Its method `tsc` reads
    /// the counter for each call, which costs at least a third of the server's own timing.
    pub fn fast_timing(&self) -> bool {
        self.setting(FAST_TIMING_METHOD).is_some_and(|method| method == "auto")
    }
}

/// Returns the hint that sets a setting until it is undone.
pub fn set_hint(name: &str, value: &str) -> String {
    format!("run: ALTER SYSTEM SET {name} = {value}; then: SELECT pg_reload_conf()")
}

/// Returns the figures of pg_fast_timing. `None` if the extension is not installed in this database, or not loaded, or
/// another version with other columns.
pub fn fast_timing_info(connection: &mut Connection) -> Result<Option<FastTiming>, Error> {
    let mut session = Session::new(connection);
    let server = Server::of(&mut session)?;
    let object = |name| server.extension_object(name).ok().flatten();
    let Some((info, counters)) = object("pg_fast_timing_info").zip(object("pg_fast_timing_counters")) else {
        return Ok(None);
    };
    Ok(session.objects(&own_sql::fast_timing(&info, &counters))?.pop())
}

/// Returns the plan nodes with the longest times, if pg_fast_timing's profile is in this database.
pub fn plan_nodes(connection: &mut Connection) -> Result<Vec<PlanNode>, Error> {
    let mut session = Session::new(connection);
    let view = Server::of(&mut session)?.extension_object("pg_stat_plan_nodes").ok().flatten();
    view.map_or_else(|| Ok(Vec::new()), |view| session.objects(&own_sql::plan_nodes(&view)))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ExtensionObject {
        pub fn safe(name: &str) -> ExtensionObject {
            ExtensionObject { name: name.into(), schema: "public".into(), other_owner: None }
        }
    }

    fn with(name: &str, value: &str) -> Server {
        Server { settings: [(name.to_string(), value.to_string())].into(), ..Server::default() }
    }

    #[test]
    fn printed_settings_are_parsed() {
        for (value, number) in [
            ("2ms", Some(2.0)),
            ("0.25", Some(0.25)),
            ("-1", Some(-1.0)),
            ("128kB", Some(128.0)),
            ("off", None),
            ("1e400", None),
            ("1e300", None),
        ] {
            assert_eq!(with("x", value).number_in("x"), number, "{value}");
        }
        for (value, tsc) in
            [("tsc", true), ("auto (tsc)", true), ("auto (system)", false), ("system", false), ("auto", false)]
        {
            assert_eq!(with("timing_clock_source", value).uses_tsc(), tsc, "{value}");
        }
    }
}
