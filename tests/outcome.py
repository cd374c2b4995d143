"""Runs tests on real servers, and prints the results."""

import time

from servers import MAJORS, SKIPPED, Failed, Missing, Offline, install


def until(condition, what, seconds=60):
    """Waits until the condition is true, and returns its value. Raises Failed after the deadline."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.02)
    return value


def run_test(name, test):
    """Runs a test that yields its complaints. Prints one line, and one for each complaint. Returns whether it passed."""
    start = time.monotonic()
    try:
        complaints = list(test())
    except Failed as failed:
        complaints = [str(failed)]
    line = f"{name} {'FAILED' if complaints else 'ok'} in {time.monotonic() - start:.1f} s"
    print("\n       ".join([line, *complaints]), flush=True)
    return not complaints


def on_each(majors, tests, allow_missing_modules=False, get=install):
    """
    Runs each (name, function of an installation) on these servers, or on all servers that can be installed.

    One server runs at a time. Returns the exit status: 0 if all tests passed,
    SKIPPED if there is no network to install a server, 1 if a test failed or a named version is missing.
    """

    def on(major):
        try:
            installation = get(major)
            if installation.note and not allow_missing_modules:
                raise Missing(installation.note)
        except Offline as offline:
            print(f"{major:>6} SKIPPED: {offline}", flush=True)
            return [None]
        except Missing as missing:
            print(f"{major:>6} {'FAILED' if majors else 'SKIPPED'}: {missing}", flush=True)
            return [False] if majors else []
        return [run_test(f"{installation.version:>6} {name:<12}", lambda: test(installation)) for name, test in tests]

    wanted = [int(major) for major in majors] or MAJORS
    passed = [result for major in wanted for result in on(major)]
    if False in passed:
        return 1
    return SKIPPED if None in passed else int(not passed)


def refused(done, what, line):
    """Yields a complaint unless pg_timing printed one error line, at most one hint, and nothing on stdout."""
    stderr = done.stderr.splitlines()
    is_one_error = stderr and stderr[0].startswith("pg_timing: error: ") and len(stderr) <= 2
    if done.returncode != 3 or done.stdout or line not in done.stderr or not is_one_error:
        yield f"{what}: exit status {done.returncode}, {done.stdout!r}, {done.stderr!r}"
