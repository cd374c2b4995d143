"""The calls of a plan's nodes, by kind of node."""

import json

from servers import Failed


def plan_of(server, script):
    """Returns the root of a statement's plan, as EXPLAIN prints it in JSON. SET lines may come before the statement."""
    settings, _, statement = script.strip("; \n").rpartition(";")
    return json.loads(server.psql(f"{settings};\nEXPLAIN (FORMAT JSON, COSTS OFF) {statement}"))[0]["Plan"]


def with_paths(node, path="0"):
    """Yields each node with its path in pg_timing's report, and whether it is on the inner side of a nested loop.

    An InitPlan of the join comes before its inputs, so the path alone does not show the side.
    """
    yield path, node, False
    for index, child in enumerate(node.get("Plans", [])):
        (own, _, _), *below = with_paths(child, f"{path}.{index}")
        yield own, child, node["Node Type"] == "Nested Loop" and child["Parent Relationship"] == "Inner"
        yield from below


def calls_by_kind(nodes, plan):
    """Returns the calls of each kind of node. Kinds on the inner side of a nested loop count separately.

    nodes   the nodes of pg_timing's report
    plan    the root of the same plan, from EXPLAIN
    """
    sides = {path: (node["Node Type"], is_inner) for path, node, is_inner in with_paths(plan)}
    if [node["path"] for node in nodes] != list(sides):
        raise Failed("EXPLAIN shows another plan than pg_timing's report")
    calls = {}
    for node in nodes:
        kind, is_inner = sides[node["path"]]
        name = kind + (" (inner)" if is_inner else "")
        calls[name] = calls.get(name, 0) + node["calls"]
    return calls
