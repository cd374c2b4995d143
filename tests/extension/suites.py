"""Runs PostgreSQL's regression and isolation tests with each statement timed. The results must not change.

    python3 tests/extension/suites.py [--methods tsc,auto,count] [MAJOR...]

A method can name its ticker: auto/worker, auto/thread, auto/none. With auto/load, not the server but each session loads the
libraries, so that there is no worker. With auto/profile, each statement is profiled.

auto_explain requests times, buffers and WAL of every statement, also of nested statements. A test's output must be the same
as with the method off, on the same server. It may differ from PostgreSQL's expected output because of auto_explain or the
host; this is printed, but is not an error. Prints one line per server, method and suite, and one per complaint. The exit
status is 0 if everything was run without complaints.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    # Keeps compiled Python out of the source tree.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from extension import HERE, IMPOSSIBLE, METHODS, SOURCE
from extension.sources import Tests, tests_for
from servers import MAJORS, Failed, Installation, Missing, Server, build, install
from servers.commands import first_cause, output
from servers.installation import USER

# Each suite's program, and its list of tests.
SUITES = {
    "regress": ("pg_regress", "parallel_schedule"),
    "isolation": ("pg_isolation_regress", "isolation_schedule"),
}

SETTINGS = {
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": True,
    "auto_explain.log_timing": True,
    "auto_explain.log_buffers": True,
    "auto_explain.log_wal": True,
    "auto_explain.log_nested_statements": True,
    # as in pg_regress's temporary server
    "max_prepared_transactions": 2,
}

# The suites also run with this in place of a method: all statements are counted, and none is timed.
COUNT = "count"
COUNT_SETTINGS = {"pg_fast_timing.method": "auto", "pg_fast_timing.count_calls": "all", "auto_explain.log_timing": False}

# The order of the libraries determines the order of their hooks. With one method, the order is reversed.
LIBRARIES = ("pg_fast_timing", "auto_explain", "times")
REVERSED = "auto"

# In place of a ticker: each session loads the libraries.
LOAD = "load"
PROFILE = "profile"
# EXPLAIN does not print the query identifiers.
PROFILE_SETTINGS = {"pg_fast_timing.profile": True, "pg_fast_timing.profile_sample_rate": 1, "compute_query_id": "regress"}
# Without a ticker it is the worker.
ALL = (*METHODS, "auto/thread", "auto/load", "auto/none", "auto/profile", COUNT)

# pg_regress runs this many connections at the same time.
CONNECTIONS = 4

# A suite takes half a minute, or a few minutes on a busy host.
LIMIT_SECONDS = 1200

# Lines that are printed for each test with differences.
MAX_LINES = 6

# Lines of a crash in the server's log, and lines of an aborted program in pg_regress's output.
CRASH = re.compile(
    r"^TRAP: .*|^\S+ \S+ \S+ \[\d+\] (?:PANIC: .*|LOG: .* (?:terminated by signal|shutdown request).*)", re.M
)
BROKEN = re.compile(r"^[^#\n]*(?:FAILED|not ok|\(test process).*", re.M)


@dataclass
class Outcome:
    """The outcome of a suite with a method, for example "auto" or "auto/thread".

    `results` has the output of each test, `differ` the names of tests with other results, `wrong` the complaints.
    """

    installation: Installation
    method: str
    suite: str
    tests: Tests
    results: dict = field(default_factory=dict)
    differ: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    seconds: float = 0

    @property
    def title(self):
        return f"{self.installation.version} {self.method} {self.suite}"

    def __str__(self):
        if self.method != "off":
            differ = f"different from method off: {' '.join(self.differ) or 'none'}"
        elif self.tests.excluded:
            differ = f"without {' '.join(self.tests.excluded)}, {len(self.differ)} different from the expected output"
        else:
            differ = f"different from the expected output: {' '.join(self.differ) or 'none'}"
        return f"{self.title}: {len(self.results)} tests of {self.tests.version}, {self.seconds:.0f} s, {differ}"


def outcomes(installation, methods=ALL):
    """Yields the outcome of each suite and method, first with the method off. Raises Missing or Failed."""
    tests = tests_for(installation.major)
    build(SOURCE, installation)
    build(HERE / "other", installation)
    with tempfile.TemporaryDirectory() as libraries:
        tests.build_libraries(installation, Path(libraries))
        for suite in SUITES:
            for method in ("off", *methods):
                outcome = run(Outcome(installation, method, suite, tests), Path(libraries))
                if method == "off":
                    reference = outcome
                elif not outcome.wrong:
                    compare(outcome, reference)
                yield outcome
                if reference.wrong:
                    break


def run(outcome, libraries):
    suite, tests = outcome.suite, outcome.tests
    method, _, ticker = outcome.method.partition("/")
    order = reversed(LIBRARIES) if method == REVERSED else LIBRARIES
    settings = SETTINGS | {("session" if ticker == LOAD else "shared") + "_preload_libraries": ",".join(order)}
    settings |= COUNT_SETTINGS if method == COUNT else {"pg_fast_timing.method": method}
    if ticker == PROFILE:
        settings |= PROFILE_SETTINGS
    elif ticker not in ("", LOAD):
        settings["pg_fast_timing.ticker"] = ticker
    with Server(outcome.installation, settings) as server:
        if method != "off":
            outcome.wrong += not_counted(server) if method == COUNT else not_timed(server, ticker)
        folder = server.folder / suite
        shutil.copytree(tests.folder(suite), folder)
        for library in libraries.glob("*.so"):
            shutil.copy(library, folder)
        # pg_regress must not print differences from the expected output, because this program prints them.
        (folder / "diff").write_text("#!/bin/sh\n")
        (folder / "diff").chmod(0o755)
        os.chown(folder, USER, USER)

        program, schedule = SUITES[suite]
        names = schedule_without(folder / schedule, tests.excluded)
        start = time.monotonic()
        outcome.wrong += regress(server, program, folder, schedule)
        outcome.seconds = time.monotonic() - start
        log = server.log.read_text(errors="replace")
        outcome.wrong += [match[0] for pattern in (CRASH, IMPOSSIBLE) for match in islice(pattern.finditer(log), MAX_LINES)]
        outcome.results = {name: printed(folder / "results" / f"{name}.out") for name in names}
        if method == "off":
            outcome.differ = [name for name in names if not as_expected(folder, name, outcome.results[name])]
    return outcome


def not_timed(server, ticker):
    """Yields a complaint if the extension does not time statements, with the reason, or if it uses another ticker."""
    # Only auto_explain requests times for the first SELECT.
    server.psql("CREATE EXTENSION pg_fast_timing")
    timed, reason, used, why = server.psql(
        "SELECT 1 \\g /dev/null\n"
        "SELECT last_nodes > 0, coalesce(tsc_reason, ''), ticker, coalesce(ticker_reason, '') FROM pg_fast_timing_info()"
    ).strip().split("|")
    if timed != "t":
        yield f"the extension timed no statement{reason and ': '}{reason}"
    if used != {"": "worker", PROFILE: "worker", LOAD: "thread"}.get(ticker, ticker):
        yield f"the extension uses the ticker {used}: {why}"


def not_counted(server):
    """Yields a complaint if the extension does not count statements."""
    server.psql("CREATE EXTENSION pg_fast_timing")
    if server.psql("SELECT 1 \\g /dev/null\nSELECT node_calls > 0 FROM pg_stat_fast_timing").strip() != "t":
        yield "the extension counted no node calls"


def schedule_without(path, excluded):
    """Removes tests from a schedule. Returns the names of all other tests."""
    lines = []
    for line in path.read_text().splitlines():
        if line.startswith("test: "):
            lines.append([name for name in line.split()[1:] if name not in excluded])
    path.write_text("".join(f"test: {' '.join(names)}\n" for names in lines if names))
    return [name for names in lines for name in names]


def regress(server, program, folder, schedule):
    """Runs the tests. Yields the lines of aborted tests, or the last line of an aborted program."""
    installation = server.installation
    pgxs = Path(output([installation.pg_config, "--pgxs"]).strip())
    inside = server.inside(folder)
    command = installation.command(
        server.inside(pgxs.parent.parent / "test" / folder.name / program),
        f"--inputdir={inside}",
        f"--outputdir={inside}",
        f"--dlpath={inside}",
        f"--bindir=/usr/lib/postgresql/{installation.major}/bin",
        f"--schedule={inside}/{schedule}",
        f"--max-connections={CONNECTIONS}",
    )
    env = server.env_inside | {"PATH": f"{inside}:{server.env_inside['PATH']}"}
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=LIMIT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        yield f"{program}: not finished after {LIMIT_SECONDS} s"
        return
    broken = BROKEN.findall(done.stdout)
    if done.returncode != 0 and not broken:
        broken = done.stdout.strip().splitlines()[-1:]
    yield from (f"{program}: {line.strip()}" for line in broken)


def printed(path):
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return "no output: the test was not run"


def as_expected(folder, name, result):
    """Returns whether the result is one of PostgreSQL's expected outputs, except for white space."""
    paths = [folder / f"expected/{name}.out", *(folder / "expected").glob(f"{name}_?.out")]
    return any(result.split() == printed(path).split() for path in paths)


