"""pg_timing explain --against: which of two statements is faster, and where."""

import json

from outcome import refused

SLEEP = "SELECT pg_sleep({})"
SCAN = "SELECT count(*) FROM t WHERE i + 0 < 1000"
SEARCH = "SELECT count(*) FROM t WHERE i < 1000"
SORT = "SELECT i, k FROM t ORDER BY k, i"
TABLES = """CREATE TABLE one (i int PRIMARY KEY); INSERT INTO one VALUES (1); CREATE TABLE free (i int); CREATE TABLE bound (i int REFERENCES one);
""" + "".join(f"CREATE TABLE {name}{n} AS SELECT g AS i, repeat('x', 20) AS p FROM generate_series(1, 60000) g;" for name in ("first", "second") for n in range(4))
# What pg_timing refuses, each with a part of the error.
REFUSED = [
    (("-c", SCAN, "--against", "SELEC 1"), 'statement B: syntax error at or near "SELEC"'),
    (("-c", "SELEC 1", "--against", SCAN), 'statement A: syntax error at or near "SELEC"'),
    (("-c", SCAN, "--against", ""), "statement B: there is no statement"),
    (("-c", SCAN, "--against", "SELECT 1; SELECT 2"), "statement B: there are several statements"),
    (("-c", SCAN, "--against", "DELETE FROM t"), "statement B: cannot execute DELETE in a read-only transaction"),
    (("-c", SCAN, "--against", "SELECT 1 / (i - 5000) FROM t"), "statement B: division by zero"),
    (("-c", SCAN, "--against", "SELECT $1::int"), "statement B: the statement's parameters and the values of --param differ in number: 1 and 0"),
    (("-c", "SELECT $1::int", "--param", "1", "--against", SCAN), "statement B: the statement's parameters and the values of --param differ in number: 0 and 1"),
    (("-f", "-", "--against-file", "-"), "stdin can be only one of the two statements"),
    (("-c", SCAN, "--against-file", "/nowhere"), 'could not read "/nowhere"'),
    (("-c", SCAN, "--against-set", "work_mem"), "statement B: this form of SET or RESET is not supported"),
    (("-c", SCAN, "--against-set", "nothing = 1"), 'statement B: unrecognized configuration parameter "nothing"'),
    (("-c", SCAN, "--against-set", "jit = off; DROP TABLE t"), "statement B: there are several statements"),
    (("-c", SCAN, "--against-set", "default_transaction_read_only = off"), "statement B: default_transaction_read_only cannot be set"),
    (("-c", SCAN, "--against-set", "auto_explain.log_analyze = on"), "statement B: auto_explain.log_analyze cannot be set"),
    (("-c", SCAN, "--against", SCAN, "--against-set", "jit = off"), "cannot be used with"),
    (("-c", SCAN, "--against", SCAN, "--format", "plan-json"), "plan-text and plan-json show single plans"),
    (("--against", SCAN), "--against needs a statement to compare with"),
    (("-c", SCAN, "--same-rows"), "--same-rows needs --against"),
    (("-c", "SELECT i FROM t", "--against", SCAN, "--same-rows"), "the statements have different numbers of rows: A 100000, and B 1"),
]  # fmt: skip


def against(program, server):
    """The faster statement is found, the nodes that differ are named, and each error names its statement."""
    server.psql(TABLES)
    for more, line in REFUSED:
        yield from refused(program.run(*more), more, line)
    yield from planted(program)
    yield from nodes(program)
    yield from caches(program, server)
    yield from outside_of_plans(program, server)
    short = program.run("-c", "SELECT 1", "--against", "SELECT 2")
    if short.returncode != 3 or "Not determined: the statements are too short to compare." not in short.stdout:
        yield f"short statements: {short}"
    one = program.run("-c", "SELECT 1", "--against", "SELECT pg_sleep(0.1)")
    if one.returncode != 1 or not one.stdout.startswith("B takes "):
        yield f"a short and a long statement: {one}"
    rows = server.psql("SELECT count(*) FROM t")
    delete = ("-c", "DELETE FROM t WHERE i + 0 < 1000", "--against", "DELETE FROM t WHERE i < 500", "--allow-writes")
    if (done := program.run(*delete)).returncode not in (0, 1) or server.psql("SELECT count(*) FROM t") != rows:
        yield f"statements that write: {done}"
    page = program.run("-c", SCAN, "--against", SEARCH, "--format", "html").stdout
    if not page.startswith("<!DOCTYPE html>") or 'class="beside"' not in page or "Where they differ" not in page:
        yield f"html: {page[:3000]}"


