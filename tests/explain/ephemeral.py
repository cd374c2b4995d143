"""pg_timing explain --ephemeral: it reports, and removes its temporary server however it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from servers import Failed, Missing, install

# Long enough that every test interrupts it.
SLEEP = "SELECT pg_sleep(60)"
COUNT = "SELECT count(*) FROM generate_series(1, 100000)"
# pg_timing waits 10 s for a server to stop. A busy machine needs more time.
CLEANUP_SECONDS = 30


# The tests of hostile databases have their temporary servers in /var/tmp.
OURS = re.compile(r"(?<!/var)/tmp/\S*pg_timing\.\w+/data|explain --ephemeral --time 2")


def environment():
    """Returns an environment with a PATH that has initdb and postgres. PostgreSQL 16 is from a wheel, so it also runs outside of its root."""
    try:
        directory = f"{install(16).root}/usr/lib/postgresql/16/bin"
    except Missing:
        directory = ""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return env | {"PATH": f"{env['PATH']}:{directory}"}


def shared_memory():
    """Returns the ids of the segments that no process uses. Other tests have servers, too."""
    segments = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {number for _, number, _, _, _, _, users, *_ in segments if users == "0"}


def processes():
    """Returns the command lines of pg_timing and of its temporary servers, by process id. Other tests run at the same time."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            pass
    return {pid: line for pid, line in found.items() if OURS.search(line)}


def folders(base="/tmp"):
    return {str(folder) for folder in Path(base).glob("pg_timing.*")}


class Leftovers:
    """Compares directories, processes and shared memory with those at the start of a test."""

    def __init__(self, base="/tmp"):
        self.base = base
        self.before = (folders(base), set(processes()), shared_memory())

    def complaints(self):
        """Waits until nothing is left. Yields what is left after the deadline."""
        for _ in range(CLEANUP_SECONDS * 20):
            now = (folders(self.base), set(processes()), shared_memory())
            left = [sorted(after - before, key=str) for before, after in zip(self.before, now)]
            if not any(left):
                return
            time.sleep(0.05)
        yield f"left behind: {left} {[line for pid, line in processes().items() if pid in left[1]]}"


def start(path, env, statement=SLEEP, **options):
    return subprocess.Popen(
        [path, "explain", "--ephemeral", "--time", "2", "-c", statement], env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def wait_for_statement(program, leftovers):
    """Waits until the statement runs. Returns the process id of the postmaster."""
    for _ in range(CLEANUP_SECONDS * 20):
        for folder in folders(leftovers.base) - leftovers.before[0]:
            lock = Path(folder) / "data/postmaster.pid"
            lines = lock.read_text().splitlines() if lock.exists() else []
            if lines and any("[local]" in title for title in children(abs(int(lines[0])))):
                return int(lines[0])
        if program.poll() is not None:
            break
        time.sleep(0.05)
    raise Failed(f"the statement did not start: {program.communicate()}")


def children(process):
    """Returns the titles of a postmaster's processes."""
    out = subprocess.run(["ps", "--ppid", str(process), "-o", "args="], capture_output=True, text=True).stdout
    return out.splitlines()


def reports(path, env):
    """explain reports with --ephemeral, and also if no server runs on the default socket."""
    leftovers = Leftovers()
    start_time = time.monotonic()
    done = subprocess.run([path, "explain", "--ephemeral", "--time", "2", "-c", COUNT, "--format", "json"], env=env, capture_output=True, text=True)
    if done.returncode != 0 or json.loads(done.stdout)["reported_ms"] <= 0 or "running on a temporary PostgreSQL" not in done.stderr:
        yield f"{done}"
    yield from leftovers.complaints()
    # Without connection options, and without a server on the default socket.
    done = subprocess.run([path, "explain", "--time", "2", "-f", "-"], input=COUNT, env=env, capture_output=True, text=True)
    if done.returncode != 0 or "no server answers on the default socket" not in done.stderr:
        yield f"without --ephemeral: {done}"
    yield from leftovers.complaints()
    print(f"       two runs on temporary servers took {time.monotonic() - start_time:.1f} s", flush=True)


def interrupted(path, env):
    """Signals to pg_timing and to the server. The kernel ends the server of a killed program, and the next run removes its folder."""
    signals = {
        "Ctrl-C": lambda program, _: program.send_signal(signal.SIGINT),
        "SIGTERM": lambda program, _: program.send_signal(signal.SIGTERM),
        "SIGKILL": lambda program, _: program.kill(),
        "SIGQUIT of the server": lambda _, postmaster: os.kill(postmaster, signal.SIGQUIT),
        "two Ctrl-C": lambda program, _: [program.send_signal(signal.SIGINT), time.sleep(0.01), program.send_signal(signal.SIGINT)],
    }
    for what, send in signals.items():
        leftovers = Leftovers()
        program = start(path, env)
        send(program, wait_for_statement(program, leftovers))
        out, errors = program.communicate(timeout=CLEANUP_SECONDS)
        if program.returncode == 0 or out or "panicked" in errors:
            yield f"{what}: {program.returncode} {out!r} {errors!r}"
        if what in ("SIGKILL", "two Ctrl-C"):
            yield from remove_with_next_run(path, env)
        elif "pg_timing: error: " not in errors:
            yield f"{what}: {errors!r}"
        yield from (f"{what}: {left}" for left in leftovers.complaints())


def environment_of(pid):
    """Returns the environment of a process, which is empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def keeps_secrets(path, env):
    """The server's user, who is another one if this is root, gets neither the environment nor the terminal."""
    leftovers = Leftovers()
    program = start(path, env | {"SECRET_OF_ROOT": "geheim", "PGPASSWORD": "geheim"})
    postmaster = wait_for_statement(program, leftovers)
    for pid, line in processes().items():
        if pid != program.pid and b"geheim" in environment_of(pid):
            yield f"{line} has the environment"
    if os.getsid(postmaster) == os.getsid(program.pid):
        yield "the server has the terminal of the program"
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=CLEANUP_SECONDS)
    yield from leftovers.complaints()


