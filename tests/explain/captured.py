"""pg_timing explain --plan on plans that real servers print: as text, as JSON and in the log, on a clock that is slow
and on one that is not. What it says is held against the plain time, which psql's \\timing tells."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from extension import faulty_clocks
from servers import Failed, Server

ROUNDS = 5
# Far above what a vDSO takes, so that the clock is most of what EXPLAIN ANALYZE says, whatever else the machine does.
SLOW_NS = 1000
# The machine is shared: medians of the same statement differ by so much.
NOISE = 0.25

STATEMENTS = [
    "SELECT count(*) FROM t",
    "WITH c AS MATERIALIZED (SELECT i FROM t WHERE k = 1) SELECT count(*) FROM c a JOIN c b USING (i)",
    "SELECT count(*) FROM t a JOIN t b USING (i)",
    "SELECT i, k FROM t ORDER BY k, i LIMIT 10",
    "SELECT k, (SELECT count(*) FROM t u WHERE u.i = t.k) FROM t WHERE i < 1000",
    "SELECT * FROM t WHERE i IN (1, 2, 3) OR i BETWEEN 4 AND 9 AND k NOT IN (SELECT 1 FROM t WHERE k > 99)",
    "SELECT k, count(*) FROM t GROUP BY ROLLUP (k)",
    "SELECT count(*) FROM t WHERE EXISTS (SELECT FROM t u WHERE u.i = t.k)",
    "SELECT 1 UNION SELECT k FROM t INTERSECT ALL SELECT i FROM t",
]
PARALLEL = """SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;"""
ONE_PROCESS = "SET max_parallel_workers_per_gather = 0; SET jit = off;"
LOG = """LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
SET auto_explain.log_format = {};"""
# As people have it: with a heading, a line of dashes and the number of rows.
SCREEN = ("-X", "-q", "-v", "ON_ERROR_STOP=1")


class Captured:
    def __init__(self, path, server, known):
        self.path, self.server, self.known = path, server, known

    def report(self, plan, *more):
        command = [self.path, "explain", "--plan", "-", "--format", "json", *(more or self.known)]
        done = subprocess.run(command, input=plan, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return json.loads(done.stdout)

    def explained(self, statement, options="", before=ONE_PROCESS):
        return self.server.psql(f"{before} EXPLAIN (ANALYZE{options}) {statement}", options=SCREEN)

    def logged(self, statement, form, options="", before=ONE_PROCESS):
        """What psql prints, and the log of the same run."""
        start = self.server.log.stat().st_size
        screen = self.explained(statement, options, before + LOG.format(form))
        with open(self.server.log) as log:
            log.seek(start)
            return screen, log.read()

    def round(self, statement):
        """ms of the statement by psql's clock, the second time; and its plan, in the same session."""
        script = f"{ONE_PROCESS}\n\\o /dev/null\n{statement};\n\\timing on\n{statement};\n\\timing off\n\\o\n"
        said = self.server.psql(f"{script}EXPLAIN (ANALYZE, SETTINGS) {statement}", options=SCREEN)
        return float(re.search(r"^Time: ([\d.]+) ms", said, re.MULTILINE)[1]), said


def held(captured, statement):
    """The plain time is in the interval, and what it implies is in that of a call."""
    rounds = [captured.round(statement) for _ in range(ROUNDS)]
    # The least of each: a busy machine only adds, and seldom to all.
    plain = min(ms for ms, _ in rounds)
    plan = min((said for _, said in rounds), key=lambda said: float(re.search(r"Execution Time: ([\d.]+)", said)[1]))
    report = captured.report(plan)
    reported, interval = report["reported_ms"], report["corrected_ms"]
    # An empty statement takes psql some tenths of a ms, too.
    if not interval["low"] * (1 - NOISE) <= plain <= interval["high"] * (1 + NOISE) + 0.5:
        yield f"{statement}: {plain} ms plain, {reported} ms reported, and by the plan {interval}"
    if plain < reported / 2:
        implied = captured.report(plan, "--plain-ms", str(plain))["capture"]["implied_call_ns"]
        expected = report["capture"]["expected_call_ns"]
        if not expected["low"] * (1 - NOISE) <= implied <= expected["high"] * (1 + NOISE):
            yield f"{statement}: {implied} ns a call, and by a read {expected}"
    # It has to say something: on a slow clock a scan of 100 000 rows is not left at what was reported.
    slow = report["capture"]["read_ns"] > SLOW_NS
    if statement == STATEMENTS[0] and slow and interval["high"] > reported / 2:
        yield f"{statement}: {interval} of {reported}"


