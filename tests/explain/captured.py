"""pg_timing explain --plan on plans that real servers print: as text, as JSON and in the log. `bench` measures the errors."""

import json
import subprocess

from outcome import until
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
    "SELECT i FROM t a WHERE i < 1000 ORDER BY i DESC LIMIT 5",
    "SELECT count(*) FROM t a LEFT JOIN (VALUES (1), (2)) AS b (i) ON a.i = b.i FULL JOIN generate_series(1, 9) c ON c = a.k",
    'WITH "order" AS MATERIALIZED (SELECT i AS "user" FROM t) SELECT count(*) FROM "order" AS "A ""b""" JOIN t AS "select" ON i = "user"',
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r EXCEPT SELECT i FROM t",
    "SELECT * FROM t TABLESAMPLE SYSTEM (1), unnest(ARRAY[1, 2]) AS x WHERE ctid < '(1,1)'",
    "DELETE FROM t a USING t b WHERE a.i = b.i AND b.k > 99",
]
# The wheel of 16 has no XML.
XML = "SELECT * FROM XMLTABLE('/a' PASSING ('<a/>'::xml) COLUMNS b text) AS x"
PARALLEL = """SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;"""
ONE_PROCESS = "SET max_parallel_workers_per_gather = 0; SET jit = off;"
LOG = """LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
SET auto_explain.log_format = {}; SET auto_explain.log_verbose = {};"""
# psql's default output has a heading, a line of dashes and the number of rows.
SCREEN = ("-X", "-q", "-v", "ON_ERROR_STOP=1")


class Captured:
    def __init__(self, path, server, read_cost):
        self.path, self.server, self.read_cost = path, server, read_cost

    def report(self, plan, *more):
        command = [self.path, "explain", "--plan", "-", "--format", "json", *(more or self.read_cost)]
        done = subprocess.run(command, input=plan, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return json.loads(done.stdout)

    def on_screen(self, statement, options="", before=ONE_PROCESS):
        return self.server.psql(f"{before} EXPLAIN (ANALYZE{options}) {statement}", options=SCREEN)

    def on_screen_and_in_log(self, statement, form, options="", before=ONE_PROCESS):
        """Returns psql's output and the server's log of the same run."""
        log = self.log()
        start = log.stat().st_size
        screen = self.on_screen(statement, options, before + LOG.format(form, "VERBOSE" in options))

        def new_text():
            with open(log) as file:
                file.seek(start)
                text = file.read()
            # A record of a CSV log ends outside of quotation marks.
            is_complete = text.endswith("\n") and (log.suffix != ".csv" or text.count('"') % 2 == 0)
            return text if "plan:" in text and is_complete else None

        # The server's logging collector is a separate process. It may write later, and a long entry in parts.
        return screen, until(new_text, "the plan is in the log")

    def log(self):
        return next(iter((self.server.data / "log").glob("*.csv")), self.server.log)


def figures(report):
    # EXPLAIN's text puts names that are keywords into quotation marks, and JSON does not.
    title = lambda node: node["title"].replace('"', "")
    return [(node["path"], title(node), node["processes"], round(node["reported_ms"], 6)) for node in report["nodes"]]


def compare(captured, statement, before=ONE_PROCESS):
    """The reports of one run from psql's text and from auto_explain's log agree."""
    for form, options in (("json", ", VERBOSE"), ("json", ""), ("text", ", VERBOSE")):
        screen, log = captured.on_screen_and_in_log(statement, form, options, before)
        text, logged = captured.report(screen), captured.report(log)
        if figures(text) != figures(logged):
            yield f"{statement}, {form}: {figures(text)} {figures(logged)}"
        text_calls, log_calls = text["capture"]["calls"], logged["capture"]["calls"]
        # Only JSON, and text with VERBOSE, show which joins need just one row (Inner Unique).
        equal = abs(text_calls["estimate"] - log_calls["estimate"]) < 1e-6
        if not text_calls["low"] <= log_calls["estimate"] <= text_calls["high"] or (options and form == "json" and not equal):
            yield f"{statement}, {form}: calls {text_calls} {log_calls}"
        if logged["statement"] is None or "EXPLAIN" not in logged["statement"]:
            yield f"{statement}, {form}: the log's statement is {logged.get('statement')!r}"


def refused_plans(captured):
    """A plan without times gives one error line and a hint."""
    for options in (", TIMING OFF", ", TIMING OFF, FORMAT YAML", ", TIMING OFF, FORMAT XML"):
        try:
            captured.report(captured.on_screen(STATEMENTS[0], options))
            yield f"{options} is accepted"
        except Failed as failed:
            if "TIMING OFF" not in str(failed) or len(str(failed).splitlines()) != 2:
                yield f"{options}: {failed}"


def without_execution_time(captured):
    """The topmost node's time counts, and a note says so."""
    for options in (", SUMMARY OFF", ", SUMMARY OFF, FORMAT JSON"):
        report = captured.report(captured.on_screen(STATEMENTS[0], options))
        if report["reported_ms"] != report["nodes"][0]["reported_ms"]:
            yield f"{options}: reported {report['reported_ms']} ms, root {report['nodes'][0]['reported_ms']} ms"
        if "the plan has no Execution Time" not in report["notes"][0]:
            yield f"{options}: {report['notes']}"


def can_run(server, sql):
    try:
        server.psql(sql)
    except Failed:
        return False
    return True


def captured(path, installation, settings, tables):
    """Reads plans from psql, from a text log and from a CSV log."""
    with Server(installation, settings) as server:
        server.psql(tables)
        one = Captured(path, server, ("--read-cost", "25"))
        yield from refused_plans(one)
        yield from without_execution_time(one)
        yield from logs(one, STATEMENTS)
    with Server(installation, settings | {"logging_collector": True, "log_destination": "csvlog"}) as server:
        server.psql(tables)
        yield from logs(Captured(path, server, ("--read-cost", "25")), STATEMENTS[:3])


def logs(one, statements):
    """Compares psql's output with auto_explain's log, for each statement. The wheel of 16 may have no auto_explain."""
    if not can_run(one.server, "LOAD 'auto_explain'"):
        return
    for statement in [*statements, *([XML] if can_run(one.server, XML) else [])]:
        yield from compare(one, statement)
    for statement in (STATEMENTS[2], "SELECT i FROM t WHERE k = 1 ORDER BY i DESC", "SELECT k, count(*) FROM t GROUP BY k"):
        yield from compare(one, statement, PARALLEL)
