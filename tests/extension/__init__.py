"""Tests of pg_fast_timing on real servers."""

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What is tested.
SOURCE = HERE.parent.parent / "extension"
# But for `off`, which is the server's own.
METHODS = ("tsc", "sampling", "auto")

# Every statement of a session is timed, nested ones too, and the log is not read.
AUTO_EXPLAIN = """SET client_min_messages = error; LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on; SET auto_explain.log_timing = on; SET auto_explain.log_buffers = on;
SET auto_explain.log_nested_statements = on;"""


def force_parallel(server):
    """The setting by its name in this version."""
    return f"SET {'debug_parallel_query' if server.installation.major >= 16 else 'force_parallel_mode'} = on;"


@contextmanager
def faulty_clocks():
    """The library that stands between a server and its clocks (clocks.c)."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "clocks.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "clocks.c", "-ldl"], check=True)
        yield library
