"""Root directories with a minimal Debian, in which packages are installed and tried.

Each is a stack of folders. Debian's own packages are in lower folders, which stay in target/packages/roots. What a test
changes goes into an upper folder, which is removed after the test.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from servers.commands import output
from servers.debian import debian_mirror, mirror

ROOT = Path(__file__).resolve().parent.parent.parent
# cargo runs in ROOT, so a relative path starts there.
TARGET = ROOT / (os.environ.get("CARGO_TARGET_DIR") or "target")
WORK = TARGET / "packages/roots"

# Has no separate security updates.
UNSTABLE = "sid"
# Debian's releases, from the oldest on. Each has one version of PostgreSQL.
RELEASES = ("bookworm", "trixie", UNSTABLE)

# All mounts and processes are private and end with the command. The command's files have the host's time and network.
ENTER = """set -e
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs shm "$2/root/dev/shm"
mount --rbind /sys "$2/root/sys"
exec chroot "$2/root" /bin/sh -euc "$3\""""
APT = "apt-get -q -y -o APT::Install-Recommends=false -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
}  # fmt: skip


@dataclass
class Root:
    """A stack of folders, from the lowest to the highest. `changes` is the folder for what changes."""

    lower: list
    changes: Path

    def __post_init__(self):
        for name in ("upper", "work", "root"):
            (self.changes / name).mkdir(parents=True, exist_ok=True)

    def run(self, script):
        """Returns the output of a shell script in the root, which ends at the first error. Raises Failed."""
        # The first of the folders is the highest.
        lower = ":".join(str(folder) for folder in reversed(self.lower))
        enter = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child"]
        return output([*enter, "sh", "-c", ENTER, "enter", lower, self.changes, script], env=ENVIRONMENT)

    def put(self, file, name):
        """Copies a file or a folder of the host into the root, under an absolute name."""
        to = self.changes / "upper" / name.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        if Path(file).is_dir():
            shutil.copytree(file, to, symlinks=True)
        else:
            shutil.copy(file, to)

    def remove(self):
        shutil.rmtree(self.changes)


def scratch(lower):
    """Returns a root for one test on these folders. The test removes it."""
    WORK.mkdir(parents=True, exist_ok=True)
    return Root(lower, Path(tempfile.mkdtemp(prefix="test-", dir=WORK)))


def bare(release):
    """Returns the folders of a minimal installation: the essential packages and apt."""
    folder = WORK / release / "bare"
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        output(["debootstrap", "--variant=minbase", release, part, debian_mirror()], env=os.environ | {"LC_ALL": "C.UTF-8"})
        # The host may have these newer versions, and its package of the extension needs the host's version of the server.
        if release != UNSTABLE and (security := mirror("Debian-Security")):
            (part / "etc/apt/sources.list.d/security.list").write_text(f"deb {security} {release}-security main\n")
        # No service starts when a package is installed.
        policy = part / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        part.rename(folder)
    return [folder]


def with_packages(release, name, packages):
    """Returns the folders of a minimal installation with more of Debian's packages, in a folder with this name."""
    folder = WORK / release / name
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        root = Root(bare(release), part)
        root.run(f"{APT} update; {APT} install {' '.join(packages)}; apt-get clean")
        (part / "upper").rename(folder)
        root.remove()
    return [*bare(release), folder]


def with_server(release):
    """Returns the folders with a server, a reader of man pages, and bash's completion."""
    return with_packages(release, "server", ["postgresql", "man-db", "bash-completion"])


def major(release):
    """Returns the version of PostgreSQL in a release, as text."""
    (folder,) = (with_server(release)[-1] / "usr/lib/postgresql").iterdir()
    return folder.name


def with_compiler(release):
    """Returns the folders with what the extension's package needs to be built."""
    return with_packages(release, "compiler", ["build-essential", "debhelper", "postgresql-server-dev-all"])
