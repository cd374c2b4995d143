"""Tests with faulty clocks: pg_fast_timing does not use them, and warns if the times of a statement are wrong."""

import json
import re

from extension import METHODS, faulty_clocks
from extension.invariants import explained
from extension.survive import SETTINGS, TABLES, crashes, session
from servers import Server

# This file changes a clock (clocks.c). The server itself creates it during a statement, because a timer could miss it. The
# statement then runs for 0.8 s, so that the clocks' difference exceeds the uncertainty of the rate.
SWITCH = "/tmp/switch"
SWITCHES = f"""CREATE FUNCTION switch() RETURNS void LANGUAGE plpgsql AS
$$BEGIN COPY (SELECT 1) TO '{SWITCH}'; PERFORM pg_sleep(0.8); END$$"""


def switch_file(installation):
    return installation.root / SWITCH.strip("/")


def check(installation):
    """Yields complaints."""
    with faulty_clocks() as library:
        for scenario, env in (
            (denied, {"TSC_DENIED": "1"}),
            (no_thread, {"NO_THREAD": "1"}),
            (long_subplan, {"NO_THREAD": "1"}),
            (slow, {"TSC_DENIED": "1", "SLOW_NS": "2000"}),
            (backward, {"RAW_BACK": "1"}),
            (other_rate, {"RAW_PPM": "100000", "SWITCH": SWITCH}),
            (interrupted, {"RAW_LATE": "5", "SWITCH": SWITCH}),
            (jump, {"SWITCH": SWITCH}),
            (jump_between, {"SWITCH": SWITCH}),
            (jump_before, {"SWITCH": SWITCH}),
        ):
            preloaded = {"shared_preload_libraries": "pg_fast_timing"} if scenario is jump_before else {}
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
TIMED_JSON = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM t;"
PARALLEL = f"SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; {TIMED}"
TIMED_SWITCH = "EXPLAIN (ANALYZE) SELECT count(*), switch() FROM t;"
# Two statements some seconds later: the late readings would change the rate here.
LATER = "SELECT pg_sleep(3); EXPLAIN (ANALYZE) SELECT 1; EXPLAIN (ANALYZE) SELECT 1;"


def denied(server):
    for method in METHODS:
        said = info(server.psql(session(method, TIMED, INFO, forced=False)))
        if said["clock"] != "system" or "may not read" not in (said["tsc_reason"] or ""):
            yield f"{method}: the counter is denied, but {said}"


def no_thread(server):
    """Without a thread, sampling warns once and the server times all statements. The method auto needs no ticks."""
    said = server.psql(session("sampling", TIMED * 3, PARALLEL, TIMED, INFO, forced=False), notices=True)
    if said.count("WARNING:") != 1 or "could not create a thread; the server's own timing is used for now" not in said or info(said)["last_nodes"] != 0:
        yield f"sampling without a thread: {said}"
    said = server.psql(session("auto", TIMED_JSON, INFO, forced=False), notices=True)
    run, last = explained(first_plan(said)), info(said)
    scan_ms = run["Plan"]["Plans"][0]["Actual Total Time"]
    low, high = scan_ms - last["last_error_ms"], scan_ms + last["last_error_ms"]
    if "WARNING:" in said or last["last_estimated"] != 1 or not last["last_samples"] or low > run["Execution Time"] or high <= 0:
        yield f"auto without a thread: {said}"


def long_subplan(server):
    """Without ticks, the root misses its one long call. The exact time of the subplan that this call runs is kept."""
    # The root times only bursts when its long call comes, so a burst rarely contains this call.
    statement = "SELECT CASE WHEN i = 50000 THEN (SELECT pg_sleep(0.5) IS NULL) END FROM generate_series(1, 100000) i"
    said = server.psql(session("auto", f"EXPLAIN (ANALYZE, FORMAT JSON) {statement};", INFO, forced=False), notices=True)
    root = explained(first_plan(said))["Plan"]
    subplan = next(node for node in root["Plans"] if node["Parent Relationship"] == "InitPlan")
    # 1 ms is more than the error of the counter's rate.
    if info(said)["last_estimated"] != 1 or min(root["Actual Total Time"], subplan["Actual Total Time"]) < 499:
        yield f"a subplan that sleeps 500 ms: {said}"


def slow(server):
    """A slow clock: the README states which calls are always timed."""
    sleeps = "SELECT pg_sleep(0.002) FROM generate_series(1, 300)"
    count, scans = "(SELECT count(*) FROM t) > 0", 20
    alone, beside = (
        info(server.psql(session("auto", f"EXPLAIN (ANALYZE) {statement};", INFO, forced=False)))
        for statement in (sleeps, f"{sleeps} WHERE {' AND '.join([count] * scans)}")
    )
    limits_ms = [200 * (alone["call_cost_ns"] + 20) * n / 1e6 for n in (1, scans)]
    if not limits_ms[0] < 2 < 10 < limits_ms[1]:
        yield f"a call costs {alone['call_cost_ns']} ns with a clock of 2000 ns"
    elif alone["last_estimated"] != 0:
        yield f"calls of 2 ms are estimated, and the limit is {limits_ms[0]} ms: {alone}"
    elif beside["last_estimated"] <= scans:
        yield f"calls of 2 ms are exact, and the limit is {limits_ms[1]} ms: {beside}"


def backward(server):
    """The rate cannot be measured, and no session waits for the clock."""
    for method in METHODS:
        said = info(server.psql("SET statement_timeout = '10s';" + session(method, TIMED, INFO, forced=False)))
        if said["clock"] != "system" or said["tsc_reason"] != "its rate could not be measured":
            yield f"{method}: the kernel's clock goes backward, but {said}"


def other_rate(server):
    """The machine was migrated between two statements, and the rate changed by 10%."""
    yield from warned(server, "tsc", "SELECT switch();", TIMED, "changed rate")


def interrupted(server):
    """Interrupted readings of the clocks do not change the rate."""
    said = server.psql(session("tsc", TIMED, "SELECT pg_sleep(0.5);", TIMED, INFO, TIMED_SWITCH, LATER, INFO, forced=False), notices=True)
    before, after = infos(said)
    if after["clock"] != "tsc" or not after["tsc_uncertainty_ppm"] < 50 or not same_rate(before, after):
        yield f"interrupted readings: {before}, then {after}"


def jump(server):
    """The machine slept, or was migrated, during a statement."""
    yield from warned(server, "auto", TIMED_SWITCH, TIMED, "the counter stood still for 5 s")


def jump_between(server):
    """The machine slept between two statements: the rate is measured again, without a warning."""
    said = server.psql(session("tsc", TIMED, INFO, "SELECT switch();", TIMED, TIMED, INFO, forced=False), notices=True)
    before, after = infos(said)
    if "WARNING:" in said or after["clock"] != "tsc" or not after["tsc_uncertainty_ppm"] < 1000:
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
    if "WARNING:" in said:
        yield f"a new session warns of an old pause: {said}"


def warned(server, method, while_switched, after, what):
    """One warning appears, and the session does not use the counter again."""
    said = server.psql(session(method, TIMED, while_switched, after, TIMED, INFO, forced=False), notices=True)
    if said.count("WARNING:") != 1 or info(said)["clock"] != "system":
        yield f"{what}: {said}"
