"""TPC-H: its tables in a server, and its 22 queries."""

import os
import shutil
import subprocess
from pathlib import Path

from servers import CACHE
from servers.commands import output
from servers.wheel import PIP

HERE = Path(__file__).parent
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

# Writes the tables.
GENERATOR = "tpchgen-cli"


def queries():
    """The 22, in order."""
    return [line for line in (HERE / "queries.sql").read_text().splitlines() if not line.startswith("--")]


def files(scale):
    """The folder with a .tbl file per table, made once."""
    folder = CACHE / f"tpch-{scale}"
    if not folder.exists():
        program = CACHE / GENERATOR
        if not program.exists():
            output([*PIP, "--no-deps", "--target", f"{program}.new", GENERATOR])
            os.rename(f"{program}.new", program)
        made = f"{folder}.new"
        shutil.rmtree(made, ignore_errors=True)
        output([next(program.glob("**/bin/tpchgen-cli")), "tbl", "-s", str(scale), "-o", made])
        os.rename(made, folder)
    return folder


def load(server, scale):
    """Fills the tables of a server's database `postgres`."""
    folder = files(scale)
    server.psql((HERE / "tables.sql").read_text())
    for table in TABLES:
        # Each line of a .tbl file ends with a delimiter too many.
        rows = subprocess.Popen(["sed", "s/|$//", folder / f"{table}.tbl"], stdout=subprocess.PIPE)
        copy = f"\\copy {table} FROM pstdin (DELIMITER '|')"
        subprocess.run(
            server.installation.command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", copy),
            stdin=rows.stdout, env=server.env_inside, check=True,
        )  # fmt: skip
    server.psql((HERE / "keys.sql").read_text())
