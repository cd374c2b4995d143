"""Each node's share of a statement's time, from a plan with exact times."""

import re

from extension.invariants import nodes


def totals(plan):
    """Returns the time of each node in ms over all loops, by the node's identity."""
    return {id(node): node["Actual Total Time"] * node["Actual Loops"] for node, _ in nodes(plan)}


def self_shares(plan):
    """Returns each node's share of the statement, without the nodes below it."""
    total = totals(plan)
    own_time = dict(total)
    for node, above in nodes(plan):
        if above:
            own_time[id(caller(plan, node, above, total))] -= total[id(node)]
    return [max(own, 0) / total[id(plan)] for own in own_time.values()]


def caller(plan, node, above, total):
    """Returns the node that calls this one. For a CTE or an InitPlan, this is the first reader that took at least as long."""
    label = node.get("Subplan Name", "")
    if label.startswith("CTE "):
        readers = [scan for scan, _ in nodes(plan) if scan["Node Type"] == "CTE Scan" and scan["CTE Name"] == label.removeprefix("CTE ")]
    elif label.startswith("InitPlan "):
        readers = [each for each, _ in nodes(above) if reads(each, label)]
    else:
        return above
    return next((each for each in readers if total[id(each)] >= total[id(node)]), above)


def reads(node, label):
    """Returns whether a condition of the node reads this InitPlan. Before PostgreSQL 17, conditions name "InitPlan 1 (returns $0)" as $0."""
    conditions = str([value for name, value in node.items() if name not in ("Plans", "Subplan Name")])
    names = re.findall(r"\$\d+", label) or [label]
    return any(re.search(rf"{re.escape(name)}(?!\d)", conditions) for name in names)


def takes_time(plan):
    """Whether the topmost node took any time."""
    return plan["Actual Total Time"] > 0
