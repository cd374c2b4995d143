"""What the host does to a running machine, which asks for it on its console: `host: DEED SECONDS`."""

import json
import re
import signal
import time


class Failed(Exception):
    """qemu did not do what it was told."""


class Host:
    """Serves one machine. qemu takes orders (QMP) on its stdin, and answers on its stdout."""

    def __init__(self, qemu, console):
        self.qemu, self.console = qemu, console
        # Deeds done.
        self.done = 0
        self.order("qmp_capabilities")

    def serve(self):
        """Does what is asked for until the machine has ended."""
        deeds = {"pause": self.pause, "hold-up": self.hold_up, "wake": self.wake}
        while self.qemu.poll() is None:
            asked = re.findall(rb"^host: (\S+) (\S+)\r?\n", self.console.read_bytes(), re.MULTILINE)
            for deed, seconds in asked[self.done :]:
                deeds[deed.decode()](float(seconds))
                self.done += 1
            time.sleep(0.05)

    def pause(self, seconds):
        """The machine stands still, and its clocks with it, as while it is moved to another host."""
        self.order("stop")
        time.sleep(seconds)
        self.order("cont")

    def hold_up(self, seconds):
        """The machine stands still, but its clocks go on, as on a host that is busy elsewhere."""
        self.qemu.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.qemu.send_signal(signal.SIGCONT)

    def wake(self, seconds):
        """Wakes the machine when it has slept for so long. It is about to fall asleep."""
        while self.order("query-status")["status"] != "suspended":
            time.sleep(0.02)
        time.sleep(seconds)
        self.order("system_wakeup")

    def order(self, command):
        self.qemu.stdin.write(json.dumps({"execute": command}) + "\n")
        self.qemu.stdin.flush()
        for line in self.qemu.stdout:
            message = json.loads(line)
            if "error" in message:
                raise Failed(f"{command}: {message['error']['desc']}")
            if "return" in message:
                return message["return"]
            # The rest tells of events: nobody waits for them.
        raise Failed(f"{command}: it ended")
