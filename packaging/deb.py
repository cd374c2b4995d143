"""Debian packages, built by debhelper from the files in packaging/debian."""

import re
import shutil
import sys
import textwrap
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path

import commit

NAME = "pg-timing"
FOLDER = commit.TARGET / "deb"
# The profiles of packaging/debian/control.in.
NO_EXTENSION = "pkg.pg-timing.noextension"
NO_COMMAND = "pkg.pg-timing.nocommand"


def is_supported(version):
    """Returns whether the extension supports a version of PostgreSQL, given as text."""
    oldest = commit.text("packaging/debian/pgversions").strip().removesuffix("+")
    return version.isdigit() and int(version) >= int(oldest)


def server_versions():
    """Returns the supported versions of PostgreSQL whose headers are installed."""
    makefiles = Path("/usr/lib/postgresql").glob("*/lib/pgxs/src/Makefile.global")
    return sorted(filter(is_supported, (path.parts[4] for path in makefiles)), key=int)


def changelog(version, changes, date, maintainer):
    """Returns Debian's changelog: the newest part of ours in Debian's format."""
    # Each entry begins with a hyphen. Its other lines are indented.
    entries = re.split(r"^- ", changes, flags=re.MULTILINE)[1:]
    paragraphs = [textwrap.fill(" ".join(entry.split()), 78, initial_indent="  * ", subsequent_indent="    ") for entry in entries]
    time = format_datetime(datetime.fromtimestamp(date, timezone.utc))
    return f"{NAME} ({version}) unstable; urgency=medium\n\n" + "\n".join(paragraphs) + f"\n\n -- {maintainer}  {time}\n"


def source(version):
    """Writes the source package's folder and returns it."""
    folder = FOLDER / f"{NAME}-{version}"
    commit.export(folder)
    debian = shutil.copytree(folder / "packaging/debian", folder / "debian")
    maintainer = re.search(r"^Maintainer: (.*)$", (debian / "control.in").read_text(), re.MULTILINE)[1]
    # Debian's own revision follows our version.
    (debian / "changelog").write_text(changelog(f"{version}-1", commit.changes(), commit.date(), maintainer))
    return folder


def build():
    """Builds the packages and returns their paths. The variable DEB_BUILD_PROFILES can leave out a part."""
    commit.refuse_spaces()
    env = commit.environment()
    profiles = env.get("DEB_BUILD_PROFILES", "").split()
    versions = server_versions()
    if not versions and NO_EXTENSION not in profiles:
        print("note: no headers of a supported server are installed (postgresql-server-dev-all), so the extension is not built", file=sys.stderr)
        profiles.append(NO_EXTENSION)
    if {NO_EXTENSION, NO_COMMAND} <= set(profiles):
        raise commit.Refused("no package is left to build\nhint: install postgresql-server-dev-all for the extension")
    env |= {"DEB_BUILD_PROFILES": " ".join(profiles), "PG_SUPPORTED_VERSIONS": " ".join(versions)}
    folder = source(commit.version())
    template = folder / "debian/control.in"
    if NO_EXTENSION in profiles:
        # debhelper reads the names of all packages, also of those that it does not build, and PGVERSION is not allowed in one.
        paragraphs = template.read_text().split("\n\n")
        (folder / "debian/control").write_text("\n\n".join(text for text in paragraphs if "PGVERSION" not in text))
    else:
        commit.run("pg_buildext", "updatecontrol", cwd=folder, env=env)
    commit.remove_old(FOLDER, "*.*deb")
    # The sources come from the commit, so that nothing is left to clean.
    commit.run("dpkg-buildpackage", "-b", "-us", "-uc", "-nc", cwd=folder, env=env)
    return sorted(FOLDER.glob("*.deb"))
