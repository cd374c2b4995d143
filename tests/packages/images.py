"""The images of the command and of the extension, unpacked by umoci. Their programs run in a root that has only their files."""

import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
from pathlib import Path

import metadata
from builds import NOT_OPTIMIZED
from roots import ROOT, UNSTABLE, major, scratch, with_server
from servers import Server, install
from servers.commands import output

# The version that can load an extension from the folders of an image.
MAJOR = 18
# /proc and /sys are those of the host, as a container engine mounts them. The user is that of the image.
ENTER = """set -e
root=$1; shift
mkdir -p "$root/proc" "$root/sys"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
exec chroot --userspec=65534:65534 "$root" "$@" """
LIBRARY = "pg_fast_timing.so"


def build(pg_config, quickly):
    """Returns the paths of both archives: the command's and the extension's."""
    env = os.environ | (NOT_OPTIMIZED if quickly else {}) | {"PG_CONFIG": str(pg_config)}
    return [Path(line) for line in output([ROOT / "packaging/build", "oci"], env=env).splitlines()]


def unpack(archive, folder):
    """Unpacks an image as its users do. Returns the folder of its files and the configuration."""
    name = archive.name.partition("-")[0]
    output(["skopeo", "copy", f"oci-archive:{archive}", f"oci:{folder}/{name}:image"])
    output(["umoci", "unpack", "--image", f"{folder}/{name}:image", Path(folder) / f"{name}.bundle"])
    config = output(["skopeo", "inspect", "--config", "--format", "{{.Config.User}} {{.Config.Entrypoint}}", f"oci:{folder}/{name}:image"])
    return Path(folder) / f"{name}.bundle/rootfs", config.strip()


def tried(quickly=False):
    """Builds both images. The command measures and connects to a server on the loopback address, which loads the extension."""
    with tempfile.TemporaryDirectory() as folder:
        command, extension = build(install(MAJOR).pg_config, quickly)
        for archive in (command, extension):
            yield from missing_folders(archive)
        files, config = unpack(command, folder)
        if config != "65534:65534 [/usr/bin/pg_timing]":
            yield f"the configuration is {config}"
        if shells := [name for name in ("sh", "bash", "busybox") for _ in files.rglob(name)]:
            yield f"the image has {shells}"
        image, _ = unpack(extension, folder)
        yield from wrong_layout(image)
        port = free_port()
        # The server's own folder of extensions may have another build of the extension.
        settings = {
            "listen_addresses": "127.0.0.1", "port": port, "extension_control_path": "$inside/share:$system",
            "dynamic_library_path": "$inside/lib:$libdir",
        }  # fmt: skip
        server = Server(install(MAJOR))
        place = server.inside(server.folder / "image")
        server.settings |= {name: str(value).replace("$inside", place) for name, value in settings.items()}
        server.port = port
        shutil.copytree(image, server.folder / "image")
        with server:
            yield from answers(files, server)
            yield from loads(server.psql, place)


def missing_folders(archive):
    """Some container engines shut other users out of a folder that is not in the layer."""
    with tarfile.open(archive) as image:
        packed = max(image.getmembers(), key=lambda member: member.size)
        with tarfile.open(fileobj=image.extractfile(packed)) as layer:
            names = set(layer.getnames())
    missing = {str(folder) for name in names for folder in Path(name).parents} - names - {"."}
    yield from (f"{archive.name} has no entry of the folder {folder}" for folder in sorted(missing))


def answers(files, server):
    """The command's program runs as in a container."""

    def entered(*words):
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", files, "/usr/bin/pg_timing", *words]

    if (version := output(entered("--version"))) != f"pg_timing {metadata.version()}\n":
        yield f"--version: {version}"
    # A warning is no failure.
    report = subprocess.run(entered("check", "-d", "0.5"), capture_output=True, text=True)
    if report.returncode > 2 or "one read" not in report.stdout:
        yield f"check: {report}"
    connection = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    report = output(entered("explain", connection, "--time", "1", "-c", "SELECT count(*) FROM generate_series(1, 1000)"))
    if "EXPLAIN ANALYZE reports" not in report:
        yield f"explain: {report}"


def loads(psql, place):
    """The server creates the extension and loads the library from the image."""
    printed = psql("CREATE EXTENSION pg_fast_timing; SELECT count(*) > 0 FROM pg_fast_timing_info(); SELECT pg_read_file('/proc/self/maps')")
    if f"{place}/lib/{LIBRARY}" not in printed:
        yield f"the library of the image is not loaded: {[line for line in printed.splitlines() if LIBRARY in line]}"


def wrong_layout(image):
    """CloudNativePG adds share and lib of the image to the server's paths."""
    names = sorted(str(file.relative_to(image)) for file in image.rglob("*") if file.is_file())
    if f"lib/{LIBRARY}" not in names or "share/extension/pg_fast_timing.control" not in names:
        yield f"the image has only {names}"
    yield from (f"not a file of an extension: {name}" for name in names if not name.startswith(("lib/", "share/extension/")))


def free_port():
    """Returns a port of the loopback address that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def copied():
    """As in the guide, a Dockerfile copies the folders of the image into the server's. Here the server is that of a minimal root."""
    root = scratch(with_server(UNSTABLE))
    try:
        with tempfile.TemporaryDirectory() as folder:
            image, _ = unpack(build(install(MAJOR).pg_config, quickly=True)[1], folder)
            version = major(UNSTABLE)
            root.put(image / "share/extension", f"/usr/share/postgresql/{version}/extension")
            root.put(image / "lib", f"/usr/lib/postgresql/{version}/lib")
        printed = root.run(
            f"pg_lsclusters -h | grep -q main || pg_createcluster {version} main\n"
            f"mkdir -p /run/postgresql; chown postgres: /run/postgresql; pg_ctlcluster {version} main start\n"
            f"""su postgres -c "psql -X -t -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION pg_fast_timing; SELECT count(*) FROM pg_fast_timing_info()'" 2>&1\n"""
            f"pg_ctlcluster {version} main stop"
        )
        if "CREATE EXTENSION" not in printed:
            yield printed
    finally:
        root.remove()
