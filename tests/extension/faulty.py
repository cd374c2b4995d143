"""Tests with faulty clocks: pg_fast_timing does not use them, and says if the times of a statement are wrong."""

import json
import re

from extension import METHODS, faulty_clocks
from extension.invariants import explained, nodes
from extension.survive import SETTINGS, TABLES, crashes, session
from servers import Server

# This file changes a clock (clocks.c). The server itself creates it during a statement, because a timer could miss it. The
# statement then runs for 0.8 s, so that the clocks' difference exceeds the uncertainty of the rate.
SWITCH = "/tmp/switch"
SWITCHES = f"""CREATE FUNCTION switch() RETURNS void LANGUAGE plpgsql AS
$$BEGIN COPY (SELECT 1) TO '{SWITCH}'; PERFORM pg_sleep(0.8); END$$;
CREATE FUNCTION touch(path text) RETURNS void LANGUAGE plpgsql AS $$BEGIN EXECUTE format('COPY (SELECT 1) TO %L', path); END$$"""


def switch_file(installation):
    return installation.root / SWITCH.strip("/")


def check(installation):
    """Yields complaints."""
    with faulty_clocks() as library:
        for scenario, env in (
            (denied, {"TSC_DENIED": "1"}),
            (no_thread, {"NO_THREAD": "1"}),
            (slow, {"TSC_DENIED": "1", "SLOW_NS": "2000"}),
            (slow_workers, {"SLOW_NS": "2000"}),
            (backward, {"RAW_BACK": "1"}),
            (other_rate, {"RAW_PPM": "100000", "SWITCH": SWITCH}),
            (interrupted, {"RAW_LATE": "5", "SWITCH": SWITCH}),
            (jump, {"SWITCH": SWITCH}),
            (jump_short, {"SWITCH": SWITCH}),
            (jump_between, {"SWITCH": SWITCH}),
            (jump_before, {"SWITCH": SWITCH}),
            (other_source, {}),
        ):
            preloaded = {"shared_preload_libraries": "pg_fast_timing"} if scenario in (jump_before, no_thread) else {}
            with Server(installation, SETTINGS | preloaded, preload=[library], env=env) as server:
                server.psql(f"{TABLES} {SWITCHES}")
                try:
                    yield from scenario(server)
                finally:
                    switch_file(installation).unlink(missing_ok=True)
                yield from crashes(server)


def info(output):
    """Returns the last pg_fast_timing_info() in the output of a session."""
    return infos(output)[-1]


