"""Fits the cost of a timed call, and the error of the estimate, to recordings of `call_costs`.

pg_timing measures on the host what timing adds to a call of a small function (timed_call_ns). A call of a node costs the same, plus
a part for the node, plus row counting:

    cost = call + part * (min(call, NODE_NS) + SLOW_PART * max(call - NODE_NS, 0)) + counting

If only the read cost is known, `call` is CALL_READS x read cost. The least squares are weighted by each statement's error.
"""

import json
import sys
from collections import Counter
from math import hypot, inf
from pathlib import Path

# A node adds a part to a call's cost, but mainly to its first 100 ns: then the work around the reads matters less.
NODE_NS = 100
SLOW_PART = 0.1
# A timed call reads the clock twice.
CALL_READS = 2.0
# The cost of row counting in reads of the system clock, and its limits in ns. Buffer counting costs the same again.
COUNTING_READS = 0.28
COUNTING_LIMITS_NS = (4, 12)
# If only the read cost is known, the relative error for slow clocks is at least this: a published plan took 1.47 reads per call.
LEAST_SLOW_ERROR = 0.3
# Only a library slowed our clocks, so the error for real slow clocks is at least this.
LEAST_SLOW_CALL_ERROR = 0.15
# No measurement is better than this.
LEAST_ERROR = 0.02
# A statement whose error is larger, in ns per call, says nothing about the cost of a call.
MOST_NOISE_NS = 35
# A statement whose error is a larger part of the overhead does not show the error of an estimate.
MOST_NOISE = 0.12
# The model's own error: a statement with a small error of measurement must not decide alone.
MODEL_ERROR = 0.1
# Statements with a deviation above this number of errors count less (Huber's weights).
FAR = 1.5
# Steps of the weighting.
STEPS = 6
# Below this, a read is no system call and no device access.
FAST_NS = 100
# The stated error contains this share of the statements.
COVERAGE = 0.92
# Clock reads also slow the work between them, if it waits for memory. That adds up to this part of the reported time, but at most the
# estimated overhead. `show_intervals` checks this, also for statements with few calls.
WORK_ERROR = 0.03
FITTED = ("tpch", "own", "kinds")
TEST = "third"


def rows(paths):
    for path in paths:
        for line in Path(path).read_text().splitlines():
            row = json.loads(line)
            row["overhead"] = row["reported_ms"] - row["plain_ms"]
            row["noise"] = max(row["error"], LEAST_ERROR) * row["plain_ms"]
            row["call_ns"] = row.get("timed_call_ns", CALL_READS * row["read_ns"])
            yield row


def is_known(row):
    """Whether the overhead is known. A statement that sends rows without EXPLAIN can be slower without EXPLAIN."""
    return row["overhead"] > 0


def with_read_cost_only(row):
    return row | {"call_ns": CALL_READS * row["read_ns"]}


def node_ms(row):
    """Returns what the nodes add to all calls, for a part of 1."""
    each = min(row["call_ns"], NODE_NS) + SLOW_PART * max(row["call_ns"] - NODE_NS, 0)
    return each * calls(row) / 1e6


def calls(row):
    return sum(row["calls"].values())


def counting_ns(row):
    least, most = COUNTING_LIMITS_NS
    rows = min(max(COUNTING_READS * row.get("system_read_ns", row["read_ns"]), least), most)
    return 2 * rows if row["buffers"] else rows


def fixed_ms(row):
    """Returns the overhead without what the nodes add."""
    return (row["call_ns"] + counting_ns(row)) * calls(row) / 1e6


def fit(rows):
    """Returns the part that a node adds. The squares are weighted again in each step, so that outliers count less."""
    part = 0.0
    for _ in range(STEPS):
        weights = [weight(row, part) for row in rows]
        products = sum(factor * node_ms(row) * (row["overhead"] - fixed_ms(row)) for factor, row in zip(weights, rows))
        part = products / sum(factor * node_ms(row) ** 2 for factor, row in zip(weights, rows))
    return part


def weight(row, part):
    """Returns the weight of a statement's square: less with a larger error, and less if the error of the model is large."""
    guess = estimate(part, row)
    error = hypot(row["noise"], MODEL_ERROR * guess)
    distance = abs(row["overhead"] - guess) / error
    return min(1, FAR / max(distance, FAR)) / error**2


def estimate(part, row):
    return min(part * node_ms(row) + fixed_ms(row), row["reported_ms"])


def cross_validated(rows):
    """Yields (row, estimate by a model that was fitted without this statement)."""
    for statement in sorted({(row["workload"], row["number"]) for row in rows}):
        model = fit([row for row in rows if (row["workload"], row["number"]) != statement])
        yield from ((row, estimate(model, row)) for row in rows if (row["workload"], row["number"]) == statement)


def is_measured(row, guess):
    """Whether the error of the measurement is small compared with the overhead. The estimate decides, because a measured overhead
    is also large by chance."""
    return row["noise"] < MOST_NOISE * guess and guess > 0.05 * row["reported_ms"]


def relative_errors(pairs):
    """Returns [(error, weight)]. Each statement has the weight 1, which its recordings share."""
    errors = [(abs(row["overhead"] / guess - 1), (row["workload"], row["number"])) for row, guess in pairs if is_measured(row, guess)]
    recordings = Counter(statement for _, statement in errors)
    return [(error, 1 / recordings[statement]) for error, statement in errors]


