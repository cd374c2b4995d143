"""An installed server: a root folder to chroot into."""

import fcntl
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import debian, pgxs, wheel
from .commands import Failed, Missing, in_short, output

CACHE = Path(os.environ.get("PG_TIMING_SERVERS") or "/var/cache/pg_timing/servers").absolute()

# PostgreSQL does not run as root. A number of its own: who has it on the host does not matter, its files are private.
USER = 5432

# What a root has of the host's. The clock source is told in /sys, and the loader finds $ORIGIN by /proc.
HOSTS = ("proc", "sys", "dev")

# Mounted where nobody else sees it, and gone with the process. So is shared memory, which a server that is killed
# would leave behind.
ENTER = f"""set -e
for folder in {' '.join(HOSTS)}; do mount --rbind "/$folder" "$1/$folder"; done
mount -t tmpfs shm "$1/dev/shm"
exec chroot --userspec={USER}:{USER} --groups= "$@\""""

RECIPES = {
    15: debian.recipe(15, "bookworm"),
    16: wheel.unpack,  # no release of Debian has 16
    17: debian.recipe(17, "trixie"),
    18: debian.recipe(18, "sid"),
    # postgresql-client-19 wants a libpq5 newer than sid's.
    19: debian.recipe(19, "sid", "experimental", newest="libpq5"),
}
MAJORS = tuple(RECIPES)


@dataclass(frozen=True)
class Installation:
    """One version. `version` is like "18.6"; `note` says what it lacks, if anything."""

    major: int
    version: str = ""
    note: str = ""

    @property
    def folder(self):
        return CACHE / str(self.major)

    @property
    def root(self):
        return self.folder / "root"

    @property
    def pg_config(self):
        """For building on the host: this version's pg_config, with the paths as they are outside of the root."""
        return self.folder / "pg_config"

    @property
    def has_jit(self):
        """A package of its own since 18; the wheel has none."""
        return (self.root / f"usr/lib/postgresql/{self.major}/lib/llvmjit.so").exists()

    def command(self, program, *arguments):
        """The command line that runs one of this version's programs, as the server's user and inside the root."""
        inside = program if program.startswith("/") else f"/usr/lib/postgresql/{self.major}/bin/{program}"
        return ["unshare", "--mount", "--ipc", "sh", "-c", ENTER, "enter", str(self.root), inside, *map(str, arguments)]


def installed(major):
    """The installation of a version that is complete, or None."""
    try:
        version, note = marker(major).read_text().splitlines()
    except OSError:
        return None
    return Installation(major, version, note)


def install(major):
    """The installation of a version, made if it is not there yet. Raises Missing."""
    if major not in RECIPES:
        raise Missing(f"only {', '.join(map(str, MAJORS))} are known")
    if os.geteuid() != 0:
        raise Missing("only root may change the root folder and the user")
    with lock(major):
        try:
            return installed(major) or make(Installation(major))
        except (Failed, OSError) as error:
            raise Missing(in_short(error)) from error


def make(bare):
    if bare.folder.exists():
        # What an interrupted run has left.
        shutil.rmtree(bare.folder)
    skeleton(bare.root)
    note = RECIPES[bare.major](bare.root) or ""
    pgxs.adapt(bare)
    version = re.search(r"\(PostgreSQL\) (\S+)", output(bare.command("postgres", "--version")))[1]
    # Last: with it, the version counts as complete.
    marker(bare.major).write_text(f"{version}\n{note}\n")
    return installed(bare.major)


def skeleton(root):
    """What every root needs and no package brings."""
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "tmp", *HOSTS):
        (root / folder).mkdir(parents=True)
    # Debian's merged /usr, which its packages rely on and an installer makes.
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / folder).symlink_to(f"usr/{folder}")
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(f"root:x:0:0::/:/bin/sh\npostgres:x:{USER}:{USER}::/tmp:/bin/sh\n")
    (root / "etc/group").write_text(f"root:x:0:\npostgres:x:{USER}:\n")


def marker(major):
    return CACHE / str(major) / "complete"


@contextmanager
def lock(major):
    """Held while a version is made, so that two test runs at once make it once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{major}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
