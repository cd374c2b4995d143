"""Tests of limits on the number of tasks: the ticker's thread cannot be created, and no statement fails."""

import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

from extension.ticker import INFO, MANY, SETTINGS, SLEEPS, TABLES, expected, infos, only_estimates, plans, running, using
from outcome import until
from servers import Server
from servers.installation import USER

# The folders of the pids controller, in cgroup version 1 and 2.
CONTROLLERS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
REFUSED = ("none", "could not create a thread")
# The session has no thread before the limit applies.
SCRIPT = f"{using('thread')} {MANY * 2} {INFO}"


@contextmanager
def ulimit(pid):
    """As `ulimit -u`. It limits the tasks of the user, who has more than one. Root can lack the right to change it."""
    subprocess.run(["prlimit", "--pid", str(pid), "--nproc=1:1"], user=USER, group=USER, extra_groups=[], check=True)
    yield


@contextmanager
def pids_cgroup(pid):
    """As a container's limit, and as systemd's TasksMax."""
    group = next(folder for folder in CONTROLLERS if has_pids(folder)) / f"pg_timing_test_{os.getpid()}"
    group.mkdir()
    try:
        (group / "pids.max").write_text("1")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        # A process that has ended is in no group.
        with suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def has_pids(folder):
    control = folder / "cgroup.subtree_control"
    return os.access(folder, os.W_OK) and ("pids" in control.read_text().split() if control.exists() else folder.name == "pids")


def limited(server, limit):
    """A session reaches the limit when it needs its thread."""
    with running(server, f"{SLEEPS}; {SCRIPT} SELECT pg_sleep(2);") as said:
        pid = int(server.psql("SELECT pid FROM pg_stat_activity WHERE query ~ 'pg_sleep.0.1' AND pid <> pg_backend_pid()"))
        with limit(pid):
            at_end = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND query ~ 'pg_sleep.2.'"
            until(lambda: server.psql(at_end).strip() == "1", "the session has run all statements")
    yield from expected(said[0], REFUSED)
    if len(plans(said[0])) != 2 or infos(said[0])[0]["last_nodes"] != 2:
        yield f"statements that could not have a thread: {said[0]}"


def check(installation):
    """Yields complaints."""
    limits = [ulimit]
    if any(has_pids(folder) for folder in CONTROLLERS):
        limits.append(pids_cgroup)
    else:
        print(f"{installation.version:>6} SKIPPED: the limit of a pids cgroup, because this host has none that can be changed", flush=True)
    with only_estimates(installation), Server(installation, SETTINGS | {"shared_preload_libraries": ""}) as server:
        server.psql(TABLES)
        for limit in limits:
            yield from (f"{limit.__name__}: {what}" for what in limited(server, limit))
