"""pg_timing explain with pg_fast_timing's methods, with PostgreSQL 19's clock sources, and on a slow clock."""

import json

from extension import SOURCE, faulty_clocks
from servers import Server, build

COUNT = "SELECT count(*) FROM t"
LOADED = ("-d", "options='-c session_preload_libraries=pg_fast_timing'")
# A scan with many cheap calls, and a filter with one call, which takes several times as long as the scan without a clock.
CALLS_AND_WORK = """SELECT (SELECT count(*) FROM t),
    (SELECT count(*) FROM generate_series(1, 40000) i WHERE length(repeat(md5(repeat(i::text, 100)), 10)) < 0)"""


def methods(program, installation):
    """explain uses each of pg_fast_timing's methods, and each of PostgreSQL 19's clock sources."""
    build(SOURCE, installation)
    done = program.run("-c", COUNT, "--format", "json", *LOADED)
    if done.returncode != 0:
        yield f"with pg_fast_timing: {done.stderr}"
        return
    report = json.loads(done.stdout)
    used = {(timed["setting"], timed["value"]) for timed in report["timed"]}
    expected = {("pg_fast_timing.method", method) for method in ("off", "tsc", "auto")}
    if installation.major >= 19:
        expected |= {("timing_clock_source", source) for source in ("system", "tsc")}
    for setting, value in expected - used:
        if not any(note.startswith(f"{setting} = {value} was not measured: ") for note in report["notes"]):
            yield f"{setting} = {value} was neither used nor reported as refused: {used}, {report['notes']}"
    text = program.run("-c", COUNT, *LOADED).stdout
    if "timed by    pg_fast_timing.method: off " not in text or ("timing_clock_source: system" in text) != (installation.major >= 19):
        yield f"methods on the screen: {text}"


# On a busy machine, an interval can be too wide to show a changed rank. A longer measurement has a narrower one.
SECONDS = (4, 8, 16, 32, 64)


def slow_clock(new_program, installation, settings, tables):
    """If a clock read takes 1.5 us longer, EXPLAIN ANALYZE ranks the nodes wrongly. pg_timing shows the right rank."""
    system = {"timing_clock_source": "system"} if installation.major >= 19 else {}
    with faulty_clocks() as library, Server(installation, settings | system, preload=[library], env={"SLOW_NS": "1500"}) as server:
        server.psql(tables)
        program = new_program(server)
        for seconds in SECONDS:
            text = program.run("-c", CALLS_AND_WORK, "--time", str(seconds))
            reranked = [line for line in text.stdout.splitlines() if line.startswith("1 (")]
            if reranked:
                break
        if not reranked or not all("Function Scan" in line for line in reranked):
            yield f"no changed rank on a slow clock, or a wrong one: {text}"
        report = json.loads(program.run("-c", COUNT, "--format", "json").stdout)
        root_error, statement_error = (each["high"] - each["estimate"] for each in (report["nodes"][0]["corrected_ms"], report["corrected_ms"]))
        if root_error > 2 * statement_error:
            yield f"the error of the root is {root_error} ms, the error of the statement {statement_error} ms"
