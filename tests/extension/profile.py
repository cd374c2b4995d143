"""Tests of the profile: exact counts, stable identities of plans, full memory, restarts, damaged files, and who may see what."""

import os
import re
import signal
import subprocess

from extension import force_parallel
from extension.says import refused
from extension.ticker import stopped, worker
from outcome import until
from servers import Failed, Server

SETTINGS = {
    "shared_preload_libraries": "pg_fast_timing", "pg_fast_timing.profile": True, "pg_fast_timing.profile_sample_rate": 1, "jit": False, "autovacuum": False,
    "max_parallel_workers_per_gather": 0, "statement_timeout": "60s",
}  # fmt: skip
TABLES = """CREATE TABLE t AS SELECT g AS i, g % 100 AS k FROM generate_series(1, 20000) g; CREATE INDEX t_i ON t (i);
CREATE TABLE u AS SELECT g AS k FROM generate_series(1, 50) g; VACUUM ANALYZE t, u;"""
CREATE = "CREATE EXTENSION pg_fast_timing;" + TABLES
JOIN = "SELECT count(*) FROM t JOIN u USING (k) WHERE i > {}"


def rows(server, query, **options):
    return [line.split("|") for line in server.psql(query, **options).splitlines()]


def nodes(server, relation):
    """Returns the rows of the plan with this relation: [[node, kind, relation, executions, loops, rows, calls], ...]."""
    return rows(
        server,
        f"""SELECT node, kind, relation, executions, loops, rows, calls FROM pg_stat_plan_nodes n WHERE (queryid, planid) IN
        (SELECT queryid, planid FROM pg_stat_plan_nodes WHERE relation = '{relation}') ORDER BY queryid, planid, node""",
    )


def reset(server):
    server.psql("SELECT pg_fast_timing_profile_reset()")


# Runs of a statement, until the profile knows its waits.
MOST_RUNS = 5
OF_T, OF_U = (f"FROM pg_stat_plan_nodes WHERE queryid IN (SELECT queryid FROM pg_stat_plan_nodes WHERE relation = '{name}')" for name in "tu")


def waits(server, run, query):
    """Resets the profile, runs a function, and returns the rows of a query. A busy machine can stop the worker for a moment: then waits are unknown, and it runs again."""
    for _ in range(MOST_RUNS):
        reset(server)
        run()
        found = rows(server, query)
        if found and not any("" in row for row in found):
            return found
    raise Failed(f"unknown waits in {MOST_RUNS} runs: {found}")


def counts(server):
    """Executions, loops, rows and calls are exact, in one session or several, and a statement that fails adds nothing."""
    reset(server)
    for _ in range(3):
        server.psql("\n".join(f"{JOIN.format(n)};" for n in (5, 6, 7)))
    # Two sessions see each other's executions. A call for each row, and one for the end.
    wanted = [
        ["0", "Aggregate", "", "9", "9", "9", "18"],
        ["1", "Hash Join", "", "9", "9", "89946", "89955"],
        ["2", "Seq Scan", "t", "9", "9", "179946", "179955"],
        ["3", "Hash", "", "9", "9", "450", "9"],
        ["4", "Seq Scan", "u", "9", "9", "450", "459"],
    ]
    if (found := nodes(server, "u")) != wanted:
        yield f"counts: {found}, not {wanted}"
    reset(server)
    server.psql("SELECT sum(1 / (k - 5)) FROM u", options=("-X", "-A", "-t", "-q"))
    if found := nodes(server, "u"):
        yield f"a statement that failed was added: {found}"


def times(server):
    """Self times add up to the total, and self time is CPU and waits."""
    for queryid, total, own, parts, plan, other in waits(
        server,
        lambda: server.psql(f"{JOIN.format(5)}; SELECT count(*) FROM t WHERE CASE WHEN i % 1000 = 0 THEN pg_sleep(0.02) IS NOT NULL ELSE true END"),
        f"""SELECT queryid, sum(total_ms) FILTER (WHERE node = 0), sum(self_ms), sum(cpu_ms + wait_io_ms + wait_lock_ms + wait_client_ms + wait_other_ms),
        sum(plan_ms), sum(wait_other_ms) FILTER (WHERE kind = 'Seq Scan') {OF_T} GROUP BY queryid ORDER BY sum(total_ms)""",
    ):
        total, own, parts, plan, other = map(float, (total, own, parts, plan, other))
        if not (abs(total - own) < 0.001 and abs(own - parts) < 0.001 and total <= plan):
            yield f"{queryid}: total {total} ms, of nodes {own} ms, of parts {parts} ms, of the statement {plan} ms"
    if not 380 < other <= own:
        yield f"a scan that slept 400 ms waited {other} ms"


