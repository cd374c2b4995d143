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
    OUT last_nodes int,             -- timed plan nodes of the last timed statement
    OUT last_estimated int,         -- of these, nodes with estimated times
    OUT last_samples bigint,
    OUT last_error_ms float8        -- largest error of a node, for all loops together
)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;
