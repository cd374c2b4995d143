--
-- make installcheck: the library loads, each method keeps the rows exact, and the extension can be updated
--
LOAD 'pg_fast_timing';
CREATE EXTENSION pg_fast_timing VERSION '1.0';
SELECT count(*) > 0 AS has_counters FROM pg_fast_timing_info() WHERE statements >= 0;
ALTER EXTENSION pg_fast_timing UPDATE;

-- the rows of the plan's node
CREATE FUNCTION timed(query text) RETURNS TABLE (node text, actual_rows float8)
LANGUAGE plpgsql AS $$
DECLARE
	plan		jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	plan := plan -> 0 -> 'Plan';
	RETURN QUERY SELECT plan ->> 'Node Type', (plan ->> 'Actual Rows')::float8;
END $$;

SET pg_fast_timing.method = off;
SELECT * FROM timed('SELECT * FROM generate_series(1, 1000) i');
SET pg_fast_timing.method = auto;
SELECT * FROM timed('SELECT * FROM generate_series(1, 1000) i');

SELECT count(*) > 0 AS has_clock FROM pg_fast_timing_info();
SELECT count(*) > 0 AS has_counters FROM pg_stat_fast_timing WHERE statements > 0;

DROP FUNCTION timed(text);
DROP EXTENSION pg_fast_timing;
