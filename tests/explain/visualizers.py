"""Other programs read what `explain --format plan-text` and `plan-json` print: pev2 (npm), and dataxplan (PyPI).

Their packages are in $PG_TIMING_VISUALIZERS or /var/cache/pg_timing/visualizers.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from extension import SOURCE
from servers import Failed, Server, build
from servers.commands import Missing, Offline, first_cause, is_offline, output

from explain import formats
from explain.captured import ONE_PROCESS, PARALLEL, SCREEN, Captured, can_run
from explain.measure import HERE, statements

CACHE = Path(os.environ.get("PG_TIMING_VISUALIZERS") or "/var/cache/pg_timing/visualizers").absolute()
PEV2 = "pev2@1.21.0"
DATAXPLAN = "dataxplan==0.1.3"

TABLES = """CREATE TABLE c (i int REFERENCES x, k int); CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER changed BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION changed(); CREATE TABLE "We ird" ("A b" int);"""
KEYS = "CREATE TABLE x (i int PRIMARY KEY, k int); INSERT INTO x SELECT g, g % 7 FROM generate_series(1, 5000) g;"
# Statements whose properties have lines of their own.
PROPERTIES = [
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT * FROM t JOIN x ON x.i = t.k WHERE t.i < 3000",
    "SET work_mem = '64kB'; SELECT k, i FROM v ORDER BY k, i",
    "SET work_mem = '64kB'; SELECT i, count(*) FROM v GROUP BY i",
    "SELECT * FROM (SELECT * FROM u ORDER BY i OFFSET 0) AS sorted ORDER BY i, k LIMIT 5000",
    "SELECT * FROM v TABLESAMPLE BERNOULLI (5) REPEATABLE (7)",
    "SET enable_hashagg = off; SELECT k, i % 2, count(*) FROM v GROUP BY ROLLUP (k, (i % 2)), GROUPING SETS ((k), (i % 2))",
    "INSERT INTO c SELECT g, g FROM generate_series(1, 1000) g",
    "INSERT INTO x SELECT g, g FROM generate_series(1, 100) g ON CONFLICT (i) DO UPDATE SET k = 0 WHERE x.k > 3",
    "UPDATE p SET k = 1 WHERE i < 1500",
    "MERGE INTO x USING v ON v.i = x.i WHEN MATCHED THEN UPDATE SET k = 1",
    "SET jit = on; SET jit_above_cost = 0; SELECT sum(k + 1) FROM v",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 9), m AS MATERIALIZED (SELECT * FROM v)"
    " SELECT * FROM r, m WHERE m.i < (SELECT max(k) FROM v) AND m.k NOT IN (SELECT k FROM x)",
    'SELECT "A b", (SELECT count(*) FROM x WHERE x.i = "A b") FROM "We ird" AS "a ""b""" WHERE "A b" = 5',
    "SELECT i, row_number() OVER (PARTITION BY k ORDER BY i) FROM v",
]
OF_WORKERS = ["SELECT k, count(*) FROM t GROUP BY k ORDER BY k", "SELECT i FROM t WHERE k < 500 ORDER BY k", "SELECT count(*) FROM t JOIN u USING (i)"]

# EXPLAIN prints three decimals, and the corrected time is computed from such a time.
ROUNDING_MS = 0.00051


