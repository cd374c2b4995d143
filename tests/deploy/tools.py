"""The programs that check the files in deploy/. They are unpacked into target/deploy and not installed."""

import os
import shutil
from pathlib import Path

import python_packages
from servers.commands import Failed, is_offline, output

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEPLOY = ROOT / "deploy"
# cargo runs in ROOT, so a relative path starts there.
WORK = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target") / "deploy"

# Fixed versions: a newer one may have new rules, which would fail without a change of ours.
PYTHON_PACKAGES = ("ansible-core==2.19.14", "ansible-lint==26.10.1", "kubernetes-validate==1.37.0", "yamllint==1.38.0")
NODE_PACKAGES = ("@grafana/schema@13.2.3", "ajv@8.20.0", "ts-json-schema-generator@2.4.0", "typescript@5.9.3")


def created(folder, fill):
    """Returns the folder, after `fill` has filled it if it did not exist."""
    if not folder.exists():
        # The rename comes last, so that an interrupted download does not look complete.
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        fill(part)
        part.rename(folder)
    return folder


def promtool():
    """Returns the path of promtool. Debian's package of Prometheus contains it."""
    return package("prometheus") / "usr/bin/promtool"


def package(name):
    """Returns the folder with the files of a Debian package."""
    return created(WORK / name, lambda folder: download(name, folder))


def download(name, folder):
    # The user _apt may not write here.
    apt = ["apt-get", "-o", "APT::Sandbox::User=root"]
    try:
        output([*apt, "download", name], cwd=folder)
    except Failed as failed:
        if is_offline(failed):
            raise
        # The host's package lists are missing or old. Other lists do not change the host.
        (folder / "lists/partial").mkdir(parents=True)
        apt += ["-o", f"Dir::State::Lists={folder / 'lists'}"]
        output([*apt, "update"])
        output([*apt, "download", name], cwd=folder)
    for file in folder.glob("*.deb"):
        output(["dpkg", "-x", file, folder])
        file.unlink()


def python_program(name):
    """Returns the path of a program of PYTHON_PACKAGES."""
    return environment() / "bin" / name


def environment():
    """Returns the folder of a virtual environment with PYTHON_PACKAGES."""
    return python_packages.environment(WORK / "python", PYTHON_PACKAGES)


def node_packages():
    """Returns a folder with NODE_PACKAGES."""
    return created(WORK / "node", download_node_packages)


def download_node_packages(folder):
    (folder / "package.json").write_text("{}")
    output(["npm", "install", "--loglevel=error", "--ignore-scripts", "--no-audit", "--no-fund", *NODE_PACKAGES], cwd=folder)


def rejected(what, command, expected, **options):
    """Yields a complaint unless the command fails and its output contains `expected`."""
    try:
        output(command, **options)
    except Failed as failed:
        if expected not in str(failed):
            yield f"{what}: {failed}"
    else:
        yield f"{what} is not found"
