"""Compares estimated times with the truth, node by node.

The truth is the share of ticks that fall into a node, in many runs of an extension that reads no clock at all (ESTIMATES): so
it disturbs no node, and its random error is known. Exact times are no truth: each timed call takes longer by the cost of its
clock reads, and a CPU that waits for memory reads its counter too early.

EXPLAIN rounds the mean time of a loop to a microsecond. A node with so many loops that this is more than MAX_ROUNDING of the
query's time is left out.
"""

import re
from math import sqrt
from statistics import median

from extension import ESTIMATES
from extension.invariants import explained as checked_plan, nodes, rounding_ms

RUNS = 5
# The truth has this many times as many runs, so its error is a third.
TRUE_RUNS = 9 * RUNS
# The worker needs a server with the library in shared_preload_libraries.
TICKERS = ("worker", "thread")
# The mean time between ticks.
TICK_MS = 1
# The largest effect of rounding, as a share of the query's time.
MAX_ROUNDING = 0.002


def explained(server, queries, tickers, runs):
    """Returns the plans of interleaved runs: {(query, ticker): [plan, ...]}."""
    script = ["LOAD 'pg_fast_timing';"]
    for number, query in queries.items():
        script.append(f"{query} \\g /dev/null")
        for _ in range(runs):
            for ticker in tickers:
                script.append(f"SET pg_fast_timing.ticker = {ticker};\n\\echo ### {number} {ticker}")
                script.append(f"EXPLAIN (ANALYZE, BUFFERS OFF, FORMAT JSON) {query};")
    plans = {}
    out = server.psql("\n".join(script))
    for number, ticker, text in re.findall(r"^### (\d+) (\S+)\n(.*?)(?=^###|\Z)", out, re.M | re.S):
        plans.setdefault((int(number), ticker), []).append([node for node, _ in nodes(checked_plan(text)["Plan"])])
    return plans


def total(node):
    return node["Actual Total Time"] * node["Actual Loops"]


def true_shares(runs):
    """Returns each node's share of the root's time, and its error: two standard errors of a share of independent ticks."""
    all_ms = sum(total(run[0]) for run in runs)
    for times in zip(*([total(node) for node in run] for run in runs), strict=True):
        share = min(sum(times) / all_ms, 1)
        # Even a node without a tick has an error.
        yield share, 2 * sqrt(max(share * (1 - share), TICK_MS / all_ms) * TICK_MS / all_ms)


def compare(server, queries, rebuild):
    """Yields lines about the errors. `rebuild(flags)` builds the extension and restarts the server."""
    rebuild(ESTIMATES)
    truth = {number: list(true_shares(runs)) for (number, _), runs in explained(server, queries, ["worker"], TRUE_RUNS).items()}
    rebuild("")
    plans = explained(server, queries, TICKERS, RUNS)
    for ticker in TICKERS:
        errors, widths, covered, rounded = [], [], [], 0
        for number in queries:
            for run in plans[number, ticker]:
                root_ms = total(run[0])
                for node, (share, share_error) in zip(run, truth[number], strict=True):
                    if rounding_ms(node) > MAX_ROUNDING * root_ms:
                        rounded += 1
                    elif node.get("Timing") == "estimated":
                        error_ms = abs(total(node) - share * root_ms)
                        stated_ms = node["Timing Error"] * node["Actual Loops"]
                        errors.append((error_ms / root_ms, number, node["Node Type"]))
                        widths.append(stated_ms / root_ms)
                        covered.append(error_ms <= stated_ms + share_error * root_ms)
        errors.sort(reverse=True)
        worst, query, name = errors[0]
        yield (
            f"auto, {ticker}: {len(errors)} estimates; the stated interval contains {sum(covered) / len(covered):.1%}; half-width "
            f"{median(widths):.2%} of the statement at the median"
        )
        yield (
            f"    error {errors[len(errors) // 2][0]:.2%} of the statement at the median, {errors[len(errors) // 20][0]:.2%} at the "
            f"95th percentile, {worst:.2%} at worst (query {query}, {name}); {rounded} times left out, because of rounding"
        )
