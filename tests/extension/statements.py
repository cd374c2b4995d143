"""Every kind of plan node, by every method: the results, the rows, loops, buffers and WAL are the server's own."""

import json
import re
from pathlib import Path

from extension import AUTO_EXPLAIN, METHODS
from servers import Server

HERE = Path(__file__).parent

# Nothing writes or cleans on its own time, so that two runs of the same statements do the same.
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

# What each statement is explained with; auto_explain sees to the nested ones as well.
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON)"



def statements(server):
    """Name, settings, text."""
    text = (HERE / "statements.sql").read_text()
    xml = server.psql("SELECT setting LIKE '%libxml%' FROM pg_config() WHERE name = 'CONFIGURE'").strip() == "t"
    for name, settings, statement in re.findall(r"^-- (\w+):(.*)\n(.+)$", text, re.M):
        # A table function is xmltable until 16.
        if "xmltable" in statement and not xml:
            continue
        local = [f"SET LOCAL {key} = '{value}';" for key, value in re.findall(r"(\w+)=(\w+)", settings)]
        yield name, " ".join(local), statement


def load(server):
    """Makes the tables in a database that the others are copies of."""
    server.psql("CREATE DATABASE original")
    variables = [f"-vsocket={server.inside(server.socket_dir)}", f"-vport={server.port}"]
    server.psql((HERE / "tables.sql").read_text(), *variables, "-doriginal")
    # What foreign tables read; nothing is written there.
    server.psql("CREATE DATABASE far TEMPLATE original")


def script(server, method, prefix):
    """All statements, each undone."""
    yield f"LOAD 'pg_fast_timing'; SET pg_fast_timing.method = '{method}';"
    if not prefix:
        yield AUTO_EXPLAIN
    for name, settings, statement in statements(server):
        yield f"\\echo ### {name}\nBEGIN; {settings}\n{prefix} {statement};\nROLLBACK;"


def ran(server, method, prefix=""):
    """What came out, by the statement's name."""
    server.psql("CREATE DATABASE now TEMPLATE original")
    try:
        out = server.psql("\n".join(script(server, method, prefix)), "-dnow")
    finally:
        server.psql("DROP DATABASE now WITH (FORCE)")
    return dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", out, re.M | re.S))


# What differs from run to run. Planning finds more or fewer blocks in a session's caches, whichever method is on: on a
# server with assertions one time in two.
VARIES = re.compile(r"Time$|^Timing|^Planning$")


def without_what_varies(plan):
    if isinstance(plan, dict):
        return {key: without_what_varies(value) for key, value in plan.items() if not VARIES.search(key)}
    if isinstance(plan, list):
        return [without_what_varies(each) for each in plan]
    return plan


def nodes(plan, above=None):
    yield plan, above
    for child in plan.get("Plans", []):
        yield from nodes(child, plan)


def out_of_order(plan, exact):
    """Times that cannot be: less than nothing, or a start after the end; or exact ones of more than what it runs in."""
    for node, above in nodes(plan):
        startup, total = node.get("Actual Startup Time", 0), node.get("Actual Total Time", 0)
        if not 0 <= startup <= total:
            yield f"{node['Node Type']}: {startup} to {total} ms"
        # What CTEs, InitPlans and SubPlans take goes to who asks first, wherever that is in the tree.
        if exact and above and node.get("Parent Relationship") in ("Outer", "Inner", "Member", "Subquery"):
            inner, outer = total * node["Actual Loops"], above["Actual Total Time"] * above["Actual Loops"]
            rounding = 0.001 * (node["Actual Loops"] + above["Actual Loops"])
            if inner > outer + rounding and above["Actual Loops"]:
                yield f"{node['Node Type']}: {inner:.3f} ms in {above['Node Type']}'s {outer:.3f} ms"


def check(installation):
    """Yields what is wrong."""
    with Server(installation, SETTINGS) as server:
        yield from differences(server)


def differences(server):
    load(server)
    results = {method: ran(server, method) for method in ALL_METHODS}
    plans = {method: ran(server, method, EXPLAIN) for method in ALL_METHODS}
    names = [name for name, _, _ in statements(server)]
    for method in ALL_METHODS:
        for name in names:
            if results[method].get(name) != results["off"].get(name):
                yield f"{method}: {name}: another result than without it"
            explained = json.loads(plans[method][name])[0]
            if without_what_varies(explained) != without_what_varies(json.loads(plans["off"][name])[0]):
                yield f"{method}: {name}: other counts than without it"
            exact = method in ("off", "tsc")
            yield from (f"{method}: {name}: {what}" for what in out_of_order(explained["Plan"], exact))
