//! The settings whose events the server counts: how many events there are, and how often each of them reads the clock.

use super::advice::{Setting, advise};
use super::facts::{Events, Facts, Gap, OTHER_DATABASES, Part};
use super::statements::{self, ACTIVITY};
use crate::report::{Action, SettingAdvice};
use crate::server::own_sql;
use crate::server::settings::{Server, set_hint};

const IO: &str = "io";
const WAL: &str = "wal";
const FUNCTIONS: &str = "functions";

/// pgstat_prepare_io_time and pgstat_count_io_op_time, pgss_planner, pgstat_init_function_usage and its end, XLogWrite and
/// issue_xlog_fsync, vacuum_delay_point: one read before the event and one after it.
const READS: f64 = 2.0;
/// Since 18 the server also times a wait for a read that it has started (WaitReadBuffers in bufmgr.c).
const READS_WITH_WAIT: f64 = 4.0;
/// check_log_duration in postgres.c reads the clock once per message: one message in the simple protocol, three (parse,
/// bind, execute) in the extended one. The server always reads the clock at the start.
const READS_OF_LOG: (f64, f64) = (1.0, 3.0);
/// MAX_BUFFERS_TO_EXTEND_BY in hio.c: this many new blocks can be timed together, but each may be counted.
const EXTENDED_AT_ONCE: f64 = 64.0;
/// WRITEBACK_MAX_PENDING_FLUSHES in bufmgr.h: the same limit for writebacks.
const WRITTEN_BACK_AT_ONCE: f64 = 256.0;
/// Size of a block in bytes, also in temporary files.
const BLOCK: f64 = 8192.0;

/// Returns the statistics that these settings need. Those of functions have no time of the last reset, so only a smaller number
/// shows a reset.
pub fn parts(server: &Server) -> [Part; 3] {
    let io = if server.major() == 15 { own_sql::WRITES_OF_15 } else { own_sql::IO };
    let wal = if server.major() < 18 { own_sql::WAL_UNTIL_17 } else { own_sql::WAL_IO };
    [(IO, io), (WAL, wal), (FUNCTIONS, own_sql::FUNCTION_CALLS)].map(|(name, sql)| Part { name, sql: sql.into() })
}

/// `track_io_timing`: the server times each read and write of blocks.
pub fn track_io_timing(facts: &Facts) -> Option<SettingAdvice> {
    let counted = match facts.server.major() {
        15 => {
            "blocks read (pg_stat_database) and written (pg_stat_bgwriter; new blocks that backends write are counted, but not timed)"
        }
        16 | 17 => {
            "reads, writes, extends, writebacks and fsyncs in pg_stat_io (it counts blocks; several blocks can be timed together)"
        }
        _ => {
            "reads, writes, extends, writebacks and fsyncs in pg_stat_io; waiting for a read takes two more clock reads"
        }
    };
    let why = format!(
        "two clock reads for each of these: {counted}. The setting shows I/O times in EXPLAIN (BUFFERS) and pg_stat_io"
    );
    switch(facts, "track_io_timing", io_events(facts), why)
}

/// `track_wal_io_timing`: the server times each write and sync of WAL.
pub fn track_wal_io_timing(facts: &Facts) -> Option<SettingAdvice> {
    let counted = facts.counts.growth(WAL, "operations").map(|n| facts.counted(n, READS, READS));
    let view = if facts.server.major() < 18 { "pg_stat_wal" } else { "pg_stat_io" };
    let why = format!("two reads of the clock for each write and sync of WAL, which {view} counts");
    switch(facts, "track_wal_io_timing", counted, why)
}

/// `track_cost_delay_timing` (18): the server times each cost-based delay of a vacuum.
pub fn track_cost_delay_timing(facts: &Facts) -> Option<SettingAdvice> {
    let why = "two reads of the clock for each cost-based delay; delays are not counted, but the length of a delay limits their number per worker and second";
    switch(facts, "track_cost_delay_timing", Ok(delays(&facts.server)), why.into())
}