def figures(report):
    return [(node["path"], node["title"], node["processes"], round(node["reported_ms"], 6)) for node in report["nodes"]]


def alike(captured, statement, before=ONE_PROCESS):
    """One run, told by psql as text and by auto_explain's log as JSON and as text."""
    for form, options in (("json", ", VERBOSE"), ("json", ""), ("text", ", VERBOSE")):
        screen, log = captured.logged(statement, form, options, before)
        text, logged = captured.report(screen), captured.report(log)
        if figures(text) != figures(logged):
            yield f"{statement} by {form}: {figures(text)} {figures(logged)}"
        calls, others = text["capture"]["calls"], logged["capture"]["calls"]
        # A text without VERBOSE does not say where a join wants one row.
        same = abs(calls["estimate"] - others["estimate"]) < 1e-6
        if not calls["low"] <= others["estimate"] <= calls["high"] or (options and form == "json" and not same):
            yield f"{statement} by {form}: calls {calls} {others}"
        if logged["statement"] is None or "EXPLAIN" not in logged["statement"]:
            yield f"{statement} by {form}: the log's statement is {logged.get('statement')!r}"


def refused(captured):
    for options, line in ((", TIMING OFF", "TIMING OFF"), (", SUMMARY OFF", "no Execution Time"), (", FORMAT YAML", "YAML"), (", FORMAT XML", "XML")):
        try:
            captured.report(captured.explained(STATEMENTS[0], options))
            yield f"{options} is taken"
        except Failed as failed:
            if line not in str(failed) or len(str(failed).splitlines()) != 2:
                yield f"{options}: {failed}"


def has_auto_explain(server):
    try:
        server.psql("LOAD 'auto_explain'")
    except Failed:
        return False
    return True


def captured(path, installation, settings, tables):
    """All of it, on a server for each clock."""
    with faulty_clocks() as library, tempfile.TemporaryDirectory() as folder:
        for slow_ns in (0, SLOW_NS):
            host = host_report(path, slow_ns, library, Path(folder))
            # 19 would take the TSC, which nothing slows down; and says so only if it was set.
            more = {"timing_clock_source": "system" if slow_ns else "tsc"} if installation.major >= 19 else {}
            preload, env = ([library], {"SLOW_NS": slow_ns}) if slow_ns else ([], {})
            with Server(installation, settings | more, preload, env) as server:
                server.psql(tables)
                first(server)
                one = Captured(path, server, ("--host-report", str(host)))
                for statement in STATEMENTS:
                    yield from held(one, statement)
                if slow_ns == 0:
                    yield from refused(one)
                    yield from logs(one)


def first(server):
    """What else the machine does waits for the sessions to come: where they have to wait, a read takes longer than was
    measured. A nice value does not reach that far, for each session of the host has its share."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(server.process.pid, os.SCHED_RR, os.sched_param(1))


def logs(one):
    if not has_auto_explain(one.server):
        return
    for statement in STATEMENTS:
        yield from alike(one, statement)
    yield from alike(one, STATEMENTS[2], PARALLEL)


def host_report(path, slow_ns, library, folder):
    """What pg_timing says of the host, run on the clock that the server has."""
    report = folder / f"host-{slow_ns}.json"
    env = os.environ | ({"LD_PRELOAD": str(library), "SLOW_NS": str(slow_ns)} if slow_ns else {})
    with open(report, "w") as file:
        subprocess.run([path, "-d", "1", "--format", "json"], env=env, stdout=file, stderr=subprocess.DEVNULL)
    return report
