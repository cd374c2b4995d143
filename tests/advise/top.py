"""Tests of explain --top, and of statements that advise cannot plan."""

import json
import os
import subprocess

from outcome import refused
from servers import Failed

# Functions of an ordinary user that the planner evaluates: directly, and through a function of the server that runs a query. They
# show if another user runs them.
FOREIGN_CODE = """CREATE SCHEMA joe AUTHORIZATION joe; SET ROLE joe;
CREATE FUNCTION joe.trap(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    'BEGIN IF session_user <> ''joe'' THEN RAISE EXCEPTION ''trapped %'', session_user; END IF; RETURN 1; END';
CREATE FUNCTION joe.volatile_trap() RETURNS int VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN joe.trap(1); END';
CREATE VIEW joe.calls_trap AS SELECT joe.volatile_trap();"""
# The server of 16 is built without XML.
RUNS_A_QUERY = """SET ROLE joe; CREATE VIEW joe.runs_a_query AS
    SELECT count(*) FROM pg_class WHERE relname = table_to_xml('joe.calls_trap', true, true, '')::text;"""
PARTITIONS = """CREATE TABLE parts (i int, k int) PARTITION BY HASH (i);
CREATE TABLE part0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT g, g FROM generate_series(1, 1000) g; CREATE INDEX ON parts (i); VACUUM (FREEZE, ANALYZE) parts;"""
# The statements, how the texts begin that pg_stat_statements makes of them, and whether they can be planned.
TEXTS = [
    ("SELECT count(*) FROM big WHERE filler > 'x' AND now() > date '2020-01-01' - interval '1' day", "SELECT count(*) FROM big", True),
    ("SELECT extract(year FROM now()) FROM one WHERE n IN (1, 2, 3)", "SELECT extract(", True),
    ("SELECT count(*) FROM generate_series(1, 1000)", "SELECT count(*) FROM generate_series", True),
    ("SELECT k FROM parts WHERE i = 7", "SELECT k FROM parts", True),
    ("WITH new AS (UPDATE one SET n = n + 1 RETURNING n) SELECT * FROM new", "WITH new", True),
    ("COPY (SELECT 1) TO '/dev/null'", "COPY", False),
    ("CREATE TABLE two AS SELECT 2 AS n", "CREATE TABLE two", False),
]
EXECUTIONS = "SELECT queryid, calls FROM pg_stat_statements WHERE query ~ '^(SELECT (count|extract|k)|WITH|COPY|CREATE)' AND query !~ 'pg_' ORDER BY 1"


