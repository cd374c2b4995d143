"""Fits the cost of a timed call, and the error of the estimate, to recordings of `call_costs`.

A call with timing reads the clock twice and counts a row. The processor overlaps a part of that with other work, but at most
OVERLAP_NS. So a call costs `reads` x read cost up to that limit, and SLOW_READS for each ns beyond it:

    cost = reads * min(read, OVERLAP_NS) + SLOW_READS * max(read - OVERLAP_NS, 0) + counting

Row counting and buffer counting follow from the speed of the processor, as in crates/pg_timing/src/report/call_cost.rs.

`reads` depends on the kind of node. The least squares are weighted by each statement's error. A kind with few calls gets the
mean of all kinds, because deviations from the mean are penalized.
"""

import json
import sys
from math import ceil, hypot, inf
from pathlib import Path
from statistics import median

OVERLAP_NS = 50
SLOW_READS = 2.1
# The relative error for slow clocks is at least this: a published plan took 1.47 reads per call.
LEAST_SLOW_ERROR = 0.3
# A call reads the clock twice, and the code around the reads is less than another read.
MOST_READS = 3.0
# No measurement is better than this.
LEAST_ERROR = 0.03
# A statement whose error is larger, in ns per call, says nothing about the cost of a call.
MOST_NOISE_NS = 35
# A statement whose error is a larger part of the overhead does not show the error of an estimate.
MOST_NOISE = 0.12
# The model's own error: a statement with a small error of measurement must not decide alone.
MODEL_ERROR = 0.2
# Statements with a deviation above this number of errors count less (Huber's weights).
FAR = 1.5
# Steps of the weighting.
STEPS = 6
# Expected differences between kinds, in reads.
KINDS_DIFFER = 0.5
# Below this, a read is no system call and no device access.
FAST_NS = 100
# The stated error contains this share of the statements. The third workload counts, too: no model was fitted to it.
COVERAGE = 0.92
# A kind with a smaller share of the calls of each statement was not measured.
LEAST_CALLS = 0.05
# These nodes return everything in one call, so they never have many.
ONE_CALL = ("Hash", "Bitmap Index Scan", "BitmapAnd", "BitmapOr")
FITTED = ("tpch", "own", "kinds")
TEST = "third"


def rows(paths):
    for path in paths:
        for line in Path(path).read_text().splitlines():
            row = json.loads(line)
            row["overhead"] = row["reported_ms"] - row["plain_ms"]
            row["noise"] = max(row["error"], LEAST_ERROR) * row["plain_ms"]
            yield row


def low_ns(row):
    return min(row["read_ns"], OVERLAP_NS)


def counting_ns(row):
    rows = min(max(0.33 * row["read_ns"], 5), 17)
    return 2 * rows if row["buffers"] else rows


def fixed_ms(row):
    """Returns the part of the overhead that is the same for all kinds."""
    return (SLOW_READS * max(row["read_ns"] - OVERLAP_NS, 0) + counting_ns(row)) * sum(row["calls"].values()) / 1e6


def solve(matrix, right):
    """Solves a system of linear equations by Gauss's method."""
    n = len(right)
    table = [list(line) + [right[i]] for i, line in enumerate(matrix)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(table[k][i]))
        table[i], table[pivot] = table[pivot], table[i]
        for k in range(i + 1, n):
            factor = table[k][i] / table[i][i]
            for column in range(i, n + 1):
                table[k][column] -= factor * table[i][column]
    result = [0.0] * n
    for i in reversed(range(n)):
        result[i] = (table[i][n] - sum(table[i][k] * result[k] for k in range(i + 1, n))) / table[i][i]
    return result


def fit(rows):
    """Returns (reads of any kind, {kind: reads}). The sums of squares are weighted again in each step, so that outliers count less."""
    model = (2.0, {})
    for _ in range(STEPS):
        model = fit_once(rows, model)
    return model


def weight(row, model):
    """Returns the weight of a statement's square: less with a larger error, and less if the error of the model is large."""
    guess = estimate(model, row)
    error = hypot(row["noise"], MODEL_ERROR * guess)
    distance = abs(row["overhead"] - guess) / error
    return min(1, FAR / max(distance, FAR)) / error**2


def fit_once(rows, model):
    """Returns the model of least squares. The previous model gives the weights."""
    kinds = sorted({kind for row in rows for kind in row["calls"]})
    # Unknowns: the mean, and each kind's difference from it.
    n = len(kinds) + 1
    matrix = [[0.0] * n for _ in range(n)]
    right = [0.0] * n
    for row in rows:
        ms = low_ns(row) / 1e6
        x = [sum(row["calls"].values()) * ms] + [row["calls"].get(kind, 0) * ms for kind in kinds]
        y = row["overhead"] - fixed_ms(row)
        factor = weight(row, model)
        for i in range(n):
            if x[i]:
                right[i] += factor * x[i] * y
                for k in range(n):
                    matrix[i][k] += factor * x[i] * x[k]
    for i in range(1, n):
        matrix[i][i] += 1 / KINDS_DIFFER**2
    mean, *others = solve(matrix, right)
    return mean, {kind: min(max(mean + other, 0), MOST_READS) for kind, other in zip(kinds, others)}


