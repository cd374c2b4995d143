"""Debian's packages in minimal roots of Debian's releases: installed, used, upgraded and purged."""

import shutil
import tempfile
from pathlib import Path

import metadata
from builds import QUICK, built, oversized
from roots import APT, TARGET, bare, major, scratch, with_compiler, with_server
from servers.commands import Failed, output

BUILT = TARGET / "deb"
QUICKLY_BUILT = QUICK / "deb"
# The folder of the source package. Its part for the extension is built again in each root, with that release's server.
SOURCE = BUILT / f"pg-timing-{metadata.version()}"
EXTENSIONS = TARGET / "packages/extensions"
# A deb of the same files with this version is upgraded.
OLDER = "0.0.1-1"
OLDER_COMMENT = "Options of an older version."
# What apt and dpkg, the linker's cache and the server change on their own.
NOT_OURS = ("/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/", "/var/log/", "/var/lib/systemd/", "/var/lib/postgresql/",
            "/etc/postgresql/", "/run/", "/tmp/", "/usr/lib/python3", "/packages/")  # fmt: skip

# The words that bash offers for a line, after its completions are loaded as in an interactive shell.
COMPLETE = """bash -c '
. /usr/share/bash-completion/bash_completion
{ _comp_load pg_timing || __load_completion pg_timing || _completion_loader pg_timing; } 2> /dev/null
function=$(complete -p pg_timing | sed "s/.* -F \\([^ ]*\\).*/\\1/")
compopt() { :; }
COMP_WORDS=(pg_timing clo); COMP_CWORD=1; COMPREPLY=()
$function pg_timing clo pg_timing
echo "${COMPREPLY[@]}"'"""


def package(folder, name):
    """Returns the path of a package in a folder. Raises Failed unless there is exactly one."""
    found = list(Path(folder).glob(f"{name}_*.deb"))
    if len(found) != 1:
        raise Failed(f"{len(found)} packages {name} in {folder}")
    return found[0]


def extension_name(release):
    return f"postgresql-{major(release)}-pg-fast-timing"


def field(file, name):
    return output(["dpkg-deb", "-f", file, name]).strip()


def build():
    """`make deb` builds the command's package on this host. Its program is small, and its version is the workspace's."""
    built("deb")
    yield from wrong_version(BUILT)
    with tempfile.TemporaryDirectory() as folder:
        output(["dpkg-deb", "-x", package(BUILT, "pg-timing"), folder])
        yield from oversized(Path(folder) / "usr/bin/pg_timing")


def build_quickly():
    """The same packages, with a program that is larger and slower."""
    built("deb", quickly=True)
    yield from wrong_version(QUICKLY_BUILT)


def wrong_version(folder):
    version = field(package(folder, "pg-timing"), "Version")
    if version != f"{metadata.version()}-1":
        yield f"version {version}"


def command_alone(release):
    """apt installs the command in a root without anything else. It measures, opens libpq, and answers as pg_test_timing."""
    root = scratch(bare(release))
    try:
        root.put(package(BUILT, "pg-timing"), "/packages/pg-timing.deb")
        root.run(f"{APT} update; {APT} -o APT::Install-Recommends=true install /packages/pg-timing.deb")
        report = root.run("pg_timing check -d 0.5 || [ $? -lt 3 ]")
        if "one read" not in report or "system" not in report:
            yield f"check: {report}"
        if root.run("pg_timing --version") != f"pg_timing {metadata.version()}\n":
            yield f"--version: {root.run('pg_timing --version')}"
        if not root.run("pg_test_timing --version").startswith("pg_test_timing (PostgreSQL) "):
            yield "pg_test_timing is not PostgreSQL's"
        # There is no server, so libpq's own message is expected.
        message = root.run("pg_timing advise -h /nowhere 2>&1 || [ $? = 3 ]")
        if "/nowhere" not in message or "could not open libpq" in message:
            yield f"advise: {message}"
    finally:
        root.remove()


def build_extension(release):
    """The extension's package builds in a root, with the server's headers of the release."""
    if not SOURCE.exists():
        raise Failed("first: tests/packages/run deb")
    root = scratch(with_compiler(release))
    to = EXTENSIONS / release
    try:
        root.put(SOURCE, "/build/source")
        root.run(
            "cd /build/source; export DEB_BUILD_PROFILES=pkg.pg-timing.nocommand DEB_BUILD_OPTIONS=noautodbgsym\n"
            f"export PG_SUPPORTED_VERSIONS={major(release)}\n"
            "pg_buildext updatecontrol; dpkg-buildpackage -b -us -uc 2>&1"
        )
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        shutil.copy(package(root.changes / "upper/build", extension_name(release)), to)
    finally:
        root.remove()
    yield from ()


def older(file, folder):
    """Returns a package with a lower version. It has the same files, but another comment in the files of options."""
    content = Path(folder) / "content"
    output(["dpkg-deb", "-R", file, content])
    for options in (content / "etc/default").iterdir():
        options.write_text(f"# {OLDER_COMMENT}\n{options.read_text()}")
    control = content / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {metadata.version()}-1", f"Version: {OLDER}"))
    target = Path(folder) / "older.deb"
    output(["dpkg-deb", "--root-owner-group", "-b", content, target])
    return target


