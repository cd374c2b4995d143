"""Beside extensions that hook the same pointer or bring nodes of their own: nothing is lost or counted twice."""

import json

from extension import HERE, METHODS
from servers import Server, build

OTHER = HERE / "other"
SETTINGS = {"jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0, "shared_buffers": "128MB"}
ALL_METHODS = ("off", *METHODS)
ROWS = 500_000
# The order of loading is that of the hooks: who comes last is in front.
ORDERS = (("other", "pg_fast_timing"), ("pg_fast_timing", "other"))


def check(installation):
    """Yields what is wrong."""
    build(OTHER, installation)
    with Server(installation, SETTINGS) as server:
        server.psql(
            f"CREATE TABLE t AS SELECT g AS i FROM generate_series(1, {ROWS}) g; VACUUM ANALYZE t;"
            "CREATE EXTENSION pg_fast_timing; CREATE FUNCTION other_calls() RETURNS bigint LANGUAGE c AS 'other', 'other_calls';"
        )
        for order in ORDERS:
            for at, calls in (("root", 2), ("leaf", ROWS + 1)):
                for method in ALL_METHODS:
                    title = f"{' before '.join(order)}, which is at the {at}, {method}"
                    yield from (f"{title}: {what}" for what in beside(server, order, at, calls, method))
        for method in ALL_METHODS:
            yield from (f"custom scan, {method}: {what}" for what in custom_scan(server, method))


def custom_scan(server, method):
    plan = json.loads(
        server.psql(
            f"LOAD 'custom'; LOAD 'pg_fast_timing'; SET custom.scans = on; SET pg_fast_timing.method = {method};"
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM t"
        )
    )[0]["Plan"]
    chain = [plan, plan["Plans"][0], plan["Plans"][0]["Plans"][0]]
    kinds = [(node["Node Type"], node["Actual Rows"]) for node in chain]
    if kinds != [("Aggregate", 1), ("Custom Scan", ROWS), ("Seq Scan", ROWS)]:
        yield f"{kinds}"
    if len({node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in chain}) != 1:
        yield f"buffers: {[node['Shared Hit Blocks'] for node in chain]}"
    low = [node["Actual Total Time"] - node.get("Timing Error", 0) for node in chain]
    high = [node["Actual Total Time"] + node.get("Timing Error", 0) for node in chain]
    if low[1] > high[0] or low[2] > high[1] or min(high) <= 0:
        yield f"between {low} and {high} ms, from the root down"


def beside(server, order, at, calls, method):
    said = server.psql(
        "".join(f"LOAD '{library}';" for library in order)
        + f"SET other.at = {at}; SET pg_fast_timing.method = {method};"
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM t; SELECT other_calls(), last_error_ms FROM pg_fast_timing_info();"
    ).strip()
    plan, seen = said.rsplit("\n", 1)
    # Before 18 a plan does not say how far its times may be off.
    seen, error = seen.split("|")
    explained = json.loads(plan)[0]
    root, scan = explained["Plan"], explained["Plan"]["Plans"][0]
    if int(seen) != calls:
        yield f"it saw {seen} calls of {calls}"
    if (root["Actual Rows"], scan["Actual Rows"]) != (1, ROWS):
        yield f"{root['Actual Rows']} and {scan['Actual Rows']} rows"
    # The scan takes a third of the time and more, by whatever clock; and nothing takes longer than all.
    took, error = scan["Actual Total Time"], float(error)
    if not 0.2 * explained["Execution Time"] <= took + error or took - error > explained["Execution Time"]:
        yield f"the scan took {took} ms of {explained['Execution Time']}"
