"""Compares estimated times with exact ones, node by node.

Exact times contain errors, too:

- Each timed call takes longer by the cost of the clock reads, on some machines by 30 ns. Half of that is within the node's
  own time. So the cost per call is measured on the query itself (time with timing minus time without, divided by the
  calls) and subtracted.
- A CPU that waits for memory reads its counter too early, so a call gets a part of its caller's time. A scan of short rows
  can get four times its own time. So exact times are also measured with ordered reads of the counter, like those of the
  system clock.

Estimates are compared with both. Those of the method auto are also compared with the ticks of all runs of the method
sampling: they disturb no node, and their random error is known. EXPLAIN rounds the mean time of a loop to a microsecond. A node with so many loops that this
is more than MAX_ROUNDING of the query's time is left out.
"""

import re
from dataclasses import dataclass
from math import sqrt
from statistics import median

from extension.invariants import explained as checked_plan, nodes, rounding_ms

RUNS = 5
# Name: (method, TIMING).
EXACT = {"untimed": ("off", "OFF"), "tsc": ("tsc", "ON")}
METHODS = ("auto", "sampling")
# The worker needs a server with the library in shared_preload_libraries.
TICKERS = ("worker", "thread")
# Compiler flag for ordered reads.
ORDERED = "-DORDERED_TSC"
LONG_MS = 1000
# The mean time between ticks.
TICK_MS = 1
TICKS = "ticks of other runs"
# The largest effect of rounding, as a share of the query's time.
MAX_ROUNDING = 0.002


def explained(server, queries, modes):
    """Returns the plans of interleaved runs: {(query, mode): [plan, ...]}. The mode of estimates is "method/ticker"."""
    script = ["LOAD 'pg_fast_timing';"]
    for number, query in queries.items():
        script.append(f"{query} \\g /dev/null")
        for _ in range(RUNS):
            for mode, (method, timing) in modes.items():
                ticker = mode.partition("/")[2] or "none"
                script.append(f"SET pg_fast_timing.method = {method}; SET pg_fast_timing.ticker = {ticker};\n\\echo ### {number} {mode}")
                script.append(f"EXPLAIN (ANALYZE, BUFFERS OFF, TIMING {timing}, FORMAT JSON) {query};")
    plans = {}
    out = server.psql("\n".join(script))
    for number, mode, text in re.findall(r"^### (\d+) (\S+)\n(.*?)(?=^###|\Z)", out, re.M | re.S):
        plans.setdefault((int(number), mode), []).append(checked_plan(text))
    return plans


def total(node):
    return node["Actual Total Time"] * node["Actual Loops"]


def is_rounded(node, query_ms):
    """Returns whether EXPLAIN's rounding hides the time of a node."""
    return rounding_ms(node) > MAX_ROUNDING * query_ms


def calls(node):
    """Returns the calls of a node: one more than the rows in each loop, because the last call finds the end."""
    return node["Actual Loops"] * (node["Actual Rows"] + 1)


def calls_below(node):
    return sum(calls(child) + calls_below(child) for child in node.get("Plans", []))


def corrected(plan, ms_per_call):
    """Returns the time of each node without the overhead of timing."""
    return [total(node) - ms_per_call * (calls(node) / 2 + calls_below(node)) for node, _ in nodes(plan)]


def shares(times):
    """Returns the times as shares of the query's time, so that the machine's speed cancels."""
    return [min(time / times[0], 1) for time in times]


def medians(runs):
    return [median(each) for each in zip(*runs)]


@dataclass
class Reference:
    """The exact share of each node in the query's time, and its error."""

    share: list
    error: list


