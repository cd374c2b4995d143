"""An installed server: a root directory for chroot."""

import fcntl
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import debian, pgxs, wheel
from .commands import Failed, Missing, Offline, first_cause, is_offline, output

CACHE = Path(os.environ.get("PG_TIMING_SERVERS") or "/var/cache/pg_timing/servers").absolute()

# PostgreSQL does not run as root. This user id need not exist on the host, because the server's files are private.
USER = 5432

# The host's directories that a server needs: the clock source is in /sys, and the loader finds $ORIGIN with /proc.
HOST_DIRECTORIES = ("proc", "sys", "dev")

# The mounts are in a private namespace, so they end with the process. This includes shared memory, which a killed server
# would leave behind.
ENTER = f"""set -e
for folder in {' '.join(HOST_DIRECTORIES)}; do mount --rbind "/$folder" "$1/$folder"; done
mount -t tmpfs shm "$1/dev/shm"
exec chroot --userspec={USER}:{USER} --groups= "$@\""""

RECIPES = {
    15: debian.Recipe(15, ("bookworm",)),
    16: wheel.unpack,  # no Debian release has 16
    17: debian.Recipe(17, ("trixie",)),
    18: debian.Recipe(18, ("sid",)),
    # postgresql-client-19 needs a newer libpq5 than sid has.
    19: debian.Recipe(19, ("sid", "experimental"), newest="libpq5"),
}
MAJORS = tuple(RECIPES)


@dataclass(frozen=True)
class Installation:
    """One version. `version` is for example "18.6". `note` says what is missing, or is empty."""

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
        """The path of a pg_config for building on the host. It prints paths outside of the root."""
        return self.folder / "pg_config"

    @property
    def has_jit(self):
        """Whether the server has JIT. Since 18, Debian has a separate package for it. The wheel has no JIT."""
        return (self.root / f"usr/lib/postgresql/{self.major}/lib/llvmjit.so").exists()

    @property
    def flags(self):
        """More flags of the compiler, for building extensions."""
        return ""

    @property
    def preload(self):
        """Shared libraries of the host that each server loads first."""
        return ()

    @property
    def env(self):
        """More environment variables of each server."""
        return {}

    def command(self, program, *arguments):
        """Returns the command line that runs a program of this version in the root, as the server's user."""
        inside = program if program.startswith("/") else f"/usr/lib/postgresql/{self.major}/bin/{program}"
        return ["unshare", "--mount", "--ipc", "sh", "-c", ENTER, "enter", str(self.root), inside, *map(str, arguments)]


def installed(major):
    """Returns the complete installation of a version, or None."""
    try:
        version, note = marker(major).read_text().splitlines()
    except OSError:
        return None
    return Installation(major, version, note)


def install(major):
    """Returns the installation of a version, after installing it if necessary. Raises Missing."""
    if major not in RECIPES:
        raise Missing(f"known versions: {', '.join(map(str, MAJORS))}")
    if os.geteuid() != 0:
        raise Missing("only root can use chroot and change the user")
    with lock(major):
        try:
            return installed(major) or make(Installation(major))
        except (Failed, OSError) as error:
            raise (Offline if is_offline(error) else Missing)(first_cause(error)) from error


def make(incomplete):
    if incomplete.folder.exists():
        # An interrupted run left an incomplete installation.
        shutil.rmtree(incomplete.folder)
    skeleton(incomplete.root)
    note = RECIPES[incomplete.major](incomplete.root) or ""
    pgxs.adapt(incomplete)
    version = re.search(r"\(PostgreSQL\) (\S+)", output(incomplete.command("postgres", "--version")))[1]
    # This file comes last, because it marks the installation as complete.
    marker(incomplete.major).write_text(f"{version}\n{note}\n")
    return installed(incomplete.major)


def separate(new, unpack):
    """Returns an installation whose folder is separate, after making it once. Raises Missing."""
    complete = new.folder / "complete"
    try:
        with lock("-".join(new.folder.relative_to(CACHE).parts)):
            if not complete.exists():
                # An interrupted run can have left files.
                shutil.rmtree(new.folder, ignore_errors=True)
                skeleton(new.root)
                unpack(new)
                pgxs.adapt(new)
                # The marker comes last: it means that the installation is complete.
                complete.touch()
    except (Failed, OSError) as error:
        raise Missing(first_cause(error)) from error
    return new


def skeleton(root):
    """Makes the directories and files that every root needs and that are in no package."""
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "tmp", *HOST_DIRECTORIES):
        (root / folder).mkdir(parents=True)
    # Debian's merged /usr. Packages need it, and normally Debian's installer makes it.
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / folder).symlink_to(f"usr/{folder}")
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text(f"root:x:0:0::/:/bin/sh\npostgres:x:{USER}:{USER}::/tmp:/bin/sh\n")
    (root / "etc/group").write_text(f"root:x:0:\npostgres:x:{USER}:\n")


def marker(major):
    return CACHE / str(major) / "complete"


@contextmanager
def lock(major):
    """Prevents two test runs from installing the same version at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{major}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
