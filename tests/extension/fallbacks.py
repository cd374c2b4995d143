"""Tests of the session's choice of a ticking clock: the background worker, a thread if the worker does not tick, or none."""

import json
import os
import re
import signal
import time
from contextlib import ExitStack

from extension import HERE, force_parallel
from extension.invariants import nodes
from extension.survive import crashes
from extension.ticker import (
    INFO, LIBRARY, MANY, SETTINGS, SLEEP_MS, SLOW, TABLES, THREADS, WORKER, expected, infos, only_estimates, plans, running, stopped, until_asleep, using,
    worker, workers, wrong_times,
)  # fmt: skip
from outcome import until
from servers import Server, build

NO_TICKS = ("thread", "does not tick")


def stop_during(server):
    """The worker is stopped in a statement, until its end, or for a part of it."""
    pid = worker(server)
    parallel = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
    for settings in ("", parallel):
        with running(server, f"{using()} {settings} {SLOW} {INFO}") as said:
            with stopped(pid):
                time.sleep(0.2)
        yield from (f"stopped for 0.2 s: {what}" for what in wrong_times(said[0]))
        with ExitStack() as until_the_end:
            with running(server, f"{using()} {settings} {SLOW} {INFO * 2} {MANY} {INFO}") as said:
                until_the_end.enter_context(stopped(pid))
        yield from (f"stopped until the end: {what}" for what in wrong_times(said[0]))
        yield from expected(said[0], NO_TICKS, NO_TICKS, NO_TICKS)
        yield from until_asleep(server, "after it was stopped")


def stop_before(server):
    """The worker is stopped while it sleeps. When it continues, sessions use it again."""
    pid = worker(server)
    yield from until_asleep(server, "before it is stopped")
    with stopped(pid):
        said = server.psql(f"{using()} {SLOW} {INFO} {SLOW} {INFO}")
    yield from wrong_times(said)
    yield from expected(said, NO_TICKS, NO_TICKS)
    if infos(said)[1]["last_error_ms"] > infos(said)[0]["last_error_ms"] / 2:
        yield f"the fallback is as imprecise as the stopped worker: {infos(said)}"
    yield from until_asleep(server, "after it was stopped")
    yield from expected(server.psql(f"{using()} {MANY} {INFO}"), WORKER)


def half_started(server):
    """A session that is stopped while it writes the first tick stops no other session."""
    yield from until_asleep(server, "before it is half started")
    server.psql("CREATE FUNCTION half_start() RETURNS void LANGUAGE c AS 'other', 'other_half_start'; SELECT half_start()")
    said = server.psql(f"{using()} SET statement_timeout = '20s'; {SLOW} {INFO} {THREADS}")
    yield from wrong_times(said)
    if "threads|2" not in said or not 0 < infos(said)[0]["last_error_ms"] < SLEEP_MS / 10:
        yield f"a worker that is half started: {said}"


def terminated(server):
    """SIGTERM ends the worker. Sessions use their threads until the server has started another one."""
    before = worker(server)
    with running(server, f"{using()} {SLOW} {INFO}") as said:
        os.kill(before, signal.SIGTERM)
        until(lambda: before not in workers(server), "the worker ends")
        yield from expected(server.psql(f"{using()} {MANY} {INFO}"), ("thread", "is not running"))
    yield from wrong_times(said[0])
    if worker(server) == before or len(workers(server)) != 1:
        yield "no other worker was started"
    yield from until_asleep(server, "after it was terminated")
    yield from expected(server.psql(f"{using()} {MANY} {INFO}"), WORKER)


def rates(server):
    """A session with its own rate uses its own thread. The worker's rate is that of the configuration."""
    said = server.psql(f"{using()} SET pg_fast_timing.sample_rate = 2000; {MANY} {INFO} {THREADS} RESET pg_fast_timing.sample_rate; {MANY} {INFO}")
    yield from expected(said, ("thread", "sample_rate"), WORKER)
    if "threads|2" not in said or infos(said)[0]["ticks_per_second"] != 2000:
        yield f"a session with another rate: {said}"
    server.psql("ALTER SYSTEM SET pg_fast_timing.sample_rate = 2000")
    server.psql("SELECT pg_reload_conf()")
    faster = until(lambda: [i for i in infos(server.psql(f"{using()} {MANY} {INFO}")) if i["ticker"] == "worker"], "the worker has the new rate")
    if faster[0]["ticks_per_second"] != 2000:
        yield f"after a change of the configuration: {faster}"
    server.psql("ALTER SYSTEM RESET pg_fast_timing.sample_rate")
    server.psql("SELECT pg_reload_conf()")


