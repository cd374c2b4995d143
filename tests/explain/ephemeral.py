"""pg_timing explain on a server of its own: it answers, and leaves nothing behind, however it ends."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from servers import Missing, install

# Long enough to be met in the midst of it.
SLEEP = "SELECT pg_sleep(60)"
COUNT = "SELECT count(*) FROM generate_series(1, 100000)"
# As in its source: a lost server is given ten seconds, and a busy machine some more.
GONE_SECONDS = 30


def environment():
    """A server's programs that run on the host itself, whatever it has installed: the wheel's."""
    try:
        more = f"{install(16).root}/usr/lib/postgresql/16/bin"
    except Missing:
        more = ""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return env | {"PATH": f"{env['PATH']}:{more}"}


def shared_memory():
    return set(Path("/proc/sysvipc/shm").read_text().splitlines()[1:])


def processes():
    """Command lines by process, of our servers and of whoever holds them."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            pass
    return {pid: line for pid, line in found.items() if "pg_timing." in line or "explain --ephemeral" in line}


def folders(base="/tmp"):
    return {str(folder) for folder in Path(base).glob("pg_timing.*")}


class Watch:
    """What there was before, and what is left."""

    def __init__(self, base="/tmp"):
        self.base = base
        self.before = (folders(base), set(processes()), shared_memory())

    def left(self):
        for _ in range(GONE_SECONDS * 20):
            now = (folders(self.base), set(processes()), shared_memory())
            left = [sorted(after - before, key=str) for before, after in zip(self.before, now)]
            if not any(left):
                return
            time.sleep(0.05)
        yield f"left behind: {left} {[line for pid, line in processes().items() if pid in left[1]]}"


def start(path, env, statement=SLEEP, **options):
    return subprocess.Popen(
        [path, "explain", "--ephemeral", "-c", statement], env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def until_it_sleeps(program, watch):
    """The postmaster's process, once the statement runs."""
    for _ in range(GONE_SECONDS * 20):
        for folder in folders(watch.base) - watch.before[0]:
            lock = Path(folder) / "data/postmaster.pid"
            lines = lock.read_text().splitlines() if lock.exists() else []
            if lines and any("[local]" in title for title in children(abs(int(lines[0])))):
                return int(lines[0])
        if program.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"it never ran: {program.communicate()}")


def children(process):
    """The titles of a postmaster's processes."""
    out = subprocess.run(["ps", "--ppid", str(process), "-o", "args="], capture_output=True, text=True).stdout
    return out.splitlines()


def guardian(program):
    return int(subprocess.run(["pgrep", "-P", str(program.pid)], capture_output=True, text=True, check=True).stdout.split()[0])


def answers(path, env):
    watch = Watch()
    start_time = time.monotonic()
    done = subprocess.run([path, "explain", "--ephemeral", "-c", COUNT, "--format", "json"], env=env, capture_output=True, text=True)
    if done.returncode != 0 or json.loads(done.stdout)["reported_ms"] <= 0 or "running on a temporary PostgreSQL" not in done.stderr:
        yield f"{done}"
    yield from watch.left()
    # Nothing was named, and nothing answers here.
    done = subprocess.run([path, "explain"], input=COUNT, env=env, capture_output=True, text=True)
    if done.returncode != 0 or "none answers on the default socket" not in done.stderr:
        yield f"unasked: {done}"
    yield from watch.left()
    print(f"       two runs on servers of their own took {time.monotonic() - start_time:.1f} s", flush=True)


def ends(path, env):
    """However it ends."""
    ways = {
        "Ctrl-C": lambda program, _: program.send_signal(signal.SIGINT),
        "SIGTERM": lambda program, _: program.send_signal(signal.SIGTERM),
        "SIGKILL": lambda program, _: program.kill(),
        "SIGKILL of the guardian": lambda program, _: os.kill(guardian(program), signal.SIGKILL),
        "SIGKILL of the server": lambda _, postmaster: os.kill(postmaster, signal.SIGKILL),
        "two Ctrl-C": lambda program, _: [program.send_signal(signal.SIGINT), time.sleep(0.01), program.send_signal(signal.SIGINT)],
    }
    for what, end in ways.items():
        watch = Watch()
        program = start(path, env)
        end(program, until_it_sleeps(program, watch))
        out, said = program.communicate(timeout=GONE_SECONDS)
        if program.returncode == 0 or out or "panicked" in said:
            yield f"{what}: {program.returncode} {out!r} {said!r}"
        if what not in ("SIGKILL", "two Ctrl-C") and "pg_timing: error: " not in said:
            yield f"{what}: {said!r}"
        yield from (f"{what}: {left}" for left in watch.left())


def killed_early(path, env):
    """While the server is being made."""
    for after in (*(0.001 * ms for ms in range(4, 34)), 0.2, 0.5):
        for sign in (signal.SIGKILL, signal.SIGINT):
            watch = Watch()
            program = start(path, env)
            time.sleep(after)
            program.send_signal(sign)
            program.communicate(timeout=GONE_SECONDS)
            yield from (f"{sign.name} after {after} s: {left}" for left in watch.left())


def ordinary_user(path, env):
    """With a disk that is full, and with one that fills up in the midst of it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        for size, statement in (("8m", COUNT), ("60m", "SELECT count(*) FROM (SELECT repeat('x', 1000) || g AS x FROM generate_series(1, 1000000) g ORDER BY 1) s")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", folder], check=True)
            try:
                watch = Watch(folder)
                program = start(path, env | {"TMPDIR": folder}, statement, user="nobody", group="nogroup", extra_groups=[])
                out, said = program.communicate(timeout=120)
                if program.returncode != 3 or out or "No space left on device" not in said:
                    yield f"a disk of {size}: {program.returncode} {out!r} {said!r}"
                yield from (f"a disk of {size}: {left}" for left in watch.left())
            finally:
                subprocess.run(["umount", folder], check=True)


def check(path):
    env = environment()
    for test in (answers, ends, killed_early, ordinary_user):
        yield from test(path, env)
