"""Measures the profile: what it costs, and how exact its sums are.

The sums are compared with those of the method tsc, which times every call, in another database of the same server. Sessions of
both run in turn, because the machine changes its speed.
"""

import re
import subprocess
from statistics import median

import tpch

PRELOADED = {"shared_preload_libraries": "pg_fast_timing", "compute_query_id": "on", "max_connections": 170}
KINDS = {"off": "-c pg_fast_timing.profile=off", "on": "-c pg_fast_timing.profile=on"}
TINY = """CREATE FUNCTION tiny() RETURNS bigint LANGUAGE plpgsql AS $$DECLARE s bigint := 0; x int;
BEGIN FOR n IN 1 .. 100000 LOOP SELECT k INTO x FROM tiny_rows WHERE i = n % 1000; s := s + x; END LOOP; RETURN s; END$$;
CREATE TABLE tiny_rows AS SELECT g AS i, g % 7 AS k FROM generate_series(0, 999) g; CREATE INDEX ON tiny_rows (i); VACUUM ANALYZE tiny_rows;"""
# Executions of each statement, with each method.
EXECUTIONS = 1000
AT_A_TIME = 50
EXACT_SCALE = 0.01


def seconds(server, kind, script):
    """Returns the seconds of a script's statements, measured by psql."""
    out = subprocess.run(
        server.installation.command("psql", "-X", "-q", "-o", "/dev/null"), input=f"\\timing on\n{script}",
        env=server.env_inside | {"PGOPTIONS": f"{KINDS[kind]} -c max_parallel_workers_per_gather=0"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return sum(float(ms) for ms in re.findall(r"Time: ([\d.]+) ms", out)) / 1000


def workloads(server, pgbench):
    """Returns {name: function of the kind that returns a rate}. pgbench is the function of the benchmark."""
    queries = ";\n".join(tpch.queries()) + ";\n"
    found = {}
    for name, words in (("pgbench -S", ("-S",)), ("TPC-B", ("-N",))):
        for clients in ("8", "150"):
            found[f"{name}, {clients} clients"] = lambda kind, words=words, clients=clients: pgbench(
                server, KINDS[kind], *words, "-M", "prepared", "-c", clients, "-j", "2", "-T", "4"
            )
    found["TPC-H"] = lambda kind: 1 / seconds(server, kind, queries)
    found["100 000 tiny statements"] = lambda kind: 1 / seconds(server, kind, "SELECT tiny();")
    return found


def cost(server, scale, rounds, pgbench, relative):
    """Yields lines about the throughput with the profile, relative to that without it in the same round."""
    server.run("pgbench", "-i", "-q", "-s", "10", "postgres")
    server.psql(TINY)
    tpch.load(server, scale)
    for name, rate in workloads(server, pgbench).items():
        rates = {kind: [] for kind in KINDS}
        for nth in range(rounds):
            for kind in sorted(KINDS, reverse=nth % 2 == 0):
                rates[kind].append(rate(kind))
        yield f"{name:<24} {relative(rates['on'], rates['off'])}"


def sums(server, database):
    """Returns {(plan, node): (self ms, error, total of the plan's nodes)}."""
    query = """SELECT planid, node, sum(self_ms), sum(self_error_ms), sum(sum(self_ms)) OVER (PARTITION BY planid)
        FROM pg_stat_plan_nodes JOIN pg_database d ON d.oid = dbid WHERE datname = '{}' AND planid IN
        (SELECT planid FROM pg_stat_plan_nodes JOIN pg_database d ON d.oid = dbid WHERE datname = '{}' AND node = 0 AND executions >= {})
        GROUP BY planid, node"""
    lines = server.psql(query.format(database, "exact", EXECUTIONS)).splitlines()
    return {tuple(line.split("|")[:2]): tuple(map(float, line.split("|")[2:])) for line in lines}


def accuracy(server):
    """Yields lines about the errors of the sums, as shares of the statement's time. The error of the method tsc is that of its clock reads."""
    tpch.load(server, EXACT_SCALE)
    server.psql("CREATE EXTENSION pg_fast_timing; SELECT pg_fast_timing_profile_reset()")
    server.psql("CREATE DATABASE exact TEMPLATE postgres", "-d", "template1")
    every = "SET pg_fast_timing.profile = on; SET pg_fast_timing.profile_sample_rate = {}; SET max_parallel_workers_per_gather = 0; SET pg_fast_timing.method = {};\n"
    # Shorter statements than these have no time to speak of, and longer ones take too long a thousand times.
    for query in tpch.queries():
        for _ in range(EXECUTIONS // AT_A_TIME):
            for database, rate, method in (("postgres", -1, "auto"), ("exact", 1, "tsc")):
                server.psql(every.format(rate, method) + f"{query} \\g /dev/null\n" * AT_A_TIME, "-d", database)
    ours, exact = sums(server, "postgres"), sums(server, "exact")
    errors = []
    for key, (self_ms, error_ms, plan_ms) in ours.items():
        if key in exact:
            true_ms, true_error_ms, true_plan_ms = exact[key]
            errors.append((abs(self_ms / plan_ms - true_ms / true_plan_ms), error_ms / plan_ms, true_error_ms / true_plan_ms))
    within = sum(error <= stated for error, stated, _ in errors)
    within_both = sum(error <= stated + of_truth for error, stated, of_truth in errors)
    middle = [median(column) for column in zip(*errors)]
    yield (
        f"{len(errors)} nodes, {EXECUTIONS} executions: {within / len(errors):.1%} within the stated error, {within_both / len(errors):.1%} within the sum of this error and that of tsc "
        f"(median {middle[1]:.2%} and {middle[2]:.2%} of the statement); error {middle[0]:.2%} at the median, {sorted(error for error, *_ in errors)[len(errors) * 19 // 20]:.2%} at the 95th percentile"
    )
