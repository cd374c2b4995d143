/* pg_fast_timing--1.1--1.2.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_fast_timing UPDATE TO '1.2'" to load this file. \quit

-- The owner of another function concat or format in the schema of the extension must not get the rights of who reads the views. So
-- names whose arguments have no fixed type are qualified, and operators have arguments of fixed types.

CREATE FUNCTION pg_fast_timing_profile(
    OUT dbid oid,
    OUT userid oid,
    OUT queryid bigint,
    OUT planid bigint,
    OUT node int,
    OUT parent int,
    OUT subplan text,
    OUT kind text,
    OUT relation text,
    OUT index text,
    OUT since timestamptz,
    OUT executions float8,
    OUT loops float8,
    OUT rows float8,
    OUT calls float8,
    OUT planned_rows float8,
    OUT total_ns float8,
    OUT self_ns float8,             -- never negative
    OUT self_error_ns float8,
    OUT startup_ns float8,
    OUT cpu_ns float8,
    OUT wait_io_ns float8,
    OUT wait_lock_ns float8,
    OUT wait_client_ns float8,
    OUT wait_other_ns float8,
    OUT shared_hit float8,
    OUT shared_read float8,
    OUT temp_blocks float8,
    OUT plan_ns float8,
    OUT plan_client_ns float8,
    OUT raw_self_ns float8,         -- can be negative by chance
    OUT profiled float8
)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_plan_nodes AS
SELECT dbid,
    userid,
    queryid,
    planid,                                     -- hash of the plan's shape
    node,                                       -- number of the node, in preorder
    parent,                                     -- node that calls it; null: none
    subplan,                                    -- name of the subplan of which it is the root; null: none
    kind,                                       -- as in EXPLAIN: Hash Left Join
    relation,
    index,
    since,                                      -- its first profiled execution
    executions::bigint AS executions,           -- of the statement
    profiled::bigint AS profiled,               -- executions that were timed; if they are fewer, the figures are estimates for all
    loops::bigint AS loops,                     -- the columns below are sums over all executions
    rows::bigint AS rows,
    calls::bigint AS calls,
    planned_rows,                               -- rows that the planner expected
    total_ns / 1e6 AS total_ms,                 -- with the nodes below it
    share * self_ns / 1e6 AS self_ms,           -- without them
    self_error_ns / 1e6 AS self_error_ms,       -- 95% half-width of self_ms, with clock reads
    startup_ns / 1e6 AS startup_ms,
    share * cpu_ns / 1e6 AS cpu_ms,             -- parts of self_ms; only of the time in which a worker ticked, and null if none did
    share * wait_io_ns / 1e6 AS wait_io_ms,
    share * wait_lock_ns / 1e6 AS wait_lock_ms,
    share * wait_client_ns / 1e6 AS wait_client_ms,
    share * wait_other_ns / 1e6 AS wait_other_ms,
    shared_hit::bigint AS shared_hit,           -- blocks, with those of the nodes below it, as in EXPLAIN
    shared_read::bigint AS shared_read,
    temp_blocks::bigint AS temp_blocks,         -- read and written
    plan_ns / 1e6 AS plan_ms,                   -- time of the whole statement without AFTER triggers, in the row of node 0
    plan_client_ns / 1e6 AS plan_client_ms      -- of this, sending rows and waiting for the client, with the same limits
FROM (
    -- A self time is a difference of estimates, so it can be too low by chance. It is shown as 0 then, and the others of the plan are
    -- reduced: all together are the time of the plan.
    SELECT *, coalesce(sum(raw_self_ns) OVER plan / nullif(sum(self_ns) OVER plan, 0), 0) AS share
    FROM pg_fast_timing_profile()
    WINDOW plan AS (PARTITION BY dbid, userid, queryid, planid)
) AS nodes;

CREATE VIEW pg_stat_plans_timed AS
SELECT dbid,
    userid,
    queryid,
    planid,
    min(since) AS since,
    max(executions) AS executions,
    max(profiled) AS profiled,
    sum(plan_ms) AS total_ms,
    sum(plan_client_ms) AS client_ms,
    (array_agg(node ORDER BY self_ms DESC, node))[1] AS largest_node,   -- the node with the largest self time
    (array_agg(pg_catalog.concat(kind, ' using ' || index, ' on ' || relation) ORDER BY self_ms DESC, node))[1] AS largest,
    max(self_ms) AS largest_self_ms,
    max(self_ms) / nullif(sum(self_ms), 0) AS largest_share             -- of the self times of all nodes
FROM pg_stat_plan_nodes
GROUP BY dbid, userid, queryid, planid;

-- Prints a plan as EXPLAIN does, with the sums over all executions by all users in all databases.
CREATE FUNCTION pg_fast_timing_plan(queryid bigint, planid bigint) RETURNS SETOF text
LANGUAGE SQL VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
    WITH RECURSIVE nodes AS (
        SELECT n.node,
            min(n.parent) AS parent,
            min(n.subplan) AS subplan,
            min(pg_catalog.concat(n.kind, ' using ' || n.index, ' on ' || n.relation)) AS label,
            sum(n.executions) AS executions,
            sum(n.profiled) AS profiled,
            sum(n.loops) AS loops,
            sum(n.rows) AS rows,
            sum(n.planned_rows) AS planned_rows,
            sum(n.total_ms) AS total_ms,
            sum(n.self_ms) AS self_ms,
            sum(n.self_error_ms) AS self_error_ms,
            sum(n.startup_ms) AS startup_ms,
            sum(n.cpu_ms) AS cpu_ms,
            sum(n.wait_io_ms) AS wait_io_ms,
            sum(n.wait_lock_ms) AS wait_lock_ms,
            sum(n.wait_client_ms) AS wait_client_ms,
            sum(n.wait_other_ms) AS wait_other_ms,
            sum(n.shared_hit) AS shared_hit,
            sum(n.shared_read) AS shared_read,
            sum(n.plan_ms) AS plan_ms
        FROM pg_stat_plan_nodes n
        WHERE n.queryid = $1 AND n.planid = $2
        GROUP BY n.node
    ), tree AS (
        -- `indent` is that of the lines below the node, and `path` sorts in preorder.
        SELECT n.*, 2 AS indent, ARRAY[n.node] AS path
        FROM nodes n
        WHERE n.parent IS NULL
        UNION ALL
        -- By chance, a node can take longer than the node that calls it. Below Gather, times are sums over processes.
        SELECT n.node, n.parent, n.subplan, n.label, n.executions, n.profiled, n.loops, n.rows, n.planned_rows,
            CASE WHEN n.subplan IS NULL AND NOT starts_with(t.label, 'Gather') THEN least(n.total_ms, t.total_ms) ELSE n.total_ms END,
            n.self_ms, n.self_error_ms, n.startup_ms, n.cpu_ms, n.wait_io_ms, n.wait_lock_ms, n.wait_client_ms, n.wait_other_ms,
            n.shared_hit, n.shared_read, n.plan_ms, t.indent + CASE WHEN n.subplan IS NULL THEN 6 ELSE 8 END, pg_catalog.array_append(t.path, n.node)
        FROM tree t JOIN nodes n ON n.parent = t.node
    ), lines AS (
        SELECT path, 1 AS line, repeat(' ', indent - 8) || subplan AS text
        FROM tree
        WHERE subplan IS NOT NULL
        UNION ALL
        SELECT path, 2, CASE WHEN indent > 2 THEN repeat(' ', indent - 6) || '->  ' ELSE '' END || label ||
            CASE WHEN loops = 0 THEN ' (never executed)' ELSE
                pg_catalog.format(' (actual time=%s..%s rows=%s loops=%s)', round((least(startup_ms, total_ms) / loops)::numeric, 3), round((total_ms / loops)::numeric, 3),
                    round(rows::numeric / loops, 2), loops)
            END
        FROM tree
        UNION ALL
        SELECT path, 3, pg_catalog.format('%sPlanned Rows: %s', repeat(' ', indent), round((planned_rows / loops)::numeric, 2))
        FROM tree
        WHERE loops > 0
        UNION ALL
        SELECT path, 4, pg_catalog.format('%sSelf Time: %s ms +-%s ms (%s%%)', repeat(' ', indent), round(self_ms::numeric, 3), round(self_error_ms::numeric, 3),
            round((100 * self_ms / nullif(sum(self_ms) OVER (), 0))::numeric, 1))
        FROM tree
        UNION ALL
        SELECT path, 5, pg_catalog.format('%sWaits: %sCPU %s ms', repeat(' ', indent),
            pg_catalog.concat('I/O ' || nullif(round(wait_io_ms::numeric), 0)::text || ' ms, ', 'Lock ' || nullif(round(wait_lock_ms::numeric), 0)::text || ' ms, ',
                'Client ' || nullif(round(wait_client_ms::numeric), 0)::text || ' ms, ', 'Other ' || nullif(round(wait_other_ms::numeric), 0)::text || ' ms, '),
            round(cpu_ms::numeric))
        FROM tree
        WHERE wait_io_ms + wait_lock_ms + wait_client_ms + wait_other_ms > 0
        UNION ALL
        SELECT path, 6, pg_catalog.format('%sBuffers: shared%s%s', repeat(' ', indent), ' hit=' || nullif(shared_hit, 0)::text, ' read=' || nullif(shared_read, 0)::text)
        FROM tree
        WHERE shared_hit + shared_read > 0
        UNION ALL
        SELECT ARRAY[2147483647], 7, pg_catalog.format('Executions: %s%s', executions, CASE WHEN profiled < executions THEN pg_catalog.format(' (profiled: %s)', profiled) END) FROM tree WHERE plan_ms > 0
        UNION ALL
        SELECT ARRAY[2147483647], 8, pg_catalog.format('Execution Time: %s ms', round(plan_ms::numeric, 3)) FROM tree WHERE plan_ms > 0
        UNION ALL
        -- pg_timing explain must not subtract the reads of the server's clock, which these times do not contain.
        SELECT ARRAY[2147483647], 9, 'Fast Timing: sums over all executions' FROM tree WHERE plan_ms > 0
    )
    SELECT text FROM lines ORDER BY path, line;
END;

CREATE FUNCTION pg_fast_timing_profile_info(
    OUT state text,                 -- on, off, or why there is no profile
    OUT nodes bigint,               -- plan nodes in memory
    OUT max_nodes bigint,           -- the setting
    OUT removed_plans bigint,       -- plans that were removed, because the memory was full
    OUT too_large bigint,           -- executions of plans with more nodes than there is memory
    OUT untimed bigint,             -- executions that were not added, because no worker or thread ticked, or a clock jumped
    OUT without_queryid bigint,     -- statements that were not profiled, because they have no queryid: they were planned before
                                    -- compute_query_id was on; before 18 DECLARE CURSOR never has one
    OUT since timestamptz           -- the last reset of all plans, or the start
)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

-- Removes the plans of a statement, or one of them, or all plans of all statements.
CREATE FUNCTION pg_fast_timing_profile_reset(queryid bigint DEFAULT NULL, planid bigint DEFAULT NULL) RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_fast_timing_profile_reset(bigint, bigint) FROM PUBLIC;

GRANT SELECT ON pg_stat_plan_nodes, pg_stat_plans_timed TO PUBLIC;