def reference(plans, correct=True):
    """Returns the reference from plans with the modes of EXACT."""
    took = {mode: median(run["Execution Time"] for run in plans[mode]) for mode in EXACT}
    root = plans["tsc"][0]["Plan"]
    cost = max(took["tsc"] - took["untimed"], 0) / (calls(root) + calls_below(root)) if correct else 0
    runs = [shares(corrected(run["Plan"], cost)) for run in plans["tsc"]]
    # The cost per call differs between nodes, by at most half of it.
    subtracted = [cost * (calls(node) / 2 + calls_below(node)) / took["untimed"] for node, _ in nodes(root)]
    variation = [(max(each) - min(each)) / 2 for each in zip(*runs)]
    return Reference(medians(runs), [a + b / 2 for a, b in zip(variation, subtracted)])


def references(plans, ordered):
    return {
        "exact times": reference(plans, correct=False),
        "exact times, corrected": reference(plans),
        "exact times with ordered reads, corrected": reference(ordered),
    }


def of_ticks(plans):
    """Returns the reference from the ticks of all runs with the method sampling."""
    runs = [run for mode, runs in plans.items() if mode.startswith("sampling/") for run in runs]
    found = [sum(each) / len(runs) for each in zip(*(shares([total(node) for node, _ in nodes(run["Plan"])]) for run in runs))]
    ticks = sum(run["Execution Time"] for run in runs) / TICK_MS
    return Reference(found, [2 * sqrt(max(share * (1 - share), 1 / ticks) / ticks) for share in found])


def of_query(plans, number):
    return {mode: runs for (query, mode), runs in plans.items() if query == number}


def compare(server, queries, build, tickers=TICKERS):
    """
    Compares queries, given by their numbers. `build(flags)` rebuilds the extension, and restarts a server that has loaded it.
    Yields lines to print.
    """
    modes = {f"{method}/{ticker}": (method, "ON") for ticker in tickers for method in METHODS}
    build(ORDERED)
    ordered = explained(server, queries, EXACT)
    build("")
    plans = explained(server, queries, EXACT | modes)
    exact = {
        number: references(of_query(plans, number), of_query(ordered, number)) | {TICKS: of_ticks(of_query(plans, number))}
        for number in queries
    }
    for mode in modes:
        kinds = [kind for kind in next(iter(exact.values())) if kind != TICKS or not mode.startswith("sampling/")]
        for kind in kinds:
            errors_by_length, covered, estimates, rounded = {"shorter": [], "longer": []}, 0, 0, 0
            for number in queries:
                truth, truth_error = exact[number][kind].share, exact[number][kind].error
                runs = [[node for node, _ in nodes(run["Plan"])] for run in plans[number, mode]]
                found = medians(shares([total(node) for node in run]) for run in runs)
                took = median(run["Execution Time"] for run in plans[number, "untimed"])
                names = [node["Node Type"] for node in runs[0]]
                assert len(names) == len(truth), f"query {number}: one plan"
                length = "longer" if took > LONG_MS else "shorter"
                rounded += sum(is_rounded(node, took) for node in runs[0])
                errors_by_length[length] += [
                    (abs(a - b), number, name) for a, b, name, node in zip(found, truth, names, runs[0]) if not is_rounded(node, took)
                ]
                for run in runs:
                    for node, true, true_error in zip(run, truth, truth_error):
                        if node.get("Timing") == "estimated" and not is_rounded(node, took):
                            error = node["Timing Error"] * node["Actual Loops"]
                            error += true_error * total(run[0])
                            estimates, covered = estimates + 1, covered + (abs(total(node) - true * total(run[0])) <= error)
            yield (
                f"{mode}, {kind}: the stated interval contains {covered / estimates:.1%} of {estimates} times; "
                f"{rounded} nodes left out, because of rounding"
            )
            for length, errors in errors_by_length.items():
                if errors:
                    errors.sort(reverse=True)
                    share, query, name = errors[0]
                    yield (
                        f"    queries {length} than {LONG_MS} ms, {len(errors)} nodes: error {errors[len(errors) // 2][0]:.2%} "
                        f"of the query at the median, {errors[len(errors) // 20][0]:.2%} at the 95th percentile, "
                        f"{share:.2%} at worst (query {query}, {name})"
                    )
