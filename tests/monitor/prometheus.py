"""A real Prometheus scrapes the monitor. Its queries return what `pg_timing check` says."""

import json
import subprocess
import tempfile
import time
import urllib.parse

from deploy import tools
from monitor import Monitor, Service, check, free_port, get, running
from outcome import until
from servers import Failed

# How long Prometheus scrapes. All queries are about this time.
SECONDS, QUICK_SECONDS = 120, 20

# Findings that depend on the measuring time or on other work on the machine: a longer run knows more.
NOISY = {"clock-gaps", "wall-clock", "drift", "cpu-skew", "tsc-rate-mismatch"}

# Ratio of two read costs that were measured at different times. A shared machine changes its speed by a third.
COST_RATIO = 1.5


def the_page_is_valid(path, quick):
    """promtool finds no error and no bad name. It reads the page as Prometheus does."""
    with tempfile.TemporaryDirectory() as folder, running(Monitor(path, folder, "--interval", "1")) as monitor:
        monitor.wait_for_samples(2)
        page = monitor.page()
        done = subprocess.run([tools.promtool(), "check", "metrics"], input=page, capture_output=True, text=True)
        if done.returncode != 0 or done.stdout or done.stderr:
            yield f"promtool: exit status {done.returncode}: {done.stdout}{done.stderr}"
        # The test must not pass because promtool ignores its input.
        broken = page.replace("# TYPE pg_timing_verdict gauge", "# TYPE pg_timing_verdict counter")
        done = subprocess.run([tools.promtool(), "check", "metrics"], input=broken, capture_output=True, text=True)
        if done.returncode == 0:
            yield "promtool accepts a wrong page"


class Prometheus(Service):
    """Prometheus that scrapes a port each second."""

    def __init__(self, folder, target):
        self.port = free_port()
        config = {"scrape_configs": [{"job_name": "pg_timing", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}]}
        with open(f"{folder}/prometheus.yml", "w") as file:
            json.dump(config, file)
        command = [
            tools.package("prometheus") / "usr/bin/prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        super().__init__("prometheus", command, folder)
        until(self.is_ready, "Prometheus is ready")

    def is_ready(self):
        self.check_runs()
        try:
            return get(self.port, "/-/ready")
        except (OSError, Failed):
            return None

    def query(self, text, at):
        """Returns the figures by their labels."""
        words = urllib.parse.urlencode({"query": text, "time": at})
        result = json.loads(get(self.port, f"/api/v1/query?{words}"))["data"]["result"]
        ignored = ("__name__", "instance", "job")
        labels = lambda one: tuple(sorted((name, value) for name, value in one["metric"].items() if name not in ignored))
        return {labels(one): float(one["value"][1]) for one in result}

    def one(self, text, at):
        found = self.query(text, at)
        if len(found) != 1:
            raise Failed(f"{text}: {len(found)} series instead of 1")
        return next(iter(found.values()))


def queries_agree_with_check(path, quick):
    seconds = QUICK_SECONDS if quick else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        with running(Monitor(path, folder, "--interval", "1")) as monitor:
            monitor.wait_for_samples(1)
            with running(Prometheus(folder, f"127.0.0.1:{monitor.port}")) as prometheus:
                time.sleep(seconds)
                at = time.time()
                if status := monitor.stop():
                    yield f"exit status {status}"
                report = check(path)
                yield from scrapes_work(prometheus, at, seconds)
                yield from findings_agree(prometheus, at, report)
                yield from figures_agree(prometheus, at, report, seconds)
                yield from [line for line in prometheus.errors().splitlines() if "level=error" in line or "Error on ingesting" in line]


def scrapes_work(prometheus, at, seconds):
    # The first two seconds are the start.
    window = f"{seconds - 2}s"
    if prometheus.one(f"min_over_time(up[{window}])", at) != 1:
        yield "a scrape failed"
    scrapes = prometheus.one(f"count_over_time(up[{window}])", at)
    if scrapes < 0.8 * (seconds - 2):
        yield f"{scrapes:.0f} scrapes in {window}"
    slowest = prometheus.one(f"max_over_time(scrape_duration_seconds[{window}])", at)
    if slowest > 1:
        yield f"the slowest scrape took {slowest:.1f} s"
    samples = prometheus.one(f"increase(pg_timing_monitor_intervals_total[{window}])", at)
    if not 0.8 < samples / (seconds - 2) < 1.2:
        yield f"{samples:.0f} samples in {window}, with an interval of 1 s"
    series = prometheus.query(f"changes(scrape_samples_post_metric_relabeling[{window}])", at)
    if not series:
        yield "no series were scraped"


def findings_agree(prometheus, at, report):
    found = {(dict(labels)["id"], dict(labels)["severity"]) for labels in prometheus.query("pg_timing_finding == 1", at)}
    expected = {(finding["id"], finding["severity"]) for finding in report["findings"]}
    if {id for id, _ in found} != {id for id, _ in expected}:
        yield f"other ids: {sorted(found ^ expected)}"
    different = sorted(pair for pair in found ^ expected if pair[0] not in NOISY)
    if different:
        yield f"other severities: {different}"
    if wrong := prometheus.query("sum by (id) (pg_timing_finding) != 1", at):
        yield f"not one severity per finding: {wrong}"
    verdict = [dict(labels)["severity"] for labels in prometheus.query("pg_timing_verdict == 1", at)]
    worst = max((severity for _, severity in found), key=["unknown", "ok", "warning", "critical"].index)
    if verdict != [worst]:
        yield f"the verdict is {verdict}, and the worst finding is {worst}"


def figures_agree(prometheus, at, report, seconds):
    expected_costs = {clock["name"]: clock.get("read_ns") for clock in report["clocks"]}
    costs = prometheus.query(f"quantile_over_time(0.5, pg_timing_clock_read_cost_seconds[{seconds}s]) * 1e9", at)
    # The monitor reads fewer clocks than `check`.
    if (("clock", "system"),) not in costs:
        yield f"no read cost of PostgreSQL's clock: {costs}"
    for (_, name), cost in ((labels[0], cost) for labels, cost in costs.items()):
        expected = expected_costs.get(name)
        if expected is None or not 1 / COST_RATIO < cost / expected < COST_RATIO:
            yield f"read cost of {name}: {cost} ns instead of {expected} ns"
            continue
        selector = f'{{clock="{name}"}}'
        # The median is in a row of powers of two, and a median difference is close to the mean one.
        rates = f"rate(pg_timing_clock_read_seconds_bucket{selector}[{seconds - 2}s])"
        median = prometheus.one(f"histogram_quantile(0.5, {rates}) * 1e9", at)
        if not cost / 2.5 < median < cost * 2.5:
            yield f"median of the histogram of {name}: {median} ns, and the read cost is {cost} ns"
    khz, ppm = report["tsc"]["frequency_khz"], report["tsc"]["uncertainty_ppm"]
    if not isinstance(khz, float):
        return
    hertz, error = (prometheus.one(f"pg_timing_tsc_frequency_{name}", at) for name in ("hertz", "error_ratio"))
    if not abs(hertz / (khz * 1e3) - 1) <= error + ppm * 1e-6:
        yield f"frequency: {hertz} Hz with an error of {error}, instead of {khz} kHz +- {ppm} ppm"
