"""RPM packages, built by rpmbuild from packaging/rpm/pg_timing.spec and the archive of the source code."""

from pathlib import Path

import commit
import deb
import tarball

FOLDER = commit.TARGET / "rpm"
SPEC = "packaging/rpm/pg_timing.spec"


def defines(values):
    return [word for name, value in values.items() for word in ("--define", f"{name} {value}")]


def pg_configs():
    """Returns the pg_config of each supported version of PostgreSQL whose headers are installed, from PGDG or Debian."""
    red_hat = {path.parts[2].removeprefix("pgsql-"): path for path in Path("/usr").glob("pgsql-*/bin/pg_config")}
    red_hat = {version: path for version, path in red_hat.items() if deb.is_supported(version)}
    return red_hat | {version: f"/usr/lib/postgresql/{version}/bin/pg_config" for version in deb.server_versions()}


def build():
    """Builds the packages and returns their paths: the command, and the extension for each installed version."""
    commit.refuse_spaces()
    (archive,) = tarball.dist()
    commit.export(FOLDER / "spec", SPEC)
    env = commit.environment()
    common = {"_topdir": FOLDER, "_sourcedir": archive.parent, "version_of_source": commit.version()}
    # One run builds the command. Each run can build the extension for one version.
    runs = [{}] + [{"without_command": 1, "pgversion": version, "pg_config": path} for version, path in pg_configs().items()]
    commit.remove_old(FOLDER, "RPMS/*/*.rpm")
    for values in runs:
        commit.run("rpmbuild", "-bb", *defines(common | values), FOLDER / "spec" / SPEC, env=env)
    return sorted(FOLDER.glob("RPMS/*/*.rpm"))
