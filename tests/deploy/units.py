"""systemd's own tool checks the units. pg_timing runs under the units' filter of system calls."""

import ctypes
import errno
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from servers.commands import Failed, output
from tools import DEPLOY, WORK, rejected

UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix in (".service", ".timer"))
SERVICES = [path for path in UNITS if path.suffix == ".service"]
DROP_IN = DEPLOY / "systemd/kernel-log.conf"
# In tenths. Below 2.0 systemd calls the exposure "OK". The rest is mostly the network, which an exporter needs.
MOST_EXPOSURE = 15
# CAP_SYSLOG outside of a user namespace, and /dev/kmsg.
MOST_EXPOSURE_WITH_KERNEL_LOG = 25


class Root:
    """A root directory with systemd's own units, ours, and a file in place of pg_timing."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.own = self.folder / "etc/systemd/system"
        self.own.mkdir(parents=True)
        shutil.copytree("/usr/lib/systemd/system", self.folder / "usr/lib/systemd/system", symlinks=True)
        program = self.folder / "usr/bin/pg_timing"
        program.parent.mkdir()
        program.touch(mode=0o755)
        for unit in UNITS:
            shutil.copy(unit, self.own)

    def add_drop_in(self):
        folder = self.own / "pg_timing-monitor.service.d"
        folder.mkdir()
        shutil.copy(DROP_IN, folder)

    def verify(self, *names):
        """Yields a complaint if systemd prints one. Its exit status is 0 for an unknown setting."""
        command = ["systemd-analyze", "verify", f"--root={self.folder}", "--man=no", *names]
        if printed := output(command, stderr=subprocess.STDOUT).strip():
            yield printed

    def security(self, name, most):
        return ["systemd-analyze", "security", "--offline=true", f"--root={self.folder}", f"--threshold={most}", name]


def check():
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        root = Root(folder)
        yield from root.verify(*(unit.name for unit in UNITS))
        for service in SERVICES:
            output(root.security(service.name, MOST_EXPOSURE))
        root.add_drop_in()
        yield from root.verify("pg_timing-monitor.service")
        output(root.security("pg_timing-monitor.service", MOST_EXPOSURE_WITH_KERNEL_LOG))


def mistakes_are_found():
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        root = Root(folder)
        unit = root.own / "pg_timing-monitor.service"
        text = unit.read_text()
        unit.write_text(text.replace("ProtectSystem=", "ProtectSystems="))
        try:
            found = list(root.verify(unit.name))
        except Failed as failed:
            found = [failed]
        if "ProtectSystems" not in str(found):
            yield "a misspelled setting is not found"
        unit.write_text(text.replace("CapabilityBoundingSet=\n", "").replace("DynamicUser=yes\n", ""))
        yield from rejected("a weak unit", root.security(unit.name, MOST_EXPOSURE), "")


def system_calls(unit):
    """Returns the names of the system calls that the unit allows, in the order of its lines."""
    allowed = set()
    for line in unit.read_text().splitlines():
        if line.startswith("SystemCallFilter="):
            words = line.partition("=")[2]
            named = {call for word in words.lstrip("~").split() for call in members(word)}
            allowed = allowed - named if words.startswith("~") else allowed | named
    return allowed


def members(word):
    """Returns the system calls of a set such as @system-service."""
    if not word.startswith("@"):
        return {word}
    lines = [line.strip() for line in output(["systemd-analyze", "syscall-filter", word]).splitlines()[1:]]
    return {call for line in lines if line and not line.startswith("#") for call in members(line)}


def filter_system_calls(allowed):
    """Rejects all other system calls of this process, as the unit does with SystemCallErrorNumber=EPERM."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    allow, reject = 0x7FFF0000, 0x00050000 | errno.EPERM
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(reject)))
    for name in allowed:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        # A negative number: another architecture has this system call.
        if number >= 0:
            seccomp.seccomp_rule_add(context, ctypes.c_uint32(allow), ctypes.c_int(number), ctypes.c_uint(0))
    if seccomp.seccomp_load(context) != 0:
        raise OSError("seccomp_load failed")


def runs_with_filter(pg_timing):
    """With each service's filter, pg_timing reads the same facts and measures the same clocks as without.

    The user and the other restrictions of the unit need a running systemd: tests/packages/service.py has one.
    """
    plain = facts(pg_timing, None)
    for service in SERVICES:
        allowed = system_calls(service)
        if (found := facts(pg_timing, allowed)) != plain:
            yield f"{service.name}: {found} instead of {plain}"
        if (found := collectors(pg_timing, allowed)) != collectors(pg_timing, None):
            yield f"{service.name}: the monitor's collectors: {found}"
    # The comparison shows what ProtectClock=yes and the set @resources would reject.
    for calls in ({"adjtimex", "clock_adjtime"}, {"sched_setaffinity"}):
        if facts(pg_timing, allowed - calls) == plain:
            yield f"a filter without {', '.join(sorted(calls))} changes nothing, so the units need not allow it"


def collectors(pg_timing, allowed):
    """Returns the success of each collector of a monitor with these system calls, or with all."""
    with tempfile.TemporaryDirectory() as folder:
        textfile = Path(folder) / "pg_timing.prom"
        done = subprocess.run(
            [pg_timing, "monitor", "--samples", "2", "--interval", "0.5", "--textfile", textfile],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=filtered(allowed),
        )
        if done.returncode != 0:
            return f"exit status {done.returncode}: {done.stderr.strip()}"
        return sorted(line for line in textfile.read_text().splitlines() if "collector_success" in line)


def filtered(allowed):
    """Returns a function that filters the system calls of a process. None permits all."""
    # systemd always allows these, because a service needs them to start.
    return allowed and (lambda: filter_system_calls(allowed | members("@default") | {"execve"}))


def facts(pg_timing, allowed):
    """Returns what was denied to a check with these system calls, or with all, and the clocks that it measured."""
    done = subprocess.run(
        [pg_timing, "check", "-d", "1", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=filtered(allowed),
    )
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        return f"exit status {done.returncode}: {done.stderr.strip()}"
    # Other reasons for a missing fact depend on how busy the machine is.
    denied = [path for path, value in values("", report) if os.strerror(errno.EPERM) in str(value)]
    return denied, sorted((clock["name"], clock["through"]) for clock in report["clocks"])


def values(path, report):
    """Yields (path, value) of each value in a report."""
    children = report.items() if isinstance(report, dict) else enumerate(report) if isinstance(report, list) else ()
    for name, child in children:
        yield from values(f"{path}/{name}", child)
    if not children:
        yield path, report