def plans(server):
    return rows(server, "SELECT DISTINCT queryid, planid FROM pg_stat_plan_nodes WHERE (queryid, planid) IN (SELECT queryid, planid FROM pg_stat_plan_nodes WHERE relation = 't')")


def identities(server):
    """The identity of a plan stays the same with other constants, after a restart, and after dump and restore. A new plan has a new one."""
    reset(server)
    search = "SET enable_bitmapscan = off; SELECT count(*) FROM t WHERE i = {}"
    server.psql(search.format(3))
    first = plans(server)
    server.psql(search.format(4))
    server.restart()
    server.psql(search.format(5))
    if plans(server) != first or len(first) != 1:
        yield f"the plan had several identities: {plans(server)}"
    server.psql("DROP INDEX t_i")
    server.psql(search.format(5))
    after = plans(server)
    if len(after) != 2 or {queryid for queryid, _ in after} != {first[0][0]}:
        yield f"another plan of the same statement was expected: {first}, {after}"
    guilty = rows(server, f"SELECT largest FROM pg_stat_plans_timed WHERE queryid = {first[0][0]} AND planid <> {first[0][1]}")
    if guilty != [["Seq Scan on t"]]:
        yield f"the scan without index should be the largest node: {guilty}"
    server.psql(f"DROP TABLE t, u; {TABLES}")
    reset(server)
    server.psql(search.format(3))
    if [planid for _, planid in plans(server)] != [first[0][1]]:
        yield f"new tables with the same names: {plans(server)}, not {first}"


def others(server):
    """Parallel workers, nested statements, cursors, pruned partitions."""
    reset(server)
    every = f"SET max_parallel_workers_per_gather = 2; {force_parallel(server)} SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off;"
    server.psql(f"{every} SELECT count(*) FROM t;")
    scan = [row for row in nodes(server, "t") if row[1] == "Parallel Seq Scan"]
    if not scan or scan[0][3] != "1" or scan[0][5] != "20000":
        yield f"parallel workers: {nodes(server, 't')}"
    reset(server)
    server.psql("DO $$BEGIN FOR n IN 1 .. 7 LOOP PERFORM count(*) FROM u; END LOOP; END$$; BEGIN; DECLARE c CURSOR FOR SELECT k FROM u; FETCH 10 FROM c; FETCH 10 FROM c; COMMIT;")
    found = {(executions, rows) for _, kind, relation, executions, _, rows, _ in nodes(server, "u") if relation == "u"}
    # Before 18, the server computes no queryid for DECLARE CURSOR.
    if found != ({("7", "350"), ("1", "20")} if server.installation.major >= 18 else {("7", "350")}):
        yield f"nested statements and a cursor: {nodes(server, 'u')}"
    reset(server)
    server.psql(
        """CREATE TABLE p (i int) PARTITION BY RANGE (i); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
        INSERT INTO p SELECT generate_series(0, 19); SET plan_cache_mode = force_generic_plan; PREPARE s AS SELECT count(*) FROM p WHERE i = $1;
        EXECUTE s(3); EXECUTE s(13); EXECUTE s(3); DROP TABLE p"""
    )
    found = {relation: executions for _, _, relation, executions, *_ in rows(server, "SELECT node, kind, relation, executions FROM pg_stat_plan_nodes WHERE relation LIKE 'p_'")}
    if found != {"p1": "2", "p2": "1"} or len(plans_of(server, "p1") | plans_of(server, "p2")) != 1:
        yield f"partitions that are chosen at the start: {found}"


def plans_of(server, relation):
    return {tuple(row) for row in rows(server, f"SELECT queryid, planid FROM pg_stat_plan_nodes WHERE relation = '{relation}'")}


