"""Tests of pg_fast_timing on real servers."""

import re
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The extension's source.
SOURCE = HERE.parent.parent / "extension"
# All methods except `off`, which is the server's own timing.
METHODS = ("tsc", "auto")

# With these compiler flags, exact times have no budget: all times of the method auto are estimates.
ESTIMATES = "-DONLY_ESTIMATES"

# The library that looks for impossible times in each statement (other/times.c) writes these to the log.
IMPOSSIBLE = re.compile(r"impossible time: .*")

# auto_explain times every statement of a session, also nested ones. The log is not read.
AUTO_EXPLAIN = """SET client_min_messages = error; LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on; SET auto_explain.log_timing = on; SET auto_explain.log_buffers = on;
SET auto_explain.log_nested_statements = on;"""

# Opens a cursor whose runs auto_explain times. It times no later statement.
TIMED_CURSOR = """LOAD 'auto_explain'; SET auto_explain.log_analyze = on; SET auto_explain.log_format = json;
SET auto_explain.log_min_duration = 0; BEGIN; DECLARE c CURSOR FOR {}; SET auto_explain.log_min_duration = -1;"""


def force_parallel(server):
    """Returns a SET statement with the setting's name in this version."""
    return f"SET {'debug_parallel_query' if server.installation.major >= 16 else 'force_parallel_mode'} = on;"


@contextmanager
def faulty_clocks():
    """Builds the library that makes a server's clocks faulty (clocks.c)."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "clocks.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "clocks.c", "-ldl"], check=True)
        yield library
