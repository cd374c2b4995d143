"""A full disk: the old textfile remains, no half line is written, and no event is lost."""

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from monitor import Monitor, parse, running
from outputs import expected, pause, read_events
from servers.commands import output

# The textfile has about 40 kB, and there are two of them for a moment.
SIZE = "256k"


@contextmanager
def small_disk():
    with tempfile.TemporaryDirectory() as folder:
        output(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "pg_timing_test", folder])
        try:
            yield Path(folder)
        finally:
            output(["umount", folder])


def fill(file):
    """Writes until the disk is full."""
    with open(file, "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(512))
        except OSError:
            return


def samples(file):
    return parse(file.read_text())["pg_timing_monitor_intervals_total", ()]


def nothing_is_lost(path, quick):
    with tempfile.TemporaryDirectory() as folder, small_disk() as disk:
        textfile, events, filler = disk / "a.prom", disk / "events.jsonl", disk / "filler"
        arguments = ("--interval", "0.5", "--textfile", textfile, "--events", events)
        with running(Monitor(path, folder, *arguments)) as monitor:
            monitor.wait_for_samples(3)
            # A page of memory is the smallest unit of this file system. A nearly full one makes the next line partial.
            with open(events, "a") as file:
                file.write("\n" * (4096 - 10 - events.stat().st_size % 4096))
            fill(filler)
            time.sleep(1)
            before = samples(textfile)
            pause(monitor)
            pause(monitor)
            monitor.wait_for_samples(4)
            if samples(textfile) != before:
                yield "the textfile changed on a full disk"
            if names := sorted(set(os.listdir(disk)) - {"a.prom", "events.jsonl", "filler"}):
                yield f"partial files: {names}"
            if not events.read_text().endswith("\n"):
                yield f"half a line: {events.read_text()[-100:]!r}"
            for file in (textfile, events):
                times = monitor.errors().count(f'"{file}"')
                if times != 1:
                    yield f"{file.name}: {times} reports of the error: {monitor.errors()}"
            filler.unlink()
            monitor.wait_for_samples(4)
            if samples(textfile) <= before:
                yield "the textfile did not continue"
            if status := monitor.stop():
                yield f"exit status {status}"
        text = "\n".join(line for line in events.read_text().splitlines() if line) + "\n"
        events.write_text(text)
        found = expected(read_events(events))
        if found != ["monitor_started", "pause", "pause", "monitor_stopped"]:
            yield f"events: {found}"
        if textfile.exists():
            yield "the textfile remains after the end"


def events_that_are_never_written(path, quick):
    """A disk that is full until the end: the exit status and one error show that events are missing."""
    with tempfile.TemporaryDirectory() as folder, small_disk() as disk:
        events = disk / "events.jsonl"
        with running(Monitor(path, folder, "--interval", "0.5", "--events", events)) as monitor:
            monitor.wait_for_samples(2)
            with open(events, "a") as file:
                file.write("\n" * (4096 - events.stat().st_size % 4096))
            fill(disk / "filler")
            status = monitor.stop()
            *_, error, hint = monitor.errors().splitlines()
            if status != 3 or f"1 event was not written: could not write \"{events}\"" not in error or "hint: free" not in hint:
                yield f"exit status {status}: {monitor.errors()}"
