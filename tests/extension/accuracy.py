"""Estimated times beside exact ones, node by node.

Exact times are not the truth. Each call that is timed takes longer by what reading the counter costs, which on some
machines is 30 ns, half of it within the node's own time; so that is taken off, fitted on the query itself (with timing
less without, over its calls). And a CPU reads its counter while it waits for memory: a call then gets what its caller
was still waiting for, a scan of short rows up to four times its own time. So the exact times are also had from counter
reads that wait until all before has ended, as the system's clock does. Estimates are held against both.
"""

import json
import re
from dataclasses import dataclass
from statistics import median

from extension.statements import nodes

RUNS = 5
# Name, the method, whether there are times.
EXACT = {"untimed": ("off", "OFF"), "tsc": ("tsc", "ON")}
ESTIMATES = {"auto": ("auto", "ON"), "sampling": ("sampling", "ON")}
# For the compiler.
IN_ORDER = "-DORDERED_TSC"
LONG_MS = 1000


def explained(server, queries, ways):
    """The plans: {(query, way): [plan, ...]}, interleaved."""
    script = ["LOAD 'pg_fast_timing';"]
    for number, query in queries.items():
        script.append(f"{query} \\g /dev/null")
        for _ in range(RUNS):
            for way, (method, timing) in ways.items():
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
    return [min(time / times[0], 1) for time in times]


def medians(runs):
    return [median(each) for each in zip(*runs)]


@dataclass
class Reference:
    """Each node's share of the query's time, and how far that may be off."""

    share: list
    error: list


def reference(plans, correct=True):
    """From plans of EXACT."""
    took = {way: median(run["Execution Time"] for run in plans[way]) for way in EXACT}
    root = plans["tsc"][0]["Plan"]
    cost = max(took["tsc"] - took["untimed"], 0) / (calls(root) + calls_below(root)) if correct else 0
    runs = [shares(corrected(run["Plan"], cost)) for run in plans["tsc"]]
    # Calls differ in what they cost: in doubt by half.
    taken_off = [cost * (calls(node) / 2 + calls_below(node)) / took["untimed"] for node, _ in nodes(root)]
    apart = [(max(each) - min(each)) / 2 for each in zip(*runs)]
    return Reference(medians(runs), [a + b / 2 for a, b in zip(apart, taken_off)])


def references(plans, ordered):
    return {
        "as they are": reference(plans, correct=False),
        "corrected": reference(plans),
        "in order, corrected": reference(ordered),
    }


def of_query(plans, number):
    return {way: runs for (query, way), runs in plans.items() if query == number}


def compare(server, queries, build):
    """Of queries by their numbers; `build(flags)` builds the extension anew. Yields lines to print."""
    build(IN_ORDER)
    ordered = explained(server, queries, EXACT)
    build("")
    plans = explained(server, queries, EXACT | ESTIMATES)
    exact = {number: references(of_query(plans, number), of_query(ordered, number)) for number in queries}
    for way in ESTIMATES:
        for kind in next(iter(exact.values())):
            off, covered, said = {"shorter": [], "longer": []}, 0, 0
            for number in queries:
                truth, doubt = exact[number][kind].share, exact[number][kind].error
                runs = [[node for node, _ in nodes(run["Plan"])] for run in plans[number, way]]
                found = medians(shares([total(node) for node in run]) for run in runs)
                took = median(run["Execution Time"] for run in plans[number, "untimed"])
                names = [node["Node Type"] for node in runs[0]]
                assert len(names) == len(truth), f"query {number}: one plan"
                length = "longer" if took > LONG_MS else "shorter"
                off[length] += [(abs(a - b), number, name) for a, b, name in zip(found, truth, names)]
                for run in runs:
                    for node, true, doubtful in zip(run, truth, doubt):
                        if node.get("Timing") == "estimated":
                            error = node["Timing Error"] * node["Actual Loops"]
                            error += doubtful * total(run[0])
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
