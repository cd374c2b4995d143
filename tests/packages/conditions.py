"""How packaging/build behaves if a part cannot be built, without git, and during another build."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import metadata
from roots import ROOT, TARGET

BUILD = ROOT / "packaging/build"
# Hides the host's servers. The headers of two old ones are there.
OLD_SERVERS = """mount -t tmpfs old /usr/lib/postgresql
for folder in /usr/lib/postgresql/9.6/lib/pgxs/src /usr/lib/postgresql/14/lib/pgxs/src; do
    mkdir -p $folder; touch $folder/Makefile.global
done
exec "$0" deb"""


def make_deb(folder, profiles, command=(BUILD, "deb")):
    """Runs packaging/build with a stub of dpkg-buildpackage, which only lists the packages."""
    folder.mkdir(parents=True, exist_ok=True)
    stub = folder / "dpkg-buildpackage"
    stub.write_text("#!/bin/sh\nexec dh_listpackages\n")
    stub.chmod(0o755)
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(folder)}
    return subprocess.run(command, env=env | {"DEB_BUILD_PROFILES": profiles}, capture_output=True, text=True)


def without_a_part():
    """Without the headers of a server, only the command is built. An error says why nothing can be built."""
    both = "pkg.pg-timing.noextension pkg.pg-timing.nocommand"
    folder = TARGET / "packages/without"
    old_servers = ["unshare", "--mount", "sh", "-euc", OLD_SERVERS, BUILD]
    for done in (make_deb(folder, "pkg.pg-timing.noextension"), make_deb(folder, "", old_servers)):
        if done.returncode != 0 or done.stderr.splitlines()[-1:] != ["pg-timing"]:
            yield f"without the extension: {done.stdout}{done.stderr}"
    for place, profiles, error in ((folder, both, "no package is left"), (folder / "a space", "", "contains a space")):
        done = make_deb(place, profiles)
        if done.returncode != 1 or error not in done.stderr or "hint: " not in done.stderr:
            yield f"{place}: {done.stdout}{done.stderr}"


def without_git():
    """In an archive of the source code, there is a clear error."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(BUILD.parent, Path(folder) / "packaging")
        done = subprocess.run([Path(folder) / "packaging/build", "dist"], capture_output=True, text=True)
    if done.returncode != 1 or "is not a clone" not in done.stderr or "hint: " not in done.stderr:
        yield f"without git: {done.stderr}"


def sources_are_new():
    """cargo compiles only what is newer than the last program, so the sources of a package have the time of the build.

    Their commit can be older than a program that was built from another commit.
    """
    folder = TARGET / "packages/new"
    start = time.time()
    subprocess.run([BUILD, "dist"], env=os.environ | {"CARGO_TARGET_DIR": str(folder)}, check=True, capture_output=True)
    source = folder / f"dist/pg_timing-{metadata.version()}/crates/pg_timing/src/main.rs"
    # The time of a file can be some milliseconds before the time of the clock.
    if source.stat().st_mtime < start - 1:
        yield f"{source} has the time {source.stat().st_mtime}"


def without_own_flags():
    """Flags for the compiler in a developer's settings, for example for the own processor, are not for a package."""
    with tempfile.TemporaryDirectory() as folder:
        crate = Path(folder)
        for name, text in (
            ("Cargo.toml", "[package]\nname = 'flags'\nedition = '2024'\n[workspace]\n"),
            ("src/main.rs", "#[cfg(own)]\ncompile_error!();\nfn main() {}\n"),
            (".cargo/config.toml", "[build]\nrustflags = ['--cfg', 'own']\n"),
        ):
            (crate / name).parent.mkdir(exist_ok=True)
            (crate / name).write_text(text)
        env = os.environ | {"CARGO_TARGET_DIR": str(crate / "target"), "RUSTFLAGS": "--cfg own"}
        done = subprocess.run([BUILD.parent / "cargo", "check", "--offline"], cwd=crate, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            yield done.stderr


# A build of this kind takes less than a second.
WAIT_S = 5


def one_at_a_time():
    """A build waits until another one ends."""
    folder = TARGET / "packages/lock"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        env = os.environ | {"CARGO_TARGET_DIR": str(folder)}
        waiting = subprocess.Popen([BUILD, "dist"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            waiting.wait(WAIT_S)
            yield "the second build did not wait"
        except subprocess.TimeoutExpired:
            pass
    stdout, stderr = waiting.communicate()
    if waiting.returncode != 0 or ".tar.gz" not in stdout or "note: waiting" not in stderr:
        yield f"after the wait: {stdout}{stderr}"
