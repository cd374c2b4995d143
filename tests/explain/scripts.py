"""pg_timing explain with settings, values of parameters, prepared statements, and statements that create tables."""

import json
import signal

from explain.pooler import Pooler
from outcome import refused, until

# Most rows have k = 0, so the plan for one value differs from the plan for any value.
TABLES = """CREATE TABLE skewed AS SELECT g AS i, CASE WHEN g % 1000 = 0 THEN g ELSE 0 END AS k FROM generate_series(1, 50000) g;
CREATE INDEX ON skewed (k); VACUUM ANALYZE skewed"""
OF_VALUE = "SELECT count(*) FROM skewed WHERE k = $1"
SECRET = "hunter2"
NOT_CREATED = "--allow-writes runs CREATE TABLE AS"
# Texts that pg_timing refuses, each with a part of the error or hint.
REFUSED = [
    ("SET jit = off", "there is no statement"),
    ("SET jit = off; SELECT 1; SELECT 2", "there are several statements"),
    ("SELECT 1; SET jit = off", "there are several statements"),
    ("SET default_transaction_read_only = off; SELECT 1", "default_transaction_read_only cannot be set"),
    ("RESET ALL; SELECT 1", "this form of SET or RESET is not supported"),
    ("SET SESSION AUTHORIZATION postgres; SELECT 1", "this form of SET or RESET is not supported"),
    ("SET session_authorization = postgres; SELECT 1", "session_authorization cannot be set"),
    ("SET auto_explain.log_analyze = on; SELECT 1", "auto_explain.log_analyze cannot be set"),
    ("SET nothing = 1; SELECT 1", 'unrecognized configuration parameter "nothing"'),
    ("SET statement_timeout = 300; SELECT pg_sleep(3)", "one run takes longer than 0.3 s"),
    ("\\timing on\nSELECT 1", "without commands and variables of psql"),
    ("EXECUTE missing(1)", "EXECUTE of a statement that is not prepared: missing"),
    ("PREPARE q AS SELECT $1::int; EXECUTE q(1, 2)", "wrong number of parameters for prepared statement"),
    ("PREPARE TRANSACTION 'x'; SELECT 1", "a PREPARE line is not understood"),
    ("CREATE TABLE new AS SELECT 1", NOT_CREATED),
    ("CREATE MATERIALIZED VIEW new AS SELECT 1", NOT_CREATED),
    ("SELECT 1 AS i INTO new", "cannot execute SELECT INTO in a read-only transaction"),
]
REFUSED_WRITES = [
    ("CREATE TABLE IF NOT EXISTS skewed AS SELECT 1", "the relation that it creates exists already"),
    ("CREATE TABLE new AS SELECT 1 WITH NO DATA", "WITH NO DATA runs no query"),
    ("CREATE VIEW new AS SELECT 1", "give one statement that has a plan"),
]
CREATE_VIEW = "CREATE MATERIALIZED VIEW new AS SELECT * FROM skewed"
CREATED = [
    CREATE_VIEW,
    "CREATE TABLE new AS SELECT * FROM skewed",
    "SELECT * INTO new FROM skewed",
]


# Statements with many rows. The baseline must not send them, and must keep the plan.
MANY_ROWS = [
    "SELECT i FROM skewed EXCEPT SELECT k FROM skewed",
    "SELECT k, i FROM skewed ORDER BY k, i LIMIT 2000 -- the end",
    "WITH c AS MATERIALIZED (SELECT i FROM skewed) SELECT * FROM c WHERE i > (SELECT min(k) FROM skewed)",
]


def report_of(program, *more, **env):
    done = program.run("--time", "1", "--format", "json", *more, **env)
    if done.returncode != 0:
        return None, f"{more}: {done.stderr}"
    return json.loads(done.stdout), None


