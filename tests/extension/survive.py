"""Tests that the server survives, with every method: errors, cursors, recursion, many sessions."""

import os
import re
import signal
import subprocess
import time

from extension import AUTO_EXPLAIN, IMPOSSIBLE, METHODS, force_parallel
from outcome import until
from servers import Failed, Server

SETTINGS = {"max_files_per_process": 64, "jit": False, "autovacuum": False, "max_stack_depth": "2MB", "shared_buffers": "128MB"}

TABLES = """CREATE EXTENSION pg_fast_timing;
CREATE TABLE t AS SELECT g AS i, g % 100 AS k FROM generate_series(1, 200000) g; CREATE INDEX ON t (i); ANALYZE t;
CREATE FUNCTION deeper(n int) RETURNS int LANGUAGE plpgsql AS
$$DECLARE m int; BEGIN SELECT deeper(n + 1) + count(*) INTO m FROM t WHERE i = n; RETURN m; END$$;
CREATE FUNCTION caught(n int) RETURNS text LANGUAGE plpgsql AS
$$DECLARE m int; BEGIN SELECT sum(1 / (i - n)) INTO m FROM t WHERE i <= n; RETURN m;
EXCEPTION WHEN division_by_zero THEN RETURN 'caught'; END$$;"""

# psql options: without ON_ERROR_STOP, because these tests cause errors.
IGNORE_ERRORS = ("-X", "-A", "-t", "-q")


def session(method, *statements, forced=True):
    return f"LOAD 'pg_fast_timing'; SET pg_fast_timing.method = '{method}';{AUTO_EXPLAIN if forced else ''}\n" + "\n".join(statements)


def same_as_off(server, what, *statements, options=IGNORE_ERRORS):
    """The output of a session, with errors, is the same with every method as without."""
    output = {method: server.psql(session(method, *statements), options=options, notices=True) for method in ["off", *METHODS]}
    for method in METHODS:
        if output[method] != output["off"]:
            yield f"{method}: {what}: the output is {output[method]!r}, not {output['off']!r}"


AGAIN = "SELECT count(*), sum(k) FROM t;"


def errors(server):
    yield from same_as_off(server, "division by zero", "SELECT sum(1 / (i - 1000)) FROM t;", AGAIN)
    yield from same_as_off(server, "caught errors", "SELECT k, caught(k + 1) FROM t WHERE i < 50;", AGAIN)
    yield from same_as_off(
        server, "statement_timeout",
        "SET statement_timeout = 100; SELECT count(*) FROM t a, t b WHERE a.k = b.k AND a.i <> b.i;",
        "SET statement_timeout = 0;", AGAIN,
    )  # fmt: skip
    yield from same_as_off(server, "out of memory", "SELECT length(repeat('x', 1000000000) || repeat(k::text, 600000000)) FROM t;", AGAIN)
    yield from same_as_off(server, "recursion", r"\set VERBOSITY terse", "SELECT deeper(1);", AGAIN)


def cursors(server):
    fetches = ["FETCH 1 FROM c;"] * 30
    yield from same_as_off(server, "FETCH 1", "BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i;", *fetches, "COMMIT;", AGAIN)
    yield from same_as_off(
        server, "SCROLL", "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT a.i FROM t a JOIN t b USING (i) WHERE a.i < 500 ORDER BY 1;",
        "FETCH 300 FROM c; FETCH BACKWARD 100 FROM c; MOVE FIRST FROM c; FETCH RELATIVE 5 FROM c; FETCH LAST FROM c;",
        "CLOSE c; COMMIT;", AGAIN,
    )  # fmt: skip


def method_changes(server):
    """A new method applies from the next statement on, also while a cursor is open."""
    changes = [f"SET pg_fast_timing.method = {method}; FETCH 2000 FROM c;" for method in ["tsc", "auto", "off", "auto"]]
    yield from same_as_off(server, "the method changes", "BEGIN; DECLARE c CURSOR FOR SELECT i FROM t ORDER BY i;", *changes, "COMMIT;", AGAIN)


def parallel(server):
    every = f"{force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
    yield from same_as_off(
        # Terse, because it is random whether a worker or the leader raises an error first.
        server, "parallel plans", r"\set VERBOSITY terse", every, AGAIN,
        "SELECT count(*) FROM t a JOIN t b USING (i);",
        "SET enable_hashjoin = off; SELECT count(*) FROM t a JOIN t b USING (i);",
        "SELECT k, count(*) FROM t GROUP BY k ORDER BY k LIMIT 5;",
        "SELECT (SELECT count(*) FROM t WHERE i < u.k) FROM t u WHERE i < 20 ORDER BY i;",
        "SELECT sum(100 / (i - 5000)) FROM t;", AGAIN,
    )  # fmt: skip


def jit(server):
    """Compiled expressions and tuple deforming in every node."""
    if not server.installation.has_jit:
        return
    if server.psql("SET jit = on; SELECT pg_jit_available()").strip() != "t":
        yield "JIT is installed, but not available"
    every = "SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0; SET jit_optimize_above_cost = 0;"
    yield from same_as_off(
        server, "JIT", every, AGAIN, "SELECT count(*) FROM t a JOIN t b USING (i) WHERE a.k < 50;",
        "SELECT k, count(*) FROM t GROUP BY k ORDER BY k LIMIT 5;", "SELECT sum(100 / (i - 5000)) FROM t;", AGAIN,
    )  # fmt: skip
    for method in METHODS:
        plan = server.psql(session(method, every, "EXPLAIN (ANALYZE) " + AGAIN, forced=False))
        if "JIT:" not in plan:
            yield f"{method}: nothing was compiled: {plan}"


