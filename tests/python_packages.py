"""Programs from PyPI: unpacked into a folder in target/, and not installed."""

import sys

from servers.commands import output


def environment(folder, packages):
    """Returns the folder of a virtual environment with these packages, like ("typos==1.52.0",). Raises Failed."""
    # Other packages make a new environment. pip cannot rename one, so the last file marks it complete.
    wanted, installed = "\n".join(packages), folder / "complete"
    if not installed.exists() or installed.read_text() != wanted:
        output([sys.executable, "-m", "venv", "--clear", folder])
        output([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        installed.write_text(wanted)
    return folder
