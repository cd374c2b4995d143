"""One virtual machine: its initial file system, its run in qemu, and what its steps printed."""

import io
import shutil
import subprocess
import tarfile
import threading
import time
from dataclasses import dataclass, field

from host import Failed, Host
from programs import WORK

# A machine is done in ten to twenty seconds; a busy host may take some times as long.
LIMIT_SECONDS = 120


@dataclass
class Step:
    """What one command in the machine printed, and its exit status."""

    out: str = ""
    err: str = ""
    status: int = -1


@dataclass
class Booted:
    """A machine that ran: why it did not end well, if so, and its steps by name."""

    trouble: str = ""
    steps: dict = field(default_factory=dict)


def boot(scenario, qemu, kernel, files):
    folder = WORK / scenario.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    console, results, initramfs = folder / "console.log", folder / "results.tar", folder / "initramfs"
    steps = {f"steps/{number:02}-{name}": script.encode() for number, (name, script) in enumerate(scenario.steps)}
    initramfs.write_bytes(cpio(files | steps))
    command = [
        qemu,
        # Emulation: it needs no rights, and only there Linux meets an hpet and TSCs that it does not trust.
        *("-accel", "tcg", "-m", "512", "-smp", str(scenario.cpus), "-cpu", scenario.cpu),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", f"file:{console}", "-serial", f"file:{results}", "-qmp", "stdio"),
        *("-kernel", str(kernel), "-initrd", str(initramfs)),
        # A panic reboots, and -no-reboot makes that the end, not a wait for the time limit.
        *("-append", f"console=ttyS0 quiet panic=-1 scenario={scenario.name} {scenario.boot}".strip()),
    ]
    console.touch()
    asks = sum(script.count("host: ") for _, script in scenario.steps)
    booted = Booted(trouble=run(command, folder / "qemu.log", console, asks))
    booted.steps = received(results)
    for name, step in booted.steps.items():
        (folder / f"{name}.out").write_text(step.out + step.err)
    if not booted.trouble and len(booted.steps) != len(steps):
        booted.trouble = f"{len(booted.steps)} of {len(steps)} steps came through, see console.log"
    return booted


def run(command, log, console, asks):
    """Runs qemu until the machine powers off, after `asks` requests to us. Returns what went wrong, or nothing."""
    failed, deadline = "", time.monotonic() + LIMIT_SECONDS
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with log.open("wb") as messages, subprocess.Popen(command, stderr=messages, **pipes) as qemu:
        # Its end ends every wait for it as well.
        limit = threading.Timer(LIMIT_SECONDS, qemu.kill)
        limit.start()
        try:
            host = Host(qemu, console)
            host.serve()
        except (Failed, OSError) as error:
            failed = f"{error} "
        finally:
            limit.cancel()
            qemu.kill()
    if time.monotonic() >= deadline:
        return f"not done within {LIMIT_SECONDS} s, see console.log"
    if failed or qemu.returncode != 0:
        return f"qemu failed: {failed}{log.read_text(errors='replace').strip()[-200:]}"
    return "" if host.done == asks else f"it asked the host {host.done} times, not {asks}"


def received(results):
    """The steps in the archives that the machine sent one after the other; the last may be cut off."""
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
    """An initramfs in cpio's `newc` format (Linux, Documentation/driver-api/early-userspace/buffer-format.rst)."""
    archive = io.BytesIO()
    # All files lie in folders of the root, or in it.
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
