"""Runs tests of the extension with the address sanitizer and the sanitizer of undefined behavior.

    python3 tests/extension/sanitizers.py [MAJOR...]        the default is 18

Only the extension is built with the sanitizers. They also watch its accesses to memory that the server allocates. PostgreSQL's
own suites run with the methods that differ most. An error of a sanitizer aborts the server process, and the test fails. Prints
one line per server and test, and one for each complaint. The exit status is 0 if all tests passed.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    # Keeps compiled Python out of the source tree.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from extension import SOURCE, fallbacks, profile, statements, suites, survive, ticker, waits
from outcome import on_each
from servers import CACHE, Failed, Installation, Server, build
from servers.commands import output
from servers.installation import RECIPES, separate

MAJORS = (18,)
# Each time, exact while that is cheap, by ticks of a thread, and only counts: together they run all of the executor's wrappers.
METHODS = ("tsc", "auto", "auto/thread", "count")


@dataclass(frozen=True)
class Sanitized(Installation):
    """A separate server: the sanitized extension must not replace the other one."""

    @property
    def folder(self):
        return CACHE / "sanitized" / str(self.major)

    @property
    def flags(self):
        return "-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"

    @property
    def preload(self):
        return tuple(Path(output(["gcc", f"-print-file-name={name}"]).strip()).resolve() for name in ("libasan.so", "libubsan.so"))

    @property
    def env(self):
        # The server does not free its memory at the end of a process.
        return {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1"}


def sanitized(major):
    """Returns the installation. Unpacks it, if it does not exist. Raises Missing."""
    return separate(Sanitized(major, f"{major} sanitized"), lambda new: RECIPES[new.major](new.root))


def builds(installation):
    build(SOURCE, installation)
    return []


# Two faults: a write behind a block of memory, and a shift by too many bits. All is volatile, so that the compiler keeps it.
FAULTS = {
    "AddressSanitizer: heap-buffer-overflow": "volatile char *volatile block = malloc(8); block[8] = 1;",
    "shift exponent 40 is too large": "volatile int bits = 40, shifted = 1 << bits; (void) shifted;",
}
FAULTY = """
#include "postgres.h"
#include "fmgr.h"
PG_MODULE_MAGIC;
void _PG_init(void);
void _PG_init(void) { %s }
"""


def notices_faults(installation):
    """Each fault must end the server process. Otherwise the other tests would show nothing."""
    for number, (message, fault) in enumerate(FAULTS.items()):
        # Each library has another name: the file of a library that is in use must not change.
        name = f"fault{number}"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, f"{name}.c").write_text(FAULTY % fault)
            Path(folder, "Makefile").write_text(f"MODULES = {name}\nPGXS := $(shell $(PG_CONFIG) --pgxs)\ninclude $(PGXS)\n")
            build(folder, installation, "-Wno-error")
        with Server(installation) as server:
            try:
                server.psql(f"LOAD '{name}'")
                yield f"no error: {message}"
            except Failed:
                if message not in server.log.read_text(errors="replace"):
                    yield f"not in the server's log: {message}"


TESTS = (
    ("builds", builds),
    ("faults", notices_faults),
    ("statements", statements.check),
    ("survives", survive.check),
    ("with worker", survive.check_with_worker),
    ("ticker", ticker.check),
    ("fallbacks", fallbacks.check),
    ("waits", waits.check),
    ("profile", profile.check),
    ("suites", lambda installation: suites.check(installation, METHODS)),
)

if __name__ == "__main__":
    sys.exit(on_each(sys.argv[1:] or MAJORS, TESTS, get=sanitized))
