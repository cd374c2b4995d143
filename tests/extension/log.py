"""Tests of pg_fast_timing.log_estimates: one line precedes each plan of auto_explain that has estimates, and no other plan."""

import json
import re

from servers import Server

COLLECTED = {"logging_collector": True, "log_destination": "jsonlog", "log_directory": "log", "log_filename": "server.log"}
SETTINGS = {
    "jit": False,
    "autovacuum": False,
    "max_parallel_workers_per_gather": 0,
    "log_line_prefix": "",
    "auto_explain.log_analyze": True,
    "auto_explain.log_min_duration": -1,
    "pg_fast_timing.method": "auto",
    "pg_fast_timing.log_estimates": True,
}
TABLES = """CREATE TABLE many AS SELECT g AS i FROM generate_series(1, 500000) g; VACUUM ANALYZE many;
CREATE FUNCTION nested() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM many); END';"""
MANY, FEW = "SELECT count(*) FROM many", "SELECT count(*) FROM generate_series(1, 50)"
LOGGED = "SET auto_explain.log_min_duration = 0;"
LINE = re.compile(r"^LOG:  pg_fast_timing: in the next plan, times of (\d+) of \d+ plan nodes are estimates; largest error of a node \+-\d+\.\d{3} ms in all loops$")

# The settings and statements of a session, and the estimated nodes of each plan that it logs.
SESSIONS = {
    "estimates": (f"{LOGGED} {MANY}", [1]),
    "exact times": (f"{LOGGED} {FEW}", [0]),
    "exact times after estimates": (f"{LOGGED} {MANY}; {FEW}; {MANY}", [1, 0, 1]),
    "a nested statement with estimates": (f"SET auto_explain.log_nested_statements = on; {LOGGED} SELECT nested()", [1, 0]),
    "no times after estimates": (f"{LOGGED} {MANY}; SET auto_explain.log_timing = off; {MANY}", [1, 0]),
    "no execution times after estimates": (f"{LOGGED} {MANY}; SET auto_explain.log_analyze = off; {MANY}", [1, 0]),
    "the server's times": (f"SET pg_fast_timing.method = off; {LOGGED} {MANY}", [0]),
    "the setting is off": (f"SET pg_fast_timing.log_estimates = off; {LOGGED} {MANY}", [0]),
    "JSON": (f"SET auto_explain.log_format = json; {LOGGED} {MANY}", [1]),
    "XML": (f"SET auto_explain.log_format = xml; {LOGGED} {MANY}", [1]),
    "YAML": (f"SET auto_explain.log_format = yaml; {LOGGED} {MANY}", [1]),
    "EXPLAIN EXECUTE": (f"PREPARE p AS {MANY}; {LOGGED} EXPLAIN (ANALYZE) EXECUTE p", [1]),
    "other messages": (f"SET log_min_duration_statement = 0; {LOGGED} {MANY}; RESET log_min_duration_statement", [1]),
}


def estimates(log):
    """Returns the estimated nodes of each plan in a log: 0 without the line. Other lines about estimates are wrong."""
    found, nodes = [], 0
    for line in log.splitlines():
        if re.match(r"LOG:  duration: \S+ ms  plan:$", line):
            found.append(nodes)
        if "pg_fast_timing: " in line and not LINE.match(line):
            found.append(line)
        match = LINE.match(line)
        nodes = int(match[1]) if match else 0
    return found


def in_text(installation):
    for libraries in ("pg_fast_timing,auto_explain", "auto_explain,pg_fast_timing"):
        with Server(installation, SETTINGS | {"session_preload_libraries": libraries}) as server:
            server.psql(TABLES)
            for name, (script, expected) in SESSIONS.items():
                before = len(server.log.read_text())
                server.psql(script)
                log = server.log.read_text()[before:]
                if estimates(log) != expected:
                    yield f"{libraries}: {name}: {estimates(log)}, not {expected}: {log}"


def in_json(installation):
    """In other formats of the log, it is an entry of the same process, without the statement."""
    with Server(installation, SETTINGS | COLLECTED | {"session_preload_libraries": "pg_fast_timing,auto_explain"}) as server:
        server.psql(TABLES)
        server.psql(f"{LOGGED} {MANY}")
        server.stop("fast")
        entries = [json.loads(line) for line in (server.data / "log/server.json").read_text().splitlines()]
        at = next(n for n, entry in enumerate(entries) if "plan:\n" in entry["message"])
        line, plan = entries[at - 1], entries[at]
        if not LINE.match(f"LOG:  {line['message']}") or line["pid"] != plan["pid"] or {"statement", "context", "detail"} & {*line, *plan}:
            yield f"jsonlog: {line}, {plan}"


def check(installation):
    """Yields complaints."""
    yield from in_text(installation)
    yield from in_json(installation)
