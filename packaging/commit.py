"""What the packages are made of: the files of the last commit, its date, and the version in Cargo.toml.

All of them come from the same commit, also if there is a new one during the build.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")


class Refused(Exception):
    """The packages cannot be built here. The text is the reason, and a hint in a second line."""


def git(*words, **options):
    """Returns what git printed, as bytes."""
    return subprocess.run(["git", "-C", ROOT, *words], check=True, stdout=subprocess.PIPE, **options).stdout


def run(*command, **options):
    """Runs a program, which prints to stderr: stdout is for the paths of packages. Raises an error if it fails."""
    subprocess.run([str(word) for word in command], check=True, **{"stdout": sys.stderr} | options)


@functools.cache
def head():
    """Returns the hash of the last commit."""
    # In a folder of another repository, git would return a commit of that one.
    if not (ROOT / ".git").exists():
        raise Refused(f"{ROOT} is not a clone of the repository\nhint: `make` and `make install` also work without git")
    return git("rev-parse", "HEAD").decode().strip()


def text(name):
    """Returns the text of a committed file."""
    return git("show", f"{head()}:{name}").decode()


def version():
    """Returns the version in the workspace's Cargo.toml, which is the version of all packages."""
    # Red Hat 9 and Ubuntu 22.04 have no parser of TOML in Python's library.
    return re.search(r'^\[workspace\.package\]\nversion = "(.*)"$', text("Cargo.toml"), re.MULTILINE)[1]


def date():
    """Returns the date of the commit, in seconds since 1970. It is the time of all files in the packages."""
    return int(git("log", "-1", "--format=%ct", head()))


def environment():
    """Returns the variables for programs that build a package. Their output depends on nothing else of this machine."""
    # A `make` in a package must not see the variables of the `make` that started this program.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    # Dependencies stay compiled between builds. The folder of the source code is always new.
    cargo = {"CARGO_TARGET_DIR": str(TARGET / "packages/cargo")}
    return inherited | cargo | {"SOURCE_DATE_EPOCH": str(date()), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def refuse_spaces():
    """Raises Refused if a name of a folder contains a space, for tools that split names at spaces."""
    for folder in (ROOT, TARGET):
        if len(str(folder).split()) != 1:
            raise Refused(f"the name of {folder} contains a space\nhint: debhelper and rpmbuild need a name without spaces")


def export(folder, *paths):
    """Writes the committed files into a new folder. Changes that are not committed are not part of a package."""
    if git("status", "--porcelain", "--untracked-files=no"):
        print("note: the package does not contain the changes that are not committed", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # For root, tar keeps the permissions in the archive. The files get the time of now (-m): with the time of a commit that is
    # older than the last build, cargo would take the last program for the one of this commit.
    archive = git("-c", "tar.umask=0022", "archive", "--format=tar", head(), *paths)
    subprocess.run(["tar", "-x", "-m", "-C", folder], input=archive, check=True)


def remove_old(folder, pattern):
    """Removes the packages of earlier builds, which may have another version."""
    for package in folder.glob(pattern):
        package.unlink()


def changes():
    """Returns the text below the newest heading of CHANGELOG.md."""
    sections = text("CHANGELOG.md").split("\n## ")
    return sections[1].partition("\n")[2].strip()
