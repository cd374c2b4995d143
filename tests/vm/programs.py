"""The programs for a virtual machine: qemu, a kernel, busybox, pg_timing, and an independent program for comparison."""

import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# cargo runs in ROOT, so a relative path starts there.
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")
WORK = TARGET / "vm"

# Debian's kernel for virtual machines. It is the smallest one, and the drivers needed here are built in.
KERNEL_PACKAGE = "linux-image-cloud-amd64"


class Missing(Exception):
    """Something that the tests need is missing. The text says what to do."""


def tool(name, package):
    """Returns the path of a program of a Debian package."""
    path = shutil.which(name)
    if path is None:
        raise Missing(f"{name} is missing, as root: apt-get install {package}")
    return path


def output(command, **options):
    """Returns the output of `command`. Raises Missing with its error message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        complaint = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"{' '.join(map(str, command[:2]))}: {complaint[-1]}")
    return done.stdout


def qemu():
    return tool("qemu-system-x86_64", "qemu-system-x86")


def kernel():
    """Returns the path of the kernel image. The package is downloaded once and not installed."""
    cache = WORK / "kernel"
    if not cache.exists():
        # The rename comes last, so that an interrupted download does not look complete.
        part = WORK / "kernel.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        download_kernel(part)
        part.rename(cache)
    images = sorted(cache.glob("boot/vmlinuz-*"))
    if not images:
        raise Missing(f"{KERNEL_PACKAGE} contains no kernel")
    return images[-1]


def download_kernel(folder):
    apt_get, dpkg_deb = tool("apt-get", "apt"), tool("dpkg-deb", "dpkg")
    # The package is empty and depends on the package of the current version.
    depends = output([tool("apt-cache", "apt"), "depends", KERNEL_PACKAGE])
    images = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line]
    if not images:
        raise Missing(f"apt knows no {KERNEL_PACKAGE}, as root: apt-get update")
    output([apt_get, "download", images[0]], cwd=folder)
    for package in folder.glob("*.deb"):
        output([dpkg_deb, "-x", package, folder])
        package.unlink()


def inside():
    """Returns the files of the machine as {path: contents}. All of them are executable."""
    return {
        "init": (HERE / "init").read_bytes(),
        "bin/busybox": busybox(),
        "bin/read_cost": read_cost(),
        **pg_timing(),
        # root, and an ordinary user for `su`
        "etc/passwd": b"root::0:0::/:/bin/sh\nnobody::65534:65534::/:/bin/sh\n",
    }


def busybox():
    program = Path(tool("busybox", "busybox-static")).read_bytes()
    # A dynamic program contains the name of the loader.
    if b"/ld-linux" in program:
        raise Missing("busybox is not statically linked, as root: apt-get install busybox-static")
    return program


def pg_timing():
    """Returns the debug binary with its shared libraries. Its read loops are optimized, so it measures what a release measures."""
    if subprocess.run(["cargo", "build", "--quiet", "-p", "pg_timing"], cwd=ROOT).returncode != 0:
        raise Missing("pg_timing could not be built: cargo build")
    program = TARGET / "debug/pg_timing"
    libraries = re.findall(r"(/\S+) \(0x", output([tool("ldd", "libc-bin"), program]))
    # The loader has a fixed path. It finds the other libraries in /lib.
    folders = {path: "lib64" if "/ld-linux" in path else "lib" for path in libraries}
    return {"bin/pg_timing": program.read_bytes()} | {
        f"{folder}/{Path(path).name}": Path(path).read_bytes() for path, folder in folders.items()
    }


def read_cost():
    """Returns the program of the independent measurement."""
    WORK.mkdir(parents=True, exist_ok=True)
    program = WORK / "read_cost"
    output([tool("gcc", "gcc"), "-O2", "-static", "-o", program, HERE / "read_cost.c"])
    return program.read_bytes()
