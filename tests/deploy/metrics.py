"""The metrics and finding ids that the rules, their tests and the dashboard name must exist."""

import json
import re
from dataclasses import dataclass

from tools import DEPLOY, ROOT

RULES = DEPLOY / "prometheus/pg_timing.rules.yml"
RULE_TESTS = DEPLOY / "prometheus/pg_timing.rules.test.yml"
README = DEPLOY / "README.md"
DASHBOARD = DEPLOY / "grafana/pg_timing.json"

# Prometheus adds these two to every series.
TARGET_LABELS = {"job", "instance"}
SEVERITIES = {"ok", "warning", "critical", "unknown"}
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")

# Metrics that the dashboard does not show, with the reason.
NOT_SHOWN = {
    "pg_timing_monitor_interval_seconds": "a setting, and not a measurement",
    "pg_timing_monitor_intervals_total": "the age of the last sample shows whether the monitor runs",
}


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str
    labels: frozenset


def metrics():
    """Returns the metrics by name. docs/metrics.md is generated from the program's table, and a unit test compares both."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", (ROOT / "docs/metrics.md").read_text(), re.M)
    found = {name: Metric(name, kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    for metric in [metric for metric in found.values() if metric.kind == "histogram"]:
        for suffix in HISTOGRAM_SUFFIXES:
            more = {"le"} if suffix == "_bucket" else set()
            found[metric.name + suffix] = Metric(metric.name, "counter", metric.labels | more)
    return found


def finding_ids():
    source = (ROOT / "crates/pg_timing/src/report/finding_id.rs").read_text()
    return set(re.findall(r'^pub const [A-Z_]+: &str = "([a-z-]+)";', source, re.M))


def recorded(rules):
    """Returns the names of the recording rules."""
    return set(re.findall(r"- record: (\S+)", rules))


def selectors(text):
    """Returns (name, {label: value}) of each selector of a metric of pg_timing."""
    for name, matchers in re.findall(r"\b(pg_timing[_:][a-z0-9_:]+)(?:\{([^}]*)\})?", text):
        yield name, dict(re.findall(r'(\w+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"', matchers))


def wrong_names(text, known, rules):
    """Yields a complaint for each metric, label, finding id or severity in the text that does not exist."""
    used = set()
    for name, labels in selectors(text):
        if name in recorded(rules):
            continue
        if name not in known:
            yield f"no such metric: {name}"
            continue
        used |= known[name].labels
        for label in labels.keys() - known[name].labels - TARGET_LABELS:
            yield f"{name} has no label {label}"
        ids = labels["id"].split("|") if "id" in labels and name.startswith("pg_timing_finding") else ()
        for id in set(ids) - finding_ids():
            yield f"no such finding: {id}"
        for severity in set(labels.get("severity", "ok").split("|")) - SEVERITIES:
            yield f"no such severity: {severity}"
    grouped = re.findall(r"\b(?:by|on|ignoring|without) ?\(([^)]*)\)", text)
    shown = re.findall(r"\$labels\.(\w+)|(?<!\$)\{\{ ?(\w+) ?\}\}", text)
    for label in {label.strip() for labels in grouped for label in labels.split(",")} | {a or b for a, b in shown}:
        if label not in used | TARGET_LABELS:
            yield f"no metric has the label {label}: {text[:80]}"


def rules_by_text(rules):
    """Returns the text of each rule, so that a label is compared with the metrics of its own rule."""
    return re.split(r"^      - (?=alert:|record:)", rules, flags=re.M)[1:]


def with_recorded(rule, rules):
    """Returns the rule, and the rules that record what it uses: it has their labels."""
    used = [text for text in rules_by_text(rules) if any(f"record: {name}\n" in text for name in recorded(rules) if name in rule)]
    return "\n".join([rule, *used])


def check_rules(rules):
    known = metrics()
    for rule in rules_by_text(rules):
        yield from wrong_names(without_comments(with_recorded(rule, rules)), known, rules)


def check_alerts(rules, readme):
    """Each alert has a severity, says which command shows the cause, and is in the README."""
    for alert in [rule for rule in rules_by_text(rules) if rule.startswith("alert:")]:
        name = alert.split()[1]
        parts = re.search(r"severity: \S+.*\n +annotations:\n(?: +runbook_url: .*\n)? +summary: .*?\n +description: .*Run on", alert, re.S)
        if not parts:
            yield f"{name} has no severity, summary, description or command"
        if f"`{name}`" not in readme:
            yield f"deploy/README.md does not name {name}"
        if "pg_timing_finding{" in alert and "runbook_url" not in alert:
            yield f"{name} has no link to the page of the finding"
    for page, heading in re.findall(r'runbook_url: "https://example.com/pg_timing/(\w+).html#?(.*)"', rules):
        headings = re.findall(r"^## `?([\w-]+)`?$", (ROOT / f"docs/{page}.md").read_text(), re.M)
        if heading not in ("", "{{ $labels.id }}", *headings):
            yield f"docs/{page}.md has no {heading}"
    for name in set(re.findall(r"`(PgTiming\w+)`", readme)) - set(re.findall(r"- alert: (\S+)", rules)):
        yield f"deploy/README.md names {name}, which does not exist"


def without_comments(text):
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def check_rule_tests(tests, rules):
    """Each series has the labels of its metric. Each alert fires in one test, and does not fire in another."""
    known = metrics()
    yield from wrong_names(without_comments(tests), known, rules)
    for name, labels in selectors(tests):
        if labels and name in known and labels.keys() != known[name].labels | TARGET_LABELS:
            yield f"a series of {name} has the labels {', '.join(sorted(labels))}"
    for alert in re.findall(r"- alert: (\S+)", rules):
        found = re.findall(rf"- alertname: {alert}\n +eval_time: \S+\n +exp_alerts:(.*)", tests)
        if "" not in found:
            yield f"no test in which {alert} fires"
        if " []" not in found:
            yield f"no test in which {alert} does not fire"


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def expressions(dashboard):
    """Returns (title, expression, legend) of each query of a panel."""
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


def check_dashboard(text, rules):
    dashboard = json.loads(text)
    known = metrics()
    for title, expression, legend in expressions(dashboard):
        yield from (f"{title}: {wrong}" for wrong in wrong_names(f"{expression}\n{legend}", known, rules))
    used = {known[name].name for name, _ in selectors(text) if name in known}
    # The series of a histogram count as one metric.
    wanted = {metric.name for metric in known.values()}
    for name in sorted(wanted - used - NOT_SHOWN.keys()):
        yield f"no panel shows {name}"
    for name in sorted(NOT_SHOWN.keys() - (wanted - used)):
        yield f"NOT_SHOWN has a metric that is shown or does not exist: {name}"


def check():
    rules = RULES.read_text()
    yield from check_rules(rules)
    yield from check_alerts(rules, README.read_text())
    yield from check_rule_tests(RULE_TESTS.read_text(), rules)
    yield from check_dashboard(DASHBOARD.read_text(), rules)


def mistakes_are_found():
    """The checks above fail for a misspelled name of each kind."""
    rules, tests, dashboard, readme = (path.read_text() for path in (RULES, RULE_TESTS, DASHBOARD, README))
    in_rules = (rules, check_rules)
    in_alerts = (rules, lambda bad: check_alerts(bad, readme))
    in_tests = (tests, lambda bad: check_rule_tests(bad, rules))
    in_panels = (dashboard, lambda bad: check_dashboard(bad, rules))
    for what, (text, complaints), right, wrong in (
        ("metric in a rule", in_rules, "pg_timing_pauses_total", "pg_timing_pause_total"),
        ("label in a rule", in_rules, 'clock="system"', 'clok="system"'),
        ("label of an annotation", in_rules, "$labels.reference", "$labels.referenz"),
        ("finding", in_rules, 'id="cpu-skew"', 'id="cpu-skews"'),
        ("severity", in_rules, 'severity="unknown"', 'severity="unkown"'),
        ("joined label", in_rules, "on (job, instance, setting)", "on (job, settings)"),
        ("alert that is not in the README", in_alerts, "alert: PgTimingPaused", "alert: PgTimingPause"),
        ("alert without a command", in_alerts, "Run on", "Run it on"),
        ("metric in a test", in_tests, "pg_timing_suspends_total", "pg_timing_suspend_total"),
        ("label in a test", in_tests, ',bound="low"', ""),
        ("alert without a test", in_tests, "alertname: PgTimingPaused", "alertname: PgTimingPause"),
        ("metric of a panel", in_panels, "pg_timing_server_up", "pg_timing_server_ups"),
        ("label of a panel", in_panels, "{{setting}}", "{{settings}}"),
        ("metric without a panel", in_panels, "pg_timing_server_up", "pg_timing_verdict"),
    ):
        if right not in text or not list(complaints(text.replace(right, wrong))):
            yield f"a mistake is not found: {what}"
