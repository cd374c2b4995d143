"""Logs with plans of nested statements, and the truth about their time."""

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

# Statements that execute others. Functions and triggers of statements with a plan are named with_..., those of statements
# without one without_... .
CALLERS = """
create function without_f() returns bigint language plpgsql as $$ begin return (select count(*) from t where k > 1); end $$;
create function with_f() returns bigint language plpgsql as $$ begin return (select count(*) from t where k > 2); end $$;
create function without_failing() returns bigint language plpgsql as
  $$ begin perform count(*) from t where k > 3; raise exception 'no'; end $$;
create function without_trigger() returns trigger language plpgsql as
  $$ begin perform count(*) from t where k > 4; return new; end $$;
create function with_trigger() returns trigger language plpgsql as
  $$ begin perform count(*) from t where k > 5; return new; end $$;
create table copied (i int);
create trigger before_row before insert on copied for each row execute function without_trigger();
create trigger after_row after insert on copied for each row execute function without_trigger();
create table inserted (i int);
create trigger before_row before insert on inserted for each row execute function with_trigger();
create table deferred (i int);
create constraint trigger late after insert on deferred deferrable initially deferred
  for each row execute function without_trigger();
create table altered (i int);
insert into altered values (1);
create procedure without_procedure() language plpgsql as $$ begin perform count(*) from t where k > 6; end $$;
"""

# It takes long enough to contain the statements before it.
NEXT = "select count(*) from t a, t b where a.i < 100"

# Statements whose plans contain others, and statements without a plan of their own.
WITH_PLAN = (
    "select with_f()",
    "select sum(with_f()) from t where i < 4",
    "insert into inserted values (1)",
    "create table created as select with_f()",
    "begin; declare c cursor for select with_f() from t where i < 4; fetch c; " + NEXT + "; fetch c; close c; commit",
    "prepare p as select with_f(); execute p",
)
WITHOUT_PLAN = (
    "select without_failing()",
    "begin; savepoint s; select without_failing(); rollback to s; " + NEXT + "; commit",
    "copy copied from stdin;\n1\n\\.",
    "alter table altered add column c bigint default without_f()",
    "do $$ begin perform without_f(); end $$",
    "call without_procedure()",
    "begin; insert into deferred values (1); commit",
    "begin; insert into deferred values (1); set constraints all immediate; commit",
    "begin; call without_procedure(); " + NEXT + "; commit",
)

# With the extended protocol, the plan of a query in a transaction is logged when the next one is bound.
EXTENDED = f"""
begin;
select with_f();
call without_procedure();
{NEXT};
select with_f();
insert into deferred values (1);
commit;
{NEXT};
"""

# After each statement, and in some of them.
RUNS_OF_NEXT = sum(1 + statement.count(NEXT) for statement in WITHOUT_PLAN + WITH_PLAN) + EXTENDED.count(NEXT)

# Prefixes of text logs: with everything, and as most servers have them.
FULL_PREFIX = "%m [%p] tag=%i,vxid=%v "
SHORTER = {
    "server.ms.log": (re.compile(r" tag=[^,]*,vxid=\S* "), " "),
    "server.s.log": (re.compile(r"\.\d{3} (\S+ \[\d+\]) tag=[^,]*,vxid=\S* "), r" \1 "),
}

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


def write_callers(folder, installation):
    """Writes the plans of all callers, and of NEXT after each of them. Writes text logs with shorter prefixes, too."""
    settings = logs.SETTINGS | {"auto_explain.log_nested_statements": True, "log_destination": ",".join(logs.FILES)}
    settings |= {"log_min_duration_statement": -1, "log_line_prefix": FULL_PREFIX}
    with Server(installation, settings) as server:
        server.psql(logs.SILENT + FUNCTIONS + CALLERS)
        script = server.data / "script.sql"
        # An empty statement after the data of COPY would end psql's script.
        ends = ((statement, "" if statement.startswith("copy ") else ";") for statement in WITHOUT_PLAN + WITH_PLAN)
        script.write_text("".join(f"{statement}{end}\n{NEXT};\n" for statement, end in ends))
        # Some statements fail.
        server.run("psql", "-X", "-q", "-o", "/dev/null", "-d", "postgres", "-f", server.inside(script))
        script.write_text(EXTENDED)
        server.run("pgbench", "-n", "-M", "extended", "-t", "1", "-f", server.inside(script), "postgres")
        stop(server, folder)
    text = (folder / logs.FILES["stderr"]).read_text()
    for name, (pattern, prefix) in SHORTER.items():
        (folder / name).write_text(pattern.sub(prefix, text))