def settings(program):
    """All runs have the settings, and the report names them. The function fails without the setting."""
    text = "SET app.x = '7';\nSET LOCAL enable_seqscan = off;\nRESET jit;\nSELECT current_setting('app.x')::int FROM skewed WHERE i < 10"
    done = program.run("--time", "1", "--format", "json", "-f", "-", stdin=text)
    if done.returncode != 0:
        yield f"settings: {done.stderr}"
        return
    report = json.loads(done.stdout)
    if report["given_settings"] != ["app.x", "enable_seqscan", "jit"] or report["settings"]["app.x"] != "7" or report["settings"]["enable_seqscan"] != "off":
        yield f"settings: {report['given_settings']} {report['settings']}"
    if report["statement"] != text:
        yield f"settings: {report['statement']}"


def names(program):
    """Settings whose name begins with a keyword."""
    for name, recorded in (("schema.Name", "schema.name"), ('"Role".x', "role.x"), ("Transaction . x", "transaction.x"), ("local.x", "local.x")):
        report, error = report_of(program, "-c", f"SET {name} = 'a'; SELECT current_setting('{recorded}') FROM skewed WHERE i < 10")
        if error or report["given_settings"] != [recorded] or report["settings"][recorded] != "a":
            yield f"{name}: {error or report['given_settings']}"


def short_timeout(program):
    """A statement_timeout limits the user's statement, and not the probe or other statements of pg_timing."""
    # Each of pg_timing's loops takes longer than 1 ms.
    for given in ({"PGOPTIONS": "-c statement_timeout=1"}, {}):
        lines = [] if given else ["-c", "SET statement_timeout = '1ms'"]
        # On a busy machine, the empty statement can take longer, too.
        attempts = (report_of(program, "-c", "SET app.x = 1", *lines, "-c", "SELECT", **given) for _ in range(10))
        report, error = next((attempt for attempt in attempts if attempt[0]), (None, "no attempt succeeded"))
        if error or report["settings"].get("statement_timeout") != (None if given else "1ms"):
            yield f"a short statement_timeout: {given} {error or report['settings']}"
        yield from refused(program.run(*lines, "-c", "SELECT pg_sleep(3)", **given), "a long statement", "one run takes longer than 0.001 s")


def values(program):
    """A custom plan uses the index for a rare value. All runs of one report have the same plan."""
    for mode, plan in (("custom", True), ("generic", None)):
        report, error = report_of(program, "-c", f"SET plan_cache_mode = force_{mode}_plan", "-c", OF_VALUE, "--param", "1000")
        if error:
            yield error
        elif report["plan_mode"] != mode or (report["planning_ms"] is not None) != (mode == "custom") or "1000" in str(report["notes"]):
            yield f"{mode}: {report['plan_mode']} {report.get('planning_ms')} {report['notes']}"
        elif plan and not any("Index" in node["type"] for node in report["nodes"]):
            yield f"{mode}: {report['nodes']}"
    # The setting stays the user's, also in functions that the statement calls.
    for value, mode in (("1000", "custom"), ("0", None)):
        report, error = report_of(program, "-c", "SELECT count(*), 1 / (current_setting('plan_cache_mode') = 'auto')::int FROM skewed WHERE k = $1", "--param", value)
        if error or mode and report["plan_mode"] != mode:
            yield f"plan_cache_mode = auto: {error or report['plan_mode']}"
    report, error = report_of(program, "-c", "PREPARE q (int) -- a value\nAS SELECT count(*) FROM skewed WHERE k = $1; EXECUTE q(0)")
    if error or report["plan_mode"] not in ("custom", "generic"):
        yield f"EXECUTE: {error or report['plan_mode']}"
    report, error = report_of(program, "-c", "SELECT count(*) FROM skewed WHERE $1::text IS NULL AND $2 = 'it''s \\'", "--param", "\\N", "--param", "it's \\")
    if error or report["nodes"][-1]["calls"] < 50_000:
        yield f"NULL and quotes: {error or report['nodes']}"


