"""What holds for the times in every plan, as the README of the extension promises.

No time is negative, and no startup is after the total. No node takes longer than its parent, than the root of the plan, or
than the statement. The exceptions are nodes within one without a time, nodes below a custom scan, sums over processes below a Gather node, and the subplans
of statements with data-modifying subplans.
"""

import json
import re

from servers import Failed

# Only their parent calls these children. A subplan can be called from elsewhere in the tree.
CALLED_BY_PARENT = ("Outer", "Inner", "Member", "Subquery")

# Plans print times in ms, rounded to this, for each loop.
STEP_MS = 0.001

# The server takes the statement's time with its own clock. PostgreSQL 19 accepts a calibration of its TSC whose results agree
# within 100 ppm. On a busy machine, a node took 58 ppm more than its statement.
CLOCKS_AGREE_WITHIN = 200e-6


def nodes(plan, above=None):
    """Yields each node of a plan with its parent."""
    yield plan, above
    for child in plan.get("Plans", []):
        yield from nodes(child, plan)


def explained(text):
    """Returns the first plan of EXPLAIN in JSON. Raises Failed if it has impossible times."""
    return checked(json.loads(text)[0])


def logged(text):
    """Returns the last plan in JSON that auto_explain has logged. Raises Failed if it has impossible times."""
    return checked(json.loads(re.findall(r"plan:\n(\{.*?^\})", text, re.M | re.S)[-1]))


def checked(statement):
    if wrong := list(impossible_times(statement)):
        raise Failed("\n".join(["impossible times:", *wrong]))
    return statement


def impossible_times(statement):
    """Yields the impossible times of a plan in JSON. A statement without times has none."""
    root = statement["Plan"]
    modifies = any(node["Node Type"] == "ModifyTable" and node.get("Parent Relationship") == "InitPlan" for node, _ in nodes(root))
    gathered = {id(below) for node, _ in nodes(root) if node["Node Type"].startswith("Gather") for below, above in nodes(node) if above}
    for node, above in nodes(root):
        if "Actual Total Time" not in node:
            continue
        if not 0 <= node["Actual Startup Time"] <= node["Actual Total Time"]:
            yield f"{node['Node Type']}: {node['Actual Startup Time']} to {node['Actual Total Time']} ms"
        for outer in outer_nodes(node, above, root, gathered, modifies):
            if not (outer["Actual Total Time"] == 0 and has_untimed(statement, outer)) and took_ms(node) > took_ms(outer) + rounding_ms(node) + rounding_ms(outer):
                yield f"{node['Node Type']}: {took_ms(node):.3f} ms within {outer['Node Type']} with {took_ms(outer):.3f} ms"
        limit_ms = statement.get("Execution Time")
        if limit_ms is None or id(node) in gathered:
            continue
        if took_ms(node) > limit_ms * (1 + CLOCKS_AGREE_WITHIN) + rounding_ms(node) + STEP_MS:
            yield f"{node['Node Type']}: {took_ms(node):.3f} ms within the statement with {limit_ms:.3f} ms"


def has_untimed(statement, node):
    """Returns whether the node has no time, because there is no ticking clock. Before 18, only the statement says it."""
    return node.get("Timing") == "none" or "have no time" in statement.get("Fast Timing", "")


def outer_nodes(node, above, root, gathered, modifies):
    """Yields the nodes whose calls contain all calls of a node."""
    if above and above["Node Type"] != "Custom Scan" and node["Parent Relationship"] in CALLED_BY_PARENT:
        if not above["Node Type"].startswith("Gather"):
            yield above
    elif above and node["Parent Relationship"] in ("InitPlan", "SubPlan") and id(node) not in gathered and not modifies:
        yield root


def took_ms(node):
    return node["Actual Total Time"] * node["Actual Loops"]


def rounding_ms(node):
    return STEP_MS * node["Actual Loops"]
