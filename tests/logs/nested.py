"""Logs with plans of nested statements, and their time."""

import json
import re
import shutil

import logs
from servers import Server

# Two levels: a function in PL/pgSQL calls one in SQL. A volatile function is not inlined.
FUNCTIONS = """
create table t as select i, i % 10 as k from generate_series(1, 5000) i;
create function inner_f(p int) returns bigint language sql volatile as
  'select count(*) from t where k >= p; select sum(i) from t where k = p';
create function outer_f(p int) returns bigint language plpgsql as $$
declare
  total bigint := 0;
  row record;
begin
  for row in select i from t where i <= 3 loop
    total := total + (select inner_f(row.i));
  end loop;
  perform count(*) from t where k > p;
  return total;
end $$;
"""

# The clients run this at the same time, so their plans are mixed in the log.
SCRIPT = """
select outer_f(1);
select count(*), sum(outer_f(i)) from t where i <= 2;
select count(*) from t;
do $$ begin perform outer_f(1); end $$;
"""
CLIENTS = 2
TRANSACTIONS = 20

PLAN = re.compile(r"duration: ([0-9.]+) ms  plan:")


def write(folder, installation):
    """Writes the same plans into a log of each format."""
    settings = logs.SETTINGS | {"auto_explain.log_nested_statements": True, "log_destination": ",".join(logs.FILES)}
    with Server(installation, settings | {"log_min_duration_statement": -1}) as server:
        server.psql(logs.SILENT + FUNCTIONS)
        script = server.data / "script.sql"
        script.write_text(SCRIPT)
        options = ("-n", "-c", str(CLIENTS), "-t", str(TRANSACTIONS), "-f", server.inside(script))
        server.run("pgbench", *options, "postgres")
        stop(server, folder)


def stop(server, folder):
    server.stop("fast")
    for file in logs.FILES.values():
        shutil.move(server.data / "log" / file, folder / file)


def truth(log):
    """Returns (plans, nested plans, their times) in a JSON log of these statements."""
    plans, nested, total, nested_ms = 0, 0, 0, 0
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if plan := PLAN.match(entry["message"]):
            is_nested = "context" in entry
            plans, nested = plans + (not is_nested), nested + is_nested
            total, nested_ms = total + float(plan[1]) * (not is_nested), nested_ms + float(plan[1]) * is_nested
    return plans, nested, round(total, 3), round(nested_ms, 3)


def complaints(reports, log):
    """Yields what is wrong in the reports on these logs: {name: report}."""
    expected = truth(log)
    for name, report in reports.items():
        total, rows = report["total"], report["statements"]
        found = total["runs"], total["nested_runs"], round(total["reported_ms"], 3), round(report["nested_ms"], 3)
        if found != expected:
            yield f"{name}: (plans, nested plans, ms, nested ms) are {found}, but the server logged {expected}"
        both = sum(row["reported_ms"] for row in rows)
        if abs(both - total["reported_ms"] - report["nested_ms"]) > 0.001:
            yield f"{name}: the rows have {both} ms, which is not the sum of {total['reported_ms']} and {report['nested_ms']}"
