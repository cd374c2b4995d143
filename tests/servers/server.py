"""A throwaway server: made, started, asked, stopped and removed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .commands import Failed, output
from .installation import USER

# The socket's folder belongs to one server alone, so the port need not differ.
PORT = 5432

# Linux takes 107 bytes as a socket's address.
LONGEST_SOCKET = 100

# A start takes a fraction of a second; a busy host may take some times as long.
LIMIT_SECONDS = 60

STOP = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

# Nothing here outlives the test, so nothing has to reach the disk.
DEFAULTS = {
    "listen_addresses": "",
    "fsync": False,
    "synchronous_commit": False,
    "full_page_writes": False,
    "max_wal_size": "4GB",
}

# Nothing of the host's: no PGOPTIONS, no language.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/tmp", "LC_ALL": "C"}

# Unaligned, without headings, without anybody's psqlrc, and the first error ends it.
PSQL = ("-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1")

# Clears up if this program ends in a way that leaves it no time to, even by SIGKILL: then the pipe closes without a
# word. The folder may still be written to, by an initdb or by backends that are on their way out: hence the loop.
GUARD = """read -r word && exit
pid=$(head -n 1 "$1/data/postmaster.pid") && kill -QUIT "$pid"
until rm -rf "$1"; do sleep 0.1; done"""


class Server:
    """A server of an installation, for a `with` block or for create(), start() and remove().

    settings    lines of postgresql.conf: {"shared_preload_libraries": "auto_explain", "jit": False}
    preload     shared libraries of the host for the LD_PRELOAD of the postmaster and its children
    env         further environment for them
    """

    def __init__(self, installation, settings=None, preload=(), env=None):
        self.installation = installation
        self.settings = DEFAULTS | (settings or {})
        self.preload = [Path(library) for library in preload]
        self.env = dict(env or {})
        self.port = PORT
        self.process = None
        self.folder = Path(tempfile.mkdtemp(prefix="", dir=installation.root / "tmp"))
        # In a session of its own, out of reach of the terminal's Ctrl-C; so is the server.
        self.guard = subprocess.Popen(
            ["sh", "-c", GUARD, "guard", self.folder],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        # The sockets' folder, open to any user of the host.
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
        """The folder of the socket, as a client on the host says it: PGHOST."""
        return self.folder

    @property
    def log(self):
        """The path of the server's log."""
        return self.folder / "log"

    @property
    def client_env(self):
        """What a client on the host needs in its environment to find the server."""
        return {"PGHOST": str(self.folder), "PGPORT": str(self.port), "PGUSER": "postgres", "PGDATABASE": "postgres"}

    @property
    def env_inside(self):
        """The same for a program that runs in the root."""
        return ENVIRONMENT | self.client_env | {"PGHOST": self.inside(self.folder)}

    def inside(self, path):
        """A path in the root as the server sees it."""
        return f"/{Path(path).relative_to(self.installation.root)}"

    def create(self):
        """initdb, with the settings."""
        if len(f"{self.folder}/.s.PGSQL.{self.port}") > LONGEST_SOCKET:
            raise Failed(f"{self.folder} is too long for a socket's address: set PG_TIMING_SERVERS to a shorter path")
        options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
        self.run("initdb", *options, "-D", self.inside(self.data))
        settings = self.settings | {"unix_socket_directories": self.inside(self.folder)}
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = {quoted(value)}\n" for name, value in settings.items())
        for library in self.preload:
            shutil.copy(library, self.folder)

    def start(self):
        """Returns once it answers."""
        env = dict(self.env)
        if self.preload:
            env["LD_PRELOAD"] = ":".join(self.inside(self.folder / library.name) for library in self.preload)
        # By `env` in the root: chroot itself, a program of the host, is to run without them.
        assignments = [f"{name}={value}" for name, value in env.items()]
        postgres = f"/usr/lib/postgresql/{self.installation.major}/bin/postgres"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.installation.command("/usr/bin/env", *assignments, postgres, "-D", self.inside(self.data)),
                env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + LIMIT_SECONDS
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"the server did not start:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.02)

    def ready(self):
        """Whether it says so, in the file and the line that pg_ctl reads, too."""
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
        """Stops it and removes all that it has left. If that fails, the guard does it."""
        self.stop()
        shutil.rmtree(self.folder)
        self.guard.communicate(b"done\n")

    def run(self, program, *arguments, **options):
        """Runs one of this version's programs (psql, pgbench, pg_test_timing). Returns what it printed."""
        return output(self.installation.command(program, *arguments), env=self.env_inside, **options)

    def psql(self, sql, *more, options=PSQL, notices=False):
        """What this version's psql prints for a script, with notices and warnings if wanted. Raises Failed."""
        errors = subprocess.STDOUT if notices else subprocess.PIPE
        return self.run("psql", *options, *more, "-f", "-", input=sql, stderr=errors)


def quoted(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    return "'" + str(value).replace("'", "''") + "'"