def few_files(server):
    """A statement is timed while no more files can be opened. It raises no error, and the next one does not hang."""
    file = server.data / "one.txt"
    file.write_text("1\n")
    file.chmod(0o644)
    server.psql(
        """CREATE TABLE deep(n int); CREATE TABLE met(n int); CREATE FUNCTION open_one_more() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            EXECUTE $copy$COPY deep FROM 'one.txt'$copy$;
            RETURN NULL;
        EXCEPTION WHEN OTHERS THEN
            IF sqlerrm LIKE '%maxAllocatedDescs%' THEN INSERT INTO met VALUES (1); PERFORM count(*) FROM t; RETURN NULL; END IF;
            RAISE;
        END$$;
        CREATE TRIGGER t BEFORE INSERT ON deep FOR EACH ROW EXECUTE FUNCTION open_one_more();"""
    )
    yield from same_as_off(server, "few files", "COPY deep FROM 'one.txt';", "SET statement_timeout = '10s';", AGAIN)
    if server.psql("SELECT count(*) FROM met").strip() != str(len(METHODS) + 1):
        yield "not every method reached the limit of open files"
    server.psql("DROP TABLE deep, met; DROP FUNCTION open_one_more()")


def sleeps(server):
    """A tick must not interrupt a sleep."""
    yield from slept(server, "pg_sleep", "SELECT pg_sleep(0.4) FROM t WHERE i = 1;")
    perl = server.psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'plperlu'").strip()
    if perl == "1":
        server.psql("CREATE EXTENSION plperlu; CREATE FUNCTION perl_sleep() RETURNS int LANGUAGE plperlu AS 'select(undef, undef, undef, 0.4); 1'")
        yield from slept(server, "Perl's select", "SELECT perl_sleep() FROM t WHERE i = 1;")


def slept(server, what, statement):
    for method in METHODS:
        start = time.monotonic()
        server.psql(session(method, "SET pg_fast_timing.sample_rate = 5000;", "EXPLAIN (ANALYZE) " + statement))
        if time.monotonic() - start < 0.4:
            yield f"{method}: {what} was interrupted"


def many_sessions(server):
    """1000 sessions start and end, each with the library."""
    script = server.folder / "one.sql"
    script.write_text("LOAD 'pg_fast_timing';\nEXPLAIN (ANALYZE) SELECT count(*) FROM t WHERE i < 1000;\n")
    script.chmod(0o644)
    server.run("pgbench", "-n", "-C", "-c", "10", "-t", "100", "-f", server.inside(script), "postgres")
    others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    until(lambda: server.psql(others).strip() == "0", "all sessions end")
    return ()


def worker_dies(server):
    """A parallel worker is killed, and the server restarts itself."""
    server.psql("ALTER SYSTEM SET parallel_setup_cost = 0; ALTER SYSTEM SET min_parallel_table_scan_size = 0; SELECT pg_reload_conf()")
    worker = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker' LIMIT 1"
    busy = subprocess.Popen(
        server.installation.command("psql", "-X", "-q"), env=server.env_inside, stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    busy.stdin.write(session("auto", "SELECT count(*) FROM t a JOIN t b ON a.k = b.k;"))
    busy.stdin.close()
    try:
        os.kill(int(until(lambda: server.psql(worker).strip(), "a parallel worker runs")), signal.SIGKILL)
    finally:
        busy.wait()
    until(lambda: answers(server), "the server answers after a parallel worker was killed")
    return ()


def answers(server):
    try:
        return server.psql(session("auto", AGAIN))
    except Failed:
        return None


def check_with_worker(installation):
    """The same with the background worker that ticks. Without it, each session loads the library."""
    yield from check(installation, SETTINGS | {"shared_preload_libraries": "pg_fast_timing"})


def check(installation, settings=SETTINGS):
    """Yields complaints."""
    with Server(installation, settings) as server:
        server.psql(TABLES)
        for scenario in (errors, cursors, method_changes, parallel, jit, few_files, sleeps, many_sessions, worker_dies):
            yield from scenario(server)
        yield from crashes(server, expected=1)
    yield from load_orders(installation)


def crashes(server, expected=0):
    log = server.log.read_text(errors="replace")
    found = re.findall(r"terminated by signal.*|PANIC:.*|TRAP:.*", log)
    if len(found) > expected:
        yield f"the server's log: {found}"
    # Only the library other/times.c writes these.
    if impossible := IMPOSSIBLE.findall(log):
        yield f"the server's log: {impossible[:6]}"


def load_orders(installation):
    for libraries in ("pg_fast_timing,auto_explain,pg_stat_statements", "pg_stat_statements,auto_explain,pg_fast_timing"):
        settings = SETTINGS | {"shared_preload_libraries": libraries, "auto_explain.log_min_duration": 0, "auto_explain.log_analyze": True}
        with Server(installation, settings) as server:
            server.psql(TABLES)
            rows = server.psql("SET pg_fast_timing.method = auto; " + AGAIN).strip()
            if rows != "200000|9900000":
                yield f"{libraries}: {rows}"
            if "loops=1" not in server.log.read_text():
                yield f"{libraries}: auto_explain logged no times"
            yield from crashes(server)
