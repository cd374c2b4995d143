"""pg_timing monitor --server on real servers: its metrics are the figures of advise and of pg_fast_timing."""

import json
import subprocess
from tempfile import TemporaryDirectory

from monitor.monitor import Monitor, running

SETTING_ON = "pg_timing_server_setting_on"
ADVICE = "pg_timing_server_setting_advice"


def labels(**names):
    return tuple(sorted(names.items()))


def watched(path, server):
    """The monitor watches the server, notices that it stops, and continues."""
    conninfo = f"host={server.socket_dir} port={server.port} user=postgres dbname=postgres"
    server.psql("SELECT pg_fast_timing_reset()")
    with TemporaryDirectory() as folder, running(Monitor(path, folder, "--interval", "2", "--server", conninfo)) as monitor:
        up = ("pg_timing_server_up", ())
        monitor.wait_for_page()
        monitor.wait(lambda: monitor.metrics().get(up) == 1, "the server's figures")
        yield from compare(path, server, monitor)
        server.stop("fast")
        monitor.wait(lambda: monitor.metrics()[up] == 0, "server_up 0")
        left = [name for name, _ in monitor.metrics() if name.startswith(("pg_timing_server_setting", "pg_timing_fast_timing"))]
        if left:
            yield f"figures of a stopped server: {left}"
        monitor.wait_for_samples(2)
        server.start()
        monitor.wait(lambda: monitor.metrics()[up] == 1, "the server's figures after its start")
        if (status := monitor.stop()) != 0:
            yield f"exit status {status}: {monitor.errors()}"


def compare(path, server, monitor):
    """Compares the metrics with advise and with pg_fast_timing_info()."""
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
        return int(server.psql("SELECT statements FROM pg_fast_timing_info()"))

    monitor.wait(lambda: monitor.metrics().get((name, ())) == counted() >= 1, f"{name} as in pg_fast_timing_info()")
