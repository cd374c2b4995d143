"""Estimated times beside exact ones, node by node."""

import json
import re
from statistics import median

from extension.statements import nodes

RUNS = 5
METHODS = ("tsc", "auto", "sampling")


def explained(server, queries):
    """The plans: {(query, method): [plan, ...]}, interleaved."""
    script = ["LOAD 'pg_fast_timing';"]
    for number, query in enumerate(queries):
        script.append(f"{query} \\g /dev/null")
        for _ in range(RUNS):
            for method in METHODS:
                script.append(f"SET pg_fast_timing.method = {method};\n\\echo ### {number} {method}")
                script.append(f"EXPLAIN (ANALYZE, BUFFERS OFF, FORMAT JSON) {query};")
    plans = {}
    out = server.psql("\n".join(script))
    for number, method, text in re.findall(r"^### (\d+) (\w+)\n(.*?)(?=^###|\Z)", out, re.M | re.S):
        plans.setdefault((int(number), method), []).append(json.loads(text)[0]["Plan"])
    return plans


def total(node):
    return node["Actual Total Time"] * node["Actual Loops"]


def shares(plan):
    """Each node's time as a part of the query's: the machine's own ups and downs fall out."""
    return [(total(node) / total(plan), node) for node, _ in nodes(plan)]


def compare(server, queries):
    """Yields lines to print."""
    plans = explained(server, queries)
    for method in METHODS[1:]:
        off, covered, said = {"short": [], "long": []}, 0, 0
        for number in range(len(queries)):
            exact = [shares(plan) for plan in plans[number, "tsc"]]
            estimated = [shares(plan) for plan in plans[number, method]]
            ms = median(total(plan) for plan in plans[number, "tsc"])
            for nth in range(len(exact[0])):
                truth = median(run[nth][0] for run in exact)
                found = median(run[nth][0] for run in estimated)
                off["long" if ms > 1000 else "short"].append((abs(found - truth), number + 1, exact[0][nth][1]["Node Type"]))
                for run, plan in zip(estimated, plans[number, method]):
                    share, node = run[nth]
                    if node.get("Timing") == "estimated":
                        error = node["Timing Error"] * node["Actual Loops"] / total(plan)
                        said, covered = said + 1, covered + (abs(share - truth) <= error)
        for length, errors in off.items():
            if errors:
                errors.sort(reverse=True)
                at = lambda part: errors[int(len(errors) * part)][0]
                share, query, node = errors[0]
                yield (
                    f"{method}, {length} queries: {len(errors)} nodes off by {at(0.5):.2%} of the query at the median, "
                    f"{at(0.05):.2%} at the 95th percentile, {share:.2%} at worst (query {query}, {node})"
                )
        yield f"{method}: the stated error holds for {covered} of {said} estimates ({covered / max(said, 1):.1%})"
