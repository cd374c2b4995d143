"""Runs other programs and reports their errors."""

import os
import subprocess

# A `make` must not see the variables of the `make` that runs the tests: in a sub-make, PostgreSQL's Makefile makes no
# headers.
MAKE_VARIABLES = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


# Exit status of a test program that could not run its tests, for example without a network.
SKIPPED = 77


class Missing(Exception):
    """A server cannot be installed here. The text gives the reason in one line."""


class Offline(Missing):
    """A download failed, because there is no network. Tests that need it are skipped."""


class Failed(Exception):
    """A program failed. The text is its error output."""


# apt, pip, npm, cargo and debootstrap, which names no cause.
OFFLINE = (
    "Temporary failure resolving",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "EAI_AGAIN",
    "Could not resolve host",
    "Failed getting release file",
)


def is_offline(error):
    """Returns whether a download failed because there is no network."""
    return any(reason in str(error) for reason in OFFLINE)


def first_cause(error):
    """Returns one line of an error's text: apt's first error line, or the last line of other programs."""
    lines = str(error).splitlines()
    return next((line for line in lines if line.startswith("E: ")), lines[-1])


def output(command, **options):
    """Returns what `command` printed. The options are those of subprocess.run. Raises Failed."""
    env = {name: value for name, value in os.environ.items() if name not in MAKE_VARIABLES}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": env} | options
    try:
        done = subprocess.run(command, text=True, **options)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        complaint = (done.stderr or "").strip() or (done.stdout or "").strip()
        raise Failed(complaint or f"{command[0]}: exit status {done.returncode}")
    return done.stdout
