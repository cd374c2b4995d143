"""Prometheus' own tool checks the rules, runs their unit tests, and evaluates each query of the dashboard."""

import itertools
import json
import re
import shutil
import tempfile
from pathlib import Path

import metrics
from servers.commands import Failed, output
from tools import DEPLOY, WORK, promtool, rejected

# Values of the labels for which a query selects or combines series. Other labels get the value "x".
LABEL_VALUES = {
    "severity": ("ok", "warning", "critical", "unknown"),
    "clock": ("system", "rdtscp"),
    "bound": ("low", "high"),
    "le": ("1e-08", "1e-07", "+Inf"),
}


def check():
    output([promtool(), "check", "rules", metrics.RULES])
    output([promtool(), "test", "rules", metrics.RULE_TESTS])
    output([promtool(), "check", "config", "--syntax-only", DEPLOY / "prometheus/scrape.yml"])
    return ()


def a_wrong_limit_is_found():
    """The unit tests of the rules fail if a limit is wrong."""
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        shutil.copy(metrics.RULE_TESTS, folder)
        rules = metrics.RULES.read_text()
        (Path(folder) / metrics.RULES.name).write_text(rules.replace("> 2 * pg_timing:", "> 3 * pg_timing:"))
        yield from rejected("a wrong limit", [promtool(), "test", "rules", Path(folder) / metrics.RULE_TESTS.name], "FAILED")


def queries_return_series():
    """On a host that exports every metric, each query of the dashboard returns at least one series."""
    queries = list(metrics.expressions(json.loads(metrics.DASHBOARD.read_text())))
    yield from unanswered(queries)
    # A query that returns nothing is found.
    for wrong in ('pg_timing_verdict{severity="none"}', "pg_timing_server_up and on (setting) pg_timing_server_setting_on"):
        if not list(unanswered([("wrong", wrong, "")])):
            yield f"a query without a result is not found: {wrong}"


def unanswered(queries):
    """Yields a complaint for each query without a result."""
    alerts = [{"alert": f"Query{n}", "expr": f"absent({plain(query)})"} for n, (_, query, _) in enumerate(queries)]
    expected = [{"eval_time": "2h", "alertname": alert["alert"], "exp_alerts": []} for alert in alerts]
    # A counter that grows, so that rates are above zero, and a gauge of 1, which is "yes" for metrics with two values.
    series = [{"series": one, "values": "0+1x120" if counts else "1x120"} for one, counts in every_series()]
    tests = {"rule_files": ["rules.yml"], "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": expected}]}
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        # JSON is YAML.
        (Path(folder) / "rules.yml").write_text(json.dumps({"groups": [{"name": "queries", "rules": alerts}]}))
        (Path(folder) / "tests.yml").write_text(json.dumps(tests))
        try:
            output([promtool(), "test", "rules", Path(folder) / "tests.yml"])
            return
        except Failed as failed:
            printed = str(failed)
    fired = sorted({int(n) for n in re.findall(r"alertname: Query(\d+)", printed)})
    yield from (f"{queries[n][0]}: no result of {queries[n][1]}" for n in fired)
    if not fired:
        yield printed


def plain(query):
    """Returns the query with values instead of Grafana's variables."""
    return query.replace("$__rate_interval", "5m").replace("$instance", ".+").replace("$clock", "system")


def every_series():
    """Returns each series of a host, and whether it is a counter."""
    for name, metric in metrics.metrics().items():
        if metric.kind == "histogram":
            continue
        names = sorted(metric.labels)
        for values in itertools.product(*(LABEL_VALUES.get(label, ("x",)) for label in names)):
            labels = {"job": "pg_timing", "instance": "db1:9864"} | dict(zip(names, values, strict=True))
            selector = ",".join(f'{label}="{value}"' for label, value in labels.items())
            yield f"{name}{{{selector}}}", metric.kind == "counter"
