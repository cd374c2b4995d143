/* pg_fast_timing--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_fast_timing" to load this file. \quit

CREATE FUNCTION pg_fast_timing_info(
    OUT method text,                -- as set
    OUT clock text,                 -- that calls are timed with
    OUT call_cost_ns float8,        -- of timing one call with it
    OUT tsc_reason text,            -- why the TSC is not used; null: it is
    OUT tsc_khz float8,
    OUT tsc_uncertainty_ppm float8,
    OUT ticks_per_second int,       -- of sampling
    OUT last_nodes int,             -- plan nodes of the last statement that was timed
    OUT last_estimated int,         -- of these, by samples
    OUT last_samples bigint,
    OUT last_error_ms float8        -- of the least certain node, all loops together
)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;