def quantile(weighted, share):
    """Returns the conformal quantile: at least `share` of further values are below it."""
    total = 0
    needed = share * (sum(weight for _, weight in weighted) + 1)
    for value, weight in sorted(weighted):
        total += weight
        if total >= needed:
            return value
    raise SystemExit(f"{len(weighted)} errors are too few for a quantile of {share:.0%}")


def show(what, pairs):
    relative = relative_errors(pairs)
    if not relative:
        return
    errors = [abs((row["reported_ms"] - guess) / row["plain_ms"] - 1) for row, guess in pairs if row["overhead"] < 0.6 * row["reported_ms"]]
    result = f"error of the result {sum(errors) / len(errors):.1%} on average, max {max(errors):.0%}, of {len(errors)}" if errors else "no result"
    print(f"{what}: {result}; "
          f"error of the overhead {quantile(relative, 0.5):.0%} (median), {quantile(relative, 0.9):.0%} (90%) of {round(sum(weight for _, weight in relative))} statements", file=sys.stderr)


def show_intervals(what, pairs, error):
    """Prints how many intervals of the result contain the truth, and how many within the error of the measurement."""
    pairs = [(row, guess) for row, guess in pairs if row["overhead"] < 0.6 * row["reported_ms"]]
    distances = [(abs(row["overhead"] - guess), hypot(error * guess, min(WORK_ERROR * row["reported_ms"], guess)), row["noise"]) for row, guess in pairs]
    held = sum(distance <= margin for distance, margin, _ in distances)
    nearly = sum(distance <= hypot(margin, noise) for distance, margin, noise in distances)
    print(f"{what}: {held} of {len(pairs)} intervals contain the truth, {nearly} within the error of the measurement", file=sys.stderr)


# Name of the band, and its limit of the read cost.
BANDS = (("fast clock", FAST_NS), ("slow clock", inf))


def in_band(pairs, limit):
    return [pair for pair in pairs if (pair[0]["read_ns"] < FAST_NS) == (limit == FAST_NS)]


def band_errors(what, validated, tested, least):
    """Returns [(limit of the read cost, relative error)], which the pairs of `validated` decide. `tested` has names and pairs of tests."""
    errors = []
    for name, limit in BANDS:
        pairs = in_band(validated, limit)
        show(f"{name}, {what}", pairs)
        for test, others in tested:
            show(f"{name}, {test}", in_band(others, limit))
        errors.append((limit, max(quantile(relative_errors(pairs), COVERAGE), least if limit == inf else 0)))
        show_intervals(f"{name}, {what}", pairs + [pair for _, others in tested for pair in in_band(others, limit)], errors[-1][1])
    return errors


def rust(part, with_call, with_read):
    """Returns the table as Rust code."""
    limits = [", ".join(f"({'f64::INFINITY' if limit == inf else f'{limit:.1f}'}, {error:.2f})" for limit, error in errors) for errors in (with_call, with_read)]
    return TABLE.format(NODE_NS, SLOW_PART, CALL_READS, part, *limits, WORK_ERROR, COUNTING_READS, *COUNTING_LIMITS_NS)


TABLE = """\
//! Fitted figures of call_cost.rs. `tests/explain/call_costs fit` prints this file.

/// A node adds a part to the first {0:.0f} ns of a call.
pub const NODE_NS: f64 = {0:.1f};
/// The rest of a call differs by this fraction of that.
pub const SLOW_PART: f64 = {1:.1f};
/// Clock reads also slow the work between them: by up to this part of the reported time.
pub const WORK_ERROR: f64 = {6:.2f};
/// The cost of row counting per call, in reads of the system clock.
pub const COUNTING_READS: f64 = {7:.2f};
/// The limits of the estimated cost of row counting per call, in ns. Buffer counting costs the same again.
pub const COUNTING_NS: (f64, f64) = ({8:.1f}, {9:.1f});
/// Reads per call, if only the read cost is known.
pub const CALL_READS: f64 = {2:.1f};
/// The part that a node adds to a call.
pub const NODE_PART: f64 = {3:.2f};
/// Relative error of a plan's overhead if the cost of a timed call was measured, for read costs below the first figure in ns.
pub const ERRORS: [(f64, f64); 2] = [{4}];
/// The same if only the read cost is known.
pub const READ_COST_ERRORS: [(f64, f64); 2] = [{5}];
"""


def main(paths):
    """Prints the table, and its errors on stderr. Hosts without timed_call_ns are not fitted. They decide the error if only the read
    cost is known."""
    data = [row for row in rows(paths) if is_known(row)]
    known = [row for row in data if "timed_call_ns" in row]
    fitted = [row for row in known if row["workload"] in FITTED and row["noise"] < MOST_NOISE_NS * calls(row) / 1e6]
    model = fit(fitted)
    pairs = list(cross_validated(fitted))
    tested = [(row, estimate(model, row)) for row in known if row["workload"] == TEST]
    with_call = band_errors("timed call known, cross-validated", pairs, [("third workload", tested)], LEAST_SLOW_CALL_ERROR)
    by_read_cost = [(row, estimate(model, row)) for row in map(with_read_cost_only, data)]
    same_host, other_hosts = ([pair for pair in by_read_cost if ("timed_call_ns" in pair[0]) == is_same] for is_same in (True, False))
    # Hosts differ, so only other hosts show the error.
    with_read = band_errors("read cost known, other host", other_hosts, [("host of the fit", same_host)], LEAST_SLOW_ERROR)
    print(rust(model, with_call, with_read), end="")
