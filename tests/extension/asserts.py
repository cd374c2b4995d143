"""Runs the tests on a server with assertions, built from PostgreSQL's source.

    python3 tests/extension/asserts.py [MAJOR...]        the default is 18

A server with assertions stops with a TRAP at faults that a release server does not notice. It is built once, in some
minutes, and needs bison, flex and perl. Prints one line per server and test, and one for each complaint. The exit status
is 0 if all tests passed.
"""

import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    # Keeps compiled Python out of the source tree.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from extension import SOURCE, fallbacks, faulty, profile, statements, suites, survive, ticker, waits
from extension.sources import source
from outcome import on_each
from servers import CACHE, Installation, build, debian
from servers.commands import output
from servers.installation import separate

MAJORS = (18,)

# Only what the tests use is built, without libraries that may be missing on the host.
CONFIGURE = ("--enable-cassert", "--enable-debug", "--without-icu", "--without-readline", "--without-zlib")
FLAGS = "-O1 -g -fno-omit-frame-pointer"
FOLDERS = (".", "contrib/auto_explain", "contrib/pg_stat_statements", "contrib/postgres_fdw", "src/test/isolation")


def builds(installation):
    build(SOURCE, installation)
    return []


TESTS = (
    ("builds", builds),
    ("statements", statements.check),
    ("survives", survive.check),
    ("with worker", survive.check_with_worker),
    ("ticker", ticker.check),
    ("fallbacks", fallbacks.check),
    ("waits", waits.check),
    ("profile", profile.check),
    ("faulty clocks", faulty.check),
    ("suites", suites.check),
)


@dataclass(frozen=True)
class Asserting(Installation):
    """A server with assertions. Its folder is separate from the release of the same version."""

    @property
    def folder(self):
        return CACHE / "asserts" / str(self.major)


def asserting(major):
    """Returns the installation. Builds it, if it does not exist. Raises Missing."""
    return separate(Asserting(major, f"{major} with assertions"), build_server)


def build_server(new):
    tree = source(new.major)
    # The server is built on this host, so it needs this host's C library.
    debian.unpack(new.root, [platform.freedesktop_os_release()["VERSION_CODENAME"]], ["libc6", "tzdata"])
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        prefix = f"--prefix=/usr/lib/postgresql/{new.major}"
        output([tree / "configure", prefix, *CONFIGURE, f"CFLAGS={FLAGS}"], cwd=work)
        for folder in FOLDERS:
            output(["make", "-s", f"-j{os.cpu_count()}", "-C", f"{work}/{folder}"])
            output(["make", "-s", "-C", f"{work}/{folder}", "install", f"DESTDIR={new.root}"])


if __name__ == "__main__":
    sys.exit(on_each(sys.argv[1:] or MAJORS, TESTS, get=asserting))
