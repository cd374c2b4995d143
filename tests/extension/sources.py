"""PostgreSQL's source, for its own tests: the tarball of Debian's source package, got by the host's apt."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from servers import CACHE, Failed, Missing, debian
from servers.commands import first_cause, output
from servers.installation import lock

RELEASES = {15: "bookworm", 17: "trixie", 18: "sid", 19: "experimental"}

# A version whose source cannot be had takes a neighbour's tests: most are the same. But not all of them can be run.
NEIGHBOURS = {16: 15, 19: 18}
LEFT_OUT = {
    # Of bugs that 15 has got rid of since this 16, which crashes, waits forever or prints an address or an OID;
    # and two that name a setting as 15 does.
    16: ("arrays", "create_table_like", "encoding", "merge-update", "rules", "tsearch")
    + ("deadlock-parallel", "serializable-parallel"),
    # A plan of the first starts parallel workers ten thousand times in 19, the others print an OID and an LSN.
    19: ("join_hash", "sequence", "stats_import"),
}
# To build their library: 16 wants one more header, and has not got functions that only `encoding` calls.
FLAGS = {
    16: "-include postgres.h -include utils/array.h -Dpg_mblen_unbounded=pg_mblen -Dpg_mblen_cstr=pg_mblen"
    " '-Dpg_mblen_with_len(at,left)=pg_mblen(at)' '-Dpg_mblen_range(at,end)=pg_mblen(at)'"
}


@dataclass(frozen=True)
class Tests:
    """A source tree's tests, as one version can run them."""

    tree: Path
    left_out: tuple = ()
    flags: str = ""

    @property
    def version(self):
        return self.tree.name.removeprefix("postgresql-")

    def folder(self, suite):
        return self.tree / "src/test" / suite

    def build_libraries(self, installation, folder):
        """The functions in C that the tests call, of their own and of contrib."""
        sources = [self.folder("regress") / "regress.c"]
        sources += [self.tree / "contrib/spi" / name for name in ("refint.c", "autoinc.c")]
        for path in sources:
            shutil.copy(path, folder)
        modules = " ".join(path.stem for path in sources)
        (folder / "Makefile").write_text(
            f"MODULES = {modules}\nPGXS := $(shell $(PG_CONFIG) --pgxs)\ninclude $(PGXS)\n"
        )
        output(["make", "-s", "-C", folder, f"PG_CONFIG={installation.pg_config}", f"COPT={self.flags}"])


def tests_for(major):
    """The version's own tests, or a neighbour's. Raises Missing."""
    try:
        return Tests(source(major))
    except Missing:
        if major not in NEIGHBOURS:
            raise
        return Tests(source(NEIGHBOURS[major]), LEFT_OUT[major], FLAGS.get(major, ""))


def source(major):
    """The source tree of a version, like .../18/postgresql-18.6. Raises Missing."""
    # One that somebody else has put there is as good.
    folder = CACHE / "sources" / str(major)
    try:
        with lock(f"source-{major}"):
            if not folder.exists():
                fetch(major, folder)
        return next(folder.iterdir())
    except (Failed, OSError) as error:
        raise Missing(first_cause(error)) from error


def fetch(major, folder):
    if major not in RELEASES:
        raise Failed(f"no release of Debian has the source of {major}")
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work = Path(name)
        for needed in ("state/lists/partial", "cache/archives/partial", "tree"):
            (work / needed).mkdir(parents=True)
        for empty in ("status", "preferences"):
            (work / empty).touch()
        (work / "sources").write_text(f"deb-src {debian.debian_mirror()} {RELEASES[major]} main\n")
        apt = ["apt-get", *debian.options(work)]
        output([*apt, "update"])
        output([*apt, "source", "--download-only", "--tar-only", f"postgresql-{major}"], cwd=work)
        output(["tar", "-x", "-C", work / "tree", "-f", next(work.glob("*.orig.tar.*"))])
        # Last: once it is there, it is whole.
        shutil.move(work / "tree", folder)
