"""What tests on real servers print, and how they end."""

import time

from servers import MAJORS, Failed, Missing, install


def passed(what, test):
    """Whether a test that yields what is wrong has nothing to say; a line, and one for each complaint."""
    start = time.monotonic()
    try:
        wrong = list(test())
    except Failed as failed:
        wrong = [str(failed)]
    print(f"{what} {'FAILED' if wrong else 'ok'} in {time.monotonic() - start:.1f} s", flush=True)
    for line in wrong:
        print(f"       {line}", flush=True)
    return not wrong


def on_each(majors, tests, may_lack=False, get=install):
    """
    Runs each (name, test of an installation) on these servers, or on those that can be had here; `may_lack` modules.

    Exit status 0 if all passed: of the versions that are asked for, or else of one at least.
    """
    had = []
    for major in [int(major) for major in majors] or MAJORS:
        try:
            installation = get(major)
            if installation.note and not may_lack:
                raise Missing(installation.note)
        except Missing as missing:
            print(f"{major:>6} NOT TESTED: {missing}", flush=True)
            had += [False] if majors else []
            continue
        had += [passed(f"{installation.version:>6} {name:<12}", lambda: test(installation)) for name, test in tests]
    return 0 if had and all(had) else 1


def refused(done, what, line):
    """pg_timing's one line, a hint perhaps, nothing on stdout."""
    said = done.stderr.splitlines()
    if done.returncode != 3 or done.stdout or line not in done.stderr or not said[0].startswith("pg_timing: error: ") or len(said) > 2:
        yield f"{what}: exit status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
