"""Errors of `explain --plan`: its estimate of a run without its timing, compared with the overhead factor of live runs."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from statistics import mean, median

import tpch
from explain.measure import RUNS, SLOW_NS, explained, fill, own, plain_runs, settings, slowed, third
from extension import faulty_clocks
from servers import Server, install


def host_report(path, folder, preload=None):
    """Writes pg_timing's report of the host, measured with the server's clock. Returns its path."""
    report = Path(folder) / "host.json"
    env = os.environ | ({"LD_PRELOAD": str(preload), "SLOW_NS": str(SLOW_NS)} if preload else {})
    with open(report, "w") as file:
        subprocess.run([path, "-d", "2", "--format", "json"], env=env, stdout=file, stderr=subprocess.DEVNULL)
    return report


def interleaved(server, statement):
    """Returns the times of plain runs in ms, and the plans of the runs between them, sorted by time.

    All runs are in one session, after one warm-up run of each kind, because a new session is slower.
    """
    explain = f"BEGIN;\nEXPLAIN (ANALYZE, SETTINGS) {statement};\nROLLBACK;"
    times, out = plain_runs(server, statement, explain, options=("-X", "-q", "-v", "ON_ERROR_STOP=1"))
    plans = re.findall(r"^ +QUERY PLAN *$.*?^\(\d+ rows\)$", out, re.M | re.S)[1:]
    assert len(times) == len(plans) == RUNS, out
    return times, sorted(plans, key=lambda plan: float(re.search(r"Execution Time: ([\d.]+) ms", plan)[1]))


def captured_results(path, server, host_report):
    """Yields (plan's report, true time without its timing, overhead's true share) for the plan of the median time of each statement.

    The truth is that run's time divided by the overhead factor of live runs.
    """
    for statement in tpch.queries() + own() + third():
        _, plans = interleaved(server, statement)
        host = host_report()
        factor = explained(path, server, statement)["overhead_factor"]
        if factor:
            report = from_plan(path, plans[len(plans) // 2], host)
            yield report, report["reported_ms"] / factor["estimate"], 1 - 1 / factor["estimate"]


def from_plan(path, plan, host):
    command = [path, "explain", "--plan", "-", "--format", "json", "--host-report", host]
    done = subprocess.run(command, input=plan, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{plan}: {done.stderr}")
    return json.loads(done.stdout)


def captured(path, majors):
    """On the host's clock."""
    for major in majors:
        compare(path, major, "")


def captured_slow(path, majors):
    """On a slow clock."""
    with faulty_clocks() as library:
        for major in majors:
            compare(path, major, " on a slow clock", library)


def compare(path, major, where, library=None):
    with Server(install(major), settings(major), **(slowed(library) if library else {})) as server, tempfile.TemporaryDirectory() as folder:
        fill(server)
        results = list(captured_results(path, server, lambda: host_report(path, folder, library)))
        print(f"captured plans{where}, PostgreSQL {server.installation.version}")
        print_captured("overhead below 60%", [result for result in results if result[2] < 0.6])
        print_captured("overhead of 60% and more", [result for result in results if result[2] >= 0.6])


def print_captured(what, results):
    if not results:
        return
    intervals = [(report["corrected_ms"], truth) for report, truth, _ in results]
    errors = [abs(interval["estimate"] / truth - 1) for interval, truth in intervals]
    held = [interval["low"] <= truth <= interval["high"] for interval, truth in intervals]
    widths = sorted((interval["high"] - interval["low"]) / 2 / truth for interval, truth in intervals)
    print(
        f"  {what}: {len(results)} plans; mean error {mean(errors):.1%}, max {max(errors):.0%}; contained in {sum(held)} intervals; "
        f"half width: median {median(widths):.1%}, 90th percentile {widths[len(widths) * 9 // 10]:.1%}",
        flush=True,
    )
