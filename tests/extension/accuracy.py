"""Estimated times beside exact ones, node by node.

Exact times are not the truth: each call that is timed takes longer by what reading the counter costs, which on some
machines is 30 ns, half of it within the node's own time. So the estimates are held against both: the exact times as they
are, and less that cost, which is fitted on the query itself (with timing less without, over its calls).
"""

import json
import re
from statistics import median

from extension.statements import nodes

RUNS = 5
# Name, the method, whether there are times.
WAYS = {"untimed": ("off", "OFF"), "tsc": ("tsc", "ON"), "auto": ("auto", "ON"), "sampling": ("sampling", "ON")}
LONG_MS = 1000


def explained(server, queries):
    """The plans: {(query, way): [plan, ...]}, interleaved."""
    script = ["LOAD 'pg_fast_timing';"]
    for number, query in enumerate(queries):
        script.append(f"{query} \\g /dev/null")
        for _ in range(RUNS):
            for way, (method, timing) in WAYS.items():
                script.append(f"SET pg_fast_timing.method = {method};\n\\echo ### {number} {way}")
                script.append(f"EXPLAIN (ANALYZE, BUFFERS OFF, TIMING {timing}, FORMAT JSON) {query};")
    plans = {}
    out = server.psql("\n".join(script))
    for number, way, text in re.findall(r"^### (\d+) (\w+)\n(.*?)(?=^###|\Z)", out, re.M | re.S):
        plans.setdefault((int(number), way), []).append(json.loads(text)[0])
    return plans


def total(node):
    return node["Actual Total Time"] * node["Actual Loops"]


def calls(node):
    """One more than the rows, for each loop: the one that finds the end."""
    return node["Actual Loops"] * (node["Actual Rows"] + 1)


def calls_below(node):
    return sum(calls(child) + calls_below(child) for child in node.get("Plans", []))


def corrected(plan, ms_per_call):
    """Each node's time without what timing added to it."""
    return [total(node) - ms_per_call * (calls(node) / 2 + calls_below(node)) for node, _ in nodes(plan)]


def shares(times):
    """Of the query's time: the machine's own ups and downs fall out."""
    return [time / times[0] for time in times]


def medians(runs):
    return [median(each) for each in zip(*runs)]


def references(plans):
    """Two of them: each node's share of the query's time, run by run."""
    tsc = [run["Plan"] for run in plans["tsc"]]
    took = {way: median(run["Execution Time"] for run in plans[way]) for way in ("untimed", "tsc")}
    all_calls = calls(tsc[0]) + calls_below(tsc[0])
    cost = max(took["tsc"] - took["untimed"], 0) / all_calls
    as_is = [shares([total(node) for node, _ in nodes(plan)]) for plan in tsc]
    return {"as they are": as_is, "corrected": [shares(corrected(plan, cost)) for plan in tsc]}


def compare(server, queries):
    """Yields lines to print."""
    plans = explained(server, queries)
    for way in ("auto", "sampling"):
        for kind in ("as they are", "corrected"):
            off, covered, said = {"shorter": [], "longer": []}, 0, 0
            for number in range(len(queries)):
                of_query = {each: plans[number, each] for each in WAYS}
                exact = references(of_query)[kind]
                truth = medians(exact)
                # How far exact runs are from each other is not for an estimate to state.
                spread = [(max(each) - min(each)) / 2 for each in zip(*exact)]
                runs = [[node for node, _ in nodes(run["Plan"])] for run in of_query[way]]
                found = medians(shares([total(node) for node in run]) for run in runs)
                length = "longer" if median(run["Execution Time"] for run in of_query["untimed"]) > LONG_MS else "shorter"
                names = [node["Node Type"] for node in runs[0]]
                off[length] += [(abs(a - b), number + 1, name) for a, b, name in zip(found, truth, names)]
                for run in runs:
                    for node, true, apart in zip(run, truth, spread):
                        if node.get("Timing") == "estimated":
                            error = node["Timing Error"] * node["Actual Loops"]
                            error += apart * total(run[0])
                            said, covered = said + 1, covered + (abs(total(node) - true * total(run[0])) <= error)
            yield f"{way}, exact times {kind}: stated error holds for {covered / said:.1%} of {said} estimates"
            for length, errors in off.items():
                if errors:
                    errors.sort(reverse=True)
                    share, query, name = errors[0]
                    yield (
                        f"    queries {length} than {LONG_MS} ms, {len(errors)} nodes: off by {errors[len(errors) // 2][0]:.2%} "
                        f"of the query at the median, {errors[len(errors) // 20][0]:.2%} at the 95th percentile, "
                        f"{share:.2%} at worst (query {query}, {name})"
                    )