def changed_partitions(server):
    """A plan that changes below partitions which are chosen at the start has a new identity."""
    reset(server)
    server.psql(
        """CREATE TABLE p (i int) PARTITION BY RANGE (i); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
        CREATE INDEX p_i ON p (i); SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; PREPARE s AS SELECT count(*) FROM p WHERE i = $1;
        EXECUTE s(3); EXECUTE s(13); DROP INDEX p_i; EXECUTE s(3); EXECUTE s(13); DROP TABLE p"""
    )
    if len({planid for _, planid in plans_of(server, "p1") | plans_of(server, "p2")}) != 2:
        yield f"plans before and after an index was dropped: {plans_of(server, 'p1')}, {plans_of(server, 'p2')}"


def short_waits(server):
    """Waits that are shorter than the time between ticks have the right sum."""
    sleeps = "DO $$BEGIN FOR n IN 1 .. 1500 LOOP PERFORM pg_sleep(0.0002) FROM u WHERE k = 5; END LOOP; END$$"
    [[self_ms, other]] = waits(server, lambda: server.psql(sleeps), f"SELECT sum(self_ms), sum(wait_other_ms) {OF_U}")
    if not 0.9 * float(self_ms) < float(other) <= float(self_ms):
        yield f"1500 short sleeps took {self_ms} ms, of which {other} ms are waits"


def waits_of_others(server):
    """A statement does not get the waits of statements that are timed, but not profiled: of one before it, or of the one that calls it."""
    sleeps = "SELECT count({}) FROM t WHERE CASE WHEN i % 4000 = 0 THEN pg_sleep(0.02) IS NOT NULL ELSE true END"
    after = f"""FOR n IN 1 .. 5 LOOP SET pg_fast_timing.profile = off; PERFORM * FROM ({sleeps.format("*")}) s;
        SET pg_fast_timing.profile = on; PERFORM count(*) FROM t JOIN u USING (k); END LOOP"""
    # A function that profiles only its own statement.
    within = f"PERFORM * FROM ({sleeps.format('own(i)')}) s"
    own = """CREATE OR REPLACE FUNCTION own(i int) RETURNS int LANGUAGE plpgsql SET pg_fast_timing.profile = on AS
        $$BEGIN IF i % 200 = 0 THEN PERFORM count(*) FROM t JOIN u USING (k); END IF; RETURN i; END$$; SET pg_fast_timing.profile = off;"""
    logged = "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_nested_statements = on;"
    for name, before, statement in (("after", "", after), ("within", own, within)):
        script = f"{logged} {before} DO $$BEGIN {statement}; END$$"
        [[self_ms, other]] = waits(server, lambda: server.psql(script), f"SELECT sum(self_ms), sum(wait_other_ms) {OF_U}")
        if not float(other) < 0.05 * float(self_ms):
            yield f"a statement {name} one that sleeps: {other} of {self_ms} ms are waits"
    server.psql("DROP FUNCTION own")


def stopped_worker(server):
    """While the worker is stopped, waits are unknown, and are not time on the CPU."""
    reset(server)
    with stopped(worker(server)):
        server.psql("SELECT pg_sleep(0.5) FROM u LIMIT 1")
    parts = "cpu_ms, wait_io_ms, wait_lock_ms, wait_client_ms, wait_other_ms, plan_client_ms"
    [[self_ms, known]] = rows(server, f"SELECT sum(self_ms), sum(num_nonnulls({parts})) FILTER (WHERE node = 0) {OF_U}")
    if float(self_ms) < 450 or known != "0":
        yield f"with a stopped worker: {self_ms} ms, {known} of its parts are known"


def uncounted(server):
    """The calls of a statement that only the profile times are not counted."""
    calls = "SELECT node_calls FROM pg_stat_fast_timing"
    before = int(server.psql(calls))
    server.psql("SELECT count(*) FROM t")
    if (after := int(server.psql(calls))) != before:
        yield f"a profiled statement was counted: {after - before} calls"


def other_encodings(server):
    """Names of another database, and names that are cut, are valid text."""
    reset(server)
    server.psql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0", "-d", "template1")
    server.psql('SET client_encoding = utf8; CREATE TABLE "stra\u00dfe" (i int); SELECT count(*) FROM "stra\u00dfe"', "-d", "latin")
    server.psql(f'WITH "{"x" * 26}\u00e9\u00e9\u00e9" AS MATERIALIZED (SELECT k FROM u) SELECT count(*) FROM "{"x" * 26}\u00e9\u00e9\u00e9"')
    found = server.psql("SET client_encoding = latin1; SELECT count(relation), count(subplan) FROM pg_stat_plan_nodes WHERE relation = '?' OR subplan LIKE '%x'").strip()
    if found != "2|1":
        yield f"names in other encodings: {found}"


