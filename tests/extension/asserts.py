"""The tests on a server that checks itself: PostgreSQL's own source, built with its assertions.

    python3 tests/extension/asserts.py [MAJOR...]        18, unless others are named

A release server goes on where such a one ends with a TRAP. It is built once, for some minutes, and takes bison, flex
and perl. One line per server and test, and one for each thing that is wrong. Exit status 0 if all was run and is right.
"""

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    # Compiled Python beside the sources would be one more thing to ignore.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from extension import SOURCE, statements, suites, survive
from extension.sources import source
from outcome import on_each
from servers import CACHE, Failed, Installation, Missing, build, debian, pgxs
from servers.commands import in_short, output
from servers.installation import lock, skeleton

MAJORS = (18,)

# What the tests use is built, and nothing that needs a library which the host may lack.
CONFIGURE = ("--enable-cassert", "--enable-debug", "--without-icu", "--without-readline", "--without-zlib")
FLAGS = "-O1 -g -fno-omit-frame-pointer"
FOLDERS = (".", "contrib/auto_explain", "contrib/pg_stat_statements", "contrib/postgres_fdw", "src/test/isolation")


def builds(installation):
    build(SOURCE, installation)
    return []


TESTS = (("builds", builds), ("statements", statements.check), ("survives", survive.check), ("suites", suites.check))


@dataclass(frozen=True)
class Asserting(Installation):
    """In a folder of its own, beside the release of the same version."""

    @property
    def folder(self):
        return CACHE / "asserts" / str(self.major)


def asserting(major):
    """The installation, made if it is not there yet. Raises Missing."""
    found = Asserting(major, f"{major} with assertions")
    try:
        with lock(f"asserts-{major}"):
            if not (found.folder / "complete").exists():
                make(found)
    except (Failed, OSError) as error:
        raise Missing(in_short(error)) from error
    return found


def make(new):
    tree = source(new.major)
    # What an interrupted run has left.
    shutil.rmtree(new.folder, ignore_errors=True)
    skeleton(new.root)
    # Built here, it needs the C library from here.
    debian.unpack(new.root, [platform.freedesktop_os_release()["VERSION_CODENAME"]], ["libc6", "tzdata"])
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        prefix = f"--prefix=/usr/lib/postgresql/{new.major}"
        output([tree / "configure", prefix, *CONFIGURE, f"CFLAGS={FLAGS}"], cwd=work)
        for folder in FOLDERS:
            output(["make", "-s", f"-j{os.cpu_count()}", "-C", f"{work}/{folder}"])
            output(["make", "-s", "-C", f"{work}/{folder}", "install", f"DESTDIR={new.root}"])
    pgxs.adapt(new)
    # Last: with it, the server counts as complete.
    (new.folder / "complete").touch()


if __name__ == "__main__":
    sys.exit(on_each(sys.argv[1:] or MAJORS, TESTS, get=asserting))
