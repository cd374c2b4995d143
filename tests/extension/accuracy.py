"""Compares estimated times with the truth, node by node.

The truth is the share of ticks that fall into a node, in runs of an extension that reads no clock at all (ESTIMATES): so it
disturbs no node. Exact times are no truth: each timed call takes longer by the cost of its clock reads, and a CPU that waits for
memory reads its counter too early.

The machine changes its speed, and then a node's share changes, too: by several percent of the statement within minutes. So
the two extensions run in turn, in sessions of one server. And the truth of one run differs from the mean of the true runs: by as
much as these differ from each other beyond the chance of ticks.

EXPLAIN rounds the mean time of a loop to a microsecond. A node with so many loops that this is more than MAX_ROUNDING of the
query's time is left out.
"""

import re
from math import sqrt
from pathlib import Path
from statistics import mean, median, variance

from extension import ESTIMATES, SOURCE
from extension.invariants import explained as checked_plan, nodes, rounding_ms
from servers import build
from servers.commands import output

# Each round has so many runs of each extension, one after the other.
ROUNDS = 5
RUNS = {"pg_fast_timing_true": 6, "pg_fast_timing": 2}
# The mean time between ticks.
TICK_MS = 1
# The largest effect of rounding, as a share of the query's time.
MAX_ROUNDING = 0.002


def install_both(installation):
    """Installs the extension that reads no clock as pg_fast_timing_true, and the extension."""
    library = Path(output([installation.pg_config, "--pkglibdir"]).strip()) / "pg_fast_timing.so"
    build(SOURCE, installation, ESTIMATES)
    library.rename(library.with_stem("pg_fast_timing_true"))
    build(SOURCE, installation)


def explained(server, library, query):
    """Returns the nodes of some runs with an extension, after a run that fills the caches."""
    explain = f"\\echo ###\nEXPLAIN (ANALYZE, BUFFERS OFF, FORMAT JSON) {query};\n"
    out = server.psql(f"LOAD '{library}';\n{query} \\g /dev/null\n{explain * RUNS[library]}")
    return [[node for node, _ in nodes(checked_plan(text)["Plan"])] for text in re.split(r"^###\n", out, flags=re.M)[1:]]


def total(node):
    return node["Actual Total Time"] * node["Actual Loops"]


def true_shares(runs):
    """Returns each node's mean share of the root's time, and the error of that mean for one run: two standard errors."""
    for node_runs in zip(*runs, strict=True):
        shares = [min(total(node) / total(run[0]), 1) for node, run in zip(node_runs, runs, strict=True)]
        share = mean(shares)
        # Even a node without a tick has an error.
        by_chance = mean(max(share * (1 - share), TICK_MS / total(run[0])) * TICK_MS / total(run[0]) for run in runs)
        of_runs = max(variance(shares) - by_chance, 0)
        yield share, 2 * sqrt(of_runs + (of_runs + by_chance) / len(runs))


def compare(server, queries):
    """Yields lines about the errors."""
    estimates, true_errors, rounded = [], [], 0
    for query in queries:
        truth, runs = [], []
        for _ in range(ROUNDS):
            truth += explained(server, "pg_fast_timing_true", query)
            runs += explained(server, "pg_fast_timing", query)
        shares = list(true_shares(truth))
        for run in runs:
            root_ms = total(run[0])
            for node, (share, share_error) in zip(run, shares, strict=True):
                if rounding_ms(node) > MAX_ROUNDING * root_ms:
                    rounded += 1
                elif node.get("Timing") == "estimated":
                    error = abs(total(node) / root_ms - share)
                    stated = node["Timing Error"] * node["Actual Loops"] / root_ms
                    estimates.append((error, stated, error <= stated + share_error, error <= stated))
                    true_errors.append(share_error)
    errors = sorted(error for error, *_ in estimates)
    contained, contained_alone = (mean(each[which] for each in estimates) for which in (2, 3))
    yield (
        f"{len(errors)} estimates; the stated interval contains {contained:.1%} with the error of the truth, {contained_alone:.1%} without it; half-width "
        f"{median(stated for _, stated, *_ in estimates):.2%} of the statement at the median; error {median(errors):.2%} at the "
        f"median, {errors[len(errors) * 19 // 20]:.2%} at the 95th percentile, {errors[-1]:.2%} at worst"
    )
    yield f"error of the truth: {median(true_errors):.2%} at the median; {rounded} times left out, because of rounding"