def hostile_names(server):
    """Functions in the extension's schema do not get the rights of who reads the views."""
    server.psql("CREATE ROLE eve; CREATE SCHEMA open; GRANT ALL ON SCHEMA open TO eve")
    planted = "".join(
        f"CREATE FUNCTION open.{name} RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'planted'; END$$;"
        for name in ("concat(text, text, text)", "format(text, text)", "format(text, text, numeric)", "repeat(text, int)", "anyconcat(int[], int)")
    )
    server.psql(f"SET ROLE eve; {planted} CREATE OPERATOR open.|| (LEFTARG = int[], RIGHTARG = int, FUNCTION = open.anyconcat)")
    server.psql("DROP EXTENSION pg_fast_timing; CREATE EXTENSION pg_fast_timing SCHEMA open; SELECT * FROM open.pg_stat_plans_timed \\g /dev/null\nSELECT open.pg_fast_timing_plan(queryid, planid) FROM open.pg_stat_plans_timed \\g /dev/null")
    server.psql("DROP EXTENSION pg_fast_timing; DROP SCHEMA open CASCADE; CREATE EXTENSION pg_fast_timing")
    return []


def privileges(server):
    """A role sees its own statements, and a member of pg_monitor sees all."""
    reset(server)
    server.psql("CREATE ROLE joe; CREATE ROLE ann; GRANT pg_monitor TO ann; GRANT SELECT ON t, u TO joe;")
    server.psql("SET ROLE joe; SELECT count(*) FROM u WHERE k = 1")
    server.psql("SELECT count(*) FROM u")
    seen = {role: len(plans_of_role(server, role)) for role in ("joe", "ann")}
    if seen != {"joe": 1, "ann": 2}:
        yield f"plans that roles see: {seen}"
    yield from refused(server, "SET ROLE joe; SELECT pg_fast_timing_profile_reset()", "permission denied")
    yield from refused(server, "SET ROLE joe; SET pg_fast_timing.profile = off", "permission denied")


def plans_of_role(server, role):
    return rows(server, f"SET pg_fast_timing.profile = off; SET ROLE {role}; SELECT DISTINCT queryid, planid FROM pg_stat_plan_nodes WHERE relation = 'u'")


def printed(server):
    """The function prints a plan like EXPLAIN, with subplans and sums over all executions."""
    reset(server)
    statement = "WITH c AS MATERIALIZED (SELECT k FROM u) SELECT (SELECT count(*) FROM u x WHERE x.k = t.k) FROM t JOIN c USING (k) WHERE i < 100"
    server.psql(f"{statement};{statement};")
    plan = "\n".join(line for line, in rows(server, "SELECT pg_fast_timing_plan(queryid, planid) FROM pg_stat_plan_nodes WHERE relation = 't' AND index = 't_i'"))
    for pattern in (
        r"^Hash Join \(actual time=[\d.]+\.\.[\d.]+ rows=50\.00 loops=2\)\n  Planned Rows: ",
        r"^  ->  .*Scan using t_i on t \(actual time=.* rows=99\.00 loops=2\)$",
        r"^ +CTE c\n +->  Seq Scan on u \(actual time=.* rows=50\.00 loops=2\)$",
        r"^  SubPlan .*\n    ->  Aggregate \(actual time=.* rows=1\.00 loops=100\)$",
        r"^Executions: 2\nExecution Time: [\d.]+ ms\nFast Timing: sums over all executions$",
    ):
        if not re.search(pattern, plan, re.M):
            yield f"{pattern} not found in\n{plan}"


