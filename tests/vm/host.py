"""Actions of the host that a virtual machine requests on its console with a line `host: ACTION SECONDS`."""

import json
import re
import signal
import time


class Failed(Exception):
    """qemu did not carry out a command."""


class Host:
    """Serves one machine. qemu reads commands (QMP) from its stdin and writes answers to its stdout."""

    def __init__(self, qemu, console):
        self.qemu, self.console = qemu, console
        # number of requests served
        self.done = 0
        self.execute("qmp_capabilities")

    def serve(self):
        """Serves requests until the machine has ended."""
        actions = {"pause": self.pause, "stop": self.stop, "wake": self.wake}
        while self.qemu.poll() is None:
            requests = re.findall(rb"^host: (\S+) (\S+)\r?\n", self.console.read_bytes(), re.MULTILINE)
            for action, seconds in requests[self.done :]:
                actions[action.decode()](float(seconds))
                self.done += 1
            time.sleep(0.05)

    def pause(self, seconds):
        """Stops the machine and its clocks, as a migration to another host does."""
        self.execute("stop")
        time.sleep(seconds)
        self.execute("cont")

    def stop(self, seconds):
        """Stops the machine, but not its clocks, as a busy host does."""
        self.qemu.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.qemu.send_signal(signal.SIGCONT)

    def wake(self, seconds):
        """Wakes the machine after it has slept for `seconds`. The machine falls asleep right after its request."""
        while self.execute("query-status")["status"] != "suspended":
            time.sleep(0.02)
        time.sleep(seconds)
        self.execute("system_wakeup")

    def execute(self, command):
        """Sends a command to qemu. Returns the answer."""
        self.qemu.stdin.write(json.dumps({"execute": command}) + "\n")
        self.qemu.stdin.flush()
        for line in self.qemu.stdout:
            message = json.loads(line)
            if "error" in message:
                raise Failed(f"{command}: {message['error']['desc']}")
            if "return" in message:
                return message["return"]
            # All other messages are events.
        raise Failed(f"{command}: qemu ended without an answer")
