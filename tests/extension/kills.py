"""Sends signals to the processes of a server while sessions time statements. No signal may crash it or make a count wrong.

    python3 tests/extension/kills.py [--seconds S] [MAJOR...]        the default is 600 s on 18

The sessions use every method and ticker. The signals cancel statements, end sessions and workers, and stop and continue
processes. Now and then SIGKILL hits one, and the server restarts itself. Prints one line per server, with the numbers of
signals and plans, and one for each complaint. The exit status is 0 if there is none.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    # Keeps compiled Python out of the source tree.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from extension import HERE, IMPOSSIBLE, METHODS, SOURCE
from extension.survive import IGNORE_ERRORS
from extension.ticker import plans, until_asleep
from outcome import on_each, until
from servers import Failed, Server, build

SETTINGS = {
    "shared_preload_libraries": "times,pg_fast_timing,auto_explain", "auto_explain.log_analyze": True, "auto_explain.log_min_duration": 0,
    "pg_fast_timing.count_calls": "all", "parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0,
    "autovacuum": False, "jit": False, "shared_buffers": "128MB",
    # The memory is full all the time, so that plans are removed.
    "pg_fast_timing.profile": True, "pg_fast_timing.profile_max_nodes": 100,
}  # fmt: skip
ROWS = 100_000
TABLES = f"CREATE EXTENSION pg_fast_timing; CREATE TABLE many AS SELECT g AS i FROM generate_series(1, {ROWS}) g; VACUUM ANALYZE many"
SESSIONS = 6
TICKERS = ("worker", "thread", "none")
# Each plan has one scan, which reads all rows.
STATEMENTS = (
    "SELECT count(*) FROM many",
    "SELECT count(*) FROM many WHERE CASE WHEN i % 20000 = 0 THEN pg_sleep(0.001) IS NOT NULL ELSE true END",
    "SELECT count(*) FROM (SELECT i FROM many ORDER BY i DESC OFFSET 0) s",
)

# SIGKILL, and any other end that the server does not expect, restarts it. Between two of them, other signals have their effect.
KILL_SECONDS = 15
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGSTOP)
TARGETS = re.compile(rb"pg_fast_timing ticker|parallel worker|\[local\]")


def script():
    """Returns the statements of one session."""
    yield "LOAD 'pg_fast_timing';"
    for _ in range(10):
        yield f"SET pg_fast_timing.method = {random.choice(METHODS)}; SET pg_fast_timing.ticker = {random.choice(TICKERS)};"
        depth = random.randint(1, 60)
        yield "SELECT i FROM (" * depth + "SELECT i FROM many" + "".join(f" LIMIT {n + 2}) x{n}" for n in range(depth)) + " \\g /dev/null"
        yield f"SET max_parallel_workers_per_gather = {random.choice((0, 2))};"
        yield f"EXPLAIN (ANALYZE, FORMAT JSON) {random.choice(STATEMENTS)};"


def wrong_rows(said):
    """Yields a complaint for each plan whose scan did not read all rows."""
    for plan in plans(said):
        node = plan["Plan"]
        while "Plans" in node:
            node = node["Plans"][0]
        rows = node["Actual Rows"] * node["Actual Loops"]
        # The server rounds the mean number of rows per process: to integers before 18, and then to hundredths.
        if abs(rows - ROWS) > node["Actual Loops"]:
            yield f"a scan of {ROWS} rows has {rows}: {plan}"


def work(server, stop, found, counts):
    """Runs sessions one after the other, until the event is set."""
    while not stop.is_set():
        done = subprocess.run(
            server.installation.command("psql", *IGNORE_ERRORS), env=server.env_inside, input="\n".join(script()),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        counts["plans"] += len(plans(done.stdout))
        found.extend(wrong_rows(done.stdout))


def children(server):
    """Returns the processes of the server that a signal may hit."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == server.process.pid and TARGETS.search((process / "cmdline").read_bytes()):
                found.append(int(process.name))
        except OSError:
            # not a process, or a process that has ended
            continue
    return found


def send(pid, which, counts):
    try:
        os.kill(pid, which)
        if which == signal.SIGSTOP:
            time.sleep(random.uniform(0, 0.3))
            os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return
    counts[which.name] += 1


def send_signals(server, seconds, counts):
    """Sends signals to random processes."""
    end, next_kill = time.monotonic() + seconds, time.monotonic() + KILL_SECONDS
    while time.monotonic() < end:
        time.sleep(random.uniform(0, 0.05))
        targets = children(server)
        if not targets:
            continue
        which = random.choice(SIGNALS)
        if time.monotonic() > next_kill:
            which, next_kill = signal.SIGKILL, time.monotonic() + KILL_SECONDS
        send(random.choice(targets), which, counts)


def answers(server):
    try:
        return server.psql("SELECT 1")
    except Failed:
        return None


def check(installation, seconds=600):
    """Yields complaints."""
    build(SOURCE, installation)
    build(HERE / "other", installation)
    found, counts, stop = [], Counter(), threading.Event()
    try:
        with Server(installation, SETTINGS) as server:
            server.psql(TABLES)
            sessions = [threading.Thread(target=work, args=(server, stop, found, counts)) for _ in range(SESSIONS)]
            for session in sessions:
                session.start()
            try:
                send_signals(server, seconds, counts)
            finally:
                stop.set()
                for session in sessions:
                    session.join()
            until(lambda: answers(server), "the server answers")
            yield from found
            yield from until_asleep(server, "after the signals")
            if int(server.psql("SELECT count(*) FROM pg_stat_plan_nodes")) not in range(1, 101):
                yield "the profile is empty, or has more nodes than its memory"
            yield from unexpected(server.log.read_text(errors="replace"), counts)
    finally:
        build(SOURCE, installation)
    print(f"{installation.version:>6} {dict(counts)}", flush=True)
    if counts["plans"] < seconds or not all(counts[which.name] for which in (*SIGNALS, signal.SIGKILL)):
        yield f"too few plans or signals: {dict(counts)}"


def unexpected(log, counts):
    """Yields a complaint for each crash that no SIGKILL explains, and for impossible times."""
    crashes = re.findall(r"terminated by signal (?!9:)\d+.*|PANIC:.*|TRAP:.*", log)
    if crashes:
        yield f"the server's log: {crashes[:6]}"
    if log.count("terminated by signal 9:") > counts["SIGKILL"]:
        yield f"the server's log has more than {counts['SIGKILL']} killed processes"
    if impossible := IMPOSSIBLE.findall(log):
        yield f"the server's log: {impossible[:6]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("majors", nargs="*", default=["18"], metavar="MAJOR")
    arguments = parser.parse_args()
    return on_each(arguments.majors, [("kills", lambda installation: check(installation, arguments.seconds))])


if __name__ == "__main__":
    sys.exit(main())
