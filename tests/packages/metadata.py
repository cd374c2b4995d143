"""Checks the descriptions of the packages, without building a package."""

import os
import re
import tomllib

from roots import ROOT, TARGET
from servers.commands import output

DEBIAN = ROOT / "packaging/debian"
SPEC = ROOT / "packaging/rpm/pg_timing.spec"
# The PGXN Meta Spec 1.0.0, https://pgxn.org/spec/: required fields, and the forms of their values.
TERM = r"[^\s/\\\x00-\x1f]{2,}"
SEMANTIC_VERSION = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[A-Za-z][0-9A-Za-z-]*)?"
LICENSES = ("postgresql", "bsd", "mit", "apache_2_0", "open_source", "unrestricted")
STATUSES = ("stable", "testing", "unstable")


def version():
    """Returns the version in the workspace's Cargo.toml."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def matches(pattern, value):
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def mistakes_in_meta(meta, files):
    """Yields what is wrong in a distribution's META.json. `files` are the names of the files in the distribution."""
    for field in ("abstract", "license", "maintainer", "meta-spec", "name", "provides", "version"):
        if not meta.get(field):
            yield f"{field} is missing"
            return
    if not matches(TERM, meta["name"]):
        yield f"name: {meta['name']!r}"
    if not matches(SEMANTIC_VERSION, meta["version"]):
        yield f"version: {meta['version']!r}"
    if meta["license"] not in LICENSES:
        yield f"license: {meta['license']!r}"
    if meta["meta-spec"].get("version") != "1.0.0":
        yield f"meta-spec: {meta['meta-spec']!r}"
    if meta.get("release_status", "stable") not in STATUSES:
        yield f"release_status: {meta['release_status']!r}"
    if not all(matches(TERM, tag) for tag in meta.get("tags", [])):
        yield f"tags: {meta['tags']!r}"
    for name, extension in meta["provides"].items():
        if not matches(TERM, name) or not matches(SEMANTIC_VERSION, extension.get("version")):
            yield f"provides: {name}: version {extension.get('version')!r}"
        yield from (f"provides: {name}: no file {extension.get(kind)}" for kind in ("file", "docfile") if extension.get(kind) not in files)


def mistakes_are_found(meta, files):
    """Changes one field after the other. Yields the changes that have no complaint."""
    for field, value in (
        ("name", "pg fast timing"), ("version", "1.0"), ("version", "01.0.0"), ("license", "gpl"), ("maintainer", ""),
        ("meta-spec", {"version": "2.0.0"}), ("release_status", "done"), ("tags", ["a b"]), ("provides", {}),
        ("provides", {"pg_fast_timing": {"version": "1.0.0", "file": "other.sql", "docfile": "README.md"}}),
        ("provides", {"pg_fast_timing": {"version": "1", "file": "README.md", "docfile": "README.md"}}),
    ):  # fmt: skip
        if not list(mistakes_in_meta(meta | {field: value}, files)):
            yield f"no complaint about {field} = {value!r}"


def control():
    """debhelper reads the control file, as pg_buildext writes it for two versions of the server."""
    text = (DEBIAN / "control.in").read_text()
    extension = text[text.index("\nPackage: postgresql-PGVERSION") :]
    folder = TARGET / "packages/control"
    (folder / "debian").mkdir(parents=True, exist_ok=True)
    (folder / "debian/control").write_text(text.replace("PGVERSION", "15") + extension.replace("PGVERSION", "18"))
    extensions = {f"postgresql-{major}-pg-fast-timing" for major in (15, 18)}
    for profile, expected in (("", {"pg-timing"} | extensions), ("noextension", {"pg-timing"}), ("nocommand", extensions)):
        env = os.environ | {"DEB_BUILD_PROFILES": profile and f"pkg.pg-timing.{profile}"}
        names = set(output(["dh_listpackages"], cwd=folder, env=env).split())
        if names != expected:
            yield f"profile {profile!r}: {names}"


def textfile():
    """Both packages remove the file that the textfile service writes. node_exporter would show its last figures forever."""
    unit = (ROOT / "deploy/systemd/pg_timing-textfile.service").read_text()
    written = re.search(r"^Environment=PG_TIMING_TEXTFILE=(.*)$", unit, re.M)[1]
    for file in (DEBIAN / "pg-timing.postrm", SPEC):
        if f"    rm -f {written}\n" not in file.read_text():
            yield f"{file} does not remove {written}"


def spec():
    """rpmspec reads the spec file, with and without the extension."""
    given = ["--define", f"version_of_source {version()}"]
    with_extension = ["--define", "pgversion 17", "--define", "pg_config /bin/echo"]
    for more, expected in (([], {"pg_timing"}), (with_extension, {"pg_timing", "pg_fast_timing_17"})):
        names = set(output(["rpmspec", "-q", "--qf", "%{name} %{version}\n", *given, *more, SPEC]).splitlines())
        if names != {f"{name} {version()}" for name in expected}:
            yield f"{more}: {names}"
