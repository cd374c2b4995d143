"""Archives that need no package manager: the static program, and the source code."""

import platform
import shutil

import archive
import commit

# Rust links programs for this system statically, so that they run on each Linux.
SYSTEM = f"{platform.machine()}-unknown-linux-musl"
DOCUMENTS = ("README.md", "CHANGELOG.md", "LICENSE", "docs", "deploy")


def build():
    """Builds the static program and returns the archive's path. Unpacked in /usr/local, its files are in their places."""
    work = commit.TARGET / "tar"
    source = work / "source"
    commit.export(source)
    env = commit.environment() | {"CARGO_BUILD_TARGET": SYSTEM}
    cargo_target = env["CARGO_TARGET_DIR"]
    make = ["make", "-C", source, "CARGO=packaging/cargo", f"MANUAL={cargo_target}/manual"]
    commit.run(*make, "all", env=env)

    folder = work / f"pg_timing-{commit.version()}-{platform.machine()}-linux"
    shutil.rmtree(folder, ignore_errors=True)
    # `make install` takes the program from release/ in this folder.
    env["CARGO_TARGET_DIR"] = f"{cargo_target}/{SYSTEM}"
    commit.run(*make, "install", f"DESTDIR={folder}", "PREFIX=", env=env)
    documents = folder / "share/doc/pg_timing"
    documents.mkdir(parents=True)
    for name in DOCUMENTS:
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, documents / name)
    with (documents / "third-party-licenses.txt").open("w") as licenses:
        commit.run(source / "packaging/licenses", stdout=licenses, env=env)
    commit.remove_old(work, "*.tar.gz")
    target = work / f"{folder.name}.tar.gz"
    archive.tar_gz(folder, target, commit.date())
    return [target]


def dist():
    """Returns the path of the archive with the committed files."""
    work = commit.TARGET / "dist"
    folder = work / f"pg_timing-{commit.version()}"
    commit.export(folder)
    commit.remove_old(work, "*.tar.gz")
    target = work / f"{folder.name}.tar.gz"
    archive.tar_gz(folder, target, commit.date())
    return [target]
