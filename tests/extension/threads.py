"""Tests of the ticker's thread: it has a name, and it sleeps while no statement needs it."""

import re

from extension import ESTIMATES, SOURCE
from servers import Server, build

SETTINGS = {"jit": False, "autovacuum": False, "statement_timeout": "60s"}

NAMES = "SELECT string_agg(pg_read_file('/proc/self/task/' || id || '/comm'), '') FROM pg_ls_dir('/proc/self/task') id"
# The other thread of this process, and how often it has slept.
SLEPT = (
    "SELECT sum(substring(pg_read_file('/proc/self/task/' || id || '/status') FROM 'voluntary_ctxt_switches:\\s+(\\d+)')::int) "
    "FROM pg_ls_dir('/proc/self/task') id WHERE id::int <> pg_backend_pid()"
)
TIMED = "EXPLAIN (ANALYZE) SELECT pg_sleep(0.1) FROM generate_series(1, 2);"


def check(installation):
    """Yields complaints."""
    build(SOURCE, installation, ESTIMATES)
    try:
        with Server(installation, SETTINGS) as server:
            counted = f"SELECT 'slept ' || ({SLEPT});"
            # It ticks for some time after a statement.
            idle = f"SELECT pg_sleep(0.2); {counted} SELECT pg_sleep(1); {counted}"
            said = server.psql(f"LOAD 'pg_fast_timing'; {TIMED} SELECT 'names ' || ({NAMES}); {idle} {TIMED} {counted}")
    finally:
        build(SOURCE, installation)
    before, after, used = map(int, re.findall(r"^slept (\d+)", said, re.M))
    if said.count("\npg_fast_timing\n") + said.count("names pg_fast_timing\n") != 1:
        yield f"no thread has the name, or several: {said}"
    if before == 0 or after != before or used < after + 50:
        yield f"a thread that ticks for 0.2 s, then not, and again, has slept {before}, {after} and {used} times: {said}"
