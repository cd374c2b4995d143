"""One virtual machine: its initial file system, its run in qemu, and the output of its steps."""

import io
import shutil
import subprocess
import tarfile
import threading
import time
from dataclasses import dataclass, field

from host import Failed, Host
from programs import WORK

# The first step begins after three seconds, and several times as much on a busy host. qemu's emulation sometimes hangs before
# that, with an empty console. No step of the scenario has run then, so the machine is started again.
START_SECONDS = 45
STARTS = 3
NOT_STARTED = f"the machine did not start within {START_SECONDS} s"


@dataclass
class Step:
    """The output and the exit status of one command in the machine."""

    out: str = ""
    err: str = ""
    status: int = -1


@dataclass
class Booted:
    """The results of a machine."""

    # why the machine did not end normally, or empty

    trouble: str = ""
    # name to Step
    steps: dict = field(default_factory=dict)


def boot(scenario, qemu, kernel, files):
    """Runs a scenario in a virtual machine. Returns its results."""
    folder = WORK / scenario.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    console, results, initramfs = folder / "console.log", folder / "results.tar", folder / "initramfs"
    steps = {f"steps/{number:02}-{name}": script.encode() for number, (name, script) in enumerate(scenario.steps)}
    initramfs.write_bytes(cpio(files | steps))
    command = [
        qemu,
        # Emulation (tcg) needs no rights. Only emulation offers Linux an hpet and TSCs that it does not trust.
        *("-accel", "tcg", "-m", "512", "-smp", str(scenario.cpus), "-cpu", scenario.cpu),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", f"file:{console}", "-serial", f"file:{results}", "-qmp", "stdio"),
        *("-kernel", str(kernel), "-initrd", str(initramfs)),
        # After a panic the kernel reboots, and because of -no-reboot the machine ends then, and not at the time limit.
        *("-append", f"console=ttyS0 quiet panic=-1 scenario={scenario.name} {scenario.boot}".strip()),
    ]
    requests = sum(script.count("host: ") for _, script in scenario.steps)
    booted = Booted(trouble=NOT_STARTED)
    for _ in range(STARTS):
        if booted.trouble == NOT_STARTED:
            console.write_bytes(b"")
            booted.trouble = run(command, folder / "qemu.log", console, requests, scenario.limit)
    booted.steps = received(results)
    for name, step in booted.steps.items():
        (folder / f"{name}.out").write_text(step.out + step.err)
    if not booted.trouble and len(booted.steps) != len(steps):
        booted.trouble = f"{len(booted.steps)} of {len(steps)} steps sent results, see console.log"
    return booted


def run(command, log, console, requests, limit_s):
    """
    Runs qemu until the machine powers off after `requests` requests, for at most `limit_s` seconds. Returns what went wrong,
    or an empty text.
    """
    failed, start = "", time.monotonic()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with log.open("wb") as messages, subprocess.Popen(command, stderr=messages, **pipes) as qemu:
        # When qemu ends, every read from it ends, too.
        limit = threading.Timer(limit_s, qemu.kill)
        start_limit = threading.Timer(START_SECONDS, lambda: has_started(console) or qemu.kill())
        limit.start()
        start_limit.start()
        try:
            host = Host(qemu, console)
            host.serve()
        except (Failed, OSError) as error:
            failed = f"{error} "
        finally:
            limit.cancel()
            start_limit.cancel()
            qemu.kill()
    if not has_started(console) and time.monotonic() - start >= START_SECONDS:
        return NOT_STARTED
    if time.monotonic() - start >= limit_s:
        return f"the machine did not end within {limit_s} s, see console.log"
    if failed or qemu.returncode != 0:
        return f"qemu failed: {failed}{log.read_text(errors='replace').strip()[-200:]}"
    return "" if host.done == requests else f"the machine sent {host.done} requests to the host, not {requests}"


def has_started(console):
    """Whether the first step has begun."""
    return b"step " in console.read_bytes()


def received(results):
    """Returns the steps from the archives that the machine sent. The last archive may be incomplete."""
    steps = {}
    try:
        with tarfile.open(results, ignore_zeros=True) as archive:
            for member in archive:
                if member.isfile():
                    step, part = member.name.split("/")
                    text = archive.extractfile(member).read().decode(errors="replace")
                    one = steps.setdefault(step.split("-", 1)[1], Step())
                    setattr(one, part, int(text) if part == "status" else text)
    except (OSError, tarfile.TarError):
        pass
    return steps


def cpio(files):
    """Returns an initramfs in cpio's `newc` format (Linux, Documentation/driver-api/early-userspace/buffer-format.rst)."""
    archive = io.BytesIO()
    # Every file is in the root directory or in a directory of the root.
    folders = sorted({path.split("/")[0] for path in files if "/" in path})
    entries = [(path, 0o040755, b"") for path in folders]
    entries += [(path, 0o100755, contents) for path, contents in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    for number, (path, mode, contents) in enumerate(entries, start=1):
        name = path.encode() + b"\0"
        # ino, mode, uid, gid, nlink, mtime, filesize, four device numbers, namesize, check
        header = (number, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name), 0)
        archive.write(b"070701" + b"".join(b"%08X" % value for value in header) + name)
        pad(archive)
        archive.write(contents)
        pad(archive)
    return archive.getvalue()


def pad(archive):
    archive.write(b"\0" * (-archive.tell() % 4))
