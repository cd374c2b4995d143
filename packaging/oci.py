"""Images in the OCI layout: the command with libpq, and the extension for PostgreSQL's extension_control_path (18 or newer).

A small program writes them: an image is a compressed archive of files, a configuration, and an index, each with its hash.
<https://github.com/opencontainers/image-spec>
"""

import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import archive
import commit

FOLDER = commit.TARGET / "oci"
# PostgreSQL 18 has extension_control_path.
OLDEST_SERVER = 18
# The numbers of the user `nobody`, who owns nothing.
USER = 65534
# libpq asks for the name of the user, and for addresses of names.
ACCOUNTS = {
    "etc/passwd": f"nobody:x:{USER}:{USER}:nobody:/:/nonexistent\n",
    "etc/group": f"nogroup:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
LIBPQ = "libpq.so.5"
# ldd prints "NAME => PATH (ADDRESS)", and "PATH (ADDRESS)" for the loader, which each program names itself.
LIBRARY = re.compile(r"^\t(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)


def printed(*command):
    """Returns what a program printed. The loader's variables of this user must not add libraries to an image."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, env=env).stdout


def libraries(*files):
    """Returns the paths of the shared libraries that the files need, and that these need."""
    return sorted({path for file in files for path in LIBRARY.findall(printed("ldd", file))})


def libpq():
    """Returns the path of libpq as the linker of this host finds it."""
    found = re.search(rf"^\t{re.escape(LIBPQ)} .* => (\S+)$", printed("/sbin/ldconfig", "-p"), re.MULTILINE)
    if not found:
        raise commit.Refused(f"{LIBPQ} is missing\nhint: install the package libpq5")
    return found[1]


def add(folder, path):
    """Copies a file of this host to the same place below a folder, without links in its name."""
    target = folder / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def licenses(paths):
    """Returns Debian's files with the licenses of the packages that own these files."""
    # dpkg knows a file by its name before or after /usr was merged.
    names = [name for path in paths for name in (path, str(Path(path).resolve()), path.removeprefix("/usr"))]
    owners = subprocess.run(["dpkg-query", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    packages = sorted({line.split(":")[0] for line in owners.splitlines()})
    # They refer to the texts of common licenses.
    common = [str(file) for file in sorted(Path("/usr/share/common-licenses").iterdir())]
    return common + [str(file) for package in packages if (file := Path(f"/usr/share/doc/{package}/copyright")).exists()]


def command(source, env):
    """Returns the folder with the files of the command's image."""
    root = FOLDER / "command"
    shutil.rmtree(root, ignore_errors=True)
    commit.run("make", "-C", source, "CARGO=packaging/cargo", "all", env=env)
    commit.run("make", "-C", source, "CARGO=packaging/cargo", "install", f"DESTDIR={root}", "PREFIX=/usr", env=env)
    # There is no shell and no reader of man pages.
    shutil.rmtree(root / "usr/share")
    library = libpq()
    needed = [library, *libraries(root / "usr/bin/pg_timing", library)]
    for path in [*needed, *licenses(needed)]:
        add(root, path)
    documents = root / "usr/share/doc/pg_timing"
    documents.mkdir(parents=True)
    shutil.copy(source / "LICENSE", documents)
    with (documents / "third-party-licenses.txt").open("w") as text:
        commit.run(source / "packaging/licenses", stdout=text, env=env)
    for name, text in ACCOUNTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def extension(source, env, pg_config):
    """Returns the folder with the files of the extension's image: only share/extension and lib, as CloudNativePG expects."""
    root, staged = FOLDER / "extension", FOLDER / "staged"
    for folder in (root, staged):
        shutil.rmtree(folder, ignore_errors=True)
    # No bitcode: the server could compile only functions that SQL calls.
    words = [f"PG_CONFIG={pg_config}", "with_llvm=no", f"COPT=-ffile-prefix-map={source}=/build/pg_timing"]
    commit.run("make", "-C", source / "extension", *words, "install", f"DESTDIR={staged}", env=env)
    for pattern, place in (("*.so", "lib"), ("*.control", "share/extension"), ("*.sql", "share/extension")):
        (root / place).mkdir(parents=True, exist_ok=True)
        for file in staged.rglob(pattern):
            shutil.copy(file, root / place)
    commit.run("strip", "--strip-unneeded", *(root / "lib").iterdir(), env=env)
    return root


def image(root, name, config):
    """Writes an image with the files below `root`, and returns the path of its archive."""
    work = FOLDER / "image"
    shutil.rmtree(work, ignore_errors=True)
    blobs = work / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content, kind):
        """Stores a content, and returns its description."""
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def text(value):
        return json.dumps(value, sort_keys=True).encode()

    packed = FOLDER / "layer.tar.gz"
    archive.tar_gz(root, packed, commit.date(), is_layer=True)
    layer = blob(packed.read_bytes(), "layer.v1.tar+gzip")
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(commit.date()))
    unpacked = hashlib.sha256(gzip.decompress(packed.read_bytes())).hexdigest()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    description = {
        "created": created, "architecture": architecture, "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{unpacked}"]},
    }  # fmt: skip
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(text(description), "config.v1+json"), "layers": [layer],
    }  # fmt: skip
    entry = blob(text(manifest), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    entry["platform"] = {"architecture": architecture, "os": "linux"}
    (work / "index.json").write_bytes(text({"schemaVersion": 2, "manifests": [entry]}))
    (work / "oci-layout").write_bytes(text({"imageLayoutVersion": "1.0.0"}))
    target = FOLDER / f"{name.replace(':', '-')}-{architecture}.oci.tar"
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as out:
        for file, inside in archive.members(work, work):
            info = tarfile.TarInfo(inside)
            info.size, info.mtime, info.mode = file.stat().st_size, commit.date(), 0o644
            with file.open("rb") as content:
                out.addfile(info, content)
    shutil.rmtree(work)
    packed.unlink()
    return target


def server():
    """Returns the pg_config of the server and its version, or two empty texts. PG_CONFIG selects another server."""
    chosen = os.environ.get("PG_CONFIG")
    pg_config = chosen or f"/usr/lib/postgresql/{OLDEST_SERVER}/bin/pg_config"
    major = re.search(r"PostgreSQL (\d+)", printed(pg_config, "--version"))[1] if shutil.which(pg_config) else "0"
    if int(major) >= OLDEST_SERVER:
        return pg_config, major
    what = f"{pg_config} is not that of PostgreSQL {OLDEST_SERVER} or newer"
    if chosen:
        raise commit.Refused(f"{what}\nhint: only these versions load an extension from a folder of an image")
    print(f"note: {what} (postgresql-server-dev-{OLDEST_SERVER}), so there is no image of the extension", file=sys.stderr)
    return "", ""


def build():
    """Builds the images and returns the paths of their archives."""
    pg_config, major = server()
    env, version = commit.environment(), commit.version()
    source = FOLDER / "source"
    commit.export(source)
    commit.remove_old(FOLDER, "*.oci.tar")
    labels = {"Labels": {"org.opencontainers.image.licenses": "PostgreSQL", "org.opencontainers.image.version": version}}
    run = {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/bin/pg_timing"], "Env": ["PATH=/usr/bin"]}
    images = [image(command(source, env), f"pg_timing:{version}", run | labels)]
    if pg_config:
        images.append(image(extension(source, env, pg_config), f"pg_fast_timing:{version}-{major}", labels))
    return images
