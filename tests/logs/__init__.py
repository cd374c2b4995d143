"""Real logs: pgbench and TPC-H under auto_explain, in every format of log and plan."""

import shutil

import tpch
from servers import Server

# The destinations of a server's log, and the names of their files.
FILES = {"stderr": "server.log", "csvlog": "server.csv", "jsonlog": "server.json"}

PLAN_FORMATS = ("text", "json", "yaml", "xml")

SETTINGS = {
    "shared_preload_libraries": "auto_explain,pg_stat_statements",
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": True,
    "auto_explain.log_buffers": True,
    "pg_stat_statements.track_utility": False,
    "compute_query_id": "on",
    "logging_collector": True,
    "log_directory": "log",
    "log_filename": FILES["stderr"],
    "log_rotation_age": 0,
    "log_rotation_size": 0,
    # As pgBadger wants it.
    "log_line_prefix": "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    # Other entries between the plans.
    "log_connections": True,
    "log_disconnections": True,
    "log_min_duration_statement": 50,
}

# pgbench's runs: -S reads one row by its key, and the default changes four tables.
PGBENCH = (("-S", "-M", "simple"), ("-S", "-M", "prepared"), ("-M", "extended"))
CLIENTS = 2
# Transactions of each client in one run, per MB of log.
TRANSACTIONS_PER_MB = 20

# A session whose statements are neither logged nor counted.
SILENT = "set auto_explain.log_min_duration = -1; set pg_stat_statements.track = none; "


def write(folder, installation, megabytes, destinations=tuple(FILES), formats=PLAN_FORMATS, scale=None):
    """Runs pgbench, and TPC-H at a scale, until the log in the first destination has `megabytes` MB, with equal parts in each
    format. Moves the logs into a folder. Returns the number of plans that the server logged, as pg_stat_statements counts
    them."""
    with Server(installation, SETTINGS | {"log_destination": ",".join(destinations)}) as server:
        server.psql("alter database postgres set auto_explain.log_min_duration = -1")
        server.run("pgbench", "-i", "-q", "-s", "1")
        if scale:
            tpch.load(server, scale)
        server.psql("alter database postgres reset auto_explain.log_min_duration; create extension pg_stat_statements")
        server.psql(SILENT + "select pg_stat_statements_reset()")
        log = server.data / "log" / FILES[destinations[0]]
        transactions = str(max(megabytes * TRANSACTIONS_PER_MB, 1))
        for plan_format in formats:
            database = f"dbname=postgres options='-c auto_explain.log_format={plan_format}'"
            size = log.stat().st_size + megabytes * 1_000_000 / len(formats)
            if scale:
                queries = ";\n".join(tpch.queries()) + ";\n"
                server.run("psql", "-X", "-q", "-o", "/dev/null", "-d", database, "-f", "-", input=queries)
            while log.stat().st_size < size:
                for options in PGBENCH:
                    server.run("pgbench", "-n", "-c", str(CLIENTS), *options, "-t", transactions, database)
        plans = int(server.psql(SILENT + "select sum(calls) from pg_stat_statements"))
        server.stop("fast")
        for destination in destinations:
            shutil.move(server.data / "log" / FILES[destination], folder / FILES[destination])
    return plans
