"""Runs pg_fast_timing together with the extensions of Debian that use the executor's hooks, plan nodes or background workers.

    python3 tests/extension/packaged.py [MAJOR...]        the default is 15 17 18

All of them are loaded at the same time, before pg_fast_timing and then after it; only TimescaleDB has its own server. Each
statement must have the same result and the same counts as with the method off. Prints one line per server and test, and one
for each complaint. The exit status is 0 if all tests passed.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    # Keeps compiled Python out of the source tree.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from extension import METHODS, SOURCE, statements
from extension.invariants import impossible_times
from extension.survive import crashes
from outcome import on_each
from servers import CACHE, Installation, Server, build
from servers.installation import RECIPES, separate

MAJORS = (15, 17, 18)

TIMESCALE = "timescaledb"
# The library of each package. pg_stat_kcache must follow pg_stat_statements.
LIBRARIES = {
    "pg-stat-kcache": "pg_stat_kcache", "pg-qualstats": "pg_qualstats", "pg-wait-sampling": "pg_wait_sampling",
    "pgaudit": "pgaudit", "plpgsql-check": "plpgsql_check", "set-user": "set_user", "hypopg": "hypopg", "cron": "pg_cron",
}  # fmt: skip
SINCE_17 = {
    "pg-hint-plan": "pg_hint_plan", "show-plans": "pg_show_plans", "credcheck": "credcheck", "age": "age",
    "timescaledb": TIMESCALE,
}  # fmt: skip
SINCE_18 = {"pg-stat-plans": "pg_stat_plans", "pgsentinel": "pgsentinel"}

SETTINGS = statements.SETTINGS | {
    "pgaudit.log": "all", "pg_qualstats.sample_rate": 1, "pg_qualstats.track_constants": False,
    "pg_stat_statements.track": "all", "max_worker_processes": 32,
}  # fmt: skip
# Custom scans of TimescaleDB over the chunks of a table.
CHUNKS = """CREATE EXTENSION timescaledb; CREATE TABLE readings (at timestamptz NOT NULL, sensor int, value float);
SELECT create_hypertable('readings', 'at', chunk_time_interval => interval '1 day');
INSERT INTO readings SELECT '2026-01-01'::timestamptz + i * interval '1 min', i % 7, i FROM generate_series(1, 20000) i; ANALYZE readings"""
OF_CHUNKS = (
    "SELECT sensor, avg(value) FROM readings WHERE at > '2026-01-05'::text::timestamptz GROUP BY sensor",
    "SELECT * FROM readings ORDER BY at DESC LIMIT 3000",
    "SELECT time_bucket('1 hour', at) AS hour, max(value) FROM readings GROUP BY hour ORDER BY hour",
)


def libraries(major):
    return LIBRARIES | (SINCE_17 if major >= 17 else {}) | (SINCE_18 if major >= 18 else {})


@dataclass(frozen=True)
class Packaged(Installation):
    """A server with other extensions. Its folder is separate from the server of the same version."""

    @property
    def folder(self):
        return CACHE / "packaged" / str(self.major)


def packaged(major):
    """Returns the installation, after unpacking it if necessary. Raises Missing."""
    packages = [f"postgresql-{major}-{name}" for name in libraries(major)]
    return separate(Packaged(major, f"{major} packaged"), lambda new: RECIPES[major](new.root, packages))


def check(installation):
    """Yields complaints."""
    build(SOURCE, installation)
    others = list(libraries(installation.major).values())
    if TIMESCALE in others:
        others.remove(TIMESCALE)
        # TimescaleDB must be the first library. With pgaudit, inserts crash, also without pg_fast_timing.
        yield from with_libraries(installation, [TIMESCALE, "auto_explain", "pg_fast_timing"], of_chunks)
    for loaded in (["pg_fast_timing", "pg_stat_statements", *others], ["pg_stat_statements", *others, "pg_fast_timing"]):
        yield from with_libraries(installation, loaded, statements.differences)


def with_libraries(installation, loaded, test):
    with Server(installation, SETTINGS | {"shared_preload_libraries": ",".join(loaded)}) as server:
        yield from (f"{loaded[0]} to {loaded[-1]}: {what}" for what in test(server))
        yield from crashes(server)


def of_chunks(server):
    server.psql("CREATE DATABASE chunks")
    server.psql(CHUNKS, "-dchunks")
    for statement in OF_CHUNKS:
        plans = {}
        for method in ("off", *METHODS):
            script = f"SET max_parallel_workers_per_gather = 0; SET pg_fast_timing.method = {method}; EXPLAIN (ANALYZE, FORMAT JSON) {statement};"
            # The second run finds the same blocks in the caches, with each method.
            plans[method] = json.loads(server.psql(f"{script} \\echo ###\n{script}", "-dchunks").partition("###")[2])[0]
            yield from (f"{method}: {statement}: {what}" for what in impossible_times(plans[method]))
            if statements.without_varying_values(plans[method]) != statements.without_varying_values(plans["off"]):
                yield f"{method}: {statement}: the counts differ from those of method off"
        if "Custom Scan" not in json.dumps(plans["off"]) and "LIMIT" in statement:
            yield f"no plan node of TimescaleDB: {plans['off']}"


if __name__ == "__main__":
    sys.exit(on_each(sys.argv[1:] or MAJORS, [("packaged", check)], get=packaged))