def to_slow_client(server):
    """Rows that a client reads slowly are time of the statement, and of no node."""
    command = server.installation.command("psql", "-X", "-A", "-t", "-q", "-c", "COPY (SELECT repeat(md5(i::text), 20) FROM t) TO STDOUT")

    def read_slowly():
        client = subprocess.Popen(command, env=server.env_inside, stdout=subprocess.PIPE)
        until(lambda: server.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'").strip() == "1", "the server waits for a client")
        server.psql("SELECT pg_sleep(0.5)")
        client.communicate()

    [[waited, nodes_waited]] = waits(server, read_slowly, f"SELECT sum(plan_client_ms), sum(wait_client_ms) {OF_T}")
    if float(waited) < 400 or float(nodes_waited) > 2:
        yield f"a statement waited {waited} ms for its client, and its nodes {nodes_waited} ms"


def info(server):
    return dict(zip(("state", "nodes", "max", "removed", "too_large", "untimed"), rows(server, "SELECT state, nodes, max_nodes, removed_plans, too_large, untimed FROM pg_fast_timing_profile_info()")[0], strict=True))


def checkpointer(server):
    """Returns the process of the checkpointer, or None while the server restarts."""
    try:
        return server.psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'").strip()
    except Failed:
        return None


def crash(server):
    """Kills a process, so that the server restarts itself."""
    before = checkpointer(server)
    os.kill(int(before), signal.SIGKILL)
    until(lambda: checkpointer(server) not in (None, "", before), "the server has restarted itself")


def restarts(server):
    """A clean restart keeps the profile. A crash, or a damaged file, leaves an empty one, with a message."""
    reset(server)
    server.psql("SELECT count(*) FROM u")
    before = nodes(server, "u")
    server.restart()
    if nodes(server, "u") != before:
        yield f"after a restart: {nodes(server, 'u')}, not {before}"
    server.stop("fast")
    file = server.data / "pg_stat" / "pg_fast_timing.profile"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    server.start()
    if nodes(server, "u") or "pg_fast_timing.profile\", because it is damaged" not in server.log.read_text():
        yield f"a damaged file was read: {nodes(server, 'u')}"
    server.psql("SELECT count(*) FROM u")
    crash(server)
    if nodes(server, "u"):
        yield f"after a crash: {nodes(server, 'u')}"


def without_queryid(server):
    """Statements without identifier are not profiled. The log says it once."""
    reset(server)
    for _ in range(3):
        server.psql("SET compute_query_id = off; SELECT count(*) FROM u")
    found = server.psql("SET compute_query_id = off; SELECT state, without_queryid FROM pg_fast_timing_profile_info()").strip()
    said = server.log.read_text().count("pg_fast_timing.profile ignores statements without a query identifier")
    if nodes(server, "u") or found != "on, but compute_query_id is off|4" or said != 1:
        yield f"without query identifiers: {nodes(server, 'u')}, {found}, {said} messages"


def shares(server):
    """A random share of the statements is profiled."""
    reset(server)
    server.psql("SET pg_fast_timing.profile_sample_rate = 0.2; DO $$BEGIN FOR n IN 1 .. 1000 LOOP PERFORM count(*) FROM u WHERE k = n; END LOOP; END$$")
    [[executions]] = rows(server, "SELECT sum(executions) FROM pg_stat_plan_nodes WHERE relation = 'u'")
    if not 120 < int(executions) < 280:
        yield f"{executions} of 1000 statements were profiled, not about 200"


def samples(server):
    """Of a short statement, each profiled execution stands for a block of them. A long one is profiled each time."""
    reset(server)
    # The executions return 0 to 49 rows.
    short = "DO $$BEGIN FOR n IN 1 .. 20000 LOOP PERFORM k FROM u WHERE k <= n % 50; END LOOP; END$$;"
    server.psql(f"SET pg_fast_timing.profile_sample_rate = -1; {short}" + "SELECT k FROM t WHERE pg_sleep(0.002) IS NOT NULL LIMIT 1;" * 5)
    found = {
        relation: [*map(float, others)]
        for relation, *others in rows(
            server,
            "SELECT relation, executions, profiled, loops, rows, self_error_ms, (SELECT max(executions) FROM pg_stat_plans_timed p WHERE p.planid = n.planid) "
            "FROM pg_stat_plan_nodes n WHERE kind = 'Seq Scan'",
        )
    }
    executions, profiled, loops, returned, error, of_plan = found["u"]
    # The last block may be unfinished. The number of rows has a standard deviation of 14, and there are at least 200 blocks.
    if not (abs(executions - 20000) <= 100 and 200 <= profiled <= 10000 and loops == executions == of_plan and 20 < returned / executions < 29 and error > 0):
        yield f"short statements: {found['u']}"
    if found["t"][:2] != [5, 5]:
        yield f"long statements: {found['t']}"


def many_sessions(server):
    """No execution is lost while sessions add to the same nodes."""
    reset(server)
    script = server.folder / "one.sql"
    script.write_text("SELECT count(*) FROM u WHERE k = 1;\n")
    said = server.run("pgbench", "-n", "-c", "8", "-t", "500", "-f", server.inside(script), "postgres")
    [[executions]] = rows(server, "SELECT sum(executions) FROM pg_stat_plan_nodes WHERE relation = 'u'")
    if executions != "4000":
        yield f"{executions} of 4000 executions: {said}"


def full_memory(installation):
    """The memory is fixed. Whole plans are removed, and counted; a plan that is too large is counted."""
    with Server(installation, SETTINGS | {"pg_fast_timing.profile_max_nodes": 100}) as server:
        server.psql(CREATE)
        # Each statement has another plan: limits within limits. One statement is used often, and stays.
        limits = []
        for depth in range(1, 60):
            limits.append("SELECT k FROM (" * depth + "SELECT k FROM u" + "".join(f" LIMIT 40) x{n}" for n in range(depth)))
        often = "SELECT count(*) FROM u JOIN t USING (k);"
        server.psql("\n".join(often + statement + ";" for statement in limits) + often)
        server.psql("SELECT k FROM (" * 120 + "SELECT k FROM u" + "".join(f" LIMIT 40) x{n}" for n in range(120)))
        found = info(server)
        if int(found["nodes"]) > 100 or int(found["removed"]) < 10 or found["too_large"] != "1":
            yield f"full memory: {found}"
        cut = rows(server, "SELECT queryid, planid FROM pg_stat_plan_nodes GROUP BY 1, 2 HAVING min(node) > 0 OR NOT array_agg(node) @> array_remove(array_agg(parent), NULL)")
        if cut:
            yield f"plans without some of their nodes: {cut}"
        if not nodes(server, "t"):
            yield "the plan that is used most was removed"
    yield from used_once(installation)


def used_once(installation):
    """Of plans that are used once, a small part is removed. A smaller memory does not take a part of the nodes."""
    with Server(installation, SETTINGS | {"pg_fast_timing.profile_max_nodes": 1000}) as server:
        server.psql(CREATE)
        server.psql("\n".join(f"SELECT count(*){', 1' * number} FROM u;" for number in range(600)))
        if int(info(server)["nodes"]) < 900:
            yield f"plans that are used once: {info(server)}"
        server.stop("fast")
        with open(server.data / "postgresql.conf", "a") as file:
            file.write("pg_fast_timing.profile_max_nodes = 500\n")
        server.start()
        if int(info(server)["nodes"]) > 20 or "more nodes than pg_fast_timing.profile_max_nodes allows" not in server.log.read_text():
            yield f"a smaller memory: {info(server)}"


def without_preload(installation):
    settings = {"jit": False, "session_preload_libraries": "pg_fast_timing", "pg_fast_timing.profile_max_nodes": 1000}
    with Server(installation, settings) as server:
        if said := server.psql("CREATE EXTENSION pg_fast_timing", notices=True).strip():
            yield f"a message to each client: {said}"
        said = server.psql("LOAD 'pg_fast_timing'; SET pg_fast_timing.profile = on; SELECT 1 AS one; SELECT count(*) FROM pg_stat_plan_nodes; SELECT state FROM pg_fast_timing_profile_info()", notices=True)
        if "WARNING:  pg_fast_timing has no profile, because it is not in shared_preload_libraries" not in said or "\n0\nnot available" not in said:
            yield f"without shared_preload_libraries: {said}"


def check(installation):
    """Yields complaints."""
    with Server(installation, SETTINGS) as server:
        server.psql(CREATE)
        for test in (counts, times, identities, others, changed_partitions, short_waits, waits_of_others, stopped_worker, uncounted, other_encodings, privileges, printed,
            to_slow_client, shares, samples, many_sessions, without_queryid, restarts, hostile_names):
            yield from (f"{test.__name__}: {what}" for what in test(server))
    yield from full_memory(installation)
    yield from without_preload(installation)
