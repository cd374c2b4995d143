"""The same run of a statement in two formats: pg_timing reads the same nodes, times and corrected figures from both."""

import json
import re
import tempfile

from outcome import until
from servers.commands import output

from explain.captured import LOG, SCREEN

# EXPLAIN's format, and the format of auto_explain's log. Each format is compared with JSON of the same run. A statement has
# one of these lists: all four runs would take twice the time.
PAIRS = ((("yaml", "json"), ("json", "xml")), (("json", "yaml"), ("xml", "json")))
COMPARED = ("reported_ms", "corrected_ms", "clock_share", "overhead_factor", "nodes")

# Of what the log shows, too. auto_explain shows triggers only if it is asked.
OPTIONS = "ANALYZE, VERBOSE, BUFFERS OFF"
TRIGGERS = "SET auto_explain.log_triggers = on;"
# Of PostgreSQL 19: what asynchronous reads did.
IO = ", IO", " SET auto_explain.log_io = on;"


def run(captured, statement, before, pairs):
    """Executes the statement once for each pair. Returns what psql shows, and the server's log."""
    settings, _, query = statement.rpartition(";")
    log = captured.log()
    start = log.stat().st_size
    once = "{} BEGIN; EXPLAIN ({}, FORMAT {}) {}; ROLLBACK;"
    io, log_io = IO if captured.server.installation.major >= 19 else ("", "")
    runs = [once.format(LOG.format(log_form, "on"), OPTIONS + io, form, query) for form, log_form in pairs]
    screen = captured.server.psql(f"{before} {settings}; LOAD 'auto_explain'; {TRIGGERS}{log_io} {' '.join(runs)}", options=SCREEN)

    def new_text():
        with open(log) as file:
            file.seek(start)
            text = file.read()
        return text if text.count("  plan:\n") == len(pairs) else None

    return screen, until(new_text, "the plans are in the log")


def reports(captured, text):
    """Returns the report of each plan in a text."""
    with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
        file.write(text)
        file.flush()
        lines = output([captured.path, "explain", "--plan", file.name, "--all", "--format", "jsonl", *captured.read_cost])
    return [json.loads(line) for line in lines.splitlines()]


def with_times(log, times):
    """Returns the log with other times in the lines that announce a plan. auto_explain's time includes more than EXPLAIN's."""
    left = iter(times)
    return re.sub(r"duration: [\d.]+ ms(?=  plan:\n)", lambda _: f"duration: {next(left):.3f} ms", log)


def compare(captured, statement, before, pairs):
    """Yields complaints if pg_timing reads something else from one of two formats of the same run."""
    screen, log = run(captured, statement, before, pairs)
    shown = reports(captured, screen)
    logged = reports(captured, with_times(log, [report["reported_ms"] for report in shown]))
    if not len(shown) == len(logged) == len(pairs):
        yield f"{statement}: {len(shown)} plans from psql and {len(logged)} from the log"
    for pair, one, other in zip(pairs, shown, logged):
        for key in COMPARED:
            if one.get(key) != other.get(key):
                yield f"{statement}, {' and '.join(pair)}: {key}: {one.get(key)} {other.get(key)}"