def files(root):
    """Returns the names of all files in the root, apart from those that apt and others change on their own."""
    names = root.run("find / -xdev -path /proc -prune -o -path /sys -prune -o -path /dev -prune -o -print").splitlines()
    return {name for name in names if not f"{name}/".startswith(NOT_OURS)}


CHANGED_DEFAULTS = "PG_TIMING_OPTIONS=--interval 47"
DEFAULTS = "/etc/default/pg_timing-monitor"
UNCHANGED_DEFAULTS = "/etc/default/pg_timing-textfile"
DROP_IN = "/etc/systemd/system/pg_timing-monitor.service.d/allow.conf"


def life(release, commands, extensions):
    """A user's settings survive an upgrade. The command, its manual and the extension work. A purge leaves no files.

    `commands` and `extensions` are the folders with the packages.
    """
    root = scratch(with_server(release))
    try:
        with tempfile.TemporaryDirectory() as folder:
            root.put(older(package(commands, "pg-timing"), folder), "/packages/older.deb")
        root.put(package(commands, "pg-timing"), "/packages/pg-timing.deb")
        root.put(package(extensions, extension_name(release)), "/packages/extension.deb")
        # systemd's own folder, which it creates with the first service that has a dynamic user.
        root.run(f"{APT} update; mkdir -p /var/lib/private")
        before = files(root)
        root.run(f"{APT} install /packages/older.deb")
        root.run(f"echo '{CHANGED_DEFAULTS}' >> {DEFAULTS}; mkdir -p $(dirname {DROP_IN}); echo '[Service]' > {DROP_IN}")
        # For a file that the user and the new version changed, dpkg asks. This is the answer of a user who only types Enter.
        root.run(f"{APT} -o Dpkg::Options::=--force-confdef install /packages/pg-timing.deb /packages/extension.deb")
        if root.run("dpkg-query -W -f '${Version}' pg-timing") != f"{metadata.version()}-1":
            yield "the upgrade did not install the new version"
        if CHANGED_DEFAULTS not in root.run(f"cat {DEFAULTS} {DROP_IN}"):
            yield "the upgrade changed the settings"
        if OLDER_COMMENT in root.run(f"cat {UNCHANGED_DEFAULTS}"):
            yield f"the upgrade kept {UNCHANGED_DEFAULTS}, which the user did not change"
        if enabled := root.run("find /etc/systemd -name 'pg_timing*' -type l"):
            yield f"on after the installation: {enabled}"
        yield from manual(root)
        yield from loads(root, major(release))
        # As the service writes it: systemd has the folder of a dynamic user elsewhere, and a link to it.
        root.run("mkdir /var/lib/private/pg_timing; ln -s private/pg_timing /var/lib/pg_timing; echo > /var/lib/pg_timing/events.jsonl")
        # The drop-in is the user's own file.
        root.run(f"rm -r $(dirname {DROP_IN})")
        root.run(f"{APT} purge pg-timing {extension_name(release)}")
        after = files(root)
        yield from (f"left behind: {name}" for name in sorted(after - before))
        yield from (f"removed: {name}" for name in sorted(before - after))
    finally:
        root.remove()


def manual(root):
    """Man pages open, bash completes, and PostgreSQL's own page of pg_test_timing stays."""
    for page in ("pg_timing", "pg_timing-explain"):
        if "pg_timing" not in root.run(f"MANPAGER=cat man {page}"):
            yield f"man {page} shows nothing"
    if "PostgreSQL" not in root.run("MANPAGER=cat man pg_test_timing"):
        yield "man pg_test_timing is not PostgreSQL's"
    offered = root.run(COMPLETE).split()
    if offered != ["clocksource"]:
        yield f"bash offers {offered} after pg_timing clo"


def loads(root, version):
    """The server of the release loads the extension in a session and as a preloaded library, and creates it."""
    sql = "LOAD 'pg_fast_timing'; CREATE EXTENSION pg_fast_timing; SELECT count(*) > 0 FROM pg_fast_timing_info(); EXPLAIN (ANALYZE, COSTS OFF) SELECT 1"
    printed = root.run(
        f"pg_lsclusters -h | grep -q main || pg_createcluster {version} main\n"
        f"""echo "shared_preload_libraries = 'pg_fast_timing'" >> /etc/postgresql/{version}/main/conf.d/own.conf\n"""
        "mkdir -p /run/postgresql; chown postgres: /run/postgresql\n"
        f"pg_ctlcluster {version} main start\n"
        f"""su postgres -c "psql -X -t -v ON_ERROR_STOP=1 -c \\"{sql}\\" " 2>&1\n"""
        f"""su postgres -c "pg_timing explain --time 1 -c 'SELECT count(*) FROM generate_series(1, 1000)'" 2>&1\n"""
        f"pg_ctlcluster {version} main stop"
    )
    if "Execution Time" not in printed or "EXPLAIN ANALYZE reports" not in printed:
        yield f"the server: {printed}"
