/* pg_fast_timing--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_fast_timing" to load this file. \quit

CREATE FUNCTION pg_fast_timing_info(
    OUT method text,                -- the setting
    OUT clock text,                 -- the clock that times calls
    OUT call_cost_ns float8,        -- cost of timing one call with it
    OUT tsc_reason text,            -- why the TSC is not used; null if it is used
    OUT tsc_khz float8,
    OUT tsc_uncertainty_ppm float8,
    OUT ticks_per_second int,       -- rate of the sampling clock
    OUT ticker text,                -- who writes that clock for this session now: worker, thread, none
    OUT ticker_reason text,         -- why it is not what the setting requests; null if it is
    OUT last_nodes int,             -- timed plan nodes of the last timed statement
    OUT last_estimated int,         -- of these, nodes with estimated times
    OUT last_samples bigint,
    OUT last_error_ms float8,       -- largest error of a node, for all loops together
    OUT scope text,                 -- the columns below are about this session, or about the server if the library is
                                    -- in shared_preload_libraries
    OUT since timestamptz,          -- the last reset, or the start
    OUT statements bigint,          -- statements whose plan nodes were timed
    OUT exact_nodes bigint,         -- their nodes with exact times
    OUT estimated_nodes bigint,     -- their nodes with estimated times
    OUT node_calls bigint,          -- calls of plan nodes: exact, with count_calls also those of other statements
    OUT without_tsc bigint,         -- statements that the server timed, because the method tsc had no counter
    OUT without_ticks bigint        -- statements without ticks: timed by the server, or estimated from bursts alone
)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION pg_fast_timing_reset() RETURNS void     -- sets the counters to zero
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_fast_timing_reset() FROM PUBLIC;
