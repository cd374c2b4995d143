"""The archive of the static program, the RPM packages, and the crates."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import metadata
from builds import built, oversized
from roots import ROOT, TARGET
from servers.commands import output

# Commands that would connect to a server. They must not start before they know whether they can.
CONNECTING = (
    ["explain", "-c", "SELECT 1"], ["explain", "--ephemeral"], ["advise"],
    ["monitor", "--samples", "1", "--server", "dbname=postgres", "--textfile", "/metrics.prom"],
)  # fmt: skip
HINT = "hint: this program is static and cannot load libpq; install the .deb or .rpm package, or build from source; explain --plan needs no connection"


def static_program(quickly=False):
    """The program in the archive runs in an empty root, and says in one error why it cannot connect to a server."""
    (archive,) = built("tar", quickly)
    with tempfile.TemporaryDirectory() as folder:
        output(["tar", "-xzf", archive, "-C", folder, "--strip-components=1"])
        for name in ("bin/pg_test_timing", "share/man/man1/pg_timing.1", "share/doc/pg_timing/LICENSE",
                     "share/doc/pg_timing/deploy/systemd/pg_timing-monitor.service",
                     "share/bash-completion/completions/pg_timing"):  # fmt: skip
            if not (Path(folder) / name).exists():
                yield f"{name} is missing"
        if not quickly:
            yield from oversized(Path(folder) / "bin/pg_timing")

        def run(*arguments):
            # The root has nothing but the archive. The clocks' facts are in /proc and /sys, which are not there.
            return subprocess.run(["chroot", folder, "/bin/pg_timing", *arguments], capture_output=True, text=True)

        if run("--version").stdout != f"pg_timing {metadata.version()}\n":
            yield f"--version: {run('--version')}"
        if "one read" not in run("check", "-d", "0.5").stdout:
            yield f"check: {run('check', '-d', '0.5')}"
        for command in CONNECTING:
            done = run(*command)
            if done.returncode != 3 or done.stderr.count("\n") != 2 or HINT not in done.stderr or done.stdout:
                yield f"{command}: {done.stderr}"
        plan = ROOT / "crates/pg_timing/tests/fixtures/plans"
        text = next(plan.glob("*.txt"))
        done = subprocess.run([Path(folder) / "bin/pg_timing", "explain", "--plan", text, "--read-cost", "25"], capture_output=True, text=True)
        if done.returncode != 0:
            yield f"--plan: {done.stderr}"


def rpm(quickly=False):
    """rpm installs the command in a folder, the program runs there, and rpm removes all files."""
    command = next(path for path in built("rpm", quickly) if path.name.startswith("pg_timing-"))
    with tempfile.TemporaryDirectory() as folder:
        rpm = ["rpm", "--root", folder, "--nodeps", "--noscripts"]
        output([*rpm, "-i", command])
        done = output([Path(folder) / "usr/bin/pg_timing", "--version"])
        if done != f"pg_timing {metadata.version()}\n":
            yield f"--version: {done}"
        if "/etc/default/pg_timing-monitor" not in output([*rpm[:3], "-q", "--configfiles", "pg_timing"]):
            yield "the file of options is no configuration file"
        output([*rpm, "-e", "pg_timing"])
        yield from (f"left behind: {path}" for path in Path(folder).rglob("*") if "pg_timing" in path.name)


# What pg_timing is made of, as crates.io gets it.
CRATES = ("timing-clock", "read-loops", "pg_timing")


def crates(quickly=False):
    """cargo packs the crates from the archive of the source code, and would publish them. Nothing is uploaded.

    Without `quickly`, cargo also builds each crate from its package, and installs the program from the packages alone.
    """
    (archive,) = built("dist")
    env = os.environ | {"CARGO_TARGET_DIR": str(TARGET / "packages/crate")}
    with tempfile.TemporaryDirectory() as folder:
        output(["tar", "-xzf", archive, "-C", folder, "--strip-components=1"])
        names = [word for name in CRATES for word in ("-p", name)]
        output(["cargo", "publish", "--dry-run", "--locked", *(["--no-verify"] if quickly else []), *names], cwd=folder, env=env)
        output(["cargo", "package", "--no-verify", "--locked", *names], cwd=folder, env=env)
        for name in CRATES:
            files = output(["cargo", "package", "--list", "-p", name], cwd=folder).split()
            wanted = ("LICENSE", "Cargo.toml", "src/lib.rs", *(["README.md"] if name != "read-loops" else []))
            yield from (f"no {file} in {name}" for file in wanted if file not in files)
    if not quickly:
        with tempfile.TemporaryDirectory() as folder:
            yield from installed(folder, env)


def installed(folder, env):
    """`cargo install` builds the program from the packages. Its man pages and completions come from the program."""
    version = metadata.version()
    packages = TARGET / "packages/crate/package"
    for name in CRATES:
        output(["tar", "-xzf", packages / f"{name}-{version}.crate", "-C", folder])
    # crates.io does not have these crates yet.
    others = [word for name in CRATES[:2] for word in ("--config", f'patch.crates-io.{name}.path="{folder}/{name}-{version}"')]
    output(["cargo", "install", "--locked", "--path", f"{folder}/pg_timing-{version}", "--root", f"{folder}/root", *others], env=env)
    program = f"{folder}/root/bin/pg_timing"
    for kind, wanted in (("man", ".TH PG_TIMING-EXPLAIN"), ("bash", "complete -F"), ("zsh", "#compdef"), ("fish", "complete -c")):
        if wanted not in output([program, "--generate", kind]):
            yield f"--generate {kind} does not print {wanted}"
