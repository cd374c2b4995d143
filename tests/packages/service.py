"""The services of Debian's package under a real systemd: a virtual machine boots a minimal Debian, and the units run there."""

import shutil
import subprocess

from debian import package
from roots import scratch, with_packages
from servers.commands import Failed
from vm import programs

# On an idle host the machine needs a minute and a half.
LIMIT_S = 600
MEMORY_MB = 2048

# Runs after the start of all services. Each part prints its name and what a check below reads.
TRY = r"""
install() { dpkg -i /packages/pg-timing.deb > /dev/null 2>&1 || echo "dpkg: $?"; }
part() { echo "== $1"; }
figures() { curl -sf http://127.0.0.1:9864/metrics; }
process() { systemctl show -P MainPID pg_timing-monitor; }
# The comparison of CPUs is the last collector of the first sample.
wait_for_figures() { for i in $(seq 120); do figures | grep -q 'collector_success{collector="skew"}' && return; sleep 0.5; done; }

part off; install; systemctl is-enabled pg_timing-monitor pg_timing-textfile.timer; systemctl is-active pg_timing-monitor pg_timing-textfile.timer
part on; systemctl enable -q --now pg_timing-monitor; wait_for_figures; systemctl is-active pg_timing-monitor
# A collector that could not read its facts has 0 here.
part collectors; figures | grep '_collector_success{'
part process; grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' /proc/$(process)/status
part messages; journalctl -q -u pg_timing-monitor -p warning -o cat
part events; systemctl stop pg_timing-monitor; echo 'PG_TIMING_OPTIONS=--events /var/lib/pg_timing/events.jsonl' >> /etc/default/pg_timing-monitor
systemctl start pg_timing-monitor; wait_for_figures; ls /var/lib/pg_timing
part "kernel log"; mkdir -p /etc/systemd/system/pg_timing-monitor.service.d
cp /usr/share/doc/pg-timing/examples/kernel-log.conf /etc/systemd/system/pg_timing-monitor.service.d/
systemctl daemon-reload; systemctl restart pg_timing-monitor; wait_for_figures; figures | grep '_collector_success{collector="kernel_log"'
rm -r /etc/systemd/system/pg_timing-monitor.service.d; systemctl daemon-reload; systemctl restart pg_timing-monitor; wait_for_figures
part upgrade; before=$(process); install; wait_for_figures
[ "$before" != "$(process)" ] && systemctl is-active pg_timing-monitor
part server; cd /etc/postgresql/*/main; su postgres -c "createuser clock_monitor; psql -qc 'GRANT pg_monitor TO clock_monitor'"
echo 'clocks pg_timing-monitor clock_monitor' >> pg_ident.conf; sed -i '1i local all clock_monitor peer map=clocks' pg_hba.conf
su postgres -c "psql -qtAc 'SELECT pg_reload_conf()'" > /dev/null
echo 'PG_TIMING_OPTIONS=--server postgresql:///postgres?user=clock_monitor' >> /etc/default/pg_timing-monitor
systemctl restart pg_timing-monitor; for i in $(seq 120); do figures | grep '^pg_timing_server_up' && break; sleep 0.5; done
part stop; systemctl disable -q --now pg_timing-monitor; systemctl show -P Result -P ExecMainStatus pg_timing-monitor
part "no folder"; systemctl start pg_timing-textfile.service 2> /dev/null; journalctl -q -u pg_timing-textfile -o cat | grep error:
part timer; mkdir -p /var/lib/prometheus/node-exporter; systemctl enable -q --now pg_timing-textfile.timer
systemctl start pg_timing-textfile.service; systemctl is-active pg_timing-textfile.timer
grep '_collector_success{' /var/lib/prometheus/node-exporter/pg_timing.prom
part purge; systemctl start pg_timing-monitor; dpkg --purge pg-timing > /dev/null 2>&1; systemctl list-units --all --plain --no-legend 'pg_timing*'; ls -d /var/lib/pg_timing /var/lib/private/pg_timing 2>&1 | grep -v 'No such'
part end
"""
UNIT = """[Unit]
After=multi-user.target
[Service]
Type=exec
ExecStart=/bin/bash -c "bash /try > /dev/ttyS1 2>&1; systemctl poweroff"
"""
# Without more privileges, a service cannot read the kernel log.
COLLECTORS = {"clocks": 1, "drift": 1, "skew": 1, "clocksource": 1, "kernel_log": 0}


