"""Tests that plan nodes show what they waited for: planted waits, on the right node, in the right class."""

import json
import re
import subprocess
import tempfile
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

from extension import HERE, force_parallel
from extension.invariants import explained, nodes
from outcome import until
from servers import Server

SETTINGS = {
    "shared_preload_libraries": "pg_fast_timing", "jit": False, "autovacuum": False, "max_parallel_workers_per_gather": 0,
    "statement_timeout": "60s", "track_io_timing": True,
}  # fmt: skip
CLASSES = ("I/O", "Lock", "Client", "Other")
# A wait is found by ticks, about once per millisecond: it can be longer by 5%, and by one tick at either end.
TICKS_MS = 2
SHARE = 0.05
# Runs of a statement, until something is said about its waits.
MOST_RUNS = 5
# A sleep of a busy machine takes longer. Only its end is late, and the same on every node.
LATE_MS = 1.5

SLEEPING = "CASE WHEN i % {} = 0 THEN pg_sleep({}) IS NOT NULL ELSE true END"
SLEEPS = [
    # (statement, node that sleeps, number of sleeps, seconds)
    (f"SELECT count(*) FROM t WHERE {SLEEPING.format(1000, 0.02)}", "Seq Scan", 20, 0.02),
    (f"SELECT count(*) FROM t WHERE {SLEEPING.format(10000, 0.2)}", "Seq Scan", 2, 0.2),
    ("SELECT max(CASE WHEN i % 1000 = 0 THEN pg_sleep(0.02)::text ELSE i::text END) FROM t", "Aggregate", 20, 0.02),
    ("SELECT count(*) FROM t a JOIN (SELECT pg_sleep(0.3) OFFSET 0) b ON a.i > 0", "Result", 1, 0.3),
    ("SELECT count(*) FROM t WHERE i > (SELECT length(pg_sleep(0.3)::text))", "Result", 1, 0.3),
    ("SELECT count(*) FROM t a, LATERAL (SELECT pg_sleep(0.02) WHERE a.i % 1000 = 0) b", "Result", 20, 0.02),
    (f"WITH c AS MATERIALIZED (SELECT i FROM u WHERE {SLEEPING.format(100, 0.1)}) SELECT count(*) FROM c a JOIN t USING (i)", "Seq Scan u", 3, 0.1),
    # The node that calls a function waits as long as the function's statements.
    ("SELECT count(*) FROM t WHERE CASE WHEN i % 5000 = 0 THEN nested(i) ELSE true END", "Seq Scan", 4, 0.1),
    # The hash table is built from a node that sleeps.
    (f"SELECT count(*) FROM t JOIN (SELECT i FROM u WHERE {SLEEPING.format(100, 0.1)}) x USING (i)", "Seq Scan u", 3, 0.1),
    (f"SELECT i FROM t WHERE {SLEEPING.format(1000, 0.02)} ORDER BY i % 7", "Seq Scan", 20, 0.02),
]


def name_of(node):
    """Returns the type of a node, with its table if it is not the large one."""
    return node["Node Type"] + (" " + node["Relation Name"] if node.get("Relation Name", "t") != "t" else "")


def waits_of(plan):
    """Returns {name: {class: ms}}, for all nodes that waited."""
    found = {}
    for node, _ in nodes(plan):
        name = name_of(node)
        waits = node.get("Waits", {})
        times = {each: waits.get(f"{each} Time", 0) for each in CLASSES}
        if any(times.values()):
            found[name] = {each: found.get(name, {}).get(each, 0) + ms for each, ms in times.items()}
    return found


def time_of(plan, name):
    """Returns the ms of a node: a busy machine wakes it up later, and its waits are longer."""
    return max(node["Actual Total Time"] * node["Actual Loops"] for node, _ in nodes(plan) if name_of(node) == name)


def wrong(plan, name, wanted, low, high):
    """Yields a complaint unless only this node waited, and only in this class, for between `low` and `high` ms."""
    found = waits_of(plan)
    ms = found.pop(name, {}).pop(wanted, 0)
    high = max(high, time_of(plan, name))
    if not low * (1 - SHARE) - TICKS_MS <= ms <= high * (1 + SHARE) + TICKS_MS:
        yield f"{name} waited {ms} ms in class {wanted}, not {low} to {high}: {waits_of(plan)}"
    others = {name: times for name, times in found.items() if any(ms > TICKS_MS for ms in times.values())}
    if others:
        yield f"other nodes waited: {others}"


