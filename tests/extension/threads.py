"""Tests of the ticker's thread: it has a name, it ends if it is not used, and it starts again."""

import re

from extension import ESTIMATES, SOURCE, TIMED_CURSOR, faulty_clocks
from extension.faulty import SWITCH, switch_file
from extension.invariants import explained
from servers import Server, build

SETTINGS = {"jit": False, "autovacuum": False, "statement_timeout": "60s"}

# The real time is a minute.
SHORT_IDLE = f"-DTICKER_IDLE_NS=200000000 {ESTIMATES}"

COUNT = "SELECT count(*) FROM pg_ls_dir('/proc/self/task')"
NAMES = "SELECT string_agg(pg_read_file('/proc/self/task/' || id || '/comm'), '') FROM pg_ls_dir('/proc/self/task') id"


def until(condition, value):
    """Returns statements that wait until a condition is true, and then print a value."""
    return f"""DO $$BEGIN
        WHILE NOT ({condition}) AND clock_timestamp() < now() + interval '30 s' LOOP PERFORM pg_sleep(0.02); END LOOP;
    END$$; SELECT 'threads ' || ({value});"""


UNTIL_ENDED = until(f"({COUNT}) = 1", COUNT)
# The thread sets its name when it runs for the first time.
UNTIL_NAMED = until(f"({NAMES}) LIKE '%pg_fast_timing%'", NAMES)
LOAD = "LOAD 'pg_fast_timing';"
SLEEP = "EXPLAIN (ANALYZE, FORMAT JSON) SELECT pg_sleep(0.2) FROM generate_series(1, 2);"
ERROR = "SELECT 'error ' || last_error_ms FROM pg_fast_timing_info();"


def named(installation):
    with Server(installation, SETTINGS) as server:
        said = server.psql(f"{LOAD} EXPLAIN (ANALYZE) SELECT FROM generate_series(1, 9); {UNTIL_NAMED}")
        if "pg_fast_timing\n" not in said:
            yield f"no thread has the name: {said}"


def ends(installation):
    """The thread ends after its idle time, but not during a longer statement. The next statement starts another one."""
    with Server(installation, SETTINGS) as server:
        said = server.psql(f"CREATE EXTENSION pg_fast_timing; {LOAD} {(SLEEP + ERROR + UNTIL_ENDED) * 2}")
    if said.count("threads 1") != 2:
        yield f"an idle thread does not end: {said}"
    plans, errors = re.findall(r"^\[.*?^\]", said, re.M | re.S), re.findall(r"^error (\S+)", said, re.M)
    for plan, error in zip(plans, errors, strict=True):
        took = explained(plan)["Plan"]["Actual Total Time"]
        if took + float(error) < 400:
            yield f"400 ms of sleep took {took} +- {error} ms"


def ends_and_fails(installation):
    """No second thread can be created for an open cursor. Its error includes the time without ticks."""
    fetch = "FETCH 1 FROM c;"
    cursor = TIMED_CURSOR.format("SELECT CASE WHEN i = 2 THEN pg_sleep(0.4) END FROM generate_series(1, 9) i")
    with faulty_clocks() as library:
        with Server(installation, SETTINGS, preload=[library], env={"NO_THREAD": "1", "SWITCH": SWITCH}) as server:
            script = f"{LOAD} {cursor} {fetch} COPY (SELECT 1) TO '{SWITCH}'; {UNTIL_ENDED} {fetch} CLOSE c; {ERROR}"
            try:
                said = server.psql(f"CREATE EXTENSION pg_fast_timing; {script}")
            finally:
                switch_file(installation).unlink(missing_ok=True)
    if "threads 1" not in said or float(re.search(r"^error (\S+)", said, re.M)[1]) < 400:
        yield f"a sleep of 400 ms without ticks: {said}"


def check(installation):
    """Yields complaints."""
    build(SOURCE, installation, SHORT_IDLE)
    try:
        yield from named(installation)
        yield from ends(installation)
        yield from ends_and_fails(installation)
    finally:
        build(SOURCE, installation)
