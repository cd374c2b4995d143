"""Tests every kind of plan node with every method: results, rows, loops, buffers and WAL equal the server's."""

import json
import re
from pathlib import Path

from extension import AUTO_EXPLAIN, METHODS
from extension.invariants import explained, impossible_times, nodes
from servers import Server

HERE = Path(__file__).parent

# No background activity, so that two runs of the same statements have the same counts.
SETTINGS = {
    "autovacuum": False,
    "bgwriter_lru_maxpages": 0,
    "checkpoint_timeout": "1h",
    "shared_buffers": "256MB",
    "jit": False,
    "max_parallel_workers_per_gather": 0,
    "log_statement": "none",
}

ALL_METHODS = ("off", *METHODS)

# The EXPLAIN of each statement. auto_explain also times nested statements.
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON)"


def statements(server):
    """Yields the name, the settings and the text of each statement."""
    text = (HERE / "statements.sql").read_text()
    xml = server.psql("SELECT setting LIKE '%libxml%' FROM pg_config() WHERE name = 'CONFIGURE'").strip() == "t"
    for name, settings, statement in re.findall(r"^-- (\w+):(.*)\n(.+)$", text, re.M):
        # Up to 16 the only table function is xmltable.
        if "xmltable" in statement and not xml:
            continue
        local = [f"SET LOCAL {key} = '{value}';" for key, value in re.findall(r"(\w+)=(\w+)", settings)]
        yield name, " ".join(local), statement


def load(server):
    """Creates the tables in a database that serves as a template."""
    server.psql("CREATE DATABASE original")
    variables = [f"-vsocket={server.inside(server.socket_dir)}", f"-vport={server.port}"]
    server.psql((HERE / "tables.sql").read_text(), *variables, "-doriginal")
    # The database that foreign tables read.
    server.psql("CREATE DATABASE far TEMPLATE original")


def script(server, method, prefix):
    """Yields a script of all statements, each with a rollback."""
    yield f"LOAD 'pg_fast_timing'; SET pg_fast_timing.method = '{method}';"
    if not prefix:
        yield AUTO_EXPLAIN
    for name, settings, statement in statements(server):
        yield f"\\echo ### {name}\nBEGIN; {settings}\n{prefix} {statement};\nROLLBACK;"


def run(server, method, prefix=""):
    """Returns the output of each statement by its name."""
    server.psql("CREATE DATABASE now TEMPLATE original")
    try:
        out = server.psql("\n".join(script(server, method, prefix)), "-dnow")
    finally:
        server.psql("DROP DATABASE now WITH (FORCE)")
    return dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", out, re.M | re.S))


# Values that vary between runs. Planning finds more or fewer blocks in a session's caches, with every method; on a server
# with assertions in every second run.
VARIES = re.compile(r"Time$|^(Fast )?Timing|^Planning$")


def without_varying_values(plan):
    if isinstance(plan, dict):
        return {key: without_varying_values(value) for key, value in plan.items() if not VARIES.search(key)}
    if isinstance(plan, list):
        return [without_varying_values(item) for item in plan]
    return plan


def check(installation):
    """Yields complaints."""
    with Server(installation, SETTINGS) as server:
        yield from differences(server)
        yield from counts(server)


def differences(server):
    load(server)
    results = {method: run(server, method) for method in ALL_METHODS}
    plans = {method: run(server, method, EXPLAIN) for method in ALL_METHODS}
    names = [name for name, _, _ in statements(server)]
    for method in ALL_METHODS:
        for name in names:
            if results[method].get(name) != results["off"].get(name):
                yield f"{method}: {name}: the result differs from that of method off"
            timed = json.loads(plans[method][name])[0]
            if without_varying_values(timed) != without_varying_values(json.loads(plans["off"][name])[0]):
                yield f"{method}: {name}: the counts differ from those of method off"
            yield from (f"{method}: {name}: {what}" for what in impossible_times(timed))


def counts(server):
    """Each node of a plan is counted once, also nodes of a subplan that many nodes share."""
    shared = next(statement for name, _, statement in statements(server) if name == "shared_sub_plan")
    for method in METHODS:
        text = server.psql(
            f"CREATE EXTENSION IF NOT EXISTS pg_fast_timing; LOAD 'pg_fast_timing'; SET pg_fast_timing.method = {method};"
            f"EXPLAIN (ANALYZE, FORMAT JSON) {shared}; SELECT last_nodes FROM pg_fast_timing_info()",
            "-doriginal",
        )
        plan, counted = text.strip().rsplit("\n", 1)
        expected = len(list(nodes(explained(plan)["Plan"])))
        if int(counted) != expected:
            yield f"{method}: {counted} timed nodes in a plan of {expected} nodes"
