"""A temporary server: creates it, starts it, runs statements, stops and removes it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .commands import Failed, output
from .installation import USER

# Each server has its own socket directory, so all can use the same port.
PORT = 5432

# Linux allows 107 bytes for the path of a socket.
MAX_SOCKET_PATH = 100

# A start takes a fraction of a second, but much longer on a busy host.
LIMIT_SECONDS = 60

STOP = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# The data is removed after the test, so it need not survive a crash.
DEFAULTS = {
    "listen_addresses": "",
    "fsync": False,
    "synchronous_commit": False,
    "full_page_writes": False,
    "max_wal_size": "4GB",
}

# Without the host's variables, for example PGOPTIONS and LANG.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/tmp", "LC_ALL": "C"}

# No psqlrc, unaligned, without headings, and psql stops at the first error.
PSQL = ("-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1")

# Stops and removes the server if this program is killed, also by SIGKILL: then the pipe closes without a word. The loop is
# necessary, because initdb or backends may still write to the directory.
GUARD = """read -r word && exit
pid=$(head -n 1 "$1/data/postmaster.pid") && kill -QUIT "$pid"
until rm -rf "$1"; do sleep 0.1; done"""


class Server:
    """A server of an installation. Use it in a `with` block, or call create(), start() and remove().

    settings    settings in postgresql.conf: {"shared_preload_libraries": "auto_explain", "jit": False}
    preload     shared libraries of the host for LD_PRELOAD in the postmaster and its child processes
    env         more environment variables for these processes
    """

    def __init__(self, installation, settings=None, preload=(), env=None):
        self.installation = installation
        self.settings = DEFAULTS | (settings or {})
        self.preload = [Path(library) for library in (*installation.preload, *preload)]
        self.env = installation.env | (env or {})
        self.port = PORT
        self.process = None
        self.folder = Path(tempfile.mkdtemp(prefix="", dir=installation.root / "tmp"))
        # Guard and server have their own sessions, so Ctrl-C in the terminal does not reach them.
        self.guard = subprocess.Popen(
            ["sh", "-c", GUARD, "guard", self.folder],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        # This directory contains the socket, so all users of the host need access.
        self.folder.chmod(0o755)
        os.chown(self.folder, USER, USER)

    def __enter__(self):
        try:
            self.create()
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def data(self):
        return self.folder / "data"

    @property
    def socket_dir(self):
        """The directory of the socket, for PGHOST of a client on the host."""
        return self.folder

    @property
    def log(self):
        """The path of the server's log."""
        return self.folder / "log"

    @property
    def client_env(self):
        """The environment variables for a client on the host."""
        return {"PGHOST": str(self.folder), "PGPORT": str(self.port), "PGUSER": "postgres", "PGDATABASE": "postgres"}

    @property
    def env_inside(self):
        """The environment for a program in the root."""
        return ENVIRONMENT | self.client_env | {"PGHOST": self.inside(self.folder)}

    def inside(self, path):
        """Returns a path as the server sees it from inside the root."""
        return f"/{Path(path).relative_to(self.installation.root)}"

    def create(self):
        """Runs initdb and adds the settings."""
        if len(f"{self.folder}/.s.PGSQL.{self.port}") > MAX_SOCKET_PATH:
            raise Failed(f"the path {self.folder} is too long for a socket: set PG_TIMING_SERVERS to a shorter path")
        options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
        self.run("initdb", *options, "-D", self.inside(self.data))
        settings = self.settings | {"unix_socket_directories": self.inside(self.folder)}
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = {quoted(value)}\n" for name, value in settings.items())
        for library in self.preload:
            shutil.copy(library, self.folder)

    def start(self):
        """Starts the server and waits until it accepts connections."""
        env = dict(self.env)
        if self.preload:
            env["LD_PRELOAD"] = ":".join(self.inside(self.folder / library.name) for library in self.preload)
        # `env` in the root sets the variables, because LD_PRELOAD must not affect chroot, a program of the host.
        assignments = [f"{name}={value}" for name, value in env.items()]
        postgres = f"/usr/lib/postgresql/{self.installation.major}/bin/postgres"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.installation.command("/usr/bin/env", *assignments, postgres, "-D", self.inside(self.data)),
                env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the server did not start:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.02)

    def ready(self):
        """Whether the server accepts connections. pg_ctl reads the same line of postmaster.pid."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return lines[7:8] and lines[7].strip() == "ready" and int(lines[0]) == self.process.pid

    def stop(self, mode="immediate"):
        if self.process and self.process.poll() is None:
            self.process.send_signal(STOP[mode])
            self.process.wait(LIMIT_SECONDS)

    def restart(self, mode="fast"):
        self.stop(mode)
        self.start()

    def remove(self):
        """Stops the server and removes its files. If this fails, the guard does it."""
        self.stop()
        shutil.rmtree(self.folder)
        self.guard.communicate(b"done\n")

    def run(self, program, *arguments, **options):
        """Runs a program of this version (psql, pgbench, pg_test_timing). Returns its output."""
        return output(self.installation.command(program, *arguments), env=self.env_inside, **options)

    def psql(self, sql, *more, options=PSQL, notices=False):
        """Returns psql's output of a script, with notices and warnings if `notices` is set. Raises Failed."""
        errors = subprocess.STDOUT if notices else subprocess.PIPE
        return self.run("psql", *options, *more, "-f", "-", input=sql, stderr=errors)


def quoted(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    return "'" + str(value).replace("'", "''") + "'"