def measured_kinds(rows):
    """Returns the kinds that have many calls in some statement."""
    return {kind for row in rows for kind, calls in row["calls"].items() if kind in ONE_CALL or calls > LEAST_CALLS * sum(row["calls"].values())}


def estimate(model, row):
    mean, kinds = model
    reads = sum(calls * kinds.get(kind, mean) for kind, calls in row["calls"].items())
    return min(reads * low_ns(row) / 1e6 + fixed_ms(row), row["reported_ms"])


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
    """Returns the worst error of each statement over its recordings."""
    errors = {}
    for row, guess in pairs:
        if is_measured(row, guess):
            statement = row["workload"], row["number"]
            errors[statement] = max(errors.get(statement, 0), abs(row["overhead"] / guess - 1))
    return list(errors.values())


def band(row):
    return "fast clock" if row["read_ns"] < FAST_NS else "slow clock"


def quantile(values, share):
    """Returns the conformal quantile: at least `share` of further values are below it."""
    values = sorted(values)
    at = ceil(share * (len(values) + 1)) - 1
    return values[at] if at < len(values) else inf


def show(what, pairs):
    relative = relative_errors(pairs)
    if not relative:
        return
    errors = [abs((row["reported_ms"] - guess) / row["plain_ms"] - 1) for row, guess in pairs if row["overhead"] < 0.6 * row["reported_ms"]]
    result = f"error of the result {sum(errors) / len(errors):.1%} on average, max {max(errors):.0%}, of {len(errors)}" if errors else "no result"
    print(f"{what}: {result}; "
          f"error of the overhead {median(relative):.0%} (median), {quantile(relative, 0.9):.0%} (90%) of {len(relative)}", file=sys.stderr)


def bands(data):
    """Yields (name, limit of the read cost, rows)."""
    for name, limit in (("fast clock", FAST_NS), ("slow clock", inf)):
        yield name, limit, [row for row in data if band(row) == name]


def rust(model, errors):
    """Returns the table as Rust code."""
    mean, kinds = model
    rows = [(kind.removesuffix(" (inner)"), kind.endswith(" (inner)"), reads) for kind, reads in kinds.items()]
    lines = [f'    ("{kind}", {str(inner).lower()}, {reads:.2f}),' for kind, inner, reads in rows]
    limits = [f"({'f64::INFINITY' if limit == inf else f'{limit:.1f}'}, {error:.2f})" for limit, error in errors]
    return TABLE.format(OVERLAP_NS, SLOW_READS, mean, len(lines), "\n".join(lines), len(limits), ", ".join(limits))


TABLE = """\
//! Fitted figures of call_cost.rs. `tests/explain/call_costs fit` prints this file.

/// The processor overlaps at most this much of a read with other work.
pub const OVERLAP_NS: f64 = {:.1f};
/// Reads per call, for the part of a read beyond the overlap.
pub const SLOW_READS: f64 = {:.1f};
/// Reads per call of a kind that was not measured.
pub const ANY_KIND: f64 = {:.2f};
/// Kind of node, whether it is on the inner side of a nested loop, and reads per call.
#[rustfmt::skip]
pub const KINDS: [(&str, bool, f64); {}] = [
{}
];
/// Relative error of a plan's overhead, for read costs below the first figure in ns.
pub const ERRORS: [(f64, f64); {}] = [{}];
"""


def main(paths):
    """Prints the table, and its errors on stderr."""
    data = list(rows(paths))
    fitted = [row for row in data if row["workload"] in FITTED and row["noise"] < MOST_NOISE_NS * sum(row["calls"].values()) / 1e6]
    test = [row for row in data if row["workload"] == TEST]
    model = fit(fitted)
    pairs = list(cross_validated(fitted))
    errors = []
    for name, limit, in_band in bands(data):
        validated = [pair for pair in pairs if pair[0] in in_band]
        show(f"{name}, cross-validated", validated)
        tested = [(row, estimate(model, row)) for row in test if row in in_band]
        show(f"{name}, third workload", tested)
        error = quantile(relative_errors(validated + tested), COVERAGE)
        errors.append((limit, max(error, LEAST_SLOW_ERROR) if limit == inf else error))
    measured = measured_kinds(fitted)
    model = model[0], {kind: reads for kind, reads in model[1].items() if kind in measured}
    print(rust(model, errors), end="")
