"""Hostile clients: the monitor continues to take samples, and a scrape works within a second."""

import os
import random
import resource
import socket
import struct
import tempfile
import time
from pathlib import Path

from monitor import Monitor, running, timed_scrape

# As in deploy/systemd/pg_timing-monitor.service.
OPEN_FILES = 256
MOST_MEMORY = 64_000_000

INTERVAL = 0.5


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.settimeout(10)
    return connection


def send(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        pass  # The monitor has closed it.


def read_all(connection):
    """Returns everything until the end. A reset is an end, too."""
    data = b""
    try:
        while chunk := connection.recv(65536):
            data += chunk
    except OSError:
        pass
    return data


def garbage(monitor):
    random.seed(1)
    for size in (1, 100, 10_000, 1_000_000):
        with connect(monitor.port) as connection:
            send(connection, random.randbytes(size))
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = read_all(connection)
            if answer and not answer.startswith(b"HTTP/1.1 4"):
                yield f"{size} random bytes: {answer[:100]}"


def bad_requests(monitor):
    long = b"x" * 20_000
    for request, status in [
        (b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + long, 400),
        (b"GET /" + long, 400),
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + long, 405),
        (b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", 404),
        (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
    ]:
        with connect(monitor.port) as connection:
            send(connection, request)
            answer = read_all(connection)
            if not answer.startswith(f"HTTP/1.1 {status} ".encode()):
                yield f"{request[:40]}: {answer[:100]} instead of {status}"


def resets(monitor):
    for request in (b"", b"GET /metr", b"GET /metrics HTTP/1.0\r\n\r\n"):
        for _ in range(50):
            with connect(monitor.port) as connection:
                send(connection, request)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    yield from timed_scrape(monitor)


def slowloris(monitor):
    slow = [connect(monitor.port) for _ in range(1000)]
    for byte in b"GET /m":
        for connection in slow:
            send(connection, bytes([byte]))
        yield from timed_scrape(monitor)
        time.sleep(0.5)
    for connection in slow:
        connection.close()


def ten_thousand(monitor):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (most + 100, most + 100))
    connections = []
    for n in range(10_000):
        if len(connections) >= most:
            connections.pop(0).close()
        connections.append(connect(monitor.port))
        if n % 1000 == 999:
            yield from timed_scrape(monitor)
    for connection in connections:
        connection.close()


def slow_readers(monitor):
    slow = []
    for _ in range(100):
        connection = socket.socket()
        # As little as possible, so that the page does not fit.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", monitor.port))
        send(connection, b"GET /metrics HTTP/1.0\r\n\r\n")
        slow.append(connection)
    yield from timed_scrape(monitor)
    for connection in slow:
        connection.close()


def clients_do_not_disturb_it(path, quick):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
    with tempfile.TemporaryDirectory() as folder:
        with running(Monitor(path, folder, "--interval", str(INTERVAL), preexec_fn=limit)) as monitor:
            monitor.wait_for_samples(2)
            for attack in (garbage, bad_requests, resets, slowloris, ten_thousand, slow_readers):
                before, start = monitor.samples(), time.monotonic()
                yield from (f"{attack.__name__}: {complaint}" for complaint in attack(monitor))
                monitor.wait_for_samples(1)
                expected = (time.monotonic() - start) / INTERVAL
                taken = monitor.samples() - before
                if taken < expected / 2 - 1:
                    yield f"{attack.__name__}: {taken} samples instead of {expected:.0f}"
            metrics = monitor.metrics()
            memory = metrics["pg_timing_monitor_resident_memory_bytes", ()]
            if memory > MOST_MEMORY:
                yield f"{memory:.0f} bytes of memory"
            if not metrics["pg_timing_monitor_http_requests_total", (("code", "refused"),)] > 9000:
                yield "refused connections are not counted"
            failed = [series for series, ok in metrics.items() if series[0] == "pg_timing_monitor_collector_success" and not ok]
            if failed:
                yield f"failed: {failed}"
            open_files = len(os.listdir(Path("/proc") / str(monitor.process.pid) / "fd"))
            if open_files > OPEN_FILES / 2:
                yield f"{open_files} open files at the end"
            if status := monitor.stop():
                yield f"exit status {status}"
            if "panicked" in monitor.errors():
                yield monitor.errors()
