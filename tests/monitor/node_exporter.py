"""A real node_exporter shows the metrics in the textfile. A reader never sees a part of a page."""

import tempfile
import time
from pathlib import Path

from deploy import tools
from monitor import Monitor, Service, free_port, get, parse, running
from outcome import until
from servers import Failed

SECONDS, QUICK_SECONDS = 60, 10


class NodeExporter(Service):
    def __init__(self, folder, textfiles):
        self.port = free_port()
        command = [
            tools.package("prometheus-node-exporter") / "usr/bin/prometheus-node-exporter",
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={textfiles}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        super().__init__("node_exporter", command, folder)
        until(self.page, "node_exporter is ready")

    def page(self):
        self.check_runs()
        try:
            return get(self.port, "/metrics")
        except (OSError, Failed):
            return None


# On a busy machine, some samples have no figure for these.
SOMETIMES = ("pg_timing_cpu_skew_", "pg_timing_clock_drift_", "pg_timing_tsc_frequency_")


def own(figures):
    """Returns the names and labels of our series that are in each sample.

    node_exporter writes the bounds of a histogram with other digits.
    """
    value = lambda label, text: float(text) if label == "le" else text
    names = lambda name: name.startswith("pg_timing_") and not name.startswith(SOMETIMES)
    return {(name, tuple((label, value(label, text)) for label, text in labels)) for name, labels in figures if names(name)}


def the_file_is_always_complete(path, quick):
    seconds = QUICK_SECONDS if quick else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        textfiles = Path(folder) / "textfiles"
        textfiles.mkdir()
        file = textfiles / "pg_timing.prom"
        arguments = ("--interval", "0.1", "--textfile", file)
        with running(Monitor(path, folder, *arguments)) as monitor, running(NodeExporter(folder, textfiles)) as exporter:
            monitor.wait_for_samples(3)
            series = own(parse(file.read_text()))
            yield from read_all_the_time(monitor, file, exporter, series, seconds)
            # The page is written after the sample, so the last one may be a little older.
            ours, theirs = parse(file.read_text()), parse(exporter.page())
            if missing := series - own(theirs):
                yield f"node_exporter does not show {sorted(missing)[:3]}"
            if own(ours) - series:
                yield f"new series after the start: {sorted(own(ours) - series)[:3]}"
            if file.stat().st_mode & 0o7777 != 0o644:
                yield f"mode {file.stat().st_mode:o}"
            if status := monitor.stop():
                yield f"exit status {status}"
            if left := sorted(textfiles.iterdir()):
                yield f"files after the end: {left}"
            if own(parse(exporter.page())):
                yield "node_exporter shows metrics after the end"


def read_all_the_time(monitor, file, exporter, series, seconds):
    versions, next_scrape, end = set(), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        text = file.read_text()
        figures = parse(text)
        if missing := series - own(figures):
            yield f"a page of {len(text)} bytes misses {sorted(missing)[:3]}"
            return
        versions.add(figures["pg_timing_monitor_intervals_total", ()])
        if time.monotonic() > next_scrape:
            next_scrape = time.monotonic() + 1
            monitor.check_runs()
            scraped = parse(exporter.page())
            if scraped["node_textfile_scrape_error", ()] != 0:
                yield f"node_textfile_scrape_error: {exporter.errors()[-500:]}"
                return
    # The interval is 0.1 s. A slow machine takes fewer samples.
    if len(versions) < 2 * seconds:
        yield f"only {len(versions)} versions of the file in {seconds} s"