def run(path, server, *arguments, user="postgres", database="postgres"):
    variables = os.environ | server.client_env | {"PGUSER": user, "PGDATABASE": database}
    return subprocess.run([path, "explain", *arguments], env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def report(path, server, **options):
    done = run(path, server, "--top", "1000", "--format", "json", **options)
    return json.loads(done.stdout) if done.stdout else {"error": done, "statements": [], "skipped": []}


def find(top, start):
    """Returns the planned statement that begins with this text."""
    return next((row for row in top["statements"] if row["statement"].startswith(start)), None)


def reasons(top):
    return {row["why"]: row for row in top["skipped"]}


def top_statements(path, server):
    server.psql(PARTITIONS)
    server.psql("SELECT pg_stat_statements_reset()")
    server.psql("\n".join(f"{text};" for text, *_ in TEXTS))
    before = server.psql(EXECUTIONS)
    top = report(path, server)
    if server.psql(EXECUTIONS) != before or "pg_timing_planned" in server.psql("SELECT query FROM pg_stat_statements"):
        yield f"statements were executed, or pg_timing is in pg_stat_statements: {before} {server.psql(EXECUTIONS)}"
    for text, start, can_be_planned in TEXTS:
        if bool(find(top, start)) != can_be_planned:
            yield f"{text}: {find(top, start)} {top['skipped']} {top.get('error')}"
    lookup = find(top, "SELECT k FROM parts")
    # The scan returns a row and finds the end. An Append can be above it.
    if lookup and not lookup["node_calls"]["low"] <= 2 <= lookup["node_calls"]["high"] <= 20:
        yield f"a lookup in one partition: {lookup}"
    lost = [row["calls"] * row["added_ms"]["estimate"] for row in top["statements"]]
    if not lost or lost != sorted(lost, reverse=True):
        yield f"not sorted by the time lost: {lost}"
    text = run(path, server, "--top", "3")
    too_long = [line for line in text.stdout.splitlines() if len(line) > 80]
    if text.returncode or too_long or "3 statements, planned and not executed" not in " ".join(text.stdout.split()):
        yield f"text: {too_long} {text}"
    # pg_timing's own queries are no statements of the workload, also if it may not hide them from the server.
    advise = [path, "advise", "--window", "2"]
    subprocess.run(advise, env=os.environ | server.client_env | {"PGUSER": "watcher", "PGDATABASE": "postgres"}, capture_output=True)
    own = [row["statement"] for row in report(path, server)["statements"] if "pg_timing" in row["statement"] or "pg_catalog" in row["statement"]]
    if own:
        yield f"pg_timing's own statements: {own}"
    html = run(path, server, "--top", "3", "--format", "html")
    if html.returncode or html.stdout.count("<tr>") != 4:
        yield f"html: {html}"
    server.psql("DROP TABLE two; DROP TABLE parts")


def has_xml(server):
    try:
        return bool(server.psql("SELECT table_to_xml('pg_am', true, true, '')"))
    except Failed:
        return False


def foreign_code(path, server):
    """Statements of other roles are not planned while ordinary roles have objects: their code would run with other rights."""
    server.psql(FOREIGN_CODE)
    texts = ["SELECT joe.trap(7) AS trap FROM generate_series(1, 3)"]
    if has_xml(server):
        server.psql(RUNS_A_QUERY)
        texts.append("SELECT * FROM joe.runs_a_query")
    server.psql(";".join(texts) + ";", "-U", "joe")
    for user in ("postgres", "watcher", "joe"):
        top = report(path, server, user=user)
        rows = [find(top, text[:15]) for text in texts]
        # joe's own code runs as joe.
        if [bool(row) for row in rows] != [user == "joe"] * len(texts):
            yield f"as {user}: {rows}"
        if user != "joe" and not any("of other roles" in why for why in reasons(top)):
            yield f"as {user}: {top}"
        if "trapped" in json.dumps(top, default=str):
            yield f"joe's code ran as {user}: {top}"
        if user == "postgres" and not top["statements"]:
            yield f"none of the superuser's own statements: {top}"
    server.psql("DROP SCHEMA joe CASCADE")


def no_statistics(path, server):
    yield from refused(run(path, server, "--top", "3", database="template1"), "no pg_stat_statements", "the database has no pg_stat_statements")
    hidden = report(path, server, user="joe")
    if not any(why.startswith("text hidden: needs") for why in reasons(hidden)):
        yield f"without pg_read_all_stats: {hidden}"
    for setting, value, what in (
        ("pg_stat_statements.track", "none", "pg_stat_statements.track is none"),
        ("compute_query_id", "off", "compute_query_id is off"),
    ):
        server.psql(f"ALTER SYSTEM SET {setting} = '{value}'")
        server.psql("SELECT pg_reload_conf()")
        yield from refused(run(path, server, "--top", "3"), what, what)
        advise = subprocess.run(
            [path, "advise", "--window", "2", "--format", "json"], env=os.environ | server.client_env, capture_output=True, text=True
        )
        node_calls = json.loads(advise.stdout or "{}").get("node_calls", {})
        if advise.returncode not in (0, 1) or what not in node_calls.get("unavailable", "") or node_calls["answer"] != "unknown":
            yield f"advise with {what}: {advise}"
        server.psql(f"ALTER SYSTEM RESET {setting}")
        server.psql("SELECT pg_reload_conf()")
    server.psql("CREATE ROLE nothing LOGIN")
    nothing = run(path, server, "--top", "3", user="nothing")
    if nothing.returncode != 3 or "No statement could be planned." not in nothing.stdout:
        yield f"nothing to plan: {nothing}"
    yield from refused(run(path, server, "--top", "3", "--format", "jsonl"), "--top with jsonl", "--format jsonl cannot be used with --top")
    for more in (["-c", "SELECT 1"], ["-f", "-"], ["--plan", "-"], ["--ephemeral"], ["--allow-writes"], ["--time", "5"]):
        yield from refused(run(path, server, "--top", "3", *more), f"--top with {more}", "cannot be used with")
    for count in ("0", "-1", "x", "1001", ""):
        yield from refused(run(path, server, "--top", count), f"--top {count!r}", "--top")
