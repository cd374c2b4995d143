"""pg_timing explain --plan on plans that real servers print: as text, as JSON and in the log. How true it is, bench tells."""

import json
import subprocess
import time

from servers import Failed, Server

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
        log = self.log()
        start = log.stat().st_size
        screen = self.explained(statement, options, before + LOG.format(form))
        for _ in range(50):
            with open(log) as new:
                new.seek(start)
                text = new.read()
            # The server's collector writes when it comes to it.
            if "plan:" in text:
                break
            time.sleep(0.1)
        return screen, text

    def log(self):
        return next(iter((self.server.data / "log").glob("*.csv")), self.server.log)


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
    """All of it, but for how true it is: bench tells that."""
    with Server(installation, settings) as server:
        server.psql(tables)
        one = Captured(path, server, ("--read-cost", "25"))
        yield from refused(one)
        yield from logs(one, STATEMENTS)
    with Server(installation, settings | {"logging_collector": True, "log_destination": "csvlog"}) as server:
        server.psql(tables)
        yield from logs(Captured(path, server, ("--read-cost", "25")), STATEMENTS[:3])


def logs(one, statements):
    if not has_auto_explain(one.server):
        return
    for statement in statements:
        yield from alike(one, statement)
    yield from alike(one, STATEMENTS[2], PARALLEL)