/// Returns the advice about a setting that is on or off.
fn switch(facts: &Facts, name: &'static str, events: Result<Events, Gap>, why: String) -> Option<SettingAdvice> {
    let value = facts.server.setting(name)?.to_string();
    let setting = Setting {
        name,
        on: value == "on",
        value,
        events: events.unwrap_or_else(Events::unknown),
        reads_per_event: READS,
        cost: &facts.clocks.read,
        why,
        turn_on: format!("{name} = on"),
        turn_off: format!("{name} = off"),
    };
    Some(advise(facts, setting))
}

/// Returns the reads and writes with bounds on their clock reads.
fn io_events(facts: &Facts) -> Result<Events, Gap> {
    let io = |name: &str| facts.counts.growth(IO, name);
    let temporary = facts.counts.growth(ACTIVITY, "temp_bytes")? / BLOCK;
    let events = if facts.server.major() == 15 {
        let (read, written) = (facts.counts.growth(ACTIVITY, "blks_read")?, io("writes")?);
        let all = read + written + io("backend")?;
        facts.counted_reads(all, (read + written) * READS, all * READS)
    } else {
        let (reads, extends, writebacks) = (io("reads")?, io("extends")?, io("writebacks")?);
        let single = io("writes")? + io("fsyncs")?;
        let combined = match facts.server.major() {
            17 => reads / (facts.server.number_in("io_combine_limit").unwrap_or(128.0) * 1024.0 / BLOCK).max(1.0),
            _ => reads,
        };
        let per_read = if facts.server.major() >= 18 { READS_WITH_WAIT } else { READS };
        facts.counted_reads(
            reads + extends + writebacks + single,
            (combined + single + extends / EXTENDED_AT_ONCE + writebacks / WRITTEN_BACK_AT_ONCE) * READS,
            reads * per_read + (extends + writebacks + single) * READS,
        )
    };
    let of_temporary = || {
        Gap::new(
            "blocks of temporary files are timed, but not counted",
            "more memory avoids these files: ALTER SYSTEM SET work_mem = '64MB'; then: SELECT pg_reload_conf()",
        )
    };
    Ok(events.or_more((temporary > 0.0).then(of_temporary)))
}

/// Returns an upper bound on the delays.
fn delays(server: &Server) -> Events {
    let gap = Gap::new(
        "delays are not counted",
        "limit them: ALTER SYSTEM SET vacuum_cost_delay = 0; then: SELECT pg_reload_conf()",
    );
    let manual = delay_ms(server.setting("vacuum_cost_delay"));
    let automatic = match server.setting("autovacuum_vacuum_cost_delay") {
        Some("-1") => manual,
        other => delay_ms(other),
    };
    let reads_high = match (manual, automatic, server.number_in("autovacuum_max_workers")) {
        // Nothing limits the number of sessions that run VACUUM manually.
        (Some(0.0), Some(automatic), Some(workers)) => {
            let each = if automatic > 0.0 { 1e3 / automatic } else { 0.0 };
            Some(workers * each * READS)
        }
        _ => None,
    };
    Events { reads_high, ..Events::unknown(gap) }
}

/// Parses a delay in the server's format: `2ms`, `500us`, `0`.
fn delay_ms(value: Option<&str>) -> Option<f64> {
    let value = value?;
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    // The server's own limit is 100 ms.
    let number = value.strip_suffix(unit)?.parse().ok().filter(|number| (0.0..=1e6).contains(number))?;
    match unit {
        "us" => Some(number / 1e3),
        "ms" | "" => Some(number),
        "s" => Some(number * 1e3),
        _ => None,
    }
}

