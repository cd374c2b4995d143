"""What it says: which times are estimates, what the clock is, who may change the method; and that the times are true."""

import json
import re

from extension import METHODS, force_parallel
from extension.statements import nodes
from servers import Failed, Server

SETTINGS = {"jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0, "shared_buffers": "128MB", "statement_timeout": "60s"}
MANY = "SELECT count(*) FROM many"
FEW = "SELECT count(*) FROM generate_series(1, 50)"


def session(method, *statements):
    return f"LOAD 'pg_fast_timing'; SET pg_fast_timing.method = {method};" + ";".join(statements)


def marks(text):
    return re.findall(r"^ +Timing: estimated from \d+ samples, \+-\d+\.\d{3} ms$", text, re.M)


def in_explain(server):
    """Since 18: estimates are marked, and nothing else."""
    for method in METHODS:
        many = server.psql(session(method, f"EXPLAIN (ANALYZE, BUFFERS OFF) {MANY}"))
        expected = {"tsc": 0, "sampling": 2, "auto": 1}[method]
        if len(marks(many)) != expected or many.count("Timing:") != expected:
            yield f"{method}: {expected} estimates expected: {many}"
    few = server.psql(session("auto", f"EXPLAIN (ANALYZE, BUFFERS OFF) {FEW}"))
    if "Timing:" in few:
        yield f"a plan timed exactly does not print as it always did: {few}"
    asked = server.psql(session("auto", f"EXPLAIN (ANALYZE, BUFFERS OFF, FAST_TIMING) {FEW}"))
    if asked.count("Timing: exact") != 2 or not re.search(r"^Fast Timing: method auto, .* ticks per second$", asked, re.M):
        yield f"FAST_TIMING: {asked}"
    for form in ("json", "yaml", "xml"):
        server.psql(session("auto", f"EXPLAIN (ANALYZE, FAST_TIMING, FORMAT {form}) {MANY}"))
    scan = json.loads(server.psql(session("auto", f"EXPLAIN (ANALYZE, FORMAT JSON) {MANY}")))[0]["Plan"]["Plans"][0]
    if scan.get("Timing") != "estimated" or scan["Timing Samples"] < 100 or scan["Timing Error"] <= 0:
        yield f"JSON: {scan}"
    if "Timing" in server.psql(session("auto", f"EXPLAIN (COSTS OFF) {MANY}")):
        yield "a plan that was not run has times"


def at_debug(server):
    for method, estimates in (("tsc", 0), ("sampling", 2), ("auto", 1)):
        said = server.psql(session(method, "SET client_min_messages = debug1", f"EXPLAIN (ANALYZE) {MANY}"), notices=True)
        if said.count(f"times of {estimates} of 2 plan nodes are estimates") != bool(estimates):
            yield f"{method}: DEBUG1: {said}"


def by_function(server):
    info = "SELECT row_to_json(i) FROM pg_fast_timing_info() i"
    said = json.loads(server.psql(session("auto", f"EXPLAIN (ANALYZE) {MANY}", info)).splitlines()[-1])
    if (said["method"], said["last_nodes"], said["last_estimated"]) != ("auto", 2, 1) or said["last_samples"] < 100:
        yield f"pg_fast_timing_info(): {said}"
    # The kernel that this runs on decides; either way it says which, and why not.
    if (said["clock"] == "tsc") != (said["tsc_reason"] is None) or said["call_cost_ns"] <= 0:
        yield f"pg_fast_timing_info(): {said}"
    if said["clock"] == "tsc" and not 0 < said["tsc_uncertainty_ppm"] < 100:
        yield f"pg_fast_timing_info(): {said}"


def true_times(server):
    """20 x 20 ms in one node, next to nothing in the one below it; and a node that is called often."""
    slept = "SELECT pg_sleep(0.02) FROM generate_series(1, 20) g"
    for method in METHODS:
        plan = json.loads(server.psql(session(method, f"EXPLAIN (ANALYZE, FORMAT JSON) {slept}")))[0]["Plan"]
        if not 400 <= plan["Actual Total Time"] + (3 if method == "sampling" else 0) < 600:
            yield f"{method}: 400 ms of sleep took {plan['Actual Total Time']} ms"
        sleeps = "CASE WHEN i % 100000 = 1 THEN pg_sleep(0.1) IS NOT NULL END"
        asleep = json.loads(server.psql(session(method, f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM many WHERE {sleeps}")))
        root, scan = asleep[0]["Plan"], asleep[0]["Plan"]["Plans"][0]
        # 500 000 short calls, and five long ones: a filter that sleeps within the scan.
        if not 495 <= scan["Actual Total Time"] <= root["Actual Total Time"] + 3:
            yield f"{method}: a scan that sleeps 500 ms took {scan['Actual Total Time']} ms of {root['Actual Total Time']} ms"


def rewound(server):
    """A first loop that takes long, and many that go through its rows again: they are not as long as the first."""
    statement = """WITH c AS MATERIALIZED (SELECT g FROM generate_series(1, 3000) g, (SELECT pg_sleep(0.5) OFFSET 0) s)
        SELECT count(*) FROM generate_series(1, 2000) a, LATERAL (SELECT g FROM c WHERE g > a % 9 OFFSET 0) x"""
    for method in (*METHODS, "auto", "auto", "auto"):
        said = json.loads(server.psql(session(method, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")))[0]
        for node, _ in nodes(said["Plan"]):
            took = node["Actual Total Time"] * node["Actual Loops"]
            if took > said["Execution Time"] * 1.1:
                yield f"{method}: {node['Node Type']} took {took} ms of {said['Execution Time']}"


def ended_as_it_was_reviewed(server):
    """Its last timed call is its last call."""
    estimated = "SELECT 'estimated', last_estimated FROM pg_fast_timing_info()"
    said = server.psql(session("auto", *["EXPLAIN (ANALYZE) SELECT * FROM generate_series(1, 256)", estimated] * 9))
    if said.count("estimated|0") != 9:
        yield f"a plan timed exactly is said to be estimated: {said}"


def fetched(server):
    """A cursor's short runs, with pauses between them: together they take what they take at once."""
    declare = (
        "LOAD 'auto_explain'; SET auto_explain.log_analyze = on; SET auto_explain.log_format = json; SET auto_explain.log_min_duration = 0;"
        "BEGIN; DECLARE c CURSOR FOR SELECT md5(i::text) FROM many; SET auto_explain.log_min_duration = -1;"
    )
    fetches = "FETCH 500 FROM c \\g /dev/null\nSELECT pg_sleep(0.002) \\g /dev/null\n" * 300
    # auto_explain goes by what it drew for the last statement.
    close = (
        "SET client_min_messages = log; SET auto_explain.log_min_duration = 0;\nSELECT 1 \\g /dev/null\nCLOSE c; COMMIT;"
        "SET client_min_messages = warning; SELECT 'error', last_error_ms FROM pg_fast_timing_info()"
    )
    took, error = {}, {}
    # Exact times before and after tell how much the machine itself goes up and down.
    for method in ("tsc", *METHODS, "tsc"):
        said = server.psql(session(method, f"{declare}\n{fetches}{close}"), notices=True)
        plan = json.loads(re.findall(r"plan:\n(\{.*?^\})", said, re.M | re.S)[-1])["Plan"]
        took.setdefault(method, []).append(plan["Actual Total Time"])
        error[method] = float(re.search(r"^error\|(\S+)", said, re.M)[1])
    for method in ("sampling", "auto"):
        # And it may do half as much again in between. What is looked for here is a tenth.
        low, high = took[method][0] - error[method], took[method][0] + error[method]
        if high < min(took["tsc"]) / 1.5 or low > max(took["tsc"]) * 1.5:
            yield f"{method}: a cursor took {took[method]} +- {error[method]} ms, by exact times {took['tsc']}"


def io_times(server):
    """What a node waited for its reads, those above it waited for; since 18 also where it was read ahead."""
    for method in ("off", *METHODS):
        # Nothing is in its buffers then.
        server.restart()
        said = server.psql(
            session(
                method, "SET track_io_timing = on; SET enable_indexscan = off; SET enable_indexonlyscan = off",
                "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*) FROM (SELECT i FROM many WHERE i BETWEEN 100000 AND 130000 ORDER BY i % 7) x",
            )
        )  # fmt: skip
        chain, waited = json.loads(said)[0]["Plan"], []
        while chain["Node Type"] != "Bitmap Index Scan":
            waited.append(chain.get("Shared I/O Read Time", chain.get("I/O Read Time")))
            chain = chain["Plans"][0]
        if len(set(waited)) != 1 or not waited[0]:
            yield f"{method}: {waited} ms of reading, from the root down"


def in_parallel(server):
    """What parallel workers timed exactly is not an estimate."""
    every = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0"
    estimated = "SELECT last_estimated FROM pg_fast_timing_info()"
    few = server.psql(session("auto", every, "EXPLAIN (ANALYZE) SELECT count(*) FROM many WHERE i = 1", estimated))
    if "Workers Launched: 0" in few or few.strip().splitlines()[-1] != "0":
        yield f"parallel workers that timed each call: {few}"
    many = server.psql(session("auto", every, "SET parallel_leader_participation = off", f"EXPLAIN (ANALYZE) {MANY}", estimated))
    if int(many.strip().splitlines()[-1]) == 0:
        yield f"parallel workers that did not time each call: {many}"


def rights(server):
    change = "SET pg_fast_timing.method = tsc"
    load = "LOAD 'pg_fast_timing';"
    server.psql("CREATE ROLE dba")
    # Loaded by a superuser, changed as somebody else.
    try:
        server.psql(f"{load} SET ROLE dba; {change}")
        yield "anybody may change the method"
    except Failed as refused:
        if "permission denied" not in str(refused):
            yield str(refused)
    server.psql(f"{load} GRANT SET ON PARAMETER pg_fast_timing.method TO dba; SET ROLE dba; {change}")
    try:
        server.psql(f"{load} SET pg_fast_timing.method = never")
        yield "a method that is none is taken"
    except Failed as refused:
        if "Available values" not in str(refused):
            yield str(refused)


def check(installation):
    """Yields what is wrong."""
    with Server(installation, SETTINGS) as server:
        server.psql("CREATE EXTENSION pg_fast_timing; CREATE TABLE many AS SELECT g AS i FROM generate_series(1, 500000) g; CREATE INDEX ON many (i); VACUUM ANALYZE many")
        tests = [at_debug, by_function, true_times, rewound, ended_as_it_was_reviewed, fetched, in_parallel, io_times, rights]
        if installation.major >= 18:
            tests.append(in_explain)
        for test in tests:
            yield from test(server)
