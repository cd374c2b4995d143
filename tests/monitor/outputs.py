"""Arguments, signals, and the file of events."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from monitor import Monitor, running
from outcome import refused
from servers import Failed

# Longer than the interval of the tests by far, so that the monitor notices it.
PAUSE = 3


def bad_arguments_are_refused(path, quick):
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as server:
        folder = Path(name)
        (folder / "directory").mkdir()
        (folder / "file").touch()
        os.mkfifo(folder / "pipe")
        port = server.getsockname()[1]
        cases = [
            (["--listen", f"127.0.0.1:{port}"], "Address already in use"),
            (["--listen", str(port)], "Address already in use"),
            (["--listen", "localhost"], "invalid socket address"),
            (["--listen", "no-such-host.invalid:9864"], "could not listen"),
            (["--listen", "192.0.2.1:9864"], "could not listen"),
            (["--listen", ":99999"], "invalid port value"),
            (["--textfile", folder / "a.txt"], "does not end in .prom"),
            (["--textfile", folder / "missing/a.prom"], "No such file or directory"),
            # No user can create files here.
            (["--textfile", "/sys/a.prom"], "could not write"),
            (["--textfile", "/proc/a.prom"], "hint: name a file in another directory"),
            (["--events", folder / "missing/events"], "No such file or directory"),
            (["--events", folder / "directory"], "could not write"),
            (["--events", folder / "pipe"], "not a regular file"),
            (["--events", folder / "file/events"], "Not a directory"),
        ]
        if os.geteuid() == 0:
            (folder / "link").symlink_to("file")
            cases.append((["--events", folder / "link"], "symlink"))
        for arguments, line in cases:
            done = subprocess.run([path, "monitor", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
            yield from refused(done, arguments, line)
        if sorted(os.listdir(folder)) != sorted({"directory", "file", "pipe"} | ({"link"} if os.geteuid() == 0 else set())):
            yield f"files remain: {os.listdir(folder)}"


def signals(path, quick):
    for number in (signal.SIGTERM, signal.SIGINT):
        with tempfile.TemporaryDirectory() as folder, running(Monitor(path, folder, "--interval", "0.5")) as monitor:
            monitor.wait_for_samples(2)
            for harmless in (signal.SIGHUP, signal.SIGWINCH, signal.SIGCHLD, signal.SIGPIPE):
                monitor.send(harmless)
            monitor.wait_for_samples(2)
            start = time.monotonic()
            if status := monitor.stop(number):
                yield f"exit status {status} after signal {number}: {monitor.errors()}"
            if time.monotonic() - start > 2:
                yield f"it took {time.monotonic() - start:.1f} s to stop"
            notes = f"pg_timing: metrics are at http://127.0.0.1:{monitor.port}/metrics\n"
            if monitor.errors() != notes:
                yield f"stderr: {monitor.errors()}"


def pause(monitor):
    """Stops the monitor for a while, which is an event."""
    monitor.send(signal.SIGSTOP)
    time.sleep(PAUSE)
    monitor.send(signal.SIGCONT)
    monitor.wait_for_samples(3)


def read_events(file):
    """Returns the kinds of the events in a file. Each line must be complete."""
    text = file.read_text() if file.exists() else ""
    if text and not text.endswith("\n"):
        raise Failed(f"half a line: {text[-100:]!r}")
    try:
        return [json.loads(line)["event"] for line in text.splitlines()]
    except ValueError:
        raise Failed(f"not JSON: {text[-1000:]!r}") from None


# The other kinds depend on the machine.
EXPECTED = ("monitor_started", "pause", "monitor_stopped")


def expected(events):
    return [event for event in events if event in EXPECTED]


def events_are_written_once(path, quick):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, moved = folder / "events.jsonl", folder / "events.jsonl.1"
        with running(Monitor(path, folder, "--interval", "0.5", "--events", file)) as monitor:
            monitor.wait_for_samples(3)
            pause(monitor)
            # As logrotate does it.
            file.rename(moved)
            pause(monitor)
            pause(monitor)
            metrics = monitor.metrics()
            if status := monitor.stop():
                yield f"exit status {status}"
        first, second = read_events(moved), read_events(file)
        if expected(first) != ["monitor_started", "pause"] or expected(second) != ["pause", "pause", "monitor_stopped"]:
            yield f"events: {first}, then {second}"
        counts = {dict(labels)["event"]: count for (metric, labels), count in metrics.items() if metric == "pg_timing_events_total"}
        written = first + second[:-1]
        for kind, count in counts.items():
            if count != written.count(kind):
                yield f"{kind}: {written.count(kind)} in the files, and the metric is {count:.0f}"
        if file.stat().st_mode & 0o7777 != 0o644:
            yield f"mode {file.stat().st_mode:o}"
