"""Writes the inputs that the fuzzer starts from: fuzz/seeds, and the fixtures of other tests."""

import gzip
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS = ROOT / "crates/pg_timing/tests"
FIXTURES = TESTS / "fixtures"
HOSTS = sorted(path for path in (FIXTURES / "hosts").iterdir())
# The order of the files in an input of the target captured_tree, with a zero byte between them.
TREE = (ROOT / "fuzz/targets/captured_tree.files").read_text().split()


def without_header(snapshot):
    """Returns the output in a snapshot file, which begins with a header between two lines of dashes."""
    return snapshot.read_text().split("---\n", 2)[2].encode()


def tree(host):
    """Returns the files of a captured host as one input."""
    files = [(host / name) for name in TREE]
    return b"\0".join(file.read_bytes() if file.is_file() else b"" for file in files)


def files(target):
    return [path.read_bytes() for path in sorted((ROOT / "fuzz/seeds" / target).glob("*"))]


def logs():
    """Returns all plans as logs, one log in gzip, one with NUL bytes, one in UTF-16, and two files in one input, with a byte
    between them."""
    first, second, *_ = files("log")
    middle = len(first) // 2
    damaged = first[:middle] + bytes(9) + first[middle:]
    utf_16 = first.decode(errors="replace").encode("utf-16")
    return [*files("plan"), *files("log"), gzip.compress(first, mtime=0), damaged, utf_16, first + b"\1" + second]


def seeds(target):
    """Returns the inputs of a target: those in fuzz/seeds, and for some targets fixtures of other tests."""
    fixtures = {
        "kernel_log": lambda: [log.read_bytes() for host in HOSTS if (log := host / "var/log/dmesg").is_file()],
        "pg_test_timing": lambda: [path.read_bytes() for path in sorted((FIXTURES / "pg_test_timing").iterdir())],
        "plan": lambda: [path.read_bytes() for path in sorted((FIXTURES / "plans").iterdir())] + files("log"),
        "host_report": lambda: [without_header(path) for path in sorted((TESTS / "e2e/snapshots").glob("*captured*json.snap"))],
        "captured_tree": lambda: [tree(host) for host in HOSTS],
        "log": logs,
    }
    return files(target) + fixtures.get(target, list)()


def write(target, directory):
    """Writes the seeds of a target, each into its own file."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (directory / f"seed{number}").write_bytes(seed)