def remove_with_next_run(path, env):
    """Runs pg_timing again, as soon as the processes of killed runs have ended."""
    for _ in range(CLEANUP_SECONDS * 20):
        if not processes():
            break
        time.sleep(0.05)
    done = subprocess.run([path, "explain", "--ephemeral", "--time", "2", "-c", COUNT], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        yield f"after a killed run: {done}"


def killed_early(path, env):
    """Signals while pg_timing starts the server. These delays are the test itself."""
    for delay in (*(0.001 * ms for ms in range(4, 34)), 0.2, 0.5):
        leftovers = Leftovers()
        program = start(path, env)
        time.sleep(delay)
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=CLEANUP_SECONDS)
        yield from (f"SIGINT after {delay} s: {left}" for left in leftovers.complaints())
    leftovers = Leftovers()
    for delay in (0.05, 0.1, 0.2, 0.5, 1):
        program = start(path, env)
        time.sleep(delay)
        program.kill()
        program.communicate(timeout=CLEANUP_SECONDS)
    yield from remove_with_next_run(path, env)
    yield from (f"after SIGKILL: {left}" for left in leftovers.complaints())


def relative_directory(path, env):
    """TMPDIR can be relative to the directory in which pg_timing starts."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        (Path(folder) / "here").mkdir()
        shutil.chown(Path(folder) / "here", "nobody")
        leftovers = Leftovers(f"{folder}/here")
        program = start(path, env | {"TMPDIR": "here"}, COUNT, cwd=folder, user="nobody", group="nogroup", extra_groups=[])
        out, errors = program.communicate(timeout=120)
        if program.returncode != 0 or not out.startswith("EXPLAIN ANALYZE reports"):
            yield f"a relative TMPDIR: {program.returncode} {out!r} {errors!r}"
        yield from leftovers.complaints()


def full_disk(path, env):
    """An ordinary user, with a disk too small for the server, and with a disk that the statement fills."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        for size, statement in (("8m", COUNT), ("60m", "SELECT count(*) FROM (SELECT repeat('x', 1000) || g AS x FROM generate_series(1, 1000000) g ORDER BY 1) s")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", folder], check=True)
            try:
                leftovers = Leftovers(folder)
                program = start(path, env | {"TMPDIR": folder}, statement, user="nobody", group="nogroup", extra_groups=[])
                out, errors = program.communicate(timeout=120)
                if program.returncode != 3 or out or "No space left on device" not in errors:
                    yield f"a disk of {size}: {program.returncode} {out!r} {errors!r}"
                yield from (f"a disk of {size}: {left}" for left in leftovers.complaints())
            finally:
                subprocess.run(["umount", folder], check=True)


def check(path):
    env = environment()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        # Other users cannot run a program in the home directory of root.
        program = shutil.copy(path, folder)
        for test in (reports, keeps_secrets, interrupted, relative_directory, killed_early, full_disk):
            yield from test(program, env)
