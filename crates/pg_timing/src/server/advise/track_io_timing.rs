//! `track_io_timing`: the server reads the clock before and after each read or write of blocks.

use super::advice::{Setting, advise};
use super::counts::Part;
use super::facts::{Events, Facts};
use super::gap::Gap;
use super::statements::ACTIVITY;
use crate::report::SettingAdvice;
use crate::server::own_sql;
use crate::server::settings::Server;

const NAME: &str = "track_io_timing";
const PART: &str = "io";

/// pgstat_prepare_io_time and pgstat_count_io_op_time read the clock once each.
const CLOCK_READS: f64 = 2.0;
/// Since 18 the server also times a wait for a read that it has started (WaitReadBuffers in bufmgr.c).
const CLOCK_READS_WITH_WAIT: f64 = 4.0;
/// MAX_BUFFERS_TO_EXTEND_BY in hio.c: this many new blocks can be timed together, but each may be counted.
const EXTENDED_AT_ONCE: f64 = 64.0;
/// WRITEBACK_MAX_PENDING_FLUSHES in bufmgr.h: the same limit for writebacks.
const WRITTEN_BACK_AT_ONCE: f64 = 256.0;
/// Size of a block in bytes, also in temporary files.
const BLOCK: f64 = 8192.0;

/// Statistics of reads and writes.
pub fn part(server: &Server) -> Option<Part> {
    let sql = match server.major() {
        15 => own_sql::WRITES_OF_15,
        _ => own_sql::IO,
    };
    Some(Part { name: PART, sql: sql.into() })
}

/// Returns the advice.
pub fn setting(facts: &Facts) -> Option<SettingAdvice> {
    let value = facts.server.setting(NAME)?.to_string();
    Some(advise(
        facts,
        Setting {
            name: NAME,
            on: value == "on",
            value,
            events: events(facts).unwrap_or_else(Events::unknown),
            reads_per_event: CLOCK_READS,
            cost: &facts.clocks.read,
            why: why(facts),
            turn_on: "track_io_timing = on".into(),
            turn_off: "track_io_timing = off".into(),
        },
    ))
}

/// Returns the reason for the cost.
fn why(facts: &Facts) -> String {
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
    format!(
        "two clock reads for each of these: {counted}. The setting shows I/O times in EXPLAIN (BUFFERS) and pg_stat_io"
    )
}

/// Returns the reads and writes with bounds on their clock reads.
fn events(facts: &Facts) -> Result<Events, Gap> {
    let io = |name: &str| facts.counts.growth(PART, name);
    let temporary = facts.counts.growth(ACTIVITY, "temp_bytes")? / BLOCK;
    let events = if facts.server.major() == 15 {
        let (read, written) = (facts.counts.growth(ACTIVITY, "blks_read")?, io("writes")?);
        let backend = io("backend")?;
        let all = read + written + backend;
        facts.counted_reads(all, (read + written) * CLOCK_READS, all * CLOCK_READS)
    } else {
        let (reads, extends, writebacks) = (io("reads")?, io("extends")?, io("writebacks")?);
        let single = io("writes")? + io("fsyncs")?;
        let combined = match facts.server.major() {
            17 => reads / (facts.server.number_in("io_combine_limit").unwrap_or(128.0) * 1024.0 / BLOCK).max(1.0),
            _ => reads,
        };
        let per_read = if facts.server.major() >= 18 { CLOCK_READS_WITH_WAIT } else { CLOCK_READS };
        facts.counted_reads(
            reads + extends + writebacks + single,
            (combined + single + extends / EXTENDED_AT_ONCE + writebacks / WRITTEN_BACK_AT_ONCE) * CLOCK_READS,
            reads * per_read + (extends + writebacks + single) * CLOCK_READS,
        )
    };
    Ok(match temporary > 0.0 {
        true => events.or_more(Gap::new(
            "blocks of temporary files are timed, but not counted",
            "more memory avoids these files: ALTER SYSTEM SET work_mem = '64MB'; then: SELECT pg_reload_conf()",
        )),
        false => events,
    })
}
