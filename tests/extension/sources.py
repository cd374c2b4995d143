"""PostgreSQL's source with its tests: the tarball of Debian's source package, downloaded by the host's apt."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from servers import CACHE, Failed, Missing, debian
from servers.commands import first_cause, output
from servers.installation import RECIPES, lock

# If the source of a version is not available, a neighbor's tests are used. Most are the same, but not all can run.
NEIGHBORS = {16: 15, 17: 15, 19: 18}
# Two tests use the name of a setting before 16, and `rules` prints OIDs.
OLDER = ("rules", "deadlock-parallel", "serializable-parallel")
EXCLUDED = {
    # Tests of bugs that were fixed in 15 after this 16 was released: this 16 crashes, waits forever, or prints an address.
    16: (*OLDER, "arrays", "create_table_like", "encoding", "merge-update", "tsearch"),
    # 17 prints the warnings of `cluster` in any order.
    17: (*OLDER, "cluster"),
    # In 19, a plan in join_hash starts parallel workers ten thousand times. The other tests print an OID and an LSN.
    19: ("join_hash", "sequence", "stats_import"),
}
# Flags for building the tests' library: since 16 it needs one more header. 16 lacks functions that only `encoding` calls.
ARRAY = "-include postgres.h -include utils/array.h"
FLAGS = {
    17: ARRAY,
    16: f"{ARRAY} -Dpg_mblen_unbounded=pg_mblen -Dpg_mblen_cstr=pg_mblen"
    " '-Dpg_mblen_with_len(at,left)=pg_mblen(at)' '-Dpg_mblen_range(at,end)=pg_mblen(at)'"
}


@dataclass(frozen=True)
class Tests:
    """The tests of a source tree that a version can run."""

    tree: Path
    excluded: tuple = ()
    flags: str = ""

    @property
    def version(self):
        return self.tree.name.removeprefix("postgresql-")

    def folder(self, suite):
        return self.tree / "src/test" / suite

    def build_libraries(self, installation, folder):
        """Builds the C functions that the tests call: their own, and those of contrib."""
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
    """Returns the tests of a version, or those of its neighbor. Raises Missing."""
    try:
        return Tests(source(major))
    except Missing:
        if major not in NEIGHBORS:
            raise
        return Tests(source(NEIGHBORS[major]), EXCLUDED[major], FLAGS.get(major, ""))


def source(major):
    """Returns the source tree of a version, for example .../18/postgresql-18.6. Raises Missing."""
    # The directory may also be a copy that the user put there.
    folder = CACHE / "sources" / str(major)
    try:
        with lock(f"source-{major}"):
            if not folder.exists():
                fetch(major, folder)
        return next(folder.iterdir())
    except (Failed, OSError) as error:
        raise Missing(first_cause(error)) from error


def fetch(major, folder):
    recipe = RECIPES.get(major)
    if not isinstance(recipe, debian.Recipe):
        raise Failed(f"no Debian release has the source of {major}")
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work = Path(name)
        for needed in ("state/lists/partial", "cache/archives/partial", "tree"):
            (work / needed).mkdir(parents=True)
        for empty in ("status", "preferences"):
            (work / empty).touch()
        (work / "sources").write_text(f"deb-src {debian.debian_mirror()} {recipe.suites[-1]} main\n")
        apt = ["apt-get", *debian.options(work)]
        output([*apt, "update"])
        output([*apt, "source", "--download-only", "--tar-only", f"postgresql-{major}"], cwd=work)
        output(["tar", "-x", "-C", work / "tree", "-f", next(work.glob("*.orig.tar.*"))])
        # The move comes last, so an existing directory is complete.
        shutil.move(work / "tree", folder)
