"""Tests of the background worker that ticks for all sessions: it exists once, and ticks only while a session needs it.

The extension is built so that all times are estimates.
"""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from extension import AUTO_EXPLAIN, ESTIMATES, SOURCE, TIMED_CURSOR
from extension.survive import IGNORE_ERRORS, crashes
from outcome import until
from servers import Failed, Server, build

LIBRARY = "pg_fast_timing"
SETTINGS = {
    "shared_preload_libraries": LIBRARY, "max_parallel_workers_per_gather": 0, "jit": False, "autovacuum": False,
    "shared_buffers": "256MB", "statement_timeout": "60s",
}  # fmt: skip
TABLES = """CREATE EXTENSION pg_fast_timing; CREATE TABLE many AS SELECT g AS i FROM generate_series(1, 2000000) g;
    VACUUM ANALYZE many"""

INFO = "SELECT row_to_json(i) FROM pg_fast_timing_info() i;"
THREADS = "SELECT 'threads', count(*) FROM pg_ls_dir('/proc/self/task');"
MANY = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM many;"
# A scan with two million short calls, and ten calls of 0.1 s.
SLEEPS = "SELECT count(*) FROM many WHERE CASE WHEN i % 200000 = 1 THEN pg_sleep(0.1) IS NOT NULL ELSE true END"
SLEEP_MS = 1000
SLOW = f"EXPLAIN (ANALYZE, FORMAT JSON) {SLEEPS};"
# A statement that waits for the worker would take as long as the worker is stopped.
LIMIT_MS = 20_000


def using(ticker="worker"):
    return f"LOAD '{LIBRARY}'; SET pg_fast_timing.ticker = {ticker};"


def workers(server):
    """Returns the process ids of this server's workers, from the titles of its child processes."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            is_child = int((process / "stat").read_text().rpartition(")")[2].split()[1]) == server.process.pid
            if is_child and b"pg_fast_timing ticker" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            # not a process, or a process that has ended
            continue
    return found


def worker(server):
    return until(lambda: workers(server), "the worker runs")[0]


def wakeups(pid):
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def sleeps(pid, seconds=0.3):
    before = wakeups(pid)
    time.sleep(seconds)
    return wakeups(pid) == before


def until_asleep(server, what):
    """Yields a complaint if the worker does not sleep soon."""
    try:
        until(lambda: sleeps(worker(server)), "the worker sleeps", seconds=10)
    except Failed:
        yield f"the worker still ticks {what}"


@contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def running(server, script):
    """Runs a script in another session. The block runs when its slow statement has started. Yields the list of its output."""
    psql = subprocess.Popen(
        server.installation.command("psql", *IGNORE_ERRORS), env=server.env_inside, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    psql.stdin.write(script)
    psql.stdin.close()
    said = []
    try:
        active = f"SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query ~ 'pg_sleep.0.1' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        until(lambda: server.psql(active).strip(), "the statement runs")
        yield said
        said.append(psql.stdout.read())
    finally:
        psql.kill()
        psql.wait()


def infos(said):
    return [json.loads(line) for line in said.splitlines() if line.startswith('{"method"')]


def plans(said):
    return [json.loads(text)[0] for text in re.findall(r"^\[.*?^\]", said, re.M | re.S)]


def wrong_times(said):
    """
    Yields a complaint for each run of SLOW whose times are wrong by more than their errors, or that took too long. The first
    plan and the first info belong together, and so on.
    """
    for plan, info in zip(plans(said), infos(said)):
        if "Seq Scan" not in json.dumps(plan) or plan["Execution Time"] < SLEEP_MS:
            continue
        scan = plan["Plan"]
        while scan["Node Type"] != "Seq Scan":
            scan = scan["Plans"][0]
        took, error, loops = scan["Actual Total Time"] * scan["Actual Loops"], info["last_error_ms"], scan["Actual Loops"]
        if not SLEEP_MS - error <= took <= plan["Execution Time"] * loops + error:
            yield f"a scan that sleeps {SLEEP_MS} ms took {took} +- {error} ms of {plan['Execution Time']} ms"
        if plan["Execution Time"] > LIMIT_MS:
            yield f"a statement of {SLEEP_MS} ms took {plan['Execution Time']} ms"


def expected(said, *tickers):
    """Yields a complaint if the sessions's infos do not name these: (ticker, part of the reason)."""
    found = [(info["ticker"], info["ticker_reason"] or "") for info in infos(said)]
    if len(found) != len(tickers) or any(a != b or part not in text or bool(part) != bool(text) for (a, text), (b, part) in zip(found, tickers)):
        yield f"ticker {found}, not {tickers}"


WORKER = ("worker", "")


def one_worker(server):
    if len(workers(server)) != 1:
        yield f"workers: {workers(server)}"
    said = server.psql(f"{using()} {MANY} {INFO} {THREADS}")
    yield from expected(said, WORKER)
    if "threads|1" not in said or not infos(said)[0]["last_samples"]:
        yield f"a backend that uses the worker: {said}"


def idle(server):
    yield from until_asleep(server, "without a query")
    if not sleeps(worker(server), seconds=2):
        yield "an idle worker wakes up"


