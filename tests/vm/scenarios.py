"""The virtual machines: CPU, boot parameters, commands that run inside, and the clock source that the kernel selects."""

from dataclasses import dataclass, field

import monitoring

# A TSC without faults: invariant, and with TSC_ADJUST, so that the kernel does not start its watchdog. (On a busy host the
# watchdog can demote any TSC.) qemu's emulation does not offer these two CPU flags, although its TSC has both
# properties: all CPUs share one counter. `x-force-features` adds the flags.
GOOD_TSC = "max,+invtsc,+tsc-adjust,x-force-features=on"
# The same TSC, observed by the watchdog.
WATCHED_TSC = "max,+invtsc,-tsc-adjust,x-force-features=on"

# The independent measurement runs before, between and after ours, so that a slow moment of the host affects both.
MEASURE = [
    ("cost-1", "read_cost; read_cost; read_cost"),
    ("json", "pg_timing -d 2 --format json"),
    ("cost-2", "read_cost; read_cost; read_cost"),
    ("text", "pg_timing check --details -d 2"),
    ("cost-3", "read_cost; read_cost; read_cost"),
]
CURRENT = "cat current_clocksource"


def as_user(command):
    """Returns a command that runs `command` as an ordinary user."""
    return f"su nobody -s /bin/sh -c '{command}'"


def wait_for(clocksource):
    """Returns a command that waits until the clock source is current: the kernel refines the TSC's rate for a second."""
    return f"for i in $(seq 100); do grep -qx {clocksource} current_clocksource && exit; usleep 100000; done; exit 1"


def record_clocksources(command):
    """
    Returns a command that runs `command` and records the current clock source before, during and after it.

    /tmp/during then has one line per change. The first and the last value are read outside of the background loop,
    because a busy host can delay that loop.
    """
    return (
        "cat current_clocksource >/tmp/seen\n"
        "(while :; do cat current_clocksource; usleep 50000; done) >>/tmp/seen & loop=$!\n"
        f"{command}\n"
        "status=$?; kill $loop; wait $loop; cat current_clocksource >>/tmp/seen\n"
        "uniq /tmp/seen >/tmp/during; exit $status"
    )


CHECK = "pg_timing -d 3 --format json"


# Waits until process $! runs on one CPU only: then it reads the clocks. On a busy host its start can take seconds.
READS_CLOCKS = "for i in $(seq 500); do grep -qE '^Cpus_allowed:[[:space:]]*0*[12]$' /proc/$!/status && break; usleep 20000; done"


def during_check(event, ms=500):
    """Returns a command that starts a check and causes the event `ms` milliseconds after its first reads of the clocks."""
    return f"{CHECK} & {READS_CLOCKS}; usleep {ms}000; {event}; wait $!"


def ask_host(action, seconds):
    """Returns a command that asks the host for an action of host.py."""
    return f"echo 'host: {action} {seconds}' >/dev/console"


@dataclass
class Scenario:
    """One virtual machine."""

    name: str
    # the clock source that the kernel selects
    clocksource: str
    # True if each read goes to slow hardware, without the vDSO
    slow: bool
    cpus: int = 2
    cpu: str = "qemu64"
    # additional boot parameters
    boot: str = ""
    # (name, command) pairs that run before and after the common steps
    before: list = field(default_factory=list)
    after: list = field(default_factory=list)
    # seconds until the machine must have ended; most need ten to twenty, and several times as much on a busy host
    limit: int = 120
    # whether it runs only if it is named
    long: bool = False

    @property
    def steps(self):
        """Returns the (name, command) pairs that run in the machine, in order."""
        settled = [("settle", wait_for(self.clocksource))]
        sysfs = [("current", CURRENT), ("available", "cat available_clocksource")]
        after = [("current-after", CURRENT), ("dmesg", "dmesg")]
        return [*self.before, *settled, *sysfs, *MEASURE, *after, *self.after]


# Stops the hpet for some milliseconds, as a busy host can do to a virtual machine. Within half a second the kernel's
# watchdog finds that the TSC is ahead of the hpet, and demotes the TSC. Offset 0x10 is the configuration register of the
# hpet: bit 0 enables the counter, bit 1 is the legacy routing. There is no sleep between the two writes: if the watchdog
# ran during it, the kernel would switch to a stopped clock and the sleep would never end.
STOP_HPET = "devmem 0xfed00010 32 2; devmem 0xfed00010 32 3"
DEMOTE = during_check(STOP_HPET)

