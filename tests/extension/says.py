"""Tests of the output: marked estimates, the clock, and correct times."""

import json
import re

from extension import AUTO_EXPLAIN, METHODS, TIMED_CURSOR, force_parallel
from extension.invariants import explained, impossible_times, logged
from servers import Failed, Server

SETTINGS = {"jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0, "shared_buffers": "128MB", "statement_timeout": "60s"}
MANY = "SELECT count(*) FROM many"
FEW = "SELECT count(*) FROM generate_series(1, 50)"


def refused(server, script, message):
    """Yields a complaint unless the script fails with this message."""
    try:
        server.psql(script)
        yield f"not refused: {script}"
    except Failed as failed:
        if message not in str(failed):
            yield f"{script}: {failed}"


def privileges(server):
    """Every user chooses the method. The settings that cost the whole server something need privileges."""
    said = server.psql("CREATE ROLE joe; LOAD 'pg_fast_timing'; SET ROLE joe; SET pg_fast_timing.method = tsc; SHOW pg_fast_timing.method")
    if said.strip() != "tsc":
        yield f"an ordinary role chooses a method: {said}"
    for setting in ("ticker = none", "sample_rate = 9", "count_calls = top", "log_estimates = on"):
        yield from refused(server, f"LOAD 'pg_fast_timing'; SET ROLE joe; SET pg_fast_timing.{setting}", "permission denied")
    yield from refused(server, session("never"), "Available values")


def session(method, *statements):
    return f"LOAD 'pg_fast_timing'; SET pg_fast_timing.method = {method};" + ";".join(statements)


def marks(text):
    return re.findall(r"^ +Timing: estimated from \d+ samples, \+-\d+\.\d{3} ms$", text, re.M)


def in_explain(server):
    """Since 18, EXPLAIN marks estimates, and only estimates."""
    for method, expected in (("tsc", 0), ("auto", 1)):
        many = server.psql(session(method, f"EXPLAIN (ANALYZE, BUFFERS OFF) {MANY}"))
        if len(marks(many)) != expected or many.count("Timing:") != expected:
            yield f"{method}: {expected} estimates expected, not {many}"
    few = server.psql(session("auto", f"EXPLAIN (ANALYZE, BUFFERS OFF) {FEW}"))
    if "Timing:" in few:
        yield f"a plan with exact times is not printed as usual: {few}"
    details = server.psql(session("auto", f"EXPLAIN (ANALYZE, BUFFERS OFF, FAST_TIMING) {FEW}"))
    if details.count("Timing: exact") != 2 or not re.search(r"^Fast Timing: method auto, .* ticks per second$", details, re.M):
        yield f"FAST_TIMING: {details}"
    # The first rate of a session is not precise, and must be measured again after 0.1 s.
    longer = server.psql("LOAD 'pg_fast_timing'; EXPLAIN (ANALYZE, FAST_TIMING) SELECT pg_sleep(0.5); SELECT 'clock ' || clock FROM pg_fast_timing_info()")
    if ("TSC at" in longer) != ("clock tsc" in longer):
        yield f"FAST_TIMING after 0.5 s: {longer}"
    for form in ("json", "yaml", "xml"):
        server.psql(session("auto", f"EXPLAIN (ANALYZE, FAST_TIMING, FORMAT {form}) {MANY}"))
    scan = explained(server.psql(session("auto", f"EXPLAIN (ANALYZE, FORMAT JSON) {MANY}")))["Plan"]["Plans"][0]
    if scan.get("Timing") != "estimated" or scan["Timing Samples"] < 100 or scan["Timing Error"] <= 0:
        yield f"JSON: {scan}"
    if "Timing" in server.psql(session("auto", f"EXPLAIN (COSTS OFF) {MANY}")):
        yield "a plan that was not executed has times"
    yield from refused(server, session("auto", f"EXPLAIN (ANALYZE, FAST_TIMING never) {MANY}"), "fast_timing requires a Boolean value")
    yield from refused(server, session("auto", f"EXPLAIN (FAST_TIMING) {MANY}"), "EXPLAIN option FAST_TIMING requires ANALYZE")


ESTIMATES = re.compile(r"^Fast Timing: times of 1 of 2 plan nodes are estimates; largest error of a node \+-\d+\.\d{3} ms in all loops$", re.M)


def in_explain_before_18(server):
    """A line of EXPLAIN says how many times are estimates, in every format, and only if there are any."""
    many = server.psql(session("auto", f"EXPLAIN (ANALYZE, BUFFERS) {MANY}"))
    lines = many.splitlines()
    if len(ESTIMATES.findall(many)) != 1 or not lines[-2].startswith("Fast Timing: ") or not lines[-1].startswith("Execution Time: "):
        yield f"one line about estimates before the execution time expected, not {many}"
    for statement in (
        f"EXPLAIN (ANALYZE) {FEW}",
        f"EXPLAIN (ANALYZE, TIMING OFF) {MANY}",
        f"EXPLAIN {MANY}",
        # A nested statement has estimates, and the explained one has none.
        "EXPLAIN (ANALYZE) SELECT nested()",
    ):
        said = server.psql(session("auto", f"{AUTO_EXPLAIN} {statement}"))
        if "Fast Timing" in said:
            yield f"a line about estimates: {statement}: {said}"
    # The script fails if the server's JSON or XML is not valid.
    for form in ("json", "yaml", "xml"):
        said = server.psql(session("auto", f"EXPLAIN (ANALYZE, FORMAT {form}) {MANY}"))
        if said.count("times of 1 of 2 plan nodes are estimates") != 1:
            yield f"{form}: {said}"
        if form == "json" and not explained(said)["Fast Timing"].startswith("times of 1 of 2"):
            yield f"JSON: {said}"


def by_function(server):
    info = "SELECT row_to_json(i) FROM pg_fast_timing_info() i"
    said = json.loads(server.psql(session("auto", f"EXPLAIN (ANALYZE) {MANY}", info)).splitlines()[-1])
    if (said["method"], said["last_nodes"], said["last_estimated"]) != ("auto", 2, 1) or said["last_samples"] < 100:
        yield f"pg_fast_timing_info(): {said}"
    # The host's kernel decides. In both cases the function names the clock, and the reason against the TSC.
    if (said["clock"] == "tsc") != (said["tsc_reason"] is None) or said["call_cost_ns"] <= 0:
        yield f"pg_fast_timing_info(): {said}"
    if said["clock"] == "tsc" and not 0 < said["tsc_uncertainty_ppm"] < 100:
        yield f"pg_fast_timing_info(): {said}"


def timed_run(server, method, statement):
    """Returns the plan of a run, its execution time, and the largest error of a node, in ms."""
    error = "SELECT last_error_ms FROM pg_fast_timing_info()"
    plan, error_ms = server.psql(session(method, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", error)).strip().rsplit("\n", 1)
    run = explained(plan)
    return run["Plan"], run["Execution Time"], float(error_ms)


def true_times(server):
    """Sleeps of known length take that time. The upper bound is the same run's own time, so a busy machine does no harm."""
    slow_rows = "SELECT pg_sleep(0.02) FROM generate_series(1, 20) g"
    # Two million short calls and five long ones: a filter that sleeps within the scan.
    slow_filter = "SELECT count(*) FROM many WHERE CASE WHEN i % 400000 = 1 THEN pg_sleep(0.1) IS NOT NULL END"
    for method in METHODS:
        root, execution_ms, error_ms = timed_run(server, method, slow_rows)
        took = root["Actual Total Time"]
        if not 400 - error_ms <= took <= execution_ms + error_ms:
            yield f"{method}: 400 ms of sleep took {took} +- {error_ms} ms of {execution_ms} ms"
        root, execution_ms, error_ms = timed_run(server, method, slow_filter)
        took = root["Plans"][0]["Actual Total Time"]
        if not 500 - error_ms <= took <= execution_ms + error_ms:
            yield f"{method}: a scan that sleeps 500 ms took {took} +- {error_ms} ms of {execution_ms} ms"


def rewound(server):
    """A long first loop, and many short loops over the same rows: no node takes longer than the statement."""
    statement = """WITH c AS MATERIALIZED (SELECT g FROM generate_series(1, 3000) g, (SELECT pg_sleep(0.5) OFFSET 0) s)
        SELECT count(*) FROM generate_series(1, 2000) a, LATERAL (SELECT g FROM c WHERE g > a % 9 OFFSET 0) x"""
    for method in (*METHODS, "auto", "auto", "auto"):
        run = explained(server.psql(session(method, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")))
        if run["Execution Time"] < 500:
            yield f"{method}: a sleep of 500 ms: {run}"


# Two nodes with 20 000 rows each, and their times.
SHORT = "SELECT count(*) FROM (SELECT i FROM many LIMIT 20000) x"


def short_statements(server):
    """Who types EXPLAIN gets exact times of short statements, also with EXPLAIN EXECUTE. Other statements have a small budget."""
    for explain in (f"EXPLAIN (ANALYZE) {SHORT}", f"PREPARE p AS {SHORT}; EXPLAIN (ANALYZE) EXECUTE p"):
        said = server.psql(session("auto", explain, "SELECT 'last', last_nodes, last_estimated FROM pg_fast_timing_info()"))
        if "last|3|0" not in said or "estimated" in said:
            yield f"{explain}: not exact: {said}"
    function = f"DO $$BEGIN PERFORM ({SHORT}); END$$; SELECT 'last', last_nodes, last_estimated FROM pg_fast_timing_info()"
    said = server.psql(session("auto", f"{AUTO_EXPLAIN} {function}"))
    # A Result node calls the subplan's three nodes.
    if not re.search(r"last\|4\|[23]", said):
        yield f"a statement of auto_explain has more than its budget: {said}"


CURSOR = TIMED_CURSOR.format("SELECT md5(i::text) FROM many")


def fetched(server):
    """Many short runs of a cursor, with pauses between them, have the same total time with every method."""
    fetches = "FETCH 500 FROM c \\g /dev/null\nSELECT pg_sleep(0.002) \\g /dev/null\n" * 300
    # auto_explain decides at the next statement whether it logs, so one runs before CLOSE.
    close = (
        "SET client_min_messages = log; SET auto_explain.log_min_duration = 0;\nSELECT 1 \\g /dev/null\nCLOSE c; COMMIT;"
        "SET client_min_messages = warning; SELECT 'error', last_error_ms FROM pg_fast_timing_info()"
    )
    took, error = {}, {}
    # Exact times before and after show how much the machine's speed varies.
    for method in ("tsc", *METHODS, "tsc"):
        said = server.psql(session(method, f"{CURSOR}\n{fetches}{close}"), notices=True)
        plan = logged(said)["Plan"]
        took.setdefault(method, []).append(plan["Actual Total Time"])
        error[method] = float(re.search(r"^error\|(\S+)", said, re.M)[1])
    for method in ("auto",):
        # Both runs of "tsc" may be faster or slower by 50%. The defect that this test looks for is a factor of ten.
        low, high = took[method][0] - error[method], took[method][0] + error[method]
        if high < min(took["tsc"]) / 1.5 or low > max(took["tsc"]) * 1.5:
            yield f"{method}: a cursor took {took[method]} +- {error[method]} ms; exact times: {took['tsc']} ms"


def rate_changes(server):
    """A new tick rate applies to an open cursor. The error of its times is then that of the rarer ticks."""
    fetch = "FETCH 50000 FROM c \\g /dev/null\n"
    last = "SELECT 'last', last_estimated, last_error_ms FROM pg_fast_timing_info()"
    said = server.psql(
        session(
            "auto", "SET pg_fast_timing.sample_rate = 10000", CURSOR, fetch,
            "SET pg_fast_timing.sample_rate = 10", fetch, "CLOSE c", last,
        )
    )  # fmt: skip
    estimated, error_ms = re.search(r"^last\|(\d+)\|(\S+)", said, re.M).groups()
    # Even a node without a tick has an error of two periods, and a period is 100 ms.
    if estimated != "1" or float(error_ms) < 200:
        yield f"a cursor after a change to 10 ticks per second: {said}"


def io_times(server):
    """All nodes above a scan have the read times of the scan; since 18 also with read-ahead."""
    for method in ("off", *METHODS):
        # After a restart the buffers are empty.
        server.restart()
        said = server.psql(
            session(
                method, "SET track_io_timing = on; SET enable_indexscan = off; SET enable_indexonlyscan = off",
                "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM (SELECT i FROM many WHERE i BETWEEN 100000 AND 130000 ORDER BY i % 7) x",
            )
        )  # fmt: skip
        chain, waited = explained(said)["Plan"], []
        while chain["Node Type"] != "Bitmap Index Scan":
            waited.append(chain.get("Shared I/O Read Time", chain.get("I/O Read Time")))
            chain = chain["Plans"][0]
        if len(set(waited)) != 1 or not waited[0]:
            yield f"{method}: read times of {waited} ms, from the root to the scan"


def in_parallel(server):
    """Exact times of parallel workers are not marked as estimates."""
    every = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0"
    estimated = "SELECT last_estimated FROM pg_fast_timing_info()"
    few = server.psql(session("auto", every, "EXPLAIN (ANALYZE) SELECT count(*) FROM many WHERE i = 1", estimated))
    if "Workers Launched: 0" in few or few.strip().splitlines()[-1] != "0":
        yield f"parallel workers that timed every call: {few}"
    many = server.psql(session("auto", every, "SET parallel_leader_participation = off", f"EXPLAIN (ANALYZE) {MANY}", estimated))
    if int(many.strip().splitlines()[-1]) == 0:
        yield f"parallel workers that did not time every call: {many}"


def parallel_times(server):
    """Times of parallel plans are possible."""
    every = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
    for statement in (
        MANY,
        "SELECT count(*) FROM many a JOIN many b USING (i) WHERE a.i % 9 = 0",
        "SELECT i FROM many WHERE i % 9 = 0 ORDER BY i % 7 LIMIT 9",
        "SELECT count(*) FROM many WHERE i > (SELECT avg(i) FROM many)",
    ):
        for method in METHODS:
            said = json.loads(server.psql(session(method, every, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")))[0]
            yield from (f"{method}: {statement}: {what}" for what in impossible_times(said))


def check(installation):
    """Yields complaints."""
    with Server(installation, SETTINGS) as server:
        server.psql("CREATE EXTENSION pg_fast_timing; CREATE TABLE many AS SELECT g AS i FROM generate_series(1, 2000000) g; CREATE INDEX ON many (i); VACUUM ANALYZE many")
        server.psql(f"CREATE FUNCTION nested() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN ({MANY}); END'")
        tests = [by_function, privileges, true_times, rewound, short_statements, fetched, rate_changes, in_parallel, parallel_times, io_times]
        tests.append(in_explain if installation.major >= 18 else in_explain_before_18)
        for test in tests:
            yield from test(server)
