"""Builds the extension from the archive for PGXN, and runs its tests on a real server."""

import json
import subprocess
import tempfile
import zipfile
from pathlib import Path

import metadata
from roots import ROOT
from servers import Server, build, install
from servers.commands import Failed, output

# Debian's stable release has it.
MAJOR = 17


def unpacked(folder):
    """Builds the archive, unpacks it into a folder, and returns the folder of the distribution."""
    archive = Path(output([ROOT / "packaging/build", "pgxn"]).splitlines()[-1])
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    (distribution,) = Path(folder).iterdir()
    # PGXN requires that the files are in a folder with the name of the archive.
    if distribution.name != archive.stem:
        raise Failed(f"{archive} contains {distribution.name}")
    return distribution


def meta():
    """META.json in the archive follows the specification, and has the version of the workspace."""
    with tempfile.TemporaryDirectory() as folder:
        distribution = unpacked(folder)
        files = [str(file.relative_to(distribution)) for file in distribution.rglob("*")]
        found = json.loads((distribution / "META.json").read_text())
        yield from metadata.mistakes_in_meta(found, files)
        yield from metadata.mistakes_are_found(found, files)
        if {found["version"], found["provides"]["pg_fast_timing"]["version"]} != {metadata.version()}:
            yield f"the version is {found['version']}, and the workspace's {metadata.version()}"


def regression():
    """The unpacked archive builds and installs. Its regression test has the expected output."""
    with tempfile.TemporaryDirectory() as folder:
        distribution = unpacked(folder)
        installation = install(MAJOR)
        build(distribution, installation)
        with Server(installation) as server:
            script = (distribution / "sql/pg_fast_timing.sql").read_text()
            # As pg_regress runs it.
            printed = server.run("psql", "-X", "-a", "-q", "-f", "-", input=script, stderr=subprocess.STDOUT)
        if printed.strip() != (distribution / "expected/pg_fast_timing.out").read_text().strip():
            yield f"the output is\n{printed}"