# Sends SIGTERM after the program has said that it waits and after the loop has recorded the switch. On a busy host both
# can take a while. Gives up after 30 s.
TERMINATED = (
    "pg_timing clocksource use acpi_pm --for 300 --force >/tmp/output & pid=$!\n"
    "for i in $(seq 600); do grep -q 'restores it at once' /tmp/output && grep -qx acpi_pm /tmp/seen && break; usleep 50000; done\n"
    "kill $pid; wait $pid && cat /tmp/output"
)
SWITCHING = [
    ("list", "pg_timing clocksource list"),
    ("unforced", "pg_timing clocksource use acpi_pm --for 1"),
    ("no-right", as_user("pg_timing clocksource use acpi_pm --for 1 --force")),
    ("refused", CURRENT),
    ("use", record_clocksources("pg_timing clocksource use acpi_pm --for 1 --force")),
    ("during-use", "cat /tmp/during"),
    ("terminated", record_clocksources(TERMINATED)),
    ("during-terminated", "cat /tmp/during"),
]

CPU1 = "/sys/devices/system/cpu/cpu1/online"


def then_online(command):
    """Returns a command that runs `command`, sets CPU 1 online, and keeps the exit status."""
    return f"{command}; status=$?; echo 1 >{CPU1}; exit $status"


OFF_AND_ON = f"while :; do echo 0 >{CPU1}; usleep 50000; echo 1 >{CPU1}; usleep 50000; done"
OFFLINE = [
    ("flapping", then_online(f"({OFF_AND_ON}) & {CHECK}; status=$?; kill $!; wait $! 2>/dev/null; (exit $status)")),
    # CPU 1 goes offline long before the last part of the check, which compares the CPUs, and returns after it.
    ("away", then_online(during_check(f"echo 0 >{CPU1}; cat /sys/devices/system/cpu/online >/tmp/online"))),
    ("away-online", "cat /tmp/online"),
    ("one-cpu", then_online(f"echo 0 >{CPU1}; {CHECK}")),
]

PAUSED = [("paused", during_check(ask_host("pause", 3))), ("stopped", during_check(ask_host("stop", 3)))]

SLEEP = "echo mem >/sys/power/state"
RTC = "/sys/class/rtc/rtc0"
# Starts few processes: if both CPUs are busy, qemu's TSC sometimes moves by some microseconds.
NEXT_RTC_SECOND = f"read now <{RTC}/since_epoch; next=$now; while [ $now = $next ]; do usleep 50000; read next <{RTC}/since_epoch; done"
SUSPENDED = [
    # Before or during the first reads of the clocks.
    ("early", f"{CHECK} & usleep 300000; {ask_host('wake', 2)}; {SLEEP}; wait $!"),
    # The RTC wakes the machine at the start of one of its seconds.
    ("slept", during_check(f"echo +3 >{RTC}/wakealarm; {SLEEP}")),
    # The kernel measures its sleep in full seconds of the RTC, so a sleep within one second has a length of zero.
    ("napped", during_check(f"{NEXT_RTC_SECOND}; usleep 300000; {ask_host('wake', 0.1)}; {SLEEP}")),
]

SCENARIOS = [
    # Two CPUs and a TSC without the invariant flag: the kernel selects hpet.
    Scenario("default", "hpet", slow=True, after=[("as-user", as_user("pg_timing -d 1 --format json"))]),
    Scenario("acpi_pm", "acpi_pm", slow=True, boot="clocksource=acpi_pm"),
    Scenario("tsc", "tsc", slow=False, cpus=1, cpu=GOOD_TSC),
    # The kernel rejects the TSC at boot. PostgreSQL 19's `auto`, which checks TSC_ADJUST, would still use it.
    Scenario("distrusted", "hpet", slow=True, cpu=GOOD_TSC, boot="tsc=unstable"),
    # The kernel demotes the TSC during a check. `iomem=relaxed` lets a program write to the hpet's registers.
    Scenario(
        "demoted", "hpet", slow=True, cpu=WATCHED_TSC, boot="iomem=relaxed",
        before=[("settle-tsc", wait_for("tsc")), ("live", DEMOTE)],
        after=[("use-tsc", "pg_timing clocksource use tsc --force"), ("use-tsc-after", CURRENT)],
    ),
    Scenario("switching", "tsc", slow=False, cpu=GOOD_TSC, after=SWITCHING),
    # These disturb a check. The common steps run afterwards and show that the machine works again.
    Scenario("offline", "tsc", slow=False, cpu=GOOD_TSC, before=[("settle-first", wait_for("tsc")), *OFFLINE]),
    # After the last part, the hpet is the clock source.
    Scenario(
        "monitor", "hpet", slow=True, cpu=WATCHED_TSC, boot="iomem=relaxed",
        before=[("settle-tsc", wait_for("tsc")), ("watch", monitoring.watch(STOP_HPET))],
    ),
    Scenario(
        "many-intervals", "tsc", slow=False, cpu=GOOD_TSC, limit=1500, long=True,
        before=[("settle-first", wait_for("tsc")), ("intervals", monitoring.MANY_INTERVALS)],
    ),
    Scenario("paused", "hpet", slow=True, before=[("settle-first", wait_for("hpet")), *PAUSED]),
    Scenario("suspended", "hpet", slow=True, before=[("settle-first", wait_for("hpet")), *SUSPENDED]),
]
