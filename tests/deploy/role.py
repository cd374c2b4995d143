"""The role of the Ansible collection installs, changes nothing the second time, and removes everything."""

import json
import os
import re
import tempfile
from pathlib import Path

from servers.commands import Failed, output
from tools import DEPLOY, WORK, python_program

COLLECTION = DEPLOY / "ansible"
EXAMPLE = COLLECTION / "example"
PLAYBOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles:
    - role: pg_timing.clocks.pg_timing
"""


class Host:
    """A directory in place of a host's root."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.root = self.folder / "root"
        for name in ("bin", "units", "default", "textfile"):
            (self.root / name).mkdir(parents=True)
        # As a user installs it: nothing of this repository but the archive.
        self.environment = {
            "ANSIBLE_COLLECTIONS_PATH": self.folder / "collections",
            "ANSIBLE_HOME": self.folder / "home",
            "ANSIBLE_NOCOLOR": "1",
            # fewer processes per task
            "ANSIBLE_PIPELINING": "1",
        }
        galaxy = [python_program("ansible-galaxy"), "collection"]
        output([*galaxy, "build", COLLECTION, "--output-path", self.folder], env=os.environ | self.environment)
        (archive,) = self.folder.glob("*.tar.gz")
        output([*galaxy, "install", "--offline", archive, "-p", self.folder / "collections"], env=os.environ | self.environment)
        self.archive = archive.name
        self.playbook = self.folder / "playbook.yml"
        self.playbook.write_text(PLAYBOOK)
        binary = self.folder / "pg_timing"
        binary.write_text("#!/bin/sh\n")
        self.variables = {
            "ansible_python_interpreter": str(python_program("python")),
            "pg_timing_binary": str(binary),
            "pg_timing_binary_path": str(self.root / "bin/pg_timing"),
            "pg_timing_unit_directory": str(self.root / "units"),
            "pg_timing_defaults_directory": str(self.root / "default"),
            "pg_timing_textfile_directory": str(self.root / "textfile"),
            "pg_timing_owner": os.geteuid(),
            "pg_timing_group": os.getegid(),
            # There is no systemd here.
            "pg_timing_manage_service": False,
        }

    def play(self, *options, **variables):
        """Runs the role, and returns the number of changes."""
        extra = json.dumps(self.variables | variables)
        command = [python_program("ansible-playbook"), "-i", "localhost,", self.playbook, "-e", extra, *options]
        printed = output(command, env=os.environ | self.environment)
        return int(re.search(r"changed=(\d+)", printed)[1])

    def example(self):
        """Returns what Ansible prints for the example's hosts, with this folder in place of each."""
        # This host may not have the example's user.
        here = {"ansible_connection": "local", "ansible_become": False, "pg_timing_textfile_user": "nobody"}
        extra = json.dumps(self.variables | here)
        command = [python_program("ansible-playbook"), "-i", EXAMPLE / "inventory.yml", EXAMPLE / "site.yml", "--check", "-e", extra]
        return output(command, env=os.environ | self.environment)

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())


EXPORTER = ["bin/pg_timing", "default/pg_timing-monitor", "units/pg_timing-monitor.service"]
DROP_INS = [f"units/pg_timing-monitor.service.d/{name}.conf" for name in ("allow", "kernel-log")]
TEXTFILE = [
    "bin/pg_timing",
    "default/pg_timing-textfile",
    "units/pg_timing-textfile.service",
    "units/pg_timing-textfile.timer",
]
EVERYTHING_ALLOWED = {"pg_timing_listen": "0.0.0.0:9864", "pg_timing_allow": ["10.0.0.0/8"], "pg_timing_kernel_log": True}
TEXTFILE_MODE = {"pg_timing_mode": "textfile", "pg_timing_textfile_user": "nobody"}
# Both modes, and all tasks of each. A run takes seconds, so no other runs are repeated.
REPEATED = (EVERYTHING_ALLOWED, TEXTFILE_MODE)


CONTRADICTIONS = (
    ("pg_timing_allow is empty", {"pg_timing_listen": "0.0.0.0:9864"}),
    ("could not connect", {"pg_timing_allow": ["10.0.0.0/8"]}),
    ("nothing listens", TEXTFILE_MODE | {"pg_timing_allow": ["10.0.0.0/8"]}),
    ("nothing listens", TEXTFILE_MODE | {"pg_timing_listen": "0.0.0.0:9864"}),
    ("needs the mode exporter", TEXTFILE_MODE | {"pg_timing_kernel_log": True}),
    ("must not contain --listen", {"pg_timing_options": "--interval 5 --listen :1"}),
)  # fmt: skip


def version():
    return re.search(r'^version = "(.*)"$', (DEPLOY.parent / "Cargo.toml").read_text(), re.M)[1]


def check():
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        host = Host(folder)
        if host.archive != f"pg_timing-clocks-{version()}.tar.gz":
            yield f"the version of the collection is not that of the workspace: {host.archive}"
        played = host.example()
        yield from (f"the example does not play {name}" for name in ("db01", "db02", "db03", "db04") if f"{name}.example.com" not in played)
        if host.play("--check") == 0 or host.files():
            yield "--check does not show the changes, or makes them"
        for what, variables, expected in (
            ("exporter", {}, EXPORTER),
            ("exporter with drop-ins", EVERYTHING_ALLOWED, sorted(EXPORTER + DROP_INS)),
            ("exporter without drop-ins", {}, EXPORTER),
            ("textfile mode", TEXTFILE_MODE, TEXTFILE),
        ):
            if host.play(**variables) == 0:
                yield f"{what}: no change"
            if host.files() != expected:
                yield f"{what}: {host.files()}"
            if variables in REPEATED and (changes := host.play(**variables)):
                yield f"{what}: {changes} changes in the second run"
        unit = (host.root / "units/pg_timing-textfile.service").read_text()
        start = f"ExecStart={host.root}/bin/pg_timing monitor --samples 1"
        for line in (f"ReadWritePaths=-{host.root}/textfile", start, "User=nobody\n"):
            if line not in unit:
                yield f"the unit does not have the line {line}"
        textfile = host.root / "textfile"
        if textfile.owner() != "nobody":
            yield f"the directory belongs to {textfile.owner()}"
        (textfile / "pg_timing.prom").touch()
        absent = TEXTFILE_MODE | {"pg_timing_state": "absent"}
        if host.play(**absent) == 0 or host.files() or textfile.owner() != "root":
            yield f"absent leaves {host.files()}, and the directory of {textfile.owner()}"
        if changes := host.play(**absent):
            yield f"absent: {changes} changes in the second run"
        yield from refused(host, "pg_timing_mode must be exporter or textfile", pg_timing_mode="export")
        for why, variables in CONTRADICTIONS:
            yield from refused(host, why, **variables)
        for address in ("[::1]:9864", "9864", "localhost:9864"):
            host.play("--check", pg_timing_listen=address)


def refused(host, why, **variables):
    try:
        host.play(**variables)
    except Failed as failed:
        if why not in str(failed):
            yield f"{variables}: {failed}"
    else:
        yield f"accepted: {variables}"
