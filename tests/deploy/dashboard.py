"""The dashboard works with any data source of the type Prometheus, and needs no plugin."""

import json

from metrics import DASHBOARD, panels

# The panels that Grafana itself contains, of those that the dashboard uses.
BUILT_IN = {"heatmap", "row", "state-timeline", "table", "timeseries"}
# Grafana 10 wrote 38 and 39. Newer versions of Grafana read it, too.
OLDEST_SCHEMA = 38
COLUMNS = 24


def check():
    yield from wrong(json.loads(DASHBOARD.read_text()))


def mistakes_are_found():
    for what, change in (
        ("fixed data source", lambda panel: panel["targets"][0]["datasource"].update(uid="abc")),
        ("plugin", lambda panel: panel.update(type="piechart-panel")),
        ("missing unit", lambda panel: panel["fieldConfig"]["defaults"].pop("unit")),
        ("missing description", lambda panel: panel.update(description="")),
        ("overlap", lambda panel: panel["gridPos"].update(y=panel["gridPos"]["y"] + 1)),
    ):
        dashboard = json.loads(DASHBOARD.read_text())
        change(next(panel for panel in panels(dashboard) if panel["type"] == "timeseries"))
        if not list(wrong(dashboard)):
            yield f"a mistake is not found: {what}"


def wrong(dashboard):
    if dashboard["schemaVersion"] < OLDEST_SCHEMA or not dashboard["uid"] or not dashboard["editable"] or dashboard["id"]:
        yield "schemaVersion, uid, editable or id"
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    if variables["datasource"]["type"] != "datasource" or variables["datasource"]["query"] != "prometheus":
        yield "no variable for the data source"
    ids, cells = set(), set()
    for panel in panels(dashboard):
        yield from (f"{panel['title']}: {what}" for what in wrong_panel(panel))
        if panel["id"] in ids:
            yield f"{panel['title']}: id {panel['id']} occurs twice"
        ids.add(panel["id"])
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        if own & cells or at["x"] + at["w"] > COLUMNS:
            yield f"{panel['title']}: overlaps another panel"
        cells |= own
    for name, variable in variables.items():
        if name != "datasource" and variable["datasource"]["uid"] != "${datasource}":
            yield f"variable {name}: fixed data source"


def wrong_panel(panel):
    if panel["type"] not in BUILT_IN:
        yield f"type {panel['type']}"
    if panel["type"] == "row":
        return
    if not panel["description"].endswith("."):
        yield "no description"
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    if any(source != {"type": "prometheus", "uid": "${datasource}"} for source in sources):
        yield "fixed data source"
    if panel["type"] == "timeseries" and "unit" not in panel["fieldConfig"]["defaults"]:
        yield "no unit"
