"""A terminal for tests: a shell in tmux, with its own tmux server."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from outcome import until

# tmux writes the pane's size and these flags: whether the second screen is shown, whether the cursor is visible, and the
# process of the shell.
STATE = "#{alternate_on} #{cursor_flag} #{pane_pid} #{pane_width} #{pane_height}"


class Terminal:
    """A shell that has printed one line. The text and the terminal's modes must be the same after the program."""

    BEFORE = "text before the program"

    def __init__(self, columns=80, lines=24, env=()):
        self.folder = tempfile.TemporaryDirectory()
        env = {"LC_ALL": "C.UTF-8", "PS1": "$ ", "PATH": os.environ["PATH"], "HOME": self.folder.name, **dict(env)}
        words = ["env", "-i", *[f"{name}={value}" for name, value in env.items()], "TERM=screen", "sh"]
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), shlex.join(words))
        self.type(f"clear; echo {self.BEFORE}; {self.save_modes('before')}")
        until(lambda: self.modes("before"), "the shell answers")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)
        self.folder.cleanup()

    def tmux(self, *words, check=True):
        """Runs a tmux command on our own server, without the user's configuration."""
        socket = str(Path(self.folder.name) / "tmux")
        done = subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", *words], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"tmux {words}: {done.stderr}")
        return done.stdout

    def type(self, line):
        self.tmux("send-keys", "-l", line)
        self.press("Enter")

    def press(self, key):
        self.tmux("send-keys", key)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def text(self, colors=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colors else []))

    def state(self):
        """Returns whether the second screen is shown, whether the cursor is visible, the shell's process, columns and lines."""
        second, cursor, *numbers = map(int, self.tmux("display-message", "-p", STATE).split())
        return bool(second), bool(cursor), *numbers

    def shows_screen(self):
        return self.state()[0]

    def foreground(self):
        """Returns the process group in the foreground: the program's, if it runs."""
        stat = Path(f"/proc/{self.state()[2]}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[5])

    def runs_program(self):
        return self.foreground() != self.state()[2]

    def save_modes(self, name):
        path = shlex.quote(str(Path(self.folder.name) / name))
        return f"stty -g > {path}.new && mv {path}.new {path}"

    def modes(self, name):
        path = Path(self.folder.name) / name
        return path.read_text() if path.exists() else None

    def left_as_before(self, exit_status):
        """Yields complaints unless the program ended with this status and the terminal is as it was."""
        until(lambda: not self.runs_program() and not self.shows_screen(), "the program ends")
        self.type(f"echo exit status $?; {self.save_modes('after')}")
        until(lambda: self.modes("after"), "the shell answers after the program")
        second, cursor, *_ = self.state()
        if second or not cursor:
            yield f"second screen: {second}, visible cursor: {cursor}"
        if self.modes("after") != self.modes("before"):
            yield f"stty -g: {self.modes('after')!r} instead of {self.modes('before')!r}"
        text = self.text()
        for part in (f"\n{self.BEFORE}\n", f"\nexit status {exit_status}\n"):
            if part not in "\n" + text:
                yield f"{part.strip()!r} is not on the terminal: {text!r}"