def explain(server, statement, *before, around=nullcontext):
    """Returns the plan of a statement. A busy machine can stop the worker for a moment: then nothing is said, and it runs again."""
    script = "; ".join([*before, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"])
    for _ in range(MOST_RUNS):
        with around():
            plan = explained(server.psql(script))["Plan"]
        if any("Waits" in node for node, _ in nodes(plan)):
            break
    return plan


def sleeps(server):
    for statement, name, number, seconds in SLEEPS:
        ms = number * seconds * 1000
        yield from (f"{statement}: {what}" for what in wrong(explain(server, statement), name, "Other", ms, ms + number * LATE_MS))


def parallel(server):
    """The leader adds the waits of its workers."""
    every = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
    plan = explain(server, f"SELECT count(*) FROM t WHERE {SLEEPING.format(1000, 0.02)}", every)
    ms = waits_of(plan).get("Seq Scan", {}).get("Other", 0)
    high = max(400 + 20 * LATE_MS, time_of(plan, "Seq Scan"))
    if not 400 * (1 - SHARE) - TICKS_MS <= ms <= high * (1 + SHARE) + TICKS_MS:
        yield f"parallel workers slept {ms} ms, not 400: {waits_of(plan)}"


@contextmanager
def locked(server, statement, seconds):
    """Another session holds a lock, while it sleeps for some seconds."""
    session = threading.Thread(target=server.psql, args=(f"BEGIN; {statement}; SELECT pg_sleep({seconds}); COMMIT;",))
    session.start()
    until(lambda: server.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").strip() == "1", "another session holds a lock")
    yield
    session.join()


def locks(server):
    for lock, statement, name in (
        ("SELECT pg_advisory_xact_lock(7)", "SELECT pg_advisory_xact_lock(7) FROM (SELECT 1 OFFSET 0) x", "Subquery Scan"),
        ("UPDATE u SET i = i WHERE i = 5", "SELECT i FROM u WHERE i = 5 FOR UPDATE", "LockRows"),
        ("UPDATE u SET i = i WHERE i = 5", "UPDATE u SET i = i WHERE i = 5", "ModifyTable u"),
    ):
        plan = explain(server, statement, around=lambda lock=lock: locked(server, lock, 1))
        yield from (f"{statement}: {what}" for what in wrong(plan, name, "Lock", 500, 1020))


def reads(installation):
    """A throttled disk: the waits are the read times that the server measures."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "reads.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "reads.c", "-ldl"], check=True)
        for method in ("sync", "worker"):
            with Server(installation, SETTINGS | {"io_method": method, "shared_buffers": "1MB"}, preload=[library]) as server:
                server.psql(
                    "CREATE TABLE t AS SELECT g AS i, repeat('x', 500) AS x FROM generate_series(1, 20000) g; CREATE INDEX ON t (i); VACUUM ANALYZE t"
                )
                # The waits of a bitmap index scan are those of its bitmap heap scan.
                for name, off in (("Seq Scan", "SET enable_indexonlyscan = off; SET enable_indexscan = off; SET enable_bitmapscan = off"), ("Bitmap Heap Scan", "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off")):
                    plan = explain(server, "SELECT count(*) FROM (SELECT i FROM t WHERE i < 19000 ORDER BY i % 7) x", off)
                    ms = next(node for node, _ in nodes(plan) if node["Node Type"] == name)["Shared I/O Read Time"]
                    if ms < 100:
                        yield f"{method}: {name}: reads of {ms} ms are not throttled"
                    yield from (f"{method}: {what}" for what in wrong(plan, name, "I/O", ms, ms))


def without_worker(server):
    """Nothing is said about waits if the worker did not tick for the whole statement."""
    for ticker in ("thread", "none"):
        said = server.psql(f"SET pg_fast_timing.ticker = {ticker}; EXPLAIN (ANALYZE, FAST_TIMING) {SLEEPS[0][0]}")
        if "Waits" in said:
            yield f"{ticker}: {said}"


def as_text(server):
    """The line's figures add up to the node's own time."""
    said = server.psql(f"EXPLAIN (ANALYZE, BUFFERS OFF) {SLEEPS[0][0]}")
    if len(re.findall(r"^ +Waits: Other \d+ ms \(PgSleep \d+ ms\), CPU \d+ ms$", said, re.M)) != 1 or said.count("Waits:") != 1:
        yield f"one line about waits expected: {said}"
    if "Waits:" in server.psql("EXPLAIN (ANALYZE) SELECT count(*) FROM t a, t b WHERE a.i < 100"):
        yield "a plan without waits is not printed as usual"


def check(installation):
    """Yields complaints."""
    if installation.major < 18:
        return
    with Server(installation, SETTINGS) as server:
        server.psql(
            """CREATE EXTENSION pg_fast_timing; CREATE TABLE t AS SELECT g AS i FROM generate_series(1, 20000) g;
            CREATE TABLE u AS SELECT g AS i FROM generate_series(1, 300) g; VACUUM ANALYZE t, u;
            CREATE FUNCTION nested(n int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN true; END'"""
        )
        for test in (sleeps, parallel, locks, without_worker, as_text):
            yield from test(server)
    yield from reads(installation)
