"""Exact node calls of statements, from EXPLAIN ANALYZE's rows and loops, to compare with pg_timing's ranges."""

import json
import os
import subprocess
from pathlib import Path

import tpch

EXPLAIN = Path(__file__).resolve().parent.parent / "explain"
SCALE = 0.1
SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements", "shared_buffers": "256MB", "work_mem": "64MB", "autovacuum": False, "jit": False,
}  # fmt: skip

# pgbench's own statements. The names are those of its scripts.
SELECT_ONLY = ["SELECT abalance FROM pgbench_accounts WHERE aid = {aid};"]
TPC_B = [
    "UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {aid};",
    "SELECT abalance FROM pgbench_accounts WHERE aid = {aid};",
    "UPDATE pgbench_tellers SET tbalance = tbalance + {delta} WHERE tid = {tid};",
    "UPDATE pgbench_branches SET bbalance = bbalance + {delta} WHERE bid = {bid};",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ({tid}, {bid}, {aid}, {delta}, CURRENT_TIMESTAMP);",
]
NESTED_LOOP = ["SELECT count(*) FROM s a, s b"]

# These return all their results in one call, see calls.rs.
ONE_CALL_PER_LOOP = ("Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr")


def lines(file):
    """Returns the statements of a file that run without settings of their own."""
    text = (EXPLAIN / file).read_text().splitlines()
    return [line for line in text if line and not line.startswith(("--", "SET "))]


def node_calls(node, parent=None):
    """Returns the calls of a node and of the nodes below it: in each loop one per row, and one that finds the end."""
    loops, rows = node["Actual Loops"], node["Actual Rows"]
    needs_one_row = (
        parent and parent["Node Type"] == "Nested Loop" and node.get("Parent Relationship") == "Inner"
        and (parent.get("Inner Unique") or parent.get("Join Type") in ("Semi", "Anti"))
    )  # fmt: skip
    if node["Node Type"] in ONE_CALL_PER_LOOP:
        own = loops
    elif needs_one_row:
        own = loops * max(rows, 1)
    else:
        own = loops * (rows + 1)
    return own + sum(node_calls(child, node) for child in node.get("Plans", []))


def exact(server, statement):
    """Returns the query ID and the exact number of node calls of a statement. The run is rolled back."""
    sql = f"BEGIN;\nEXPLAIN (ANALYZE, VERBOSE, TIMING OFF, FORMAT JSON) {statement.rstrip(';')};\nROLLBACK;"
    # psql prints nothing for BEGIN and ROLLBACK with -q.
    [explained] = json.loads(server.psql(sql))
    return str(explained["Query Identifier"]), node_calls(explained["Plan"])


def top(path, server, count=1000):
    """Returns the report of explain --top."""
    command = [path, "explain", "--top", str(count), "--format", "json"]
    done = subprocess.run(command, env=os.environ | server.client_env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"explain --top: {done.returncode} {done.stderr}")
    return json.loads(done.stdout)


def fill(server):
    """Creates the tables of all workloads."""
    server.psql("CREATE EXTENSION pg_stat_statements")
    server.run("pgbench", "-i", "-q", "-s", "5", stderr=subprocess.STDOUT)
    tpch.load(server, SCALE)
    for tables in ("own_tables.sql", "third_tables.sql"):
        server.psql((EXPLAIN / tables).read_text())


def advise(path, server, window):
    """Returns the report of advise."""
    command = [path, "advise", "--window", str(window), "--format", "json"]
    done = subprocess.run(command, env=os.environ | server.client_env, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"advise: {done.returncode} {done.stderr}")
    return json.loads(done.stdout)