def ticks(server):
    """The worker ticks only while a session needs it. In a cursor, that is only during FETCH."""
    pid = worker(server)
    before = wakeups(pid)
    said = server.psql(f"{using()} {SLOW} {INFO}")
    yield from wrong_times(said)
    # Half of the ticks may be missing on a busy machine.
    if wakeups(pid) - before < SLEEP_MS * 0.3:
        yield f"{wakeups(pid) - before} ticks in {SLEEP_MS} ms"
    yield from until_asleep(server, "after a query")
    cursor = TIMED_CURSOR.format("SELECT pg_sleep(0.1) FROM generate_series(1, 3)")
    with running(server, f"{using()} {cursor}; FETCH 1 FROM c; SELECT pg_sleep(0.1) FROM generate_series(1, 30)"):
        yield from until_asleep(server, "with an open cursor")


def demand(server):
    """The worker sleeps again after statements that do not end as usual."""
    fails = "EXPLAIN (ANALYZE) SELECT count(*) FROM many WHERE 1 / (i - 1000000) < 2;"
    timeout = f"SET statement_timeout = 200; EXPLAIN (ANALYZE) {SLEEPS};"
    caught = f"""{AUTO_EXPLAIN} DO $$BEGIN PERFORM count(*) FROM many WHERE 1 / (i - 1000000) < 2;
        EXCEPTION WHEN division_by_zero THEN NULL; END$$; SET auto_explain.log_min_duration = -1;"""
    for what, statement in (("an error", fails), ("a timeout", timeout), ("a caught error", caught)):
        before = wakeups(worker(server))
        # The session remains open.
        with running(server, f"{using()} {statement} SELECT pg_sleep(0.1) FROM generate_series(1, 30)"):
            yield from until_asleep(server, f"after {what}")
        if wakeups(worker(server)) == before:
            yield f"no ticks before {what}"
    for function in ("pg_cancel_backend", "pg_terminate_backend"):
        with running(server, f"{using()} {SLOW} SELECT pg_sleep(3)"):
            server.psql(f"SELECT {function}(pid) FROM pg_stat_activity WHERE query ~ 'FROM many' AND pid <> pg_backend_pid()")
            yield from until_asleep(server, f"after {function}()")


def many_sessions(server):
    """Sessions start and end their use of the worker at the same time."""
    script = server.folder / "ticks.sql"
    script.write_text(f"{using()}\nEXPLAIN (ANALYZE) SELECT count(*) FROM generate_series(1, 1000);\nSELECT pg_sleep(random() * 0.05);\n")
    script.chmod(0o644)
    server.run("pgbench", "-n", "-c", "20", "-j", "2", "-t", "60", "-f", server.inside(script), "postgres")
    yield from until_asleep(server, "after many sessions")


def privileges(server):
    server.psql("CREATE ROLE someone")
    try:
        server.psql("SET ROLE someone; SET pg_fast_timing.ticker = none")
        yield "any role may set the ticker"
    except Failed as failed:
        if "permission denied" not in str(failed):
            yield f"another error: {failed}"


def crash(server):
    """A backend is killed while it needs ticks, and the server restarts itself."""
    before = worker(server)
    backend = "SELECT pid FROM pg_stat_activity WHERE query ~ 'FROM many' AND pid <> pg_backend_pid()"
    with running(server, f"{using()} {SLOW}"):
        os.kill(int(server.psql(backend)), signal.SIGKILL)
    until(lambda: before not in workers(server) and server.ready() and works(server), "the server answers after a crash")
    yield from until_asleep(server, "after a crash")
    yield from expected(server.psql(f"{using()} {MANY} {INFO}"), WORKER)


def works(server):
    try:
        return server.psql(f"{using()} {MANY}")
    except Failed:
        return None


def orphaned(server):
    """The worker ends with the postmaster, also while it ticks."""
    pid = worker(server)
    with running(server, f"{using()} {SLOW}"):
        os.kill(server.process.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), "the worker ends after the postmaster")
    server.process.wait()
    (server.data / "postmaster.pid").unlink()
    return ()


def standby(server):
    """A standby has the worker, too. The server has ended before."""
    (server.data / "standby.signal").touch()
    server.start()
    said = server.psql(f"SELECT pg_is_in_recovery(); {using()} {SLOW} {INFO}")
    yield from wrong_times(said)
    yield from expected(said, WORKER)
    if not said.startswith("t\n") or len(workers(server)) != 1:
        yield f"on a standby: {workers(server)}, {said}"
    yield from until_asleep(server, "on a standby")


@contextmanager
def only_estimates(installation):
    """Builds the extension so that exact times have no budget."""
    build(SOURCE, installation, ESTIMATES)
    try:
        yield
    finally:
        build(SOURCE, installation)


def check(installation):
    """Yields complaints."""
    with only_estimates(installation), Server(installation, SETTINGS) as server:
        server.psql(TABLES)
        for scenario in (one_worker, idle, ticks, demand, many_sessions, privileges):
            yield from (f"{scenario.__name__}: {what}" for what in scenario(server))
        yield from crashes(server)
        # From now on the log has killed processes.
        for scenario in (crash, orphaned, standby):
            yield from (f"{scenario.__name__}: {what}" for what in scenario(server))
