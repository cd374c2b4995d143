"""What tests on real servers print, and how they end."""

import time
from concurrent.futures import ThreadPoolExecutor

from servers import MAJORS, Failed, Missing, install


def passed(what, test):
    """Whether a test that yields what is wrong has nothing to say; a line, and one for each complaint."""
    start = time.monotonic()
    try:
        wrong = list(test())
    except Failed as failed:
        wrong = [str(failed)]
    line = f"{what} {'FAILED' if wrong else 'ok'} in {time.monotonic() - start:.1f} s"
    # In one piece: others may be printing.
    print("\n       ".join([line, *wrong]), flush=True)
    return not wrong


def on_each(majors, tests, may_lack=False, get=install, together=1):
    """
    Runs each (name, test of an installation) on these servers, or on those that can be had here; `may_lack` modules.

    So many servers at once: tests that mostly wait. Exit status 0 if all passed: of the versions that are asked for, or
    else of one at least.
    """

    def on(major):
        try:
            installation = get(major)
            if installation.note and not may_lack:
                raise Missing(installation.note)
        except Missing as missing:
            print(f"{major:>6} NOT TESTED: {missing}", flush=True)
            return [False] if majors else []
        return [passed(f"{installation.version:>6} {name:<12}", lambda: test(installation)) for name, test in tests]

    with ThreadPoolExecutor(together) as pool:
        had = [each for of_one in pool.map(on, [int(major) for major in majors] or MAJORS) for each in of_one]
    return 0 if had and all(had) else 1


def refused(done, what, line):
    """pg_timing's one line, a hint perhaps, nothing on stdout."""
    said = done.stderr.splitlines()
    if done.returncode != 3 or done.stdout or line not in done.stderr or not said[0].startswith("pg_timing: error: ") or len(said) > 2:
        yield f"{what}: exit status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
