"""Debian's servers: unpacks a package and all its dependencies into a root directory, without installing them.

The host's apt downloads them, because it knows the mirror, the proxy and the keys. It uses separate lists and a separate
package database, so the host does not change. No package script runs, so no cluster is created and no service starts.
"""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .commands import Failed, output

# initdb needs /bin/sh (dash), and `env` (coreutils) sets the server's environment. No package depends on them, because
# every Debian system has them.
ESSENTIAL = ("dash", "coreutils")

# Documentation would be half of the size.
EXCLUDED = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info")


@dataclass(frozen=True)
class Recipe:
    """Unpacks a major version when called. The last suite has the server and its source; the others have dependencies."""

    major: int
    suites: tuple
    # a package to take from the last suite
    newest: str = ""

    def __call__(self, root, more=()):
        """Unpacks the server, and `more` packages."""
        server = tuple(f"postgresql-{name}{self.major}" for name in ("", "plperl-", "plpython3-"))
        # Headers and pgxs, without dependencies: they are clang and LLVM, only for bitcode, which the tests do not build.
        headers = (f"postgresql-server-dev-{self.major}",)
        unpack(root, self.suites, (*server, *more), headers, self.newest)


def unpack(root, suites, packages, without_dependencies=(), newest=""):
    """Unpacks packages with their dependencies, and other packages without."""
    mirror = debian_mirror()
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        work = Path(folder)
        for name in ("state/lists/partial", "cache/archives/partial"):
            (work / name).mkdir(parents=True)
        # An empty package database: apt downloads all dependencies, including the C library.
        (work / "status").touch()
        (work / "sources").write_text("".join(f"deb {mirror} {suite} main\n" for suite in suites))
        pin = f"Package: {newest}\nPin: release a={suites[-1]}\nPin-Priority: 990\n" if newest else ""
        (work / "preferences").write_text(pin)
        apt = ["apt-get", *options(work)]
        archives = work / "cache/archives"
        output([*apt, "update"])
        output([*apt, "install", "--yes", "--download-only", *ESSENTIAL, *packages])
        if without_dependencies:
            output([*apt, "download", *without_dependencies], cwd=archives)
        for package in sorted(archives.glob("*.deb")):
            extract(package, root)


def debian_mirror():
    """Returns the address of the host's Debian mirror."""
    if not (address := mirror("Debian")):
        raise Failed("apt has no source for Debian's packages")
    return address


def mirror(label):
    """Returns the address of the host's mirror of Debian's packages with this label, or None."""
    query = ("indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian", f"Label: {label}")
    addresses = output(["apt-get", *query])
    if not addresses:
        # Without package lists, as in a fresh container, apt does not know which address is Debian's. Separate lists avoid
        # the host's lock, which another process may hold.
        with tempfile.TemporaryDirectory() as lists:
            (Path(lists) / "partial").mkdir()
            apt = ["apt-get", "-o", f"Dir::State::Lists={lists}", "-o", "APT::Sandbox::User=root"]
            output([*apt, "update"])
            addresses = output([*apt, *query])
    return addresses.split()[0] if addresses else None


def options(work):
    settings = {
        "Dir::Etc::SourceList": work / "sources",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": work / "preferences",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        # The user _apt has no access to `work`.
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        # Without network, fail instead of using old lists.
        "APT::Update::Error-Mode": "any",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Languages": "none",
        # The mirror may be a snapshot of an earlier day. Its lists are expired, but their signatures are still checked.
        "Acquire::Check-Valid-Until": "false",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def extract(package, root):
    # Not `dpkg -x`: packages of older releases contain the directory /lib, which would replace the link to usr/lib.
    tar = ["tar", "-x", "-C", root, "--keep-directory-symlink", *(f"--exclude={path}" for path in EXCLUDED)]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacker:
        output(tar, stdin=unpacker.stdout)
    if unpacker.returncode != 0:
        raise Failed(f"could not unpack {package.name}")
