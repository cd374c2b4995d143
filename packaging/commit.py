"""What the packages are made of: the files of the last commit, its date, and the version in Cargo.toml."""

import functools
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")


def git(*words, **options):
    """Returns what git printed, as bytes."""
    return subprocess.run(["git", "-C", ROOT, *words], check=True, stdout=subprocess.PIPE, **options).stdout


def run(*command, **options):
    """Runs a program, which prints to our output. Raises an error if its exit status is not 0."""
    sys.stdout.flush()
    subprocess.run([str(word) for word in command], check=True, **options)


@functools.cache
def version():
    """Returns the version in the workspace's Cargo.toml, which is the version of all packages."""
    return tomllib.loads(git("show", "HEAD:Cargo.toml").decode())["workspace"]["package"]["version"]


@functools.cache
def date():
    """Returns the date of the commit, in seconds since 1970. It is the time of all files in the packages.

    A commit during the build changes neither the date nor the version.
    """
    return int(git("log", "-1", "--format=%ct"))


def environment():
    """Returns the variables for programs that build a package. Their output depends on nothing else of this machine."""
    # A `make` in a package must not see the variables of the `make` that started this program.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return inherited | {"SOURCE_DATE_EPOCH": str(date()), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def export(folder, *paths):
    """Writes the committed files into a new folder. Changes that are not committed are not part of a package."""
    if git("status", "--porcelain", "--untracked-files=no"):
        print("note: the package does not contain the changes that are not committed", file=sys.stderr)
    version(), date()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # For root, tar keeps the permissions in the archive.
    archive = git("-c", "tar.umask=0022", "archive", "--format=tar", "HEAD", *paths)
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)


def changes():
    """Returns the text below the newest heading of CHANGELOG.md."""
    sections = git("show", "HEAD:CHANGELOG.md").decode().split("\n## ")
    return sections[1].partition("\n")[2].strip()
