"""The dashboard works with any data source of the type Prometheus, and needs no plugin."""

import json
import re
import tempfile
from pathlib import Path

from metrics import DASHBOARD, panels
from servers.commands import Failed, output
from tools import HERE, WORK, node_packages

# The panels that Grafana itself contains, of those that the dashboard uses.
BUILT_IN = {"heatmap", "row", "state-timeline", "table", "timeseries"}
# Grafana 10 wrote 38 and 39. Newer versions of Grafana read it, too.
OLDEST_SCHEMA = 38
COLUMNS = 24


def check():
    yield from wrong(json.loads(DASHBOARD.read_text()))


def matches_grafanas_types():
    """Grafana's types have each property of the dashboard, and the dashboard has each property that they require."""
    command = ["node", HERE / "grafana_schema.cjs", node_packages()]
    output([*command, DASHBOARD])
    # One of the whole dashboard, and one of each type of panel.
    options = ("schemaVersion", "cellHeight", "drawStyle", "rowHeight", "yAxis")
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        misspelled = Path(folder) / "misspelled.json"
        misspelled.write_text(re.sub(rf'"({"|".join(options)})"', r'"wrong_\1"', DASHBOARD.read_text()))
        try:
            found = output([*command, misspelled])
        except Failed as failed:
            found = str(failed)
    yield from (f"misspelled {option} is not found" for option in options if f"wrong_{option}" not in found)


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