def other_tickers(server):
    said = server.psql(f"{using('thread')} {MANY} {INFO} {THREADS}")
    yield from expected(said, ("thread", ""))
    if "threads|2" not in said:
        yield f"ticker = thread: {said}"
    said = server.psql(f"{using('none')} {MANY} {INFO} {THREADS}", notices=True)
    yield from expected(said, ("none", ""))
    scan = plans(said)[0]["Plan"]["Plans"][0]
    if "WARNING:" in said or "threads|1" not in said or scan["Actual Rows"] != 2_000_000 or scan["Actual Total Time"] != 0:
        yield f"ticker = none: {said}"
    marks = (scan.get("Timing"), plans(said)[0].get("Fast Timing"))
    if marks not in (("none", None), (None, "2 of 2 plan nodes have no time, because there is no ticking clock")):
        yield f"ticker = none: {marks}"
    # A worker tells its leader that it has no ticks.
    every = f"SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;"
    said = server.psql(f"{using('none')} {every} {MANY} {INFO} {MANY.replace('FORMAT JSON', 'VERBOSE')}")
    if "Worker 1:  actual time=0.000..0.000" not in said:
        yield f"parallel workers without ticks, for each worker: {said}"
    node = plans(said)[0]["Plan"]
    while "Plans" in node:
        node = node["Plans"][0]
    marked = node.get("Timing") == "none" if server.installation.major >= 18 else "plan nodes have no time" in plans(said)[0]["Fast Timing"]
    if node["Node Type"] != "Seq Scan" or node["Actual Loops"] != 2 or node["Actual Total Time"] != 0 or not marked:
        yield f"parallel workers without ticks: {said}"



# A table is counted, then the statement sleeps, and then a set of 2000 rows is counted.
GROWS = "SELECT (SELECT count(*) FROM many), (SELECT pg_sleep(1)), (SELECT count(*) FROM generate_series(1, 2000))"


def budget_grows(installation):
    """Without ticks, too, the budget grows while the statement runs, after a node was refused. auto_explain has only a small one at first."""
    settings = SETTINGS | {"shared_preload_libraries": f"{LIBRARY},auto_explain", "auto_explain.log_min_duration": 500, "auto_explain.log_analyze": True, "auto_explain.log_format": "json"}
    with Server(installation, settings) as server:
        server.psql(TABLES)
        server.psql(f"{using('none')} {GROWS} \\g /dev/null")
        log = server.log.read_text()
    times = {node["Node Type"]: node["Actual Total Time"] for node, _ in nodes(json.loads(re.search(r"^.*  plan:\n(\t\{.*?^\t\})", log, re.M | re.S)[1])["Plan"])}
    if times.get("Seq Scan") != 0 or not times.get("Function Scan"):
        yield f"a budget without ticks: {times}"


def no_slot(installation):
    """Without a slot for the worker, the server's log has one message, and sessions use their threads."""
    with Server(installation, SETTINGS | {"max_worker_processes": 0, "max_logical_replication_workers": 0}) as server:
        server.psql(TABLES)
        said = server.psql(f"{using()} {SLOW * 2} {INFO}", notices=True)
        yield from wrong_times(said)
        yield from expected(said, ("thread", "max_worker_processes"))
        log = server.log.read_text()
        if log.count("too many background workers") != 1 or "WARNING" in log + said:
            yield f"no slot for the worker: {log}"


def not_registered(installation):
    """If the configuration selects another ticker, no worker is started."""
    with Server(installation, SETTINGS | {"pg_fast_timing.ticker": "none"}) as server:
        server.psql(TABLES)
        said = server.psql(f"LOAD '{LIBRARY}'; {MANY} {INFO} SET pg_fast_timing.ticker = worker; {MANY} {INFO}")
        yield from expected(said, ("none", ""), ("thread", "when the server started"))
        if workers(server):
            yield "there is a worker, although the configuration has no ticker"


def not_preloaded(installation):
    for library in ("", LIBRARY):
        with Server(installation, SETTINGS | {"shared_preload_libraries": "", "session_preload_libraries": library}) as server:
            server.psql(TABLES)
            said = server.psql(f"{using()} {SLOW} {INFO} {THREADS}", notices=True)
            yield from wrong_times(said)
            yield from expected(said, ("thread", "shared_preload_libraries"))
            if "threads|2" not in said or workers(server) or "WARNING" in said:
                yield f"without shared_preload_libraries: {workers(server)}, {said}"


def check(installation):
    """Yields complaints."""
    build(HERE / "other", installation)
    yield from budget_grows(installation)
    with only_estimates(installation):
        yield from with_estimates(installation)


def with_estimates(installation):
    with Server(installation, SETTINGS) as server:
        server.psql(TABLES)
        for scenario in (stop_during, stop_before, terminated, rates, other_tickers, half_started):
            yield from (f"{scenario.__name__}: {what}" for what in scenario(server))
        yield from crashes(server)
    for scenario in (no_slot, not_registered, not_preloaded):
        yield from (f"{scenario.__name__}: {what}" for what in scenario(installation))
