"""The same commit gives the same bytes in two folders, with two folders of cargo."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from roots import ROOT, TARGET
from servers import install
from servers.commands import output

# Where the packages of each kind are.
KINDS = {
    "dist": "dist/*.tar.gz", "pgxn": "pgxn/*.zip", "deb": "deb/*.deb", "tar": "tar/*.tar.gz", "rpm": "rpm/RPMS/*/*.rpm",
    "oci": "oci/*.oci.tar",
}  # fmt: skip
WORK = TARGET / "packages/same"


def built(folder, kind, cargo_home):
    """Clones the last commit into a folder, builds packages there, and returns the names with a hash of the bytes."""
    if not folder.exists():
        output(["git", "clone", "--quiet", ROOT, folder])
    output(["git", "-C", folder, "fetch", "--quiet", "origin", "HEAD"])
    output(["git", "-C", folder, "checkout", "--quiet", "FETCH_HEAD"])
    # Each folder compiles everything itself.
    env = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    env["CARGO_HOME"] = str(cargo_home)
    if kind == "oci":
        # The image of the extension needs a server that has extension_control_path.
        env["PG_CONFIG"] = str(install(18).pg_config)
    output(["packaging/build", kind], cwd=folder, env=env)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "target").glob(KINDS[kind])}


def same(kind):
    """Yields the packages whose bytes differ."""
    own = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as other_home:
        # The downloads are the same. Only the paths differ.
        shutil.copytree(own / "registry/cache", Path(other_home) / "registry/cache")
        first = built(WORK / "one", kind, own)
        second = built(WORK / "a-folder-with-a-longer-name", kind, other_home)
    if not first:
        yield "no package was built"
    for name in first | second:
        if first.get(name) != second.get(name):
            yield f"{name} differs"
