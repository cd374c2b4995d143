"""Tests with other extensions that use the same hooks or add plan nodes: no call is lost or counted twice."""

from extension import HERE, METHODS, TIMED_CURSOR
from extension.invariants import explained, logged
from servers import Server, build

OTHER = HERE / "other"
SETTINGS = {"jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0, "shared_buffers": "128MB"}
ALL_METHODS = ("off", *METHODS)
ROWS = 500_000
# Ids of plan nodes that cannot be an index: a negative one, one for an array of 1 GB, and the largest int.
STRANGE_IDS = (-2, 2**27, 2**31 - 1)
# The order of loading is the order of the hooks: the last library is called first.
ORDERS = (("other", "pg_fast_timing"), ("pg_fast_timing", "other"))


def check(installation):
    """Yields complaints."""
    build(OTHER, installation)
    with Server(installation, SETTINGS) as server:
        server.psql(
            f"CREATE TABLE t AS SELECT g AS i FROM generate_series(1, {ROWS}) g; VACUUM ANALYZE t;"
            "CREATE EXTENSION pg_fast_timing; CREATE FUNCTION other_calls() RETURNS bigint LANGUAGE c AS 'other', 'other_calls';"
        )
        for order in ORDERS:
            for at, calls in (("root", 2), ("leaf", ROWS + 1)):
                for method in ALL_METHODS:
                    title = f"{' before '.join(order)}, other at the {at}, {method}"
                    yield from (f"{title}: {what}" for what in with_other(server, order, at, calls, method))
            for method in ALL_METHODS:
                for at in ("memory", "during"):
                    yield from (f"{' before '.join(order)}, other {at}, {method}: {what}" for what in other_memory(server, order, at, method))
        for method in ALL_METHODS:
            yield from (f"custom scan, {method}: {what}" for what in custom_scan(server, method))
            for id in STRANGE_IDS:
                yield from (f"id {id}, {method}: {what}" for what in strange_id(server, method, id))
            for at in ("", "root"):
                for order in ORDERS:
                    title = f"{' before '.join(order)}, other at {at or 'no node'}, then replaced, {method}"
                    yield from (f"{title}: {what}" for what in replaced_later(server, order, at, method))


def custom_scan(server, method):
    plan = explained(
        server.psql(
            f"LOAD 'custom'; LOAD 'pg_fast_timing'; SET custom.scans = on; SET pg_fast_timing.method = {method};"
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM t"
        )
    )["Plan"]
    chain = [plan, plan["Plans"][0], plan["Plans"][0]["Plans"][0]]
    kinds = [(node["Node Type"], node["Actual Rows"]) for node in chain]
    if kinds != [("Aggregate", 1), ("Custom Scan", ROWS), ("Seq Scan", ROWS)]:
        yield f"{kinds}"
    if len({node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in chain}) != 1:
        yield f"buffers: {[node['Shared Hit Blocks'] for node in chain]}"
    low = [node["Actual Total Time"] - node.get("Timing Error", 0) for node in chain]
    high = [node["Actual Total Time"] + node.get("Timing Error", 0) for node in chain]
    if low[1] > high[0] or low[2] > high[1] or min(high) <= 0:
        yield f"times between {low} and {high} ms, from the root to the scan"


def strange_id(server, method, id):
    """A custom scan can give a node any id. The query needs no memory in proportion to it, and has correct counts."""
    settings = f"LOAD 'custom'; LOAD 'pg_fast_timing'; SET custom.child_id = {id}; SET pg_fast_timing.method = {method}; SET custom.scans = on;"
    for statement in ("SELECT count(*) FROM t", "SELECT (SELECT count(*) FROM t)"):
        plan = explained(server.psql(f"{settings} EXPLAIN (ANALYZE, FORMAT JSON) {statement}"))["Plan"]
        while "Plans" in plan:
            plan = plan["Plans"][0]
        if (plan["Node Type"], plan["Actual Rows"]) != ("Seq Scan", ROWS):
            yield f"{statement}: {plan}"


def replaced_later(server, order, at, method):
    """Another extension replaces the instrumentation between two FETCHes. Its memory is not used as ours."""
    fetch = "FETCH 1000 FROM c \\g /dev/null\n"
    said = server.psql(
        "".join(f"LOAD '{library}';" for library in order)
        + f"SET pg_fast_timing.method = {method}; SET other.at = '{at}'; {TIMED_CURSOR.format('SELECT i FROM t')}\n{fetch}"
        # auto_explain decides at the next statement whether it logs, so one runs before CLOSE.
        f"SET other.at = later;\n{fetch}{fetch}SET client_min_messages = log; SET auto_explain.log_min_duration = 0;\n"
        "SELECT 1 \\g /dev/null\nCLOSE c; COMMIT;",
        notices=True,
    )
    plan = logged(said)["Plan"]
    if plan["Actual Rows"] != 3000:
        yield f"{plan['Actual Rows']} of 3000 rows: {said}"


def other_memory(server, order, at, method):
    """The memory of another extension's instrumentation is not read, also if it replaces ours during the statement."""
    root = explained(
        server.psql(
            "".join(f"LOAD '{library}';" for library in order)
            + f"SET other.at = {at}; SET pg_fast_timing.method = {method};"
            "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM t"
        )
    )["Plan"]
    scan = root["Plans"][0]
    if (root["Actual Rows"], scan["Actual Rows"]) != (1, ROWS):
        yield f"{root['Actual Rows']} and {scan['Actual Rows']} rows"


def with_other(server, order, at, calls, method):
    output = server.psql(
        "".join(f"LOAD '{library}';" for library in order)
        + f"SET other.at = {at}; SET pg_fast_timing.method = {method};"
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM t; SELECT other_calls(), last_error_ms FROM pg_fast_timing_info();"
    ).strip()
    plan, seen = output.rsplit("\n", 1)
    # Before 18 a plan does not contain the errors of its times.
    seen, error = seen.split("|")
    run = explained(plan)
    root, scan = run["Plan"], run["Plan"]["Plans"][0]
    if int(seen) != calls:
        yield f"the other extension counted {seen} of {calls} calls"
    if (root["Actual Rows"], scan["Actual Rows"]) != (1, ROWS):
        yield f"{root['Actual Rows']} and {scan['Actual Rows']} rows"
    # With every clock the scan takes at least a third of the time, and at most all of it.
    took, error = scan["Actual Total Time"], float(error)
    if not 0.2 * run["Execution Time"] <= took + error or took - error > run["Execution Time"]:
        yield f"the scan took {took} ms of {explained['Execution Time']} ms"
