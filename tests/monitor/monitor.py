"""Starts pg_timing monitor and other services, and reads their pages."""

import http.client
import json
import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from outcome import until
from servers import Failed

# The monitor must answer a scrape in this time, whatever else happens.
SCRAPE_SECONDS = 1

SERIES = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\.)*)"')


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Service:
    """A running program. Its output goes to files in `folder`, unless `options` name another place."""

    def __init__(self, name, command, folder, **options):
        self.name, self.folder = name, Path(folder)
        with open(self.folder / f"{name}.out", "wb") as out, open(self.folder / f"{name}.err", "wb") as err:
            options = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, **options}
            self.process = subprocess.Popen(command, **options)

    def errors(self):
        return (self.folder / f"{self.name}.err").read_text()

    def check_runs(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}: {self.errors()[-2000:]}")

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """Sends the signal. Returns the exit status."""
        self.check_runs()
        self.send(number)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} has not ended 10 s after the signal {number}") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Monitor(Service):
    """pg_timing monitor that listens on `port`."""

    def __init__(self, path, folder, *arguments, prefix=(), **options):
        self.port = free_port()
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        super().__init__("monitor", [*prefix, path, "monitor", *listen, *arguments], folder, **options)

    def page(self):
        return get(self.port, "/metrics")

    def metrics(self):
        return parse(self.page())

    def samples(self):
        return int(self.metrics()["pg_timing_monitor_intervals_total", ()])

    def wait_for_samples(self, count, seconds=60):
        """Waits until the monitor has taken `count` more samples."""
        before = self.wait_for_page()
        self.wait(lambda: self.samples() >= before + count, f"{count} samples", seconds)

    def wait_for_page(self):
        def samples():
            try:
                return self.samples()
            except (OSError, Failed):
                return None

        return self.wait(samples, "the first sample")

    def wait(self, condition, what, seconds=60):
        def checked():
            self.check_runs()
            return condition()

        return until(checked, what, seconds)


@contextmanager
def running(service):
    try:
        yield service
    finally:
        service.kill()


def get(port, path, seconds=10):
    """Returns the body of a page. Raises Failed if the status is not 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
    except http.client.HTTPException as error:
        raise Failed(f"{path}: {error!r}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise Failed(f"{path}: status {answer.status}: {body[:200]}")
    return body


def timed_scrape(monitor):
    """Yields a complaint if a scrape fails or takes too long."""
    start = time.monotonic()
    try:
        parse(monitor.page())
    except (OSError, Failed) as error:
        yield f"a scrape failed: {error}"
    seconds = time.monotonic() - start
    if seconds > SCRAPE_SECONDS:
        yield f"a scrape took {seconds:.1f} s"


def parse(page):
    """Returns the figures by (name, labels), where the labels are a sorted tuple of pairs. Raises Failed for an incomplete page."""
    if not page.endswith("\n"):
        raise Failed(f"the page ends with {page[-80:]!r}")
    figures = {}
    for line in page.splitlines():
        if line.startswith("# "):
            continue
        found = SERIES.fullmatch(line)
        if not found:
            raise Failed(f"not a series: {line!r}")
        figures[found[1], tuple(sorted(LABEL.findall(found[2] or "")))] = float(found[3])
    return figures


def check(path, *arguments):
    """Returns the report of pg_timing check."""
    done = subprocess.run([path, "check", "--format", "json", *arguments], capture_output=True, text=True, timeout=300)
    if not done.stdout:
        raise Failed(done.stderr)
    return json.loads(done.stdout)
