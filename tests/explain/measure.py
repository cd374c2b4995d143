"""Statements, servers and runs that bench and record share."""

import json
import multiprocessing
import os
import random
import re
import subprocess
import time
from contextlib import contextmanager
from math import inf, sqrt
from pathlib import Path

import tpch

HERE = Path(__file__).resolve().parent
SETTINGS = {"shared_buffers": "2GB", "work_mem": "64MB", "autovacuum": False, "jit": False}
SCALE = 0.3
RUNS = 5
# explain's time per statement, in seconds.
TIME = int(os.environ.get("EXPLAIN_SECONDS", 8))
SLOW_NS = 770


def statements(file):
    return [line for line in (HERE / file).read_text().splitlines() if not line.startswith("--")]


def own():
    return statements("own.sql")


def third():
    """Returns statements to which the cost of a call was not fitted."""
    return statements("third.sql")


def repeatable():
    """Returns the statements of each workload that take equally long in each run. After an UPDATE, the next run reads dead rows."""
    workloads = {"tpch": tpch.queries(), "own": own(), "third": third()}
    return {name: [statement for statement in statements if not statement.startswith("UPDATE")] for name, statements in workloads.items()}


def writes(statement):
    return statement.startswith(("INSERT", "UPDATE"))


def without_output(statement):
    """Returns a statement that sends no rows to the client, like EXPLAIN ANALYZE."""
    if writes(statement):
        return statement
    # An OFFSET behind a LIMIT would change what the LIMIT returns. A subquery adds a node above EXCEPT or UNION.
    query = f"SELECT * FROM ({statement}) AS plain" if "LIMIT" in statement.upper() else f"({statement})"
    return f"{query} OFFSET {2**62}"


def plain_runs(server, statement, between="", runs=RUNS, **options):
    """Returns the times of plain runs in ms, without planning, and psql's whole output."""
    run = f"BEGIN;\n\\timing on\nEXECUTE plain;\n\\timing off\nROLLBACK;\n{between}\n"
    out = server.psql(f"PREPARE plain AS {without_output(statement)};\n" + run * (runs + 1), **options)
    # The first run is a warm-up.
    return [float(ms) for ms in re.findall(r"^Time: ([\d.]+) ms", out, re.M)][1:], out


def pair_ratios(server, statement, rounds=RUNS):
    """Returns how many times longer EXPLAIN ANALYZE takes than the two plain runs around it, in each round."""
    plain = "\\timing on\nEXECUTE plain;\n\\timing off\n"
    run = f"BEGIN;\n{plain}EXPLAIN (ANALYZE) {statement};\n{plain}ROLLBACK;\n"
    out = server.psql(f"PREPARE plain AS {without_output(statement)};\n" + run * (rounds + 1))
    times = [float(ms) for ms in re.findall(r"^ *(?:Execution )?Time: ([\d.]+) ms", out, re.M)]
    # The first round is a warm-up.
    triples = zip(times[3::3], times[4::3], times[5::3], strict=True)
    return [timed / sqrt(before * after) for before, timed, after in triples]


def explain_command(path, statement, *more):
    return [path, "explain", "--format", "json", "--allow-writes", "--limit", "600", "--time", str(TIME), *more, "-c", statement]


def explained(path, server, statement, *more):
    done = subprocess.run(explain_command(path, statement, *more), env=os.environ | server.client_env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{statement}: {done.stderr}")
    return json.loads(done.stdout)


def relative_half_width(interval):
    return (interval["high"] - interval["low"]) / 2 / interval["estimate"] if interval else inf


def fill(server, scale=SCALE):
    tpch.load(server, scale)
    for tables in ("own_tables.sql", "third_tables.sql"):
        server.psql((HERE / tables).read_text())


def settings(major):
    """Settings for the system clock, which the test library can slow down."""
    return SETTINGS | ({"timing_clock_source": "system"} if major >= 19 else {})


def slowed(library):
    return {"preload": [library], "env": {"SLOW_NS": str(SLOW_NS)}}


def compute_and_sleep():
    while True:
        seconds = 10 ** random.uniform(-1, 1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(10_000))
        time.sleep(seconds)


@contextmanager
def neighbor():
    process = multiprocessing.Process(target=compute_and_sleep, daemon=True)
    process.start()
    yield
    process.terminate()
