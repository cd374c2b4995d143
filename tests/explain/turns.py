"""Another client that runs the same statement in turns with pg_timing explain, so that both see the machine at the same speeds."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from explain.measure import explain_command, without_output, writes

# The time between two reads of the server process's state. A turn begins up to this much later. With 0.5 ms, the reads slow
# parallel plans down on a machine with two CPUs: TPC-H's query 13 took 20% longer.
POLL_SECONDS = 0.004
# The server shows what each of its processes does in the process title.
RUNS_EXPLAIN, WAITS = b"EXPLAIN", b"idle in transaction"
# The first run after another session's run is slower, by up to 25% for a hash join of 37 ms: the CPU's caches hold other data.
# So turns are rare, and the first run of a turn does not count.
BETWEEN_TURNS_SECONDS = 0.3
RUNS_PER_TURN = 3
# The data in the caches hardly matter for a run that takes longer than this. Then each turn is one run, and it counts.
LONG_MS = 300
# Turns before and after explain, if there are none meanwhile.
TURNS_OUTSIDE = 10
# A short explain leaves time for fewer runs of the other client. The rest runs afterwards.
LEAST_RUNS = 6
PID = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pg_timing'"


class OtherClient:
    """A session of psql that runs a statement without EXPLAIN when it is asked to."""

    def __init__(self, server, statement):
        command = server.installation.command("/usr/bin/stdbuf", "-oL", f"/usr/lib/postgresql/{server.installation.major}/bin/psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1")
        self.psql = subprocess.Popen(command, env=server.env_inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.send(f"PREPARE plain AS {without_output(statement)}; PREPARE empty AS SELECT;")
        # Two runs fill the caches of this session.
        self.run("plain")
        self.run("plain")
        # The time between client and server, which is not a part of the statement.
        self.round_trip_ms = median(self.run("empty") for _ in range(15))

    def send(self, text):
        self.psql.stdin.write(text + "\n")

    def turn(self):
        """Runs the statement, and returns the times of the runs that count in ms."""
        first = self.run("plain")
        more = [] if first > LONG_MS else [self.run("plain") for _ in range(RUNS_PER_TURN - 1)]
        return [ms - self.round_trip_ms for ms in more or [first]]

    def run(self, name):
        """Runs a prepared statement once, rolls it back, and returns its time in ms."""
        self.send(f"BEGIN;\n\\timing on\nEXECUTE {name};\n\\timing off\nROLLBACK;")
        for line in self.psql.stdout:
            if time := re.match(r"Time: ([\d.]+) ms", line):
                return float(time[1])
        raise SystemExit("psql ended")

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()


def in_turns(path, server, statement, *more):
    """Explains a statement. While pg_timing receives nothing, another client runs the same statement without EXPLAIN.

    The other client gets its turns after runs with EXPLAIN: its time is measured by the server, so a pause of pg_timing does
    not change it. A statement that writes would wait for the locks of pg_timing's transaction, so its turns are before and after
    explain. Returns the report, the times of the other client in ms, and the duration without its turns in s.
    """
    other = OtherClient(server, statement)
    outside = [ms for _ in range(TURNS_OUTSIDE) for ms in other.turn()] if writes(statement) else []
    start, paused, times = monotonic(), 0.0, []
    last_turn = start
    explain = subprocess.Popen(
        explain_command(path, statement, *more), env=os.environ | server.client_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        title = None
        while explain.poll() is None:
            title = title or title_of_backend(server)
            if title and not outside and monotonic() - last_turn > BETWEEN_TURNS_SECONDS and shows(title, RUNS_EXPLAIN):
                explain.send_signal(signal.SIGSTOP)
                while shows(title, RUNS_EXPLAIN):
                    sleep(POLL_SECONDS)
                begin = monotonic()
                times += other.turn()
                last_turn = monotonic()
                paused += last_turn - begin
                explain.send_signal(signal.SIGCONT)
                while shows(title, WAITS):
                    sleep(POLL_SECONDS)
            sleep(POLL_SECONDS)
        duration = monotonic() - start - paused
        out, errors = explain.communicate()
        if outside:
            times = outside + [ms for _ in range(TURNS_OUTSIDE) for ms in other.turn()]
        while len(times) < LEAST_RUNS:
            times += other.turn()
    finally:
        explain.kill()
        other.close()
    if explain.returncode != 0:
        raise SystemExit(f"{statement}: {errors}")
    return json.loads(out), times, duration


def title_of_backend(server):
    """Returns the file with the title of the process that serves pg_timing, if it is connected."""
    pid = server.psql(PID).strip()
    return Path(f"/proc/{pid}/cmdline") if pid else None


def shows(title, state):
    try:
        return state in title.read_bytes()
    except OSError:
        return False