def parts(text):
    """Returns {name: lines} of the script's output."""
    found = {}
    for section in text.replace("\r", "").split("== ")[1:]:
        name, _, lines = section.partition("\n")
        found[name] = lines.splitlines()
    return found


def success(name, value):
    return f'pg_timing_monitor_collector_success{{collector="{name}"}} {value}'


def collected(lines):
    """Yields a complaint for each collector that has another success."""
    yield from (f"not {success(*each)}: {lines}" for each in COLLECTORS.items() if success(*each) not in lines)


def runs(folder, release):
    """The services are off, and then run without privileges and return all figures, also those of a server on the host.

    An upgrade starts the monitor again.
    """
    found = parts(booted(package(folder, "pg-timing"), release))
    expected = {
        "off": ["disabled", "disabled", "inactive", "inactive"],
        "on": ["active"],
        "messages": [],
        "events": ["events.jsonl"],
        "kernel log": [success("kernel_log", 1)],
        "upgrade": ["active"],
        "server": ["pg_timing_server_up 1"],
        "stop": ["success", "0"],
        "no folder": ['pg_timing: error: could not write "/var/lib/prometheus/node-exporter/pg_timing.prom": No such file or directory'],
        "purge": [],
        "end": [],
    }
    yield from (f"{name}: {found.get(name)}, not {lines}" for name, lines in expected.items() if found.get(name) != lines)
    yield from collected(found.get("collectors", []))
    state = dict(line.split(":\t", 1) for line in found.get("process", []))
    if state.get("Uid", "0").startswith("0") or (state.get("CapEff"), state.get("NoNewPrivs"), state.get("Seccomp")) != ("0" * 16, "1", "2"):
        yield f"process: {state}"
    timer = found.get("timer", [])
    if timer[:1] != ["active"]:
        yield f"timer: {timer}"
    yield from collected(timer)


def booted(file, release):
    """Boots this release of Debian with the package, and returns what the script printed."""
    root = scratch(with_packages(release, "systemd-server", ["systemd-sysv", "libnss-systemd", "curl", "postgresql"]))
    try:
        root.put(file, "/packages/pg-timing.deb")
        root.put(programs.tool("busybox", "busybox-static"), "/packages/busybox")
        upper = root.changes / "upper"
        (upper / "try").write_text(TRY)
        root.run(
            # In the machine, packages may start services. Without a number, systemd would enable all services at the first start.
            "rm /usr/sbin/policy-rc.d; echo 0123456789abcdef0123456789abcdef > /etc/machine-id\n"
            f"cat > /etc/systemd/system/try.service << 'END'\n{UNIT}END\n"
            "mkdir -p /etc/systemd/system/multi-user.target.wants\n"
            "ln -s ../try.service /etc/systemd/system/multi-user.target.wants/\n"
            "cd /; find . -xdev ! -path './var/cache/*' ! -path './var/lib/apt/lists/*' ! -path ./initramfs |"
            " /packages/busybox cpio -o -H newc > /initramfs 2> /dev/null"
        )
        console, results = root.changes / "console", root.changes / "results"
        command = [
            programs.qemu(),
            # Emulation needs no rights, and works in a virtual machine, too.
            *("-accel", "tcg", "-cpu", "qemu64", "-m", str(MEMORY_MB), "-smp", "2"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-serial", f"file:{console}", "-serial", f"file:{results}"),
            *("-kernel", programs.kernel(), "-initrd", upper / "initramfs"),
            *("-append", "console=ttyS0 panic=-1 rdinit=/lib/systemd/systemd systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service"),
        ]
        try:
            subprocess.run(command, timeout=LIMIT_S, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        except subprocess.CalledProcessError as failed:
            raise Failed(f"qemu: {failed.stderr.decode()}") from None
        except subprocess.TimeoutExpired:
            raise Failed(f"the machine did not end within {LIMIT_S} s: {console.read_text(errors='replace')[-2000:]}") from None
        finally:
            kept = programs.WORK / "systemd"
            kept.mkdir(parents=True, exist_ok=True)
            for file in (console, results):
                if file.exists():
                    shutil.copy(file, kept)
        return results.read_text(errors="replace")
    finally:
        root.remove()
