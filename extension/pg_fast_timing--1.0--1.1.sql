/* pg_fast_timing--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_fast_timing UPDATE TO '1.1'" to load this file. \quit

DROP FUNCTION pg_fast_timing_info();

CREATE FUNCTION pg_fast_timing_info(
    OUT method text,                -- the setting
    OUT clock text,                 -- the clock that times calls
    OUT call_cost_ns float8,        -- cost of timing one call with it
    OUT tsc_reason text,            -- why the TSC is not used; null if it is used
    OUT tsc_khz float8,
    OUT tsc_uncertainty_ppm float8,
    OUT ticks_per_second int,       -- rate of the ticking clock
    OUT ticker text,                -- who writes that clock for this session now: worker, thread, none
    OUT ticker_reason text,         -- why it is not what the setting requests; null if it is
    OUT last_nodes int,             -- timed plan nodes of the last timed statement
    OUT last_estimated int,         -- of these, nodes with estimated times
    OUT last_samples bigint,
    OUT last_error_ms float8        -- largest error of a node, for all loops together
)
AS 'MODULE_PATHNAME', 'pg_fast_timing_info_1_1'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION pg_fast_timing_counters(
    OUT scope text,                 -- the counters of this session, or of the server if the library is in
                                    -- shared_preload_libraries
    OUT since timestamptz,          -- the last reset, or the start
    OUT statements bigint,          -- statements whose plan nodes were timed
    OUT exact_nodes bigint,         -- their nodes with exact times
    OUT estimated_nodes bigint,     -- their nodes with estimated times
    OUT node_calls bigint,          -- calls of plan nodes: with count_calls also those of other statements
    OUT without_tsc bigint,         -- statements that the server timed, because the method tsc had no counter
    OUT without_ticks bigint,       -- statements that lacked ticks: nodes have no time, or a larger error
    OUT timing_ms float8,           -- what reading clocks for calls cost
    OUT clock_jumps bigint          -- statements whose times are wrong, because a clock jumped
)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_fast_timing AS SELECT * FROM pg_fast_timing_counters();

GRANT SELECT ON pg_stat_fast_timing TO PUBLIC;
