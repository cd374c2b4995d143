"""Measures the claims of `explain --against`, and explain's figures of statements that wait. The truth comes from psql."""

import json
import os
import re
import subprocess
import threading
from contextlib import suppress
from math import sqrt
from statistics import mean, median, stdev
from time import monotonic

from explain.measure import SETTINGS, explained, fill, without_output
from servers import Failed, Server, install

# The same statement twice: each claimed difference is wrong.
SAME = "SELECT count(*) FROM t WHERE k < 500"
REPETITIONS = 200
ROWS = "SELECT count(*) FROM generate_series(1, {})"
SLEEP = "SELECT pg_sleep({})"
# Pairs of statements: the second one takes about 3% or 10% longer, or less time.
PLANTED = [
    ("sleep, 3%", SLEEP.format(0.1), SLEEP.format(0.103)),
    ("sleep, 10%", SLEEP.format(0.1), SLEEP.format(0.11)),
    ("rows, 3%", ROWS.format(1_000_000), ROWS.format(1_030_000)),
    ("rows, 10%", ROWS.format(1_000_000), ROWS.format(1_100_000)),
    ("an index", "SELECT count(*) FROM t WHERE i + 0 < 2000", "SELECT count(*) FROM t WHERE i < 2000"),
]
PAIRS = 15
LOCKED = "SELECT pg_advisory_xact_lock(7)"
WAITING = {"sleep": SLEEP.format(0.2), "dblink": "SELECT * FROM dblink('{}', 'SELECT pg_sleep(0.2)') AS d(x text)", "lock": LOCKED}


def ratios(server, a, b, pairs=PAIRS):
    """Returns how many times longer B takes than the two runs of A around it, in each round of a psql session."""
    run = "BEGIN;\n\\timing on\nEXECUTE {};\n\\timing off\nROLLBACK;\n"
    prepare = "".join(f"PREPARE {name} AS {without_output(statement)};\n" for name, statement in (("a", a), ("b", b)))
    out = server.psql(prepare + (run.format("a") + run.format("b") + run.format("a")) * (pairs + 1))
    times = [float(ms) for ms in re.findall(r"^Time: ([\d.]+) ms", out, re.M)]
    return [between / sqrt(before * after) for before, between, after in zip(times[3::3], times[4::3], times[5::3], strict=True)]


def compared(path, server, a, b, seconds):
    """Returns the report of `explain --against`."""
    command = [path, "explain", "--format", "json", "--time", str(seconds), "-c", a, "--against", b]
    return json.loads(subprocess.run(command, env=os.environ | server.client_env, capture_output=True, text=True, check=False).stdout)


def against(path, majors):
    for major in majors:
        with Server(install(major), SETTINGS | {"max_parallel_workers_per_gather": 0}) as server:
            fill(server)
            start = monotonic()
            reports = [compared(path, server, SAME, SAME, 20) for _ in range(REPETITIONS)]
            claimed = sum(report["difference"] in ("faster", "slower") for report in reports)
            widths = sorted((report["ratio"]["high"] - report["ratio"]["low"]) / 2 for report in reports)
            print(
                f"A against A, PostgreSQL {server.installation.version}: a difference was claimed {claimed} of {REPETITIONS} times; half width: median "
                f"{median(widths):.1%}, 90th percentile {widths[len(widths) * 9 // 10]:.1%}; {(monotonic() - start) / REPETITIONS:.1f} s each",
                flush=True,
            )
            for name, a, b in PLANTED:
                before = ratios(server, a, b)
                start = monotonic()
                report = compared(path, server, a, b, 60)
                seconds, truths = monotonic() - start, before + ratios(server, a, b)
                ratio, truth = report["ratio"], median(truths)
                noise = 2 * 1.25 * stdev(truths) / sqrt(len(truths))
                held = ratio["low"] - noise <= truth <= ratio["high"] + noise
                print(
                    f"  {name}: psql {truth:.3f} +-{noise:.3f}, explain {ratio['estimate']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f}), "
                    f"{'contained' if held else 'NOT contained'}, {report['difference']}, {seconds:.1f} s",
                    flush=True,
                )


def waits(path, majors):
    """Statements that wait have no overhead, and need three rounds."""
    for major in majors:
        with Server(install(major), SETTINGS) as server:
            server.psql("CREATE EXTENSION dblink")
            # The server sees its folder under another name.
            place = f"host={server.inside(server.folder)} port={server.port} dbname=postgres user=postgres"
            for name, statement in WAITING.items():
                if name == "lock":
                    threading.Thread(target=hold_lock, args=(server,), daemon=True).start()
                start = monotonic()
                report = explained(path, server, statement.format(place), "--time", "20")
                seconds, reported = monotonic() - start, report["reported_ms"]
                most = 1 - report["corrected_ms"]["low"] / reported
                print(f"  {name}: reported {reported:.0f} ms, overhead {report['overhead_share']:.3%}, at most {most:.3%}; {seconds:.1f} s", flush=True)


def hold_lock(server):
    """Holds the lock for 0.2 s again and again, until the server stops. Each waiting session gets it in its turn."""
    with suppress(Failed):
        server.psql(f"BEGIN; {LOCKED}; SELECT pg_sleep(0.2); COMMIT;\n" * 100)
