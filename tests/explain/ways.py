"""What a server has beside its own timing: each way is tried, and sampling tells of the nodes. And a clock that is slow."""

import json

from extension import SOURCE, faulty_clocks
from servers import Server, build

COUNT = "SELECT count(*) FROM t"
LOADED = ("-d", "options='-c session_preload_libraries=pg_fast_timing'")
# A scan that is nothing but calls, and a filter that is nothing but work.
CALLS_AND_WORK = """SELECT (SELECT count(*) FROM t),
    (SELECT count(*) FROM generate_series(1, 10000) i WHERE length(repeat(md5(repeat(i::text, 100)), 10)) < 0)"""


def ways(program, installation):
    """pg_fast_timing's methods, and 19's clock sources beside them."""
    build(SOURCE, installation)
    done = program.run("-c", COUNT, "--format", "json", *LOADED)
    if done.returncode != 0:
        yield f"with pg_fast_timing: {done.stderr}"
        return
    report = json.loads(done.stdout)
    tried = {(way["setting"], way["value"]) for way in report["timed"]}
    wanted = {("pg_fast_timing.method", method) for method in ("off", "tsc", "sampling", "auto")}
    if installation.major >= 19:
        wanted |= {("timing_clock_source", source) for source in ("system", "tsc")}
    for setting, value in wanted - tried:
        if not any(note.startswith(f"{setting} = {value} was not measured: ") for note in report["notes"]):
            yield f"{setting} = {value} was neither tried nor said to be refused: {tried}, {report['notes']}"
    for node in report["nodes"]:
        sampled = node["sampled_ms"]
        if not sampled["low"] <= sampled["estimate"] <= sampled["high"] <= report["corrected_ms"]["high"]:
            yield f"by sampling: {node}, of {report['corrected_ms']}"
    # The whole statement is its root's, and most of this one its scan's.
    if not all(node["sampled_ms"]["estimate"] > report["corrected_ms"]["estimate"] * least for node, least in zip(report["nodes"], (0.8, 0.3), strict=False)):
        yield f"by sampling: {report['nodes']}, of {report['corrected_ms']}"
    text = program.run("-c", COUNT, *LOADED).stdout
    if "timed by   pg_fast_timing.method: off " not in text or ("timing_clock_source: system" in text) != (installation.major >= 19):
        yield f"by which ways: {text}"


def slow(new_program, installation, settings, tables):
    """By which of its nodes a statement takes long, EXPLAIN ANALYZE does not tell where a read takes 770 ns more."""
    system = {"timing_clock_source": "system"} if installation.major >= 19 else {}
    with faulty_clocks() as library, Server(installation, settings | system, preload=[library], env={"SLOW_NS": "770"}) as server:
        server.psql(tables)
        program = new_program(server)
        text = program.run("-c", CALLS_AND_WORK)
        flagged = [line for line in text.stdout.splitlines() if "<- rank " in line]
        if not any("Function Scan" in line and line.endswith(", 1 by corrected time") for line in flagged):
            yield f"a node whose place is another on a slow clock: {text}"
        root = json.loads(program.run("-c", COUNT, "--format", "json").stdout)
        of_root, of_all = (each["high"] - each["estimate"] for each in (root["nodes"][0]["corrected_ms"], root["corrected_ms"]))
        if of_root > 2 * of_all:
            yield f"the root is known no better than by {of_root} ms, the whole by {of_all} ms"