def compare(outcome, reference):
    """Adds the differences from the reference to an outcome."""
    for name, result in outcome.results.items():
        before = reference.results[name]
        if result != before and without_marks(result) != without_marks(before):
            outcome.differ.append(name)
            changes = difflib.ndiff(without_marks(before), without_marks(result))
            outcome.wrong += islice((f"{name}: {line}" for line in changes if line[0] in "+-"), MAX_LINES)


# The marks of estimates and waits in EXPLAIN: a separate row in text, or a property in XML, YAML or JSON. Waits come by chance.
ROW = re.compile(r"\s*(Timing: (estimated from|none,)|Fast Timing: .*plan nodes|Waits: .*CPU [\dN]+ ms) ?")
WAITS = re.compile(r"""^\s*("Waits": {.*?}|<Waits>.*?</Waits>|Waits: *\+?\n.*?CPU Time: [\dN.]+)[, +]*\n""", re.M | re.S)
PROPERTY = re.compile(r"""\s*(<Fast-Timing>|"?Fast Timing"?: "|<Timing>(estimated|none)|"?Timing"?: "(estimated|none)|<Timing-(Samples|Error)>|"?Timing (Samples|Error)"?: )""")


def without_marks(text):
    """Returns the lines of a result without these marks, and without their effects on other lines."""
    lines, rows = [], 0
    for line in WAITS.sub("", text).splitlines():
        if ROW.match(line):
            rows += 1
        elif not PROPERTY.match(line):
            # The marks change the number of rows, the width of the column, and the + or comma at the end of lines.
            if counted := re.fullmatch(r"\((\d+) rows?\)", line):
                line, rows = f"{int(counted[1]) - rows} rows", 0
            lines.append(re.sub(r"^-+$", "-", re.sub(r",?\s*\+?$", "", line.strip())))
    return lines


def check(installation, methods=ALL):
    """Yields complaints."""
    try:
        for outcome in outcomes(installation, methods):
            yield from (f"{outcome.title}: {what}" for what in outcome.wrong)
    except (Missing, Failed) as error:
        yield f"{installation.major}: not run: {first_cause(error)}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--methods", type=lambda text: text.split(","), default=ALL)
    parser.add_argument("majors", type=int, nargs="*", default=MAJORS)
    options = parser.parse_args()
    wrong = False
    for major in options.majors:
        try:
            for outcome in outcomes(install(major), options.methods):
                print(outcome, *outcome.wrong, sep="\n    ", flush=True)
                wrong |= bool(outcome.wrong)
        except (Missing, Failed) as error:
            print(f"{major}: not run: {first_cause(error)}", flush=True)
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