def secrets(program):
    """Errors of pg_timing do not show values."""
    for statement, given, line in (
        (OF_VALUE, [], "differ in number: 1 and 0"),
        (OF_VALUE, ["1", SECRET], "differ in number: 1 and 2"),
        ("SELECT $1, $2", [SECRET], "differ in number: 2 and 1"),
        ("SELECT 1 / (length($1) - 7)", [SECRET], "division by zero"),
        ("SELECT count(*) FROM nowhere WHERE k = $1", [SECRET], 'relation "nowhere" does not exist'),
        ("CREATE TABLE new AS SELECT $1", [SECRET], "--param does not support EXECUTE and CREATE"),
    ):
        done = program.run("-c", statement, *[word for value in given for word in ("--param", value)])
        yield from refused(done, statement, line)
        if SECRET in done.stderr:
            yield f"a secret value: {done.stderr}"
    # The server's message contains the value.
    done = program.run("-c", OF_VALUE, "--param", "\x1b[2J")
    yield from refused(done, "a value with a control character", "invalid input syntax for type integer")
    if "\x1b" in done.stderr:
        yield f"a control character: {done.stderr!r}"


def without_output(program):
    for statement in MANY_ROWS:
        report, error = report_of(program, "-c", statement)
        if error or "rows are not sent" not in str(report["notes"]):
            yield error or f"{statement}: {report['notes']}"


def created(program, server, statements):
    for statement in statements:
        report, error = report_of(program, "-c", statement, "--allow-writes")
        if statement == CREATE_VIEW and server.installation.major >= 17:
            if "fill a materialized view in another way" not in (error or ""):
                yield f"{statement}: {error or report}"
        elif error or statement.startswith("CREATE") and report["planning_ms"] <= 0 or "rows are not sent" in str(report["notes"]):
            yield error or f"{statement}: {report.get('planning_ms')} {report['notes']}"
    if server.psql("SELECT count(*) FROM pg_class WHERE relname = 'new'").strip() != "0":
        yield "a table was not rolled back"


# Statements that fail, each with a part of the error: when pg_timing prepares them, plans them, or runs them again.
FAILING = [
    ("PREPARE q AS SELECT 1; SELECT nothing FROM skewed", 'column "nothing" does not exist'),
    ("PREPARE q AS SELECT $1::int; EXECUTE q(1, 2)", "wrong number of parameters"),
    ("PREPARE \"a\"\"B\" AS SELECT 1 / (3 - nextval('runs')); EXECUTE \"a\"\"B\"", "division by zero"),
    ("SELECT 1 / (6 - nextval('runs'))", "division by zero"),
]


def left_behind(program, server):
    """No prepared statement stays in a session that a pooler gives to the next client, also after an error."""
    with Pooler(server) as pooler:
        pooled = type(program)(program.command[0], pooler, 1)

        def in_session(sql):
            return server.psql(sql, "-h", pooler.inside)

        def stays():
            return [name for name in in_session("SELECT name FROM pg_prepared_statements").split() if name != "of_another_client"]

        in_session("PREPARE of_another_client AS SELECT 1")
        for statement, line in [*FAILING, ("SELECT count(*) FROM skewed", None)]:
            server.psql("DROP SEQUENCE IF EXISTS runs; CREATE SEQUENCE runs")
            done = pooled.run("-c", statement, "--allow-writes")
            if line not in done.stderr if line else done.returncode != 0:
                yield f"{statement}: {done}"
            if names := stays():
                yield f"{statement}: prepared statements stay in the session: {names}"
        running = pooled.start("-c", "SELECT pg_sleep(20)")
        until(lambda: server.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'").strip() == "1", "the statement runs")
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=15)
        if "stopped; the statement was canceled" not in errors or stays():
            yield f"Ctrl-C: prepared statements stay in the session: {stays()} {errors}"
        if not in_session("SELECT name FROM pg_prepared_statements").strip():
            yield "a prepared statement of another client was removed"


def scripts(program, server, creating=CREATED):
    server.psql(TABLES)
    for statement, line in REFUSED:
        yield from refused(program.run("-c", statement), statement, line)
    for statement, line in REFUSED_WRITES:
        done = program.run("-c", statement, "--allow-writes")
        if done.returncode != 3 or done.stdout or line not in done.stderr:
            yield f"{statement}: {done}"
    yield from settings(program)
    yield from without_output(program)
    yield from names(program)
    yield from short_timeout(program)
    yield from values(program)
    yield from secrets(program)
    yield from left_behind(program, server)
    yield from created(program, server, creating)


def quick_scripts(program, server):
    yield from scripts(program, server, CREATED[:2])
