"""Tests of the counters: the number of node calls is exact, and their scope is the session or the server."""

import re

from extension import METHODS, force_parallel
from extension.invariants import explained, nodes
from servers import Failed, Server

SETTINGS = {"jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0, "statement_timeout": "60s"}
ROWS = 100_000
TABLES = f"""CREATE EXTENSION pg_fast_timing; CREATE TABLE many AS SELECT g AS i FROM generate_series(1, {ROWS}) g;
CREATE TABLE few AS SELECT g AS i FROM generate_series(1, 10) g; VACUUM ANALYZE;
CREATE FUNCTION nested() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM few); END';
CREATE INDEX ON few (i); CREATE TABLE parts (i int, k int) PARTITION BY LIST (k);
SELECT format('CREATE TABLE part_%s PARTITION OF parts FOR VALUES IN (%s)', g, g) FROM generate_series(1, 8) g \\gexec
INSERT INTO parts SELECT g, g % 8 + 1 FROM generate_series(1, 2000) g; ANALYZE parts;
CREATE ROLE joe; CREATE ROLE watcher; GRANT pg_monitor TO watcher;"""

# Statements and their calls: each node is called for each of its rows, and once more if it is read to its end.
KNOWN = {
    # Scan, and the aggregate.
    "SELECT count(*) FROM many": (ROWS + 1) + 2,
    # The scan is not read to its end.
    "SELECT i FROM many LIMIT 10": 10 + 11,
    # A scan with a filter, in as many loops as the other table has rows, and the nested loop.
    "SELECT a.i FROM few a, few b WHERE b.i < 3 AND a.i > b.i - 100": None,
    # Two scans, the join, and one call of the Hash node.
    "SELECT * FROM few a JOIN few b USING (i)": 11 + 11 + 11 + 1,
    "SELECT FROM few WHERE i < 0": 1,
}
HASH_JOIN = "SET enable_nestloop = off; SET enable_mergejoin = off; SET enable_sort = off;"


def calls_of(server, statement, before=""):
    """Returns the growth of the counter in a session that executes one statement."""
    count = "SELECT node_calls FROM pg_stat_fast_timing;"
    # Reading the counter is a statement, too. So it is read before the settings apply, and not counted while it runs.
    said = server.psql(f"LOAD 'pg_fast_timing'; {HASH_JOIN}\n{count}\n{before}\n{statement} \\g /dev/null\n{count}").split()
    return int(said[-1]) - int(said[-2])


def runs():
    """Yields the ways to execute a statement whose calls are counted: their name, settings and prefix."""
    for method in METHODS:
        yield method, f"SET pg_fast_timing.method = {method};", "EXPLAIN (ANALYZE, BUFFERS OFF)"
        yield f"{method} with WAL", f"SET pg_fast_timing.method = {method};", "EXPLAIN (ANALYZE, BUFFERS, WAL)"
    yield "without times", "", "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF)"
    yield "without times, with buffers", "", "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS)"
    yield "count_calls", "SET pg_fast_timing.count_calls = top;", ""


def known_statements(server):
    for name, settings, prefix in runs():
        for statement, expected in KNOWN.items():
            found = calls_of(server, f"{prefix} {statement}", settings)
            if expected is not None and found != expected:
                yield f"{name}: {statement}: {found} node calls, not {expected}"
        # Without a known number, all ways must agree.
    numbers = {name: calls_of(server, f"{prefix} {statement}", settings) for statement, n in KNOWN.items() if n is None for name, settings, prefix in runs()}
    if len(set(numbers.values())) != 1 or min(numbers.values()) < 20:
        yield f"a nested loop: {numbers}"


def not_counted(server):
    for name, settings, statement in (
        ("method off", "SET pg_fast_timing.method = off; SET pg_fast_timing.count_calls = 'all';", "EXPLAIN (ANALYZE) SELECT count(*) FROM many"),
        ("no setting", "", "SELECT count(*) FROM many"),
        ("no execution", "SET pg_fast_timing.count_calls = 'all';", "EXPLAIN SELECT count(*) FROM many"),
    ):
        if found := calls_of(server, statement, settings):
            yield f"{name}: {found} node calls are counted"


def nested_statements(server):
    """`top` counts the statements of clients, `all` also those within functions."""
    # A Result, and within the function a Result with its subplan: an aggregate and a scan.
    outer, inner = 2, 2 + 2 + 11
    for value, expected in (("top", outer), ("all", outer + inner)):
        found = calls_of(server, "SELECT nested()", f"SET pg_fast_timing.count_calls = '{value}';")
        if found != expected:
            yield f"count_calls = {value}: {found} node calls, not {expected}"


def after_errors(server):
    """A failed statement counts what it executed, and a cursor counts when it ends."""
    for method in METHODS:
        settings = f"SET pg_fast_timing.method = {method}; \\set ON_ERROR_STOP off\n"
        found = calls_of(server, "EXPLAIN (ANALYZE) SELECT 1 / (i - 1000) FROM many", settings)
        if found != 999:
            yield f"{method}: a statement that fails in its row 1000: {found} node calls"
    fetches = "BEGIN; DECLARE c CURSOR FOR SELECT i FROM many; FETCH 5 FROM c \\g /dev/null\nFETCH 7 FROM c \\g /dev/null\n{}"
    for end in ("CLOSE c; COMMIT", "ROLLBACK", "SELECT 1 / 0; ROLLBACK"):
        found = calls_of(server, fetches.format(end), "SET pg_fast_timing.count_calls = 'top'; \\set ON_ERROR_STOP off\n")
        if found != 5 + 7:
            yield f"a cursor after 12 rows, {end}: {found} node calls"


def parallel(server):
    """With shared memory, the calls of all processes are counted."""
    settings = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
    for name, more, prefix in runs():
        plan = explained(server.psql(f"{settings} EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM many"))["Plan"]
        if plan["Plans"][0]["Node Type"] != "Gather":
            yield f"not a parallel plan: {plan}"
        found = calls_of(server, f"{prefix} SELECT count(*) FROM many", settings + more)
        # Two aggregates, the Gather, and a scan in up to three processes: each process finds the end of the scan.
        low, high = 2 + 2 + 2 + ROWS + 1, 2 + 4 + 3 * 2 + ROWS + 3
        if not low <= found <= high:
            yield f"{name}: a parallel count: {found} node calls, not {low} to {high}"


def parallel_hash_join(server):
    """In the leader, core installs its own timing in a parallel hash join within the first call of the Gather node, and can make all calls there."""
    settings = "SET max_parallel_workers_per_gather = 1; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
    join = "SELECT count(*) FROM many a JOIN many b USING (i)"
    # The Gather node evaluates the InitPlan before core initializes the join.
    with_init_plan = f"{join} WHERE b.i > (SELECT min(few.i) - 1 FROM few)"
    for statement, joins in ((join, 1), (f"{join} JOIN many c USING (i)", 2), (with_init_plan, 1)):
        plan = explained(server.psql(f"{HASH_JOIN} {settings} EXPLAIN (ANALYZE, FORMAT JSON) {statement}"))["Plan"]
        if sum(node["Node Type"] == "Hash Join" and node["Parallel Aware"] for node, _ in nodes(plan)) != joins:
            yield f"not a plan with {joins} parallel hash joins: {plan}"
        for name, more, prefix in runs():
            found = calls_of(server, f"{prefix} {statement}", settings + more)
            # Each scan and each join returns all rows. Each of two processes finds the end of each node.
            low = (2 * joins + 1) * ROWS
            if not low < found < low + 80:
                yield f"{name}: {joins} parallel hash joins: {found} node calls, not {low} to {low + 80}"


def direct_modify(server):
    """postgres_fdw executes an UPDATE or DELETE on the remote server. The rows that it adds are not calls."""
    server.psql(
        "CREATE EXTENSION postgres_fdw; CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw "
        f"OPTIONS (host '{server.inside(server.socket_dir)}', port '{server.port}', dbname 'postgres');"
        "CREATE USER MAPPING FOR CURRENT_USER SERVER self; CREATE FOREIGN TABLE far (i int) SERVER self OPTIONS (table_name 'few')"
    )
    for statement, expected in (
        # ModifyTable and the foreign scan.
        ("UPDATE far SET i = i", 1 + 1),
        ("DELETE FROM far WHERE i > 0", 1 + 1),
        ("UPDATE far SET i = i RETURNING i", 11 + 11),
        ("DELETE FROM far WHERE i < 0 RETURNING i", 1 + 1),
        # The end of an UPDATE within a statement is also read after the statement.
        ("WITH u AS (UPDATE far SET i = i RETURNING i) SELECT count(*) FROM u", 2 + 11 + 12 + 11),
        ("WITH u AS (UPDATE far SET i = i) SELECT 1", 2 + 1 + 1),
    ):
        for name, settings, prefix in runs():
            found = calls_of(server, f"BEGIN; {prefix} {statement} \\g /dev/null\nROLLBACK", settings)
            if found != expected:
                yield f"{name}: {statement}: {found} node calls, not {expected}"


# A subplan that all partitions share, with a sequential scan or with bitmap nodes, which have no wrapper.
SHARED = "SELECT count(*) FROM parts WHERE i NOT IN (SELECT few.i FROM few WHERE few.i < 1000)"
SHARED_BY = {"a scan": "enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off", "bitmaps": "enable_indexscan = off; SET enable_seqscan = off; SET enable_indexonlyscan = off"}


def shared_subplan(server):
    """Below a Gather node, the server adds the workers' rows of a shared subplan once for each partition. We count them once."""
    parallel = f"SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
    for kind, planner in SHARED_BY.items():
        settings = f"SET {planner};"
        plan = explained(server.psql(f"{parallel} {settings} EXPLAIN (ANALYZE, FORMAT JSON) {SHARED}"))["Plan"]
        gathers = [node for node, _ in nodes(plan) if node["Node Type"] == "Gather"]
        subplans = [node["Node Type"] for node, _ in nodes(plan) if node.get("Parent Relationship") == "SubPlan"]
        if len(gathers) != 1 or gathers[0]["Workers Launched"] != 2 or subplans != ["Bitmap Heap Scan" if kind == "bitmaps" else "Seq Scan"]:
            yield f"not a parallel plan with a shared subplan: {plan}"
        for name, more, prefix in runs():
            serial = calls_of(server, f"{prefix} {SHARED}", settings + more)
            found = calls_of(server, f"{prefix} {SHARED}", parallel + settings + more)
            # Each process can run the subplan for each partition: 12 calls more. The Gather node reads its rows. Other nodes are
            # called up to 40 times more.
            # Of a bitmap node, only the workers' calls are counted.
            low = serial + gathers[0]["Actual Rows"] - (8 if kind == "bitmaps" else 0)
            if not low < found < low + 8 * 12 + 40:
                yield f"{name}, {kind}: {found} node calls, and {serial} without parallel workers"


def opened_before(server):
    """A cursor that was opened before the setting is not counted. Its functions are not statements of clients."""
    cursor = "BEGIN; DECLARE c CURSOR FOR SELECT nested() FROM few;"
    settings = "SET pg_fast_timing.count_calls = '{}';"
    for value, expected in (("top", 0), ("all", 3 * (2 + 2 + 11))):
        found = calls_of(server, f"{cursor} {settings.format(value)} FETCH 3 FROM c \\g /dev/null\nCOMMIT")
        if found != expected:
            yield f"count_calls = {value}, set while a cursor is open: {found} node calls, not {expected}"
    # The same for the functions that run at the end of a statement.
    found = calls_of(server, f"{cursor} FETCH 1 FROM c \\g /dev/null\nFETCH 1 FROM c \\g /dev/null\nCOMMIT", settings.format("top"))
    if found != 2 * 1:
        yield f"count_calls = top: a cursor: {found} node calls"


def not_shown(server):
    """auto_explain shows no times of a cursor that was only counted, although log_analyze is on when it ends."""
    said = server.psql(
        "LOAD 'auto_explain'; LOAD 'pg_fast_timing'; SET pg_fast_timing.count_calls = top; SET auto_explain.log_min_duration = 0;"
        "BEGIN; DECLARE c CURSOR FOR SELECT i FROM few; FETCH ALL FROM c \\g /dev/null\n"
        "SET auto_explain.log_analyze = on; SET client_min_messages = log;\nSELECT 1 \\g /dev/null\nCLOSE c; COMMIT",
        notices=True,
    )
    if "Seq Scan on few" not in said or "Seq Scan on few  (cost" not in said or re.search(r"Seq Scan on few .*actual", said):
        yield f"auto_explain and count_calls: {said}"


def scopes(installation):
    """Without preloading, a session sees its own counters. With it, each session sees those of all."""
    for settings, scope in ((SETTINGS, "session"), (SETTINGS | {"shared_preload_libraries": "pg_fast_timing"}, "server")):
        with Server(installation, settings) as server:
            server.psql(TABLES)
            other = "LOAD 'pg_fast_timing'; EXPLAIN (ANALYZE) SELECT count(*) FROM many"
            server.psql(other)
            found, calls, statements = server.psql("LOAD 'pg_fast_timing'; SELECT scope, node_calls, statements FROM pg_stat_fast_timing").strip().split("|")
            expected = (scope, *(("0", "0") if scope == "session" else (str(ROWS + 3), "1")))
            if (found, calls, statements) != expected:
                yield f"{scope}: {(found, calls, statements)}, not {expected}"
            if scope == "server":
                yield from parallel(server)
                yield from parallel_hash_join(server)
                yield from shared_subplan(server)
                yield from resets(server)


def resets(server):
    said = server.psql("SET ROLE watcher; SELECT node_calls > 0 FROM pg_stat_fast_timing")
    if said.strip() != "t":
        yield f"pg_monitor reads {said}"
    try:
        server.psql("SET ROLE joe; SELECT pg_fast_timing_reset()")
        yield "an ordinary role can reset the counters"
    except Failed as refused:
        if "permission denied" not in str(refused):
            yield str(refused)
    said = server.psql("SELECT since AS start FROM pg_stat_fast_timing \\gset\nSELECT pg_fast_timing_reset() \\g /dev/null\nSELECT node_calls, statements, since > :'start' FROM pg_stat_fast_timing")
    if said.strip() != "0|0|t":
        yield f"after a reset: {said}"


def other_version(server):
    """The library serves the functions of version 1.0, and they can be updated. Other definitions get one message."""
    server.psql("CREATE SCHEMA old; CREATE DATABASE old")
    said = server.psql(
        "CREATE EXTENSION pg_fast_timing VERSION '1.0'; LOAD 'pg_fast_timing'; EXPLAIN (ANALYZE) SELECT 1 \\g /dev/null\n"
        "SELECT last_nodes, statements, node_calls > 0 FROM pg_fast_timing_info(); ALTER EXTENSION pg_fast_timing UPDATE;"
        "SELECT last_nodes FROM pg_fast_timing_info(); SELECT statements, timing_ms >= 0, clock_jumps FROM pg_stat_fast_timing",
        "-dold",
    )
    if said.split() != ["1|1|t", "1", "1|t|0"]:
        yield f"version 1.0, and an update: {said}"
    server.psql("CREATE FUNCTION old.info(OUT method text, OUT clock text) AS '$libdir/pg_fast_timing', 'pg_fast_timing_info' LANGUAGE C")
    try:
        server.psql("SELECT * FROM old.info()")
        yield "a function of another version is accepted"
    except Failed as refused:
        if "have different versions" not in str(refused):
            yield str(refused)


def check(installation):
    """Yields complaints."""
    with Server(installation, SETTINGS) as server:
        server.psql(TABLES)
        for test in (known_statements, not_counted, nested_statements, after_errors, direct_modify, opened_before, not_shown, other_version):
            yield from test(server)
    yield from scopes(installation)