def stop(server, folder):
    server.stop("fast")
    for file in logs.FILES.values():
        shutil.move(server.data / "log" / file, folder / file)


def truth(log):
    """Returns (plans, nested plans, time of the plans without a caller's plan) in a JSON log of these statements."""
    plans, nested, total = 0, 0, 0
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if plan := PLAN.match(entry["message"]):
            context = entry.get("context", "").splitlines()
            plans += 1
            nested += bool(context)
            # DO has no plan, so only what it executes directly counts.
            is_in_command = len(context) == 2 and "inline_code_block" in context[1]
            total += float(plan[1]) if not context or is_in_command else 0
    return plans, nested, round(total, 3)


def complaints(reports, log):
    """Yields what is wrong in the reports on these logs: {name: report}."""
    expected = truth(log)
    for name, report in reports.items():
        total, rows = report["total"], report["statements"]
        found = total["runs"], total["nested_runs"], round(total["reported_ms"], 3)
        if found != expected:
            yield f"{name}: (plans, nested plans, reported ms) are {found}, but the server logged {expected}"
        both = sum(row["reported_ms"] for row in rows)
        if abs(both - total["reported_ms"] - report["nested_ms"]) > 0.001:
            yield f"{name}: the rows have {both} ms, which is not the sum of {total['reported_ms']} and {report['nested_ms']}"
        own = sum(overhead(row) - row.get("called_overhead_ms", {"estimate": 0})["estimate"] for row in rows)
        if abs(own - overhead(total)) > 1e-6:
            yield f"{name}: the overhead of all plans is {own}, but the sum is {overhead(total)}"
        calls = [row for row in rows if row["statement"].startswith("select outer_f")]
        if any("called_overhead_ms" not in row for row in calls):
            yield f"{name}: the overhead of nested statements is missing in {calls}"


def of_callers(log):
    """Returns (number of plans, time of the plans that no other plan contains) in a JSON log of all callers."""
    plans, total = 0, 0
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        if plan := PLAN.match(entry["message"]):
            context = entry.get("context", "")
            # A function of an SQL statement in a function executes nothing more.
            is_without = re.search(r"function (without_|inline_code_block)", context)
            is_outermost = len(re.findall("function ", context)) == 1
            plans += 1
            total += float(plan[1]) if not context or (is_without and is_outermost) else 0
    return plans, round(total, 3)


def complaints_of_callers(reports, log):
    """Yields which statements have nested plans that they did not execute, or miss theirs."""
    plans, expected = of_callers(log)
    for name, report in reports.items():
        is_full = name not in SHORTER
        total = round(report["total"]["reported_ms"], 3)
        if report["total"]["runs"] != plans or total < expected or (is_full and total != expected):
            yield f"{name}: {report['total']['runs']} plans in {total} ms; the server logged {plans} in {expected} ms"
        uncertain = [note for note in report["notes"] if "not certain" in note]
        if is_full and uncertain:
            yield f"{name}: {uncertain}"
        # Query identifiers can make several rows of it.
        runs = sum(row["runs"] for row in report["statements"] if row["statement"].startswith("select count(*) from t a"))
        if runs != RUNS_OF_NEXT:
            yield f"{name}: {runs} runs of {NEXT}, not {RUNS_OF_NEXT}"
        for row in report["statements"]:
            statement, called = row["statement"], row.get("called_overhead_ms")
            is_caller = any(word in statement for word in ("with_f", "into inserted"))
            # A DO block can execute a statement that executes another one.
            if called and not is_caller and row["nested_runs"] == 0:
                yield f"{name}: {statement} has the overhead of others: {called}"
            if is_full and is_caller and row["nested_runs"] == 0 and not called:
                yield f"{name}: {statement} has no overhead of others"


def overhead(row):
    return row["reported_ms"] - row["corrected_ms"]["estimate"]
