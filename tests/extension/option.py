"""Tests of EXPLAIN (ANALYZE, FAST_TIMING off): the server times this statement, and the extension the next one.

Before 18, extensions cannot add options to EXPLAIN.
"""

import re

from extension import AUTO_EXPLAIN, TIMED_CURSOR, force_parallel
from extension.invariants import explained, logged
from extension.privileges import refused
from servers import Server

SETTINGS = {"jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0, "statement_timeout": "60s"}
TABLES = """CREATE EXTENSION pg_fast_timing; CREATE TABLE t AS SELECT g AS i FROM generate_series(1, 20000) g; VACUUM ANALYZE t;
CREATE ROLE joe; GRANT SELECT ON t TO joe;
CREATE FUNCTION nested() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM t); END';
CREATE FUNCTION explained(statement text) RETURNS SETOF text LANGUAGE plpgsql AS 'BEGIN RETURN QUERY EXECUTE statement; END';
CREATE FUNCTION fails(statement text) RETURNS text LANGUAGE plpgsql AS
'BEGIN EXECUTE statement; RETURN NULL; EXCEPTION WHEN division_by_zero THEN RETURN ''caught''; END';"""
# With this method, all times are estimates and marked.
LOAD = "LOAD 'pg_fast_timing'; SET pg_fast_timing.method = sampling;"
COUNT = "SELECT count(*) FROM t"
STATEMENTS = {
    "SELECT": COUNT,
    "a function with statements": "SELECT nested()",
    "EXECUTE": "EXECUTE prepared",
    "CREATE TABLE AS": f"CREATE TABLE pg_temp.copy AS {COUNT}",
    "CREATE TABLE AS EXECUTE": "CREATE TABLE pg_temp.copy AS EXECUTE prepared",
    "DECLARE CURSOR": f"DECLARE c CURSOR FOR {COUNT}",
}
LAST = "SELECT 'last', last_nodes, current_setting('pg_fast_timing.method') FROM pg_fast_timing_info();"
PREPARE = f"PREPARE prepared AS {COUNT};"


def last(said):
    """Returns the timed nodes of the last statement, and the method after it, for each time it was asked."""
    return [(int(nodes), method) for nodes, method in re.findall(r"^last\|(\d+)\|(\w+)$", said, re.M)]


def in_all_formats(server):
    """The statement has the server's times, without marks. The next one is timed as before."""
    for name, statement in STATEMENTS.items():
        for form in ("text", "json", "yaml", "xml"):
            explains = [f"BEGIN; EXPLAIN (ANALYZE, {option}FORMAT {form}) {statement}; {LAST} ROLLBACK;" for option in ("FAST_TIMING off, ", "")]
            off, on = re.split(r"(?<=sampling\n)", server.psql(f"{LOAD} {PREPARE} {' '.join(explains)}"))[:2]
            if last(off) != [(0, "sampling")] or re.search(r"estimated|Fast", off) or not re.search(r"actual time=|Actual.Total.Time", off):
                yield f"{name}, {form}, off: {off}"
            if last(on)[0][0] == 0 or "estimated" not in on:
                yield f"{name}, {form}, then without the option: {on}"


def times(server):
    """The times are those of the server: exact ones, also of a node that has no tick."""
    plan = explained(server.psql(f"{LOAD} SET pg_fast_timing.sample_rate = 1; EXPLAIN (ANALYZE, FAST_TIMING off, FORMAT JSON) SELECT pg_sleep(0.02)"))["Plan"]
    if plan["Actual Total Time"] < 20:
        yield f"20 ms of sleep: {plan}"


def repeated(server):
    """The last option applies, as the server does it with its own options."""
    for options, nodes, details in (("off, FAST_TIMING on", 2, True), ("on, FAST_TIMING off", 0, False), ("off, FAST_TIMING off", 0, False), ("0", 0, False), ("on", 2, True)):
        said = server.psql(f"{LOAD} EXPLAIN (ANALYZE, FAST_TIMING {options}) {COUNT}; {LAST}")
        if last(said) != [(nodes, "sampling")] or ("Fast Timing: method" in said) != details:
            yield f"FAST_TIMING {options}: {said}"
    yield from refused(server, f"{LOAD} EXPLAIN (ANALYZE, FAST_TIMING never) {COUNT}", "fast_timing requires a Boolean value")


def without_analyze(server):
    """As with TIMING, off has no effect, and on is an error."""
    plain, off = (server.psql(f"{LOAD} EXPLAIN ({option}COSTS off) {COUNT}") for option in ("", "FAST_TIMING off, "))
    if plain != off:
        yield f"off without ANALYZE: {off}"
    for options in ("FAST_TIMING", "ANALYZE off, FAST_TIMING on"):
        yield from refused(server, f"{LOAD} EXPLAIN ({options}) {COUNT}", "EXPLAIN option FAST_TIMING requires ANALYZE")


def after_errors(server):
    """The setting is restored after an error, at the top, within a savepoint, and if a function catches it."""
    fails = "EXPLAIN (ANALYZE, FAST_TIMING off) SELECT 1 / (i - 9) FROM t"
    for name, script in {
        "at the top": f"{fails}; {LAST}",
        "in a savepoint": f"BEGIN; SAVEPOINT s; {fails}; ROLLBACK TO s; {LAST} COMMIT; {LAST}",
        "caught": f"SELECT fails('{fails}'); {LAST}",
    }.items():
        said = server.psql(f"{LOAD} \\set ON_ERROR_STOP off\n{script}")
        if not last(said) or {method for _, method in last(said)} != {"sampling"}:
            yield f"an error {name}: {said}"


def within_functions(server):
    """An EXPLAIN within a function leaves the statement that calls the function timed."""
    inner = f"EXPLAIN (ANALYZE, FAST_TIMING off) {COUNT}"
    said = server.psql(f"{LOAD} SELECT explained('{inner}'); {LAST} EXPLAIN (ANALYZE) SELECT explained('{inner}'); {LAST}")
    if [nodes > 0 for nodes, _ in last(said)] != [False, True] or "estimated" not in said:
        yield f"EXPLAIN within a function: {said}"
    # The other way around, the outer EXPLAIN includes the statement of the function.
    said = server.psql(f"{LOAD} EXPLAIN (ANALYZE, FAST_TIMING off) SELECT explained('EXPLAIN (ANALYZE) {COUNT}'); {LAST}")
    if last(said) != [(0, "sampling")]:
        yield f"EXPLAIN of a function with EXPLAIN: {said}"


def by_any_user(server):
    said = server.psql(f"{LOAD} SET ROLE joe; EXPLAIN (ANALYZE, FAST_TIMING off) {COUNT}; {LAST}")
    if last(said) != [(0, "sampling")]:
        yield f"an ordinary role: {said}"


def with_auto_explain(server):
    """auto_explain logs the times of the server, also those of nested statements."""
    for order in ("LOAD 'auto_explain';", ""):
        said = server.psql(
            f"{order} {LOAD} {AUTO_EXPLAIN} SET client_min_messages = log;"
            "EXPLAIN (ANALYZE, FAST_TIMING off) SELECT nested(); SET auto_explain.log_min_duration = -1;" + LAST,
            notices=True,
        )
        if said.count("LOG:  duration: ") != 2 or "estimated" in said or said.count("actual time=") < 5:
            yield f"auto_explain, {order}: {said}"
        elif not last(said):
            yield f"auto_explain: {said}"


def open_cursor(server):
    """A cursor that was opened before keeps its timing."""
    off = f"EXPLAIN (ANALYZE, FAST_TIMING off) {COUNT} \\g /dev/null\n"
    fetch = "FETCH 5000 FROM c \\g /dev/null\n"
    said = server.psql(
        f"{LOAD} {TIMED_CURSOR.format('SELECT i FROM t')} {fetch}{off}{fetch}SET client_min_messages = log;"
        "SET auto_explain.log_min_duration = 0;\nSELECT 1 \\g /dev/null\nCLOSE c;",
        notices=True,
    )
    plan = logged(said)["Plan"]
    if plan["Actual Rows"] != 10000 or plan.get("Timing") != "estimated":
        yield f"a cursor: {plan}"


def parallel(installation):
    """Parallel workers leave the timing to the server, too. They would count their calls in the server's counters."""
    with Server(installation, SETTINGS | {"shared_preload_libraries": "pg_fast_timing"}) as server:
        server.psql(TABLES)
        every = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
        said = server.psql(
            f"{LOAD} {every} EXPLAIN (ANALYZE, FAST_TIMING off) {COUNT}; SELECT 'calls', node_calls FROM pg_fast_timing_info()"
        )
        if not re.search(r"Workers Launched: [1-9]", said) or "calls|0\n" not in said:
            yield f"parallel workers: {said}"


def check(installation):
    """Yields complaints."""
    if installation.major < 18:
        with Server(installation, SETTINGS) as server:
            yield from refused(server, f"{LOAD} EXPLAIN (ANALYZE, FAST_TIMING off) SELECT 1", 'unrecognized EXPLAIN option "fast_timing"')
        return
    with Server(installation, SETTINGS) as server:
        server.psql(TABLES)
        for test in (in_all_formats, times, repeated, without_analyze, after_errors, within_functions, by_any_user, with_auto_explain, open_cursor):
            yield from test(server)
    yield from parallel(installation)