def planted(program):
    """The ratio of two sleeps is known, also on a busy machine: it makes them longer, but hardly one more than the other."""
    for a, b, status, word in [(0.03, 0.1, 1, "times as long"), (0.1, 0.03, 0, "less"), (0.05, 0.05, 0, "No difference")]:
        statements = ("-c", SLEEP.format(a), "--against", SLEEP.format(b))
        done = program.run(*statements)
        if done.returncode != status or word not in done.stdout.split("\n")[0]:
            yield f"{a} s against {b} s: {done}"
    report = json.loads(program.run("-c", SLEEP.format(0.04), "--against", SLEEP.format(0.08), "--format", "json").stdout)
    ratio = report["ratio"]
    if report["difference"] != "slower" or not ratio["low"] <= 2 <= ratio["high"] or ratio["high"] - ratio["low"] > 0.3:
        yield f"the ratio of two sleeps: {ratio}"


def nodes(program):
    """Each node of both plans is in one pair. Those with other rows come first, and self times are at most the statement's."""
    done = program.run("-c", SCAN, "--against", SEARCH, "--format", "json")
    report = json.loads(done.stdout)
    if report["difference"] != "faster" or done.returncode != 0:
        yield f"an index: {done}"
    for side in "ab":
        in_pairs = sorted(pair[side] for pair in report["nodes"] if pair[side] is not None)
        if in_pairs != list(range(len(report[side]["nodes"]))):
            yield f"pairs: {report['nodes']}"
        if sum(node["self_ms"]["estimate"] for node in report[side]["nodes"]) > report[side]["ms"] * 1.0001:
            yield f"self times: {report[side]}"
    scans = {node["type"] for side in "ab" for node in report[side]["nodes"] if node["rows"] == 999}
    if "Seq Scan" not in scans or not scans & {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}:
        yield f"rows of the scans: {scans}"
    if not all(node["blocks"] > 0 for side in "ab" for node in report[side]["nodes"]):
        yield f"blocks: {report}"
    other = program.run("-c", SORT, "--against", f"{SORT} LIMIT 10")
    if "They have different numbers of rows: A 100 000, and B 10." not in " ".join(other.stdout.split()) or " -> 10 !" not in other.stdout:
        yield f"other rows: {other}"
    report = json.loads(program.run("-c", SORT, "--against-set", "work_mem = '64kB'", "--against-set", "jit = off", "--format", "json").stdout)
    if report["b"]["settings"] != ["SET work_mem = '64kB'", "SET jit = off"] or report["a"]["settings"] or "jit" in report["settings"]:
        yield f"settings: {report}"
    with_cte = "WITH c AS MATERIALIZED (SELECT 1 AS k) INSERT INTO free SELECT 1 FROM t, c"
    trigger = json.loads(program.run("-c", with_cte, "--against", "INSERT INTO bound SELECT 1 FROM t", "--allow-writes", "--format", "json").stdout)
    outside, others = (trigger["b"]["outside_ms"]["estimate"], sum(node["self_ms"]["estimate"] for node in trigger["b"]["nodes"]))
    if trigger["difference"] != "slower" or outside < others or (trigger["a"]["rows"], trigger["b"]["rows"]) != (100_000, 100_000):
        yield f"the time of a trigger: {trigger}"


def caches(program, server):
    """Equal statements whose tables do not fit into shared_buffers together: the order does not matter. The places of tables in memory can make a difference."""
    sums = ["SELECT " + " + ".join(f"(SELECT count(*) FROM {name}{n})" for n in range(4)) for name in ("first", "second")]
    ratios = [json.loads(program.run("-c", a, "--against", b, "--format", "json").stdout)["ratio"] for a, b in (sums, sums[::-1])]
    low, high = (ratios[0][bound] * ratios[1][bound] for bound in ("low", "high"))
    if not low < 1.03 or not high > 0.97:
        yield f"equal statements in both orders: {ratios}"


def outside_of_plans(program, server):
    """Rows are sent, because wide ones take longer. A long planning time is noted."""
    columns = ", ".join(f"repeat(g::text, 9) AS c{n}" for n in range(20))
    server.psql(f"CREATE TABLE wide AS SELECT g AS i, {columns} FROM generate_series(1, 20000) g; VACUUM ANALYZE wide")
    report = json.loads(program.run("-c", "SELECT * FROM wide", "--against", "SELECT i FROM wide", "--format", "json").stdout)
    nodes_ms = sum(node["self_ms"]["estimate"] for node in report["a"]["nodes"])
    if report["difference"] != "faster" or "sending its rows" not in str(report["notes"]) or report["a"]["outside_ms"]["estimate"] < nodes_ms:
        yield f"a column of a wide table: {report}"
    joins = "SELECT count(*) FROM one " + " ".join(f"JOIN one o{n} USING (i)" for n in range(8))
    for more, word in (((), "planning took"), (("--against", SORT), "planning A takes")):
        said = json.loads(program.run("-c", joins, *more, "--format", "json").stdout)["notes"]
        if word not in str(said):
            yield f"a long planning time: {said}"
