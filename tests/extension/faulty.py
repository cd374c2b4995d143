"""Tests with faulty clocks: pg_fast_timing does not use them, and warns if the times of a statement are wrong."""

import json

from extension import METHODS, faulty_clocks
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
