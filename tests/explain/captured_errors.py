"""Errors of `explain --plan`: its estimate of a run without its timing, compared with the overhead factor of live runs."""

import json
import os
import re
import subprocess
import tempfile
from itertools import chain
from pathlib import Path
from statistics import mean, median

from explain.measure import RUNS, SLOW_NS, explained, fill, plain_runs, repeatable, settings, slowed
from extension import faulty_clocks
from servers import Server, install


def host_report(path, folder, preload=None):
    """Writes pg_timing's report of the host, measured with the server's clock. Returns its path."""
    report = Path(folder) / "host.json"
    env = os.environ | ({"LD_PRELOAD": str(preload), "SLOW_NS": str(SLOW_NS)} if preload else {})
    with open(report, "w") as file:
        subprocess.run([path, "-d", "2", "--format", "json"], env=env, stdout=file, stderr=subprocess.DEVNULL)
    return report


# On a slow clock, a run takes up to 30 times as long. The overhead is so large that few runs show it.
SLOW_RUNS, SLOW_SECONDS = 3, 4


def interleaved(server, statement, runs):
    """Returns the times of plain runs in ms, and the plans of the runs between them, sorted by time.

    All runs are in one session, after one warm-up run of each kind, because a new session is slower.
    """
    explain = f"BEGIN;\nEXPLAIN (ANALYZE, SETTINGS) {statement};\nROLLBACK;"
    times, out = plain_runs(server, statement, explain, runs, options=("-X", "-q", "-v", "ON_ERROR_STOP=1"))
    plans = re.findall(r"^ +QUERY PLAN *$.*?^\(\d+ rows\)$", out, re.M | re.S)[1:]
    assert len(times) == len(plans) == runs, out
    return times, sorted(plans, key=lambda plan: float(re.search(r"Execution Time: ([\d.]+) ms", plan)[1]))


def captured_results(path, server, host_report, runs, *more):
    """Yields (plan's report, overhead factor of live runs) for the plan of the median time of each statement.

    The true time of that run without its timing is its time divided by the factor.
    """
    for statement in chain(*repeatable().values()):
        _, plans = interleaved(server, statement, runs)
        host = host_report()
        factor = explained(path, server, statement, *more)["overhead_factor"]
        if factor:
            yield from_plan(path, plans[len(plans) // 2], host), factor


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
        options = (SLOW_RUNS, "--time", str(SLOW_SECONDS)) if library else (RUNS,)
        results = list(captured_results(path, server, lambda: host_report(path, folder, library), *options))
        print(f"captured plans{where}, PostgreSQL {server.installation.version}")
        print_captured("overhead below 60%", [result for result in results if overhead_share(result) < 0.6])
        print_captured("overhead of 60% and more", [result for result in results if overhead_share(result) >= 0.6])


def overhead_share(result):
    return 1 - 1 / result[1]["estimate"]


def print_captured(what, results):
    if not results:
        return
    errors, held, nearly, widths = [], 0, 0, []
    for report, factor in results:
        interval = report["corrected_ms"]
        # The interval of the live runs, for this run.
        truth = {bound: report["reported_ms"] / factor[opposite] for bound, opposite in (("low", "high"), ("estimate", "estimate"), ("high", "low"))}
        errors.append(abs(interval["estimate"] / truth["estimate"] - 1))
        held += interval["low"] <= truth["estimate"] <= interval["high"]
        nearly += interval["low"] <= truth["high"] and truth["low"] <= interval["high"]
        widths.append((interval["high"] - interval["low"]) / 2 / truth["estimate"])
    widths.sort()
    print(
        f"  {what}: {len(results)} plans; mean error {mean(errors):.1%}, max {max(errors):.0%}; contained in {held} intervals, "
        f"in {nearly} within the error of the live runs; half width: median {median(widths):.1%}, "
        f"90th percentile {widths[len(widths) * 9 // 10]:.1%}",
        flush=True,
    )
