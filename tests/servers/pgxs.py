"""Builds extensions with the host's compiler and an installation's headers."""

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .commands import output


def adapt(installation):
    """Makes an installation's pgxs usable from outside of its root, once after the installation."""
    root = installation.root
    inside = shlex.join(installation.command("pg_config"))
    installation.pg_config.write_text(
        "#!/bin/sh\n"
        "# The server's pg_config, with paths outside of its root.\n"
        f"""out=$({inside} "$@") || exit\n"""
        f"""printf '%s\\n' "$out" | sed -E 's#^([A-Z-]+ = )?/#\\1{root}/#'\n"""
    )
    installation.pg_config.chmod(0o755)
    pgxs = Path(output([installation.pg_config, "--pgxs"]).strip())
    settings = pgxs.parent.parent / "Makefile.global"
    settings.write_text(for_host(settings.read_text()))


def for_host(makefile):
    """Returns Makefile.global for gcc, without flags that gcc does not know. The server may be built with another compiler."""
    lines = " ".join(re.findall(r"^CFLAGS\w* = .*", makefile, re.M))
    for flag in set(re.findall(r"(?<=\s)-\S+", lines)):
        if subprocess.run(["gcc", flag, "-E", "-x", "c", "/dev/null"], capture_output=True).returncode != 0:
            makefile = re.sub(rf"(?<=\s){re.escape(flag)}(?=\s)", "", makefile)
    makefile = re.sub(r"^CC = .*", "CC = gcc", makefile, flags=re.M)
    # Building bitcode for the server's JIT needs clang.
    return re.sub(r"^(with_llvm\s*=).*", r"\1 no", makefile, flags=re.M)


def build(source, installation, flags=""):
    """Builds the extension in the directory `source` and installs it. Returns the output of make.

    `flags` are compiler flags, for example "-Wall -Wextra -Werror". The source directory does not change. Raises Failed.
    """
    headers = output([installation.pg_config, "--includedir-server"]).strip()
    # As system headers, the server's headers give no warnings.
    flags = f"{flags} {installation.flags} -isystem {headers}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "source"
        # Object files in the source directory may be for another version.
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.o", "*.so", "*.bc"))
        make = ["make", "--no-print-directory", "-C", copy, "USE_PGXS=1", f"PG_CONFIG={installation.pg_config}"]
        # stdout and stderr together, so that each warning follows its command.
        outputs = [output([*make, f"COPT={flags}", target], stderr=subprocess.STDOUT) for target in ("all", "install")]
        return "".join(outputs)
