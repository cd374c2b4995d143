"""Running other programs, and what can go wrong with them."""

import os
import subprocess

# No `make` that is run is a part of the one that runs the tests: PostgreSQL's makes no headers in one that is.
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


class Missing(Exception):
    """A server cannot be had here; the text says why, in one line."""


class Failed(Exception):
    """A program went wrong; the text is all that it complained of."""


def in_short(error):
    """One line of an error's text: apt begins with the cause, most others end with it."""
    lines = str(error).splitlines()
    return next((line for line in lines if line.startswith("E: ")), lines[-1])


def output(command, **options):
    """What `command` printed; the options are those of subprocess.run."""
    env = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": env} | options
    try:
        done = subprocess.run(command, text=True, **options)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        complaint = (done.stderr or "").strip() or (done.stdout or "").strip()
        raise Failed(complaint or f"{command[0]}: exit status {done.returncode}")
    return done.stdout
