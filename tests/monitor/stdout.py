"""stdout that cannot be written: the samples continue, and the monitor says how many events it did not print."""

import os
import tempfile
from contextlib import contextmanager

from monitor import Monitor, running


@contextmanager
def full_pipe():
    """Yields both ends of a pipe that has no room."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def read_available(reader):
    os.set_blocking(reader, False)
    text = b""
    try:
        while chunk := os.read(reader, 65536):
            text += chunk
    except BlockingIOError:
        pass
    return text


def a_pipe_that_nobody_reads(path, quick):
    for is_read in (True, False):
        # The notes on stderr go to the same pipe in the second case, and must not block the end.
        with tempfile.TemporaryDirectory() as folder, full_pipe() as (reader, writer):
            options = {"stdout": writer} if is_read else {"stdout": writer, "stderr": writer}
            with running(Monitor(path, folder, "--interval", "0.5", **options)) as monitor:
                monitor.wait_for_samples(4)
                if is_read:
                    text = bytearray()

                    def has_started():
                        text.extend(read_available(reader))
                        return b"monitor_started" in text

                    monitor.wait(has_started, "the line that waited")
                status = monitor.stop()
                if status != (0 if is_read else 3):
                    yield f"exit status {status}, is_read {is_read}: {monitor.errors()}"
                if is_read and b"monitor_stopped" not in read_available(reader):
                    yield "the last line is missing"
    with tempfile.TemporaryDirectory() as folder, full_pipe() as (reader, writer):
        with running(Monitor(path, folder, "--interval", "0.5", stdout=writer)) as monitor:
            monitor.wait_for_samples(1)
            status = monitor.stop()
            # The first event is in the writer, and the last one waits.
            if status != 3 or "events were not printed: could not write to stdout: nothing read it" not in monitor.errors():
                yield f"exit status {status}: {monitor.errors()}"


def a_full_device(path, quick):
    with tempfile.TemporaryDirectory() as folder, open("/dev/full", "wb") as full:
        with running(Monitor(path, folder, "--interval", "0.5", stdout=full)) as monitor:
            monitor.wait_for_samples(4)
            error = "could not write to stdout: No space left on device"
            if monitor.errors().count(error) != 1:
                yield f"not one note: {monitor.errors()}"
            status = monitor.stop()
            last = monitor.errors().splitlines()[-2]
            if status != 3 or not (last.startswith("pg_timing: error: ") and last.endswith(f" events were not printed: {error}")):
                yield f"exit status {status}: {monitor.errors()}"
