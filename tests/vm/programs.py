"""What it takes: qemu, a kernel, and what goes in: busybox, pg_timing and the measurer that it is held against."""

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# As cargo, which runs in ROOT, takes it.
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")
WORK = TARGET / "vm"

# Debian's kernel for virtual machines: the drivers needed here are built in, and it is the smallest.
KERNEL_PACKAGE = "linux-image-cloud-amd64"
RUST_TARGET = "x86_64-unknown-linux-musl"


class Missing(Exception):
    """Something the tests need is not there; the text says what to do."""


def tool(name, package):
    path = shutil.which(name)
    if path is None:
        raise Missing(f"{name} is missing, as root: apt-get install {package}")
    return path


def output(command, **options):
    """What `command` printed; if it fails, what it complained of."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        complaint = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"{' '.join(map(str, command[:2]))}: {complaint[-1]}")
    return done.stdout


def qemu():
    return tool("qemu-system-x86_64", "qemu-system-x86")


def kernel():
    """The kernel image, downloaded once and installed nowhere."""
    cache = WORK / "kernel"
    if not cache.exists():
        # Whole or not at all: an interrupted download must not pass for a kernel.
        part = WORK / "kernel.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        download_kernel(part)
        part.rename(cache)
    images = sorted(cache.glob("boot/vmlinuz-*"))
    if not images:
        raise Missing(f"{KERNEL_PACKAGE} brought no kernel")
    return images[-1]


def download_kernel(folder):
    apt_get, dpkg_deb = tool("apt-get", "apt"), tool("dpkg-deb", "dpkg")
    # The package itself is empty and depends on the one of the current version.
    depends = output([tool("apt-cache", "apt"), "depends", KERNEL_PACKAGE])
    images = [line.split()[-1] for line in depends.splitlines() if "Depends: linux-image-" in line]
    if not images:
        raise Missing(f"apt knows no {KERNEL_PACKAGE}, as root: apt-get update")
    output([apt_get, "download", images[0]], cwd=folder)
    for package in folder.glob("*.deb"):
        output([dpkg_deb, "-x", package, folder])
        package.unlink()


def inside():
    """The files of the machine: path to contents. All of them are executable."""
    return {
        "init": (HERE / "init").read_bytes(),
        "bin/busybox": busybox(),
        "bin/read_cost": read_cost(),
        "bin/pg_timing": pg_timing(),
        # For `su`: an ordinary user.
        "etc/passwd": b"root::0:0::/:/bin/sh\nnobody::65534:65534::/:/bin/sh\n",
    }


def busybox():
    program = Path(tool("busybox", "busybox-static")).read_bytes()
    # There is no C library in the machine. The name of its loader is in every program that wants one.
    if b"/ld-linux" in program:
        raise Missing("busybox is not the static one, as root: apt-get install busybox-static")
    return program


def pg_timing():
    build = ["cargo", "build", "--quiet", "--release", "--target", RUST_TARGET, "-p", "pg_timing"]
    # Cargo's own messages go to the user: they say more than we could.
    if subprocess.run(build, cwd=ROOT).returncode != 0:
        raise Missing(f"pg_timing could not be built for {RUST_TARGET} (rustup target add {RUST_TARGET})")
    return (TARGET / RUST_TARGET / "release" / "pg_timing").read_bytes()


def read_cost():
    WORK.mkdir(parents=True, exist_ok=True)
    program = WORK / "read_cost"
    output([tool("musl-gcc", "musl-tools"), "-O2", "-static", "-o", program, HERE / "read_cost.c"])
    return program.read_bytes()