/// `track_functions`: the server times each function call.
pub fn track_functions(facts: &Facts) -> Option<SettingAdvice> {
    const NAME: &str = "track_functions";
    let value = facts.server.setting(NAME)?.to_string();
    let on = value != "none";
    let calls = match on {
        true => facts.counts.growth(FUNCTIONS, "calls"),
        false => Err(Gap::new("calls are counted only while track_functions is on", set_hint(NAME, "'pl'"))),
    };
    let others = || Gap::new("only functions of this database are counted", OTHER_DATABASES);
    let others = (facts.server.databases > 1).then(others);
    let setting = Setting {
        name: NAME,
        on,
        events: calls.map_or_else(Events::unknown, |calls| facts.counted(calls, READS, READS).or_more(others)),
        reads_per_event: READS,
        cost: &facts.clocks.read,
        why: "two reads of the clock for each call in procedural languages (pl), or also in SQL and C (all); pg_stat_user_functions counts calls only while track_functions is on".into(),
        turn_on: format!("{NAME} = '{}'", if on { &value } else { "pl" }),
        turn_off: format!("{NAME} = 'none'"),
        value,
    };
    Some(advise(facts, setting))
}

/// `log_min_duration_statement` and similar settings: the server reads the clock at the end of each statement.
pub fn statement_log(facts: &Facts) -> Option<SettingAdvice> {
    const NAMES: [&str; 3] = ["log_min_duration_statement", "log_min_duration_sample", "log_duration"];
    let server = &facts.server;
    let is_on = |name: &&str| server.setting(name).is_some_and(|value| !["-1", "off"].contains(&value));
    let name = *NAMES.iter().find(|name| is_on(name)).unwrap_or(&NAMES[0]);
    let value = server.setting(name)?.to_string();
    let on = is_on(&name);
    let setting = Setting {
        name,
        on,
        events: statements::events(facts, READS_OF_LOG.0, READS_OF_LOG.1),
        reads_per_event: READS_OF_LOG.0,
        // It is a timestamp, which comes from the system clock in every version.
        cost: &facts.clocks.system,
        why: "one read of the system clock per statement, or three in the extended protocol (parse, bind, execute); writing to the log costs far more".into(),
        turn_on: if on { format!("{name} = '{value}'") } else { format!("{name} = '1s'") },
        turn_off: format!("{name} = {}", if name == "log_duration" { "off" } else { "-1" }),
        value,
    };
    Some(advise(facts, setting))
}

/// `pg_stat_statements.track_planning`: the extension times each planning.
pub fn track_planning(facts: &Facts) -> Option<SettingAdvice> {
    const NAME: &str = "pg_stat_statements.track_planning";
    let value = facts.server.setting(NAME)?.to_string();
    let on = value == "on" && !facts.server.is("pg_stat_statements.track", "none");
    // While it is off, only statements are counted. A prepared statement may not be planned each time.
    let (name, least) = if on { ("plans", READS) } else { ("calls", 0.0) };
    let counted = statements::growth(facts, name).map(|(n, more)| facts.counted(n, least, READS).or_more(more));
    let setting = Setting {
        name: NAME,
        value,
        on,
        events: counted.unwrap_or_else(Events::unknown),
        reads_per_event: READS,
        cost: &facts.clocks.read,
        why: "two reads of the clock for each planning. The setting also takes a lock for each planning. The lock costs far more if many sessions run the same statement".into(),
        turn_on: format!("{NAME} = on"),
        turn_off: format!("{NAME} = off"),
    };
    let advice = advise(facts, setting);
    Some(match advice.advice {
        Action::TurnOn => SettingAdvice {
            advice: Action::None,
            summary: "its clock reads would be cheap, but it also takes a lock for each statement".into(),
            line: None,
            undo: None,
            ..advice
        },
        _ => advice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_parsed() {
        for (value, ms) in [
            ("2ms", Some(2.0)),
            ("500us", Some(0.5)),
            ("0", Some(0.0)),
            ("1s", Some(1e3)),
            ("-1", None),
            ("", None),
            (&"9".repeat(400), None),
        ] {
            assert_eq!(delay_ms(Some(value)), ms, "{value}");
        }
    }
}
