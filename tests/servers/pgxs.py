"""Building extensions on the host, with its compiler, against an installation's headers."""

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .commands import output


def adapt(installation):
    """Makes an installation's pgxs usable from outside of its root: once, when it is installed."""
    root = installation.root
    inside = shlex.join(installation.command("pg_config"))
    installation.pg_config.write_text(
        "#!/bin/sh\n"
        "# This server's pg_config, its paths as they are outside of the root.\n"
        f"""out=$({inside} "$@") || exit\n"""
        f"""printf '%s\\n' "$out" | sed -E 's#^([A-Z-]+ = )?/#\\1{root}/#'\n"""
    )
    installation.pg_config.chmod(0o755)
    pgxs = Path(output([installation.pg_config, "--pgxs"]).strip())
    settings = pgxs.parent.parent / "Makefile.global"
    settings.write_text(for_host(settings.read_text()))


def for_host(makefile):
    """Makefile.global names the compiler that the server was built with, and flags that only that one may know."""
    lines = " ".join(re.findall(r"^CFLAGS\w* = .*", makefile, re.M))
    for flag in set(re.findall(r"(?<=\s)-\S+", lines)):
        if subprocess.run(["gcc", flag, "-E", "-x", "c", "/dev/null"], capture_output=True).returncode != 0:
            makefile = re.sub(rf"(?<=\s){re.escape(flag)}(?=\s)", "", makefile)
    makefile = re.sub(r"^CC = .*", "CC = gcc", makefile, flags=re.M)
    # Bitcode, for inlining by the server's JIT, takes clang.
    return re.sub(r"^(with_llvm\s*=).*", r"\1 no", makefile, flags=re.M)


def build(source, installation, flags=""):
    """Builds the extension in the folder `source` and installs it into an installation. Returns what make printed.

    `flags` go to the compiler: "-Wall -Wextra -Werror". The source folder stays as it is. Raises Failed.
    """
    headers = output([installation.pg_config, "--includedir-server"]).strip()
    # As system headers: what -Wextra has to say about the server's own is not about the extension.
    flags = f"{flags} -isystem {headers}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "source"
        # What was built in place was built for one version.
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.o", "*.so", "*.bc"))
        make = ["make", "--no-print-directory", "-C", copy, "USE_PGXS=1", f"PG_CONFIG={installation.pg_config}"]
        # Into one text, in order: the compiler's warnings are below the command that they come from.
        run = [output([*make, f"COPT={flags}", target], stderr=subprocess.STDOUT) for target in ("all", "install")]
        return "".join(run)
