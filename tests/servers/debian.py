"""Debian's servers: a package and all that it depends on, unpacked into a root and never installed.

The host's own apt does it, with lists and a package database of its own: it knows mirror, proxy and keys, and the
host stays as it is. As no package's script runs, no cluster is made and no service started.
"""

import subprocess
import tempfile
from pathlib import Path

from .commands import Failed, output

# dash is the /bin/sh that initdb calls, coreutils has the `env` that sets the server's environment; no package
# depends on them, as they are on every Debian system.
ALWAYS = ("dash", "coreutils")

# Half a root would be documentation.
LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info")


def recipe(major, *suites, newest=None):
    """A function that unpacks a major version; `newest` is the package to take from the last of the suites."""
    server = (f"postgresql-{major}", f"postgresql-plperl-{major}", f"postgresql-plpython3-{major}")
    # Headers and pgxs. On its own: it depends on the whole of clang and LLVM, for bitcode that nobody builds here.
    headers = (f"postgresql-server-dev-{major}",)
    return lambda root: unpack(root, suites, server, headers, newest)


def unpack(root, suites, packages, alone=(), newest=None):
    """Unpacks packages with their dependencies, and those of `alone` without."""
    mirror = debian_mirror()
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        work = Path(folder)
        for name in ("state/lists/partial", "cache/archives/partial"):
            (work / name).mkdir(parents=True)
        # An empty system: everything down to the C library is missing, so apt brings it.
        (work / "status").touch()
        (work / "sources").write_text("".join(f"deb {mirror} {suite} main\n" for suite in suites))
        pin = f"Package: {newest}\nPin: release a={suites[-1]}\nPin-Priority: 990\n" if newest else ""
        (work / "preferences").write_text(pin)
        apt = ["apt-get", *options(work)]
        archives = work / "cache/archives"
        output([*apt, "update"])
        output([*apt, "install", "--yes", "--download-only", *ALWAYS, *packages])
        if alone:
            output([*apt, "download", *alone], cwd=archives)
        for package in sorted(archives.glob("*.deb")):
            extract(package, root)


def debian_mirror():
    """The address of the mirror that the host's apt takes Debian from."""
    archive = ("Identifier: Packages", "Origin: Debian", "Label: Debian")
    ask = ["apt-get", "indextargets", "--format", "$(REPO_URI)", *archive]
    # Without lists, as in a fresh container, apt does not know who is behind an address.
    addresses = output(ask) or (output(["apt-get", "update"]) and output(ask))
    if not addresses:
        raise Failed("apt has no source of Debian's packages")
    return addresses.split()[0]


def options(work):
    settings = {
        "Dir::Etc::SourceList": work / "sources",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": work / "preferences",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        # The user _apt could not enter `work`.
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        # No network is an error, not a warning and old lists.
        "APT::Update::Error-Mode": "any",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Languages": "none",
        # A mirror may be a snapshot of a day that is past: its lists are signed as before, only no longer fresh.
        "Acquire::Check-Valid-Until": "false",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def extract(package, root):
    # Not `dpkg -x`: an older Debian's package has the folder /lib, and it must not replace the link to usr/lib.
    tar = ["tar", "-x", "-C", root, "--keep-directory-symlink", *(f"--exclude={path}" for path in LEFT_OUT)]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as opened:
        output(tar, stdin=opened.stdout)
    if opened.returncode != 0:
        raise Failed(f"{package.name} cannot be unpacked")
