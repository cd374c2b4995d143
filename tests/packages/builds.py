"""Builds packages with packaging/build, as `make deb` and its siblings do."""

import os
from pathlib import Path

from roots import ROOT, TARGET
from servers.commands import Failed, output

# A separate folder: these packages must not be published, because their program is not optimized.
QUICK = TARGET / "packages/quick"
# An optimized program takes minutes to compile.
NOT_OPTIMIZED = {
    "CARGO_TARGET_DIR": str(QUICK),
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "0",
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
}

# The largest program that we ship, in bytes. Most of it are parsers, and the HTML and terminal screens.
LARGEST = 8_000_000


def built(kind, quickly=False):
    """Builds one kind of package and returns the paths. A program that is built quickly is larger and slower."""
    env = os.environ | (NOT_OPTIMIZED if quickly else {})
    paths = [Path(line) for line in output([ROOT / "packaging/build", kind], env=env).splitlines()]
    if not paths:
        raise Failed(f"packaging/build {kind} built nothing")
    return paths


def oversized(program):
    """Yields a complaint if a program is too large. It must be optimized."""
    size = program.stat().st_size
    if size > LARGEST:
        yield f"the program has {size} bytes"
