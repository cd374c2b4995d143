"""pg_timing monitor --server on real servers: its metrics are the figures of advise and of pg_fast_timing."""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from monitor.monitor import Monitor, running

SETTING_ON = "pg_timing_server_setting_on"
ADVICE = "pg_timing_server_setting_advice"
UP = ("pg_timing_server_up", ())
SUCCESS = ("pg_timing_monitor_collector_success", (("collector", "server"),))
INTERVAL = 2
# The figures of a silent server disappear when its statement is given up, after 17 s, in the next sample. A busy machine may
# need as long again.
SILENT_SECONDS = 2 * (17 + 2 * INTERVAL)
# A server that stays stopped for this time causes several errors: statements and connections reach their limits.
STOPPED_SECONDS = 25


def labels(**names):
    return tuple(sorted(names.items()))


def watched(path, server):
    """The monitor watches the server, notices that it stops or hangs, and continues. Each change is one event."""
    conninfo = f"host={server.socket_dir} port={server.port} user=postgres dbname=postgres"
    server.psql("SELECT pg_fast_timing_reset()")
    with TemporaryDirectory() as folder:
        events = Path(folder) / "events"
        options = ("--interval", str(INTERVAL), "--events", events, "--server", conninfo)
        with running(Monitor(path, folder, *options)) as monitor:
            monitor.wait_for_page()
            is_up(monitor)
            yield from compare(path, server, monitor)
            yield from changed_plan(server, monitor, events)
            server.stop("fast")
            yield from is_down(monitor)
            monitor.wait_for_samples(2)
            server.start()
            is_up(monitor)
            with stopped(own_session(server)):
                start = time.monotonic()
                yield from is_down(monitor)
                if (seconds := time.monotonic() - start) > SILENT_SECONDS:
                    yield f"figures of a silent server: for {seconds:.0f} s"
            is_up(monitor)
            with stopped(own_session(server), server.process.pid):
                yield from is_down(monitor)
                monitor.wait_for_samples(STOPPED_SECONDS // INTERVAL)
            is_up(monitor)
            if (status := monitor.stop()) != 0:
                yield f"exit status {status}: {monitor.errors()}"
        yield from compare_events([json.loads(line) for line in events.read_text().splitlines()])


@contextmanager
def stopped(*processes):
    """Processes that do not run until the end of the block."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def own_session(server):
    """Returns the process ID of the monitor's session."""
    return int(server.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_timing'"))


def is_up(monitor):
    monitor.wait(lambda: monitor.metrics().get(UP) == monitor.metrics().get(SUCCESS) == 1, "the server's figures")


def is_down(monitor):
    """Waits until the server is down. Yields a complaint if there are figures of it."""
    monitor.wait(lambda: monitor.metrics()[UP] == 0, "server_up 0")
    metrics = monitor.metrics()
    left = [name for name, _ in metrics if name.startswith(("pg_timing_server_setting", "pg_timing_fast_timing"))]
    if left or metrics[SUCCESS] != 0:
        yield f"figures of a stopped server: {left}, collector_success {metrics[SUCCESS]}"


def compare_events(events):
    """Each failure and each recovery is one event. A failure has its cause and a hint."""
    of_server = [event for event in events if event.get("subject") == "server"]
    expected = ["collector_failed", "collector_recovered"] * 3
    if [event["event"] for event in of_server] != expected:
        yield f"events of the server: {of_server}"
        return
    for event in of_server[::2]:
        if not re.fullmatch(r"no figures of the server: .+; .+", event["summary"]):
            yield f"{event['summary']!r} has no cause or no hint"


SEARCH = "SET pg_fast_timing.profile = on; SET compute_query_id = on; SET enable_bitmapscan = off; SELECT count(*) FROM flip WHERE i = 5"


def changed_plan(server, monitor, events):
    """The nodes of the profile are series, and a statement with a new plan is an event, once."""
    server.psql("CREATE TABLE flip AS SELECT g AS i FROM generate_series(1, 200000) g; CREATE INDEX flip_i ON flip (i); VACUUM ANALYZE flip")
    server.psql(SEARCH)

    def nodes(kind):
        return [value for (name, given), value in monitor.metrics().items() if name == "pg_timing_plan_node_seconds_total" and ("kind", kind) in given]

    monitor.wait(lambda: nodes("Index Only Scan on flip"), "a series of the index scan")
    server.psql("DROP INDEX flip_i")
    server.psql(SEARCH)
    monitor.wait(lambda: "plan_changed" in events.read_text(), "the event plan_changed")
    monitor.wait_for_samples(2)
    found = [event["summary"] for event in map(json.loads, events.read_text().splitlines()) if event["event"] == "plan_changed"]
    if len(found) != 1 or not re.fullmatch(r"statement -?\d+ changed its plan; Seq Scan on flip now takes \d+%", found[0]):
        yield f"events of a changed plan: {found}"
    if len(nodes("Seq Scan on flip")) != 1:
        yield f"series of the new plan: {nodes('Seq Scan on flip')}"


def compare(path, server, monitor):
    """Compares the metrics with advise and with pg_stat_fast_timing."""
    command = [path, "advise", "-h", server.socket_dir, "-p", str(server.port), "-U", "postgres", "-d", "postgres"]
    advise = json.loads(subprocess.run([*command, "--window", "2", "--format", "json"], capture_output=True, text=True).stdout)
    metrics = monitor.metrics()
    for row in advise["settings"]:
        on = metrics.get((SETTING_ON, labels(setting=row["name"])))
        if on != row["on"]:
            yield f"{row['name']}: {SETTING_ON} is {on}, and advise says {row['on']}"
        # This advice depends on the statements in the window, which are not the same.
        if row["name"] != "auto_explain.log_timing" and metrics.get((ADVICE, labels(advice=row["advice"], setting=row["name"]))) != 1:
            yield f"{row['name']}: the advice is not {row['advice']}"
    server.psql("EXPLAIN (ANALYZE) SELECT count(*) FROM big")
    name = "pg_timing_fast_timing_statements_total"

    def counted():
        return int(server.psql("SELECT statements FROM pg_stat_fast_timing"))

    monitor.wait(lambda: monitor.metrics().get((name, ())) == counted() >= 1, f"{name} as in pg_stat_fast_timing")
