"""TPC-H: creates its tables in a server, and returns its 22 queries."""

import os
import shutil
import subprocess
from pathlib import Path

from servers import CACHE
from servers.commands import output
from servers.wheel import PIP

HERE = Path(__file__).parent
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

# A Python package with a program that writes the tables.
GENERATOR = "tpchgen-cli"


def queries():
    """Returns the 22 queries, in order."""
    return [line for line in (HERE / "queries.sql").read_text().splitlines() if not line.startswith("--")]


def files(scale):
    """Returns a directory with one .tbl file per table. Generates the files once."""
    folder = CACHE / f"tpch-{scale}"
    if not folder.exists():
        program = CACHE / GENERATOR
        if not program.exists():
            output([*PIP, "--no-deps", "--target", f"{program}.new", GENERATOR])
            os.rename(f"{program}.new", program)
        new = f"{folder}.new"
        shutil.rmtree(new, ignore_errors=True)
        output([next(program.glob("**/bin/tpchgen-cli")), "tbl", "-s", str(scale), "-o", new])
        os.rename(new, folder)
    return folder


def load(server, scale):
    """Creates and fills the tables in the database `postgres`."""
    folder = files(scale)
    server.psql((HERE / "tables.sql").read_text())
    for table in TABLES:
        # Remove the extra delimiter at the end of each line.
        rows = subprocess.Popen(["sed", "s/|$//", folder / f"{table}.tbl"], stdout=subprocess.PIPE)
        copy = f"\\copy {table} FROM pstdin (DELIMITER '|')"
        subprocess.run(
            server.installation.command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", copy),
            stdin=rows.stdout, env=server.env_inside, check=True,
        )  # fmt: skip
    server.psql((HERE / "keys.sql").read_text())