def infos(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"method"')]


def first_plan(output):
    """Returns the first plan in JSON in the output of a session."""
    return re.search(r"^\[.*?^\]", output, re.M | re.S)[0]


def same_rate(before, after):
    """Returns whether two rates agree within their uncertainties."""
    difference_ppm = abs(after["tsc_khz"] / before["tsc_khz"] - 1) * 1e6
    return difference_ppm <= before["tsc_uncertainty_ppm"] + after["tsc_uncertainty_ppm"]


INFO = "SELECT row_to_json(i) FROM pg_fast_timing_info() i;"
TIMED = "EXPLAIN (ANALYZE) SELECT count(*) FROM t;"
TIMED_SWITCH = "EXPLAIN (ANALYZE) SELECT count(*), switch() FROM t;"
# Two statements some seconds later: the late readings would change the rate here.
LATER = "SELECT pg_sleep(3); EXPLAIN (ANALYZE) SELECT 1; EXPLAIN (ANALYZE) SELECT 1;"


def denied(server):
    for method in METHODS:
        said = info(server.psql(session(method, TIMED, INFO, forced=False)))
        if said["clock"] != "system" or "may not read" not in (said["tsc_reason"] or ""):
            yield f"{method}: the counter is denied, but {said}"


def no_thread(server):
    """Without a thread, a node is exact until its budget is spent. Then it has calls and rows, but no time. The log says it once."""
    many = "SET pg_fast_timing.ticker = thread; SET max_parallel_workers_per_gather = 0; EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM t a, generate_series(1, 20);"
    said = server.psql(session("auto", many, INFO, "EXPLAIN (ANALYZE) SELECT count(*) FROM generate_series(1, 1000);", INFO, forced=False), notices=True)
    plan = explained(first_plan(said))
    untimed = [node for node, _ in nodes(plan["Plan"]) if node["Actual Rows"] * node["Actual Loops"] >= 1_000_000 and node["Actual Total Time"] == 0]
    short = said.partition("Aggregate  (")[2].partition('{"method"')[0]
    if not untimed or "WARNING:" in said or not ("Timing\": \"none" in said or "have no time, because there is no ticking clock" in said):
        yield f"without a thread: {said}"
    if "no time" in short or "none" in short:
        yield f"a short statement without a thread: {said}"
    server.psql(session("auto", many, forced=False))
    if (log := server.log.read_text()).count("could not create thread for pg_fast_timing") != 1:
        yield f"two sessions without a thread: {log}"


def slow(server):
    """A slow clock: timing costs at most 20 ms and 0.5% of the statement's time, and rare calls are exact."""
    said = info(server.psql(session("auto", "EXPLAIN (ANALYZE) SELECT pg_sleep(0.002) FROM generate_series(1, 300);", INFO, forced=False)))
    if said["last_estimated"] != 0 or not 3000 < said["call_cost_ns"] < 9000:
        yield f"calls of 2 ms with a clock of 2000 ns: {said}"
    cost = "SELECT 'cost', timing_ms FROM pg_stat_fast_timing;"
    said = server.psql(session("auto", "SET max_parallel_workers_per_gather = 0;", cost, "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM t a, generate_series(1, 20);", cost, forced=False))
    before_ms, after_ms = map(float, re.findall(r"^cost\|(\S+)", said, re.M))
    if not 0 < after_ms - before_ms <= 20 + 0.005 * explained(first_plan(said))["Execution Time"]:
        yield f"the cost of timing: {before_ms} ms, then {after_ms} ms: {said}"
    # auto_explain has a smaller budget, and many nodes have a common one.
    parts = """CREATE TABLE p (i int) PARTITION BY LIST (i); SELECT format('CREATE TABLE p%s PARTITION OF p FOR VALUES IN (%s)', g, g)
        FROM generate_series(1, 100) g \\gexec\n"""
    said = server.psql(session("auto", parts, "\\timing on", cost, "SELECT count(*) FROM p \\g /dev/null", "\\timing off", cost))
    before_ms, after_ms = map(float, re.findall(r"^cost\|(\S+)", said, re.M))
    took_ms = float(re.findall(r"^Time: ([\d.]+) ms", said, re.M)[1])
    # The first one of the two statements that show the cost is timed, too.
    if not 0 < after_ms - before_ms <= 2 * (0.02 + 0.005 * took_ms):
        yield f"the cost of timing 100 nodes under auto_explain: {before_ms} ms, then {after_ms} ms: {said}"


def slow_workers(server):
    """Workers that do not know the counter's rate use the slow clock, and the leader does not call their times exact."""
    every = "SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
    said = server.psql(session("auto", every, "SELECT pg_fast_timing_info() \\g /dev/null", TIMED, INFO, forced=False))
    if "Workers Launched: 2" not in said or info(said)["last_estimated"] == 0:
        yield f"workers with a slow clock: {said}"


def backward(server):
    """The rate cannot be measured, and no session waits for the clock."""
    for method in METHODS:
        said = info(server.psql("SET statement_timeout = '10s';" + session(method, TIMED, INFO, forced=False)))
        if said["clock"] != "system" or said["tsc_reason"] != "its rate could not be measured":
            yield f"{method}: the kernel's clock goes backward, but {said}"


def other_rate(server):
    """The machine was migrated between two statements, and the rate changed by 10%: it is measured again, or the next statement notices it."""
    said = server.psql(session("tsc", TIMED, INFO, "SELECT switch();", TIMED, INFO, forced=False), notices=True)
    before, after = infos(said)
    is_noticed = "because a clock jumped" in said and after["clock"] == "system"
    if not is_noticed and not (after["clock"] == "tsc" and 1.09 < after["tsc_khz"] / before["tsc_khz"] < 1.11):
        yield f"a changed rate: {said}"


def interrupted(server):
    """Interrupted readings of the clocks do not change the rate."""
    said = server.psql(session("tsc", TIMED, "SELECT pg_sleep(0.5);", TIMED, INFO, TIMED_SWITCH, LATER, INFO, forced=False), notices=True)
    before, after = infos(said)
    if after["clock"] != "tsc" or not after["tsc_uncertainty_ppm"] < 50 or not same_rate(before, after):
        yield f"interrupted readings: {before}, then {after}"


def jump(server):
    """The machine slept, or was migrated, during a statement."""
    yield from noticed(server, "auto", TIMED_SWITCH, TIMED, "the counter stood still for 5 s")


def jump_short(server):
    """The counter stands still in a statement that takes less than a millisecond by the counter."""
    short = f"SELECT touch('{SWITCH}.other'); EXPLAIN (ANALYZE) SELECT touch('{SWITCH}');"
    yield from noticed(server, "auto", short, TIMED, "the counter stood still for 5 s in a short statement")


def jump_between(server):
    """The machine slept between two statements: the rate is measured again, and no statement is marked."""
    said = server.psql(session("tsc", TIMED, INFO, "SELECT switch();", TIMED, TIMED, INFO, forced=False), notices=True)
    before, after = infos(said)
    if "clock jumped" in said or after["clock"] != "tsc" or not after["tsc_uncertainty_ppm"] < 1000:
        yield f"a pause between statements: {said}"
    if not same_rate(before, after):
        yield f"a rate across a pause: {before}, then {after}"


def jump_before(server):
    """The machine slept after the postmaster read its clocks: new sessions do not use its rate."""
    before = info(server.psql(session("tsc", TIMED, INFO, forced=False)))
    switch_file(server.installation).touch()
    said = server.psql(session("tsc", TIMED, TIMED, INFO, forced=False), notices=True)
    after = info(said)
    if before["clock"] == "tsc" and not 0.999 < after["tsc_khz"] / before["tsc_khz"] < 1.001:
        yield f"a rate across a pause: {before}, then {after}"
    if "clock jumped" in said or "not used any more" in server.log.read_text():
        yield f"a new session notices an old pause: {said}"


def other_source(server):
    """PostgreSQL 19's clock source changes during a statement, and so does the unit of all times."""
    if server.installation.major < 19:
        return
    server.psql(
        "CREATE FUNCTION switch_source(name text) RETURNS int LANGUAGE plpgsql AS "
        "$$BEGIN PERFORM set_config('timing_clock_source', name, false); RETURN 1; END$$"
    )
    for method in METHODS:
        statement = "EXPLAIN (ANALYZE) SELECT sum(CASE WHEN i = 100000 THEN switch_source('system') END) FROM t;"
        said = server.psql(session(method, "SET timing_clock_source = tsc;", statement, TIMED, forced=False))
        if said.count("because a clock jumped") < 2 or "because a clock jumped" in said.rpartition("Execution Time")[0].rpartition("Execution Time")[2]:
            yield f"{method}: another clock source: {said}"
        closed = "SET timing_clock_source = tsc; BEGIN; DECLARE c CURSOR FOR SELECT i FROM t; FETCH 50000 FROM c \\g /dev/null\nSET timing_clock_source = system; CLOSE c; COMMIT;"
        logged = server.log.read_text()
        server.psql(session(method, closed))
        if "because a clock jumped" not in server.log.read_text()[len(logged) :]:
            yield f"{method}: another clock source before a cursor is closed: no mark in the log"


def noticed(server, method, while_switched, after, what):
    """The log says it once, no client gets a message, the statement is marked, and no session uses the counter again."""
    jumps = "SELECT 'jumps', clock_jumps FROM pg_stat_fast_timing;"
    said = server.psql(session(method, TIMED, while_switched, after, TIMED, INFO, jumps, forced=False), notices=True)
    log = server.log.read_text()
    if "WARNING:" in said or "LOG:" in said or log.count("CPU time stamp counter is not used any more") != 1:
        yield f"{what}: {said}, {log}"
    if info(said)["clock"] != "system" or "jumps|1" not in said or "because a clock jumped" not in said:
        yield f"{what}: {said}"