def tools():
    """Returns the folders of pev2 and dataxplan, after installing them if necessary. Raises Missing."""
    folder = CACHE / re.sub(r"[^\w.]+", "-", f"{PEV2} {DATAXPLAN}")
    if not folder.exists():
        making = folder.with_suffix(f".{os.getpid()}")
        try:
            making.mkdir(parents=True)
            output(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", making, PEV2])
            output([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", making / "python", DATAXPLAN])
            making.rename(folder)
        except (Failed, OSError) as error:
            shutil.rmtree(making, ignore_errors=True)
            raise (Offline if is_offline(error) else Missing)(first_cause(error)) from error
    return folder / "node_modules/pev2", folder / "python"


class Case:
    """The plan of one run in one format, and what pg_timing and pev2 make of it."""

    def __init__(self, captured, name, plan):
        self.name, self.plan = name, without_log(plan)
        self.report = captured.report(plan)
        # A plan is printed in the format that was read.
        self.form = "plan-json" if '"Plan": {' in self.plan else "plan-text"
        self.corrected = printed(captured, plan, self.form)

    def sources(self):
        return [self.plan, self.corrected]


def without_log(plan):
    """Returns the JSON in a server's log. Other texts stay the same: pev2 reads psql's output, but not every log."""
    found = re.search(r"plan:\n(\t\{\n.*?\n\t\})$", plan, re.DOTALL | re.MULTILINE)
    return found[1].replace("\n\t", "\n") if found else plan


def printed(captured, plan, form):
    command = [captured.path, "explain", "--plan", "-", "--format", form, *captured.read_cost]
    return output(command, input=plan)


def captures(captured, statement, options, before):
    """Yields plans of a statement: psql's in both formats, and those of one run in psql and in auto_explain's log."""
    settings, _, query = statement.rpartition(";")
    before = f"{before} {settings}; BEGIN;"
    for form in ("text", "json"):
        yield f"{form}{options}", captured.server.psql(f"{before} EXPLAIN (ANALYZE, FORMAT {form}{options}) {query}; ROLLBACK", options=SCREEN)


def same_run(captured, statement, before):
    """Returns the text that psql shows and the JSON in the server's log, of the same run."""
    settings, _, query = statement.rpartition(";")
    return captured.on_screen_and_in_log(query + "; ROLLBACK", "json", ", VERBOSE, BUFFERS OFF", f"{before} {settings}; BEGIN;")


def read_by_pev2(folder, sources):
    """Returns what pev2 reads in each of the texts."""
    script = Path(__file__).with_name("pev2.mjs")
    return json.loads(output(["node", str(script), str(folder)], input=json.dumps(sources)))


def corrected_ms(report):
    """Yields each node's corrected time. A visualizer subtracts the times of children, so none is longer than that of its
    parent, if the same processes run both, or than that of the statement."""
    known = {}
    for node in report["nodes"]:
        parent = known.get(node["path"].rpartition(".")[0])
        is_separate = node["title"].startswith(("CTE ", "InitPlan ", "SubPlan "))
        has_limit = parent and parent[1] == node["processes"] and not is_separate
        most = parent[0] if has_limit else report["corrected_ms"]["estimate"]
        ms = min(node["corrected_ms"]["estimate"], most)
        known[node["path"]] = (ms, node["processes"])
        yield ms


def check_case(case, original, read, dataxplan):
    """Yields complaints about one plan. The arguments after the case are what pev2 and dataxplan read; dataxplan reads text only."""
    errors = [plan["error"] for plan in (original, read) if "error" in plan]
    if errors:
        yield f"{case.name}: pev2: {errors[0]}"
        return
    reported = case.report["nodes"]
    counts = [len(nodes) for nodes in (reported, original["nodes"], read["nodes"], *([dataxplan["nodes"]] if dataxplan else []))]
    if len(set(counts)) != 1:
        yield f"{case.name}: number of nodes {counts}"
        return
    for n, (node, corrected) in enumerate(zip(reported, corrected_ms(case.report))):
        _, startup, total, loops, subplan, cost = original["nodes"][n]["own"]
        # pev2 reads no time of a node that was never executed, if it reads the text format.
        total = total or 0
        share = corrected / node["reported_ms"] if node["reported_ms"] else 1
        _, new_startup, new_total, new_loops, new_subplan, new_cost = read["nodes"][n]["own"]
        if (loops, cost) != (new_loops, new_cost) or subplan != new_subplan:
            yield f"{case.name}: {read['nodes'][n]} {original['nodes'][n]}"
        new_total = new_total or 0
        if abs(new_total - total * share) > ROUNDING_MS or not 0 <= (new_startup or 0) <= new_total:
            yield f"{case.name}: {node['title']}: {total} ms becomes {new_total} ms instead of {total * share} ms"
        if not all(abs(new - old * share) <= ROUNDING_MS for new, old in zip(read["nodes"][n]["workers"], original["nodes"][n]["workers"]) if old is not None):
            yield f"{case.name}: workers: {read['nodes'][n]} {original['nodes'][n]}"
        if dataxplan and (dataxplan["nodes"][n] or 0) != new_total:
            yield f"{case.name}: {node['title']}: pev2 and dataxplan differ: {read['nodes'][n]} {dataxplan['nodes'][n]}"
    # pev2 removes the unit at the end of a text's line.
    if not re.fullmatch(r"pg_timing \S+ removed .*% \(.*% to .*%\) of the reported [\d.]+( ms)?", str(read.get("correction"))):
        yield f"{case.name}: {read.get('correction')}"
    if original.get("execution") is not None and abs(read["execution"] - case.report["corrected_ms"]["estimate"]) > ROUNDING_MS:
        yield f"{case.name}: Execution Time {read['execution']}"


def read_by_dataxplan(dataxplan, text):
    """Returns the nodes' times. dataxplan reads rows without decimals only, as PostgreSQL 15 to 17 print them."""
    plan = dataxplan.parse(re.sub(r"rows=(\d+)\.\d\d loops", r"rows=\1 loops", text))

    def times(node):
        return [node.raw.get("Actual Total Time"), *(ms for child in node.children for ms in times(child))]

    return {"nodes": times(plan.root)}


def agree(text, log):
    """Yields a complaint if pg_timing reads other nodes or times in the text of a run than in its JSON."""
    nodes = [[(node["path"], node["type"], node["reported_ms"]) for node in case.report["nodes"]] for case in (text, log)]
    if nodes[0] != nodes[1]:
        yield f"{text.name}: {nodes}"


LIVE = "SELECT count(*) FROM t a JOIN v b USING (i)"


def live(path, server, pev2):
    """The plan of a statement that pg_timing runs itself: both formats have the nodes that EXPLAIN shows."""
    command = [path, "explain", "--time", "1", "-c", LIVE, "--format"]
    environment = os.environ | server.client_env
    try:
        printed = [output([*command, form], env=environment) for form in ("plan-text", "plan-json")]
    except Failed as failed:
        if "too noisy" not in str(failed):
            raise
        return
    explained = server.psql(f"EXPLAIN (ANALYZE) {LIVE}", options=SCREEN)
    text, from_json, plain = read_by_pev2(pev2, [*printed, explained])
    shapes = [[(own[0], own[3], own[5]) for own in (node["own"] for node in read.get("nodes", []))] for read in (text, plain)]
    if shapes[0] != shapes[1] or len(from_json.get("nodes", [])) != len(shapes[1]):
        yield f"live: {text} {from_json} {plain}"
    for read in (text, from_json):
        if "removed" not in str(read.get("correction")) or not 0 < read["nodes"][0]["own"][2] <= 1.01 * read["execution"]:
            yield f"live: {read}"


def fast_timed(server, installation, pev2):
    """pev2 reads the plans that pg_fast_timing timed, with all their nodes."""
    build(SOURCE, installation)
    for method in ("auto", "tsc"):
        before = f"LOAD 'pg_fast_timing'; SET pg_fast_timing.method = {method};"
        explain = "EXPLAIN (ANALYZE, FORMAT {}) " + LIVE
        read = read_by_pev2(pev2, [server.psql(before + explain.format(form), options=SCREEN) for form in ("text", "json")])
        shapes = [[node["own"][0] for node in plan.get("nodes", [])] for plan in read]
        if len(shapes[0]) < 4 or len(shapes[0]) != len(shapes[1]):
            yield f"pg_fast_timing, {method}: {read}"


def check(path, installation, settings):
    """Checks the plans of all statements on one server."""
    pev2, python = tools()
    sys.path.insert(0, str(python))
    import dataxplan

    with Server(installation, settings) as server:
        tables = [line for line in (HERE / "own_tables.sql").read_text().splitlines() if " big " not in line]
        server.psql("\n".join([*tables, KEYS, TABLES, "VACUUM ANALYZE"]))
        captured = Captured(path, server, ("--read-cost", "25"))
        more = ", VERBOSE, BUFFERS, WAL, SETTINGS" + (", SERIALIZE, MEMORY" if installation.major >= 17 else "")
        more += ", IO" if installation.major >= 19 else ""
        advice = "LOAD 'pg_plan_advice';" if can_run(server, "LOAD 'pg_plan_advice'") else ""
        more += ", PLAN_ADVICE" if advice else ""
        yield from live(path, server, pev2)
        yield from fast_timed(server, installation, pev2)
        cases, runs = [], []
        everything = [(one, ONE_PROCESS) for one in [*statements("kinds.sql"), *PROPERTIES]] + [(one, PARALLEL) for one in OF_WORKERS]
        for number, (statement, before) in enumerate(everything):
            options = more if number % 2 or statement in PROPERTIES else ""
            cases += [Case(captured, f"{statement}, {name}", plan) for name, plan in captures(captured, statement, options, advice + before)]
            if can_run(server, "LOAD 'auto_explain'"):
                yield from formats.compare(captured, statement, before, formats.PAIRS[number % 2])
                screen, log = same_run(captured, statement, before)
                runs.append([Case(captured, f"{statement}, {name}", plan) for name, plan in (("same run, text", screen), ("same run, JSON", log))])
        cases += [case for run in runs for case in run]
        read = iter(read_by_pev2(pev2, [source for case in cases for source in case.sources()]))
        for case in cases:
            original, corrected = next(read), next(read)
            dataxplan_read = read_by_dataxplan(dataxplan, case.corrected) if case.form == "plan-text" else None
            yield from check_case(case, original, corrected, dataxplan_read)
        for text, log in runs:
            yield from agree(text, log)
