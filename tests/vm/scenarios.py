"""The machines: which CPU, which boot parameters, what runs in them, and what the kernel makes of its clocks."""

from dataclasses import dataclass, field

# A TSC as good as any: invariant, and with TSC_ADJUST, so that the kernel leaves its watchdog off. (With the
# watchdog, a busy host could get it demoted at any moment.) Emulation does not claim these two bits of its own
# accord although its TSC, one counter for all CPUs, has what they promise: hence the force.
GOOD_TSC = "max,+invtsc,+tsc-adjust,x-force-features=on"
# The same under the watchdog's eyes.
WATCHED_TSC = "max,+invtsc,-tsc-adjust,x-force-features=on"

# The independent figure is taken before, between and after ours, so that a slow moment of the host meets both.
MEASURE = [
    ("cost-1", "read_cost; read_cost; read_cost"),
    ("json", "pg_timing -d 2 --format json"),
    ("cost-2", "read_cost; read_cost; read_cost"),
    ("text", "pg_timing -d 2"),
    ("cost-3", "read_cost; read_cost; read_cost"),
]
CURRENT = "cat current_clocksource"


def as_user(command):
    return f"su nobody -s /bin/sh -c '{command}'"


def settle(clocksource):
    """The kernel refines the TSC's rate for a second before it takes it; it is waited for."""
    return f"for i in $(seq 100); do grep -qx {clocksource} current_clocksource && exit; usleep 100000; done; exit 1"


def seen_during(command):
    """Runs `command` and writes down which clock sources were current before, meanwhile and after it, without
    repeats. The first look and the last are not left to the watcher: on a busy host it may be held up for long."""
    return (
        "cat current_clocksource >/tmp/seen\n"
        "(while :; do cat current_clocksource; usleep 50000; done) >>/tmp/seen & watcher=$!\n"
        f"{command}\n"
        "status=$?; kill $watcher; wait $watcher; cat current_clocksource >>/tmp/seen\n"
        "uniq /tmp/seen >/tmp/during; exit $status"
    )


CHECK = "pg_timing -d 3 --format json"


def amid(deed, ms=1000):
    """A check, and so long after its start the deed."""
    return f"{CHECK} & usleep {ms}000; {deed}; wait $!"


def ask(deed, seconds):
    """Asks the host (host.py) for something."""
    return f"echo 'host: {deed} {seconds}' >/dev/console"


@dataclass
class Scenario:
    name: str
    # What the kernel keeps time by, and whether that is slow hardware without a vDSO.
    clocksource: str
    slow: bool
    cpus: int = 2
    cpu: str = "qemu64"
    boot: str = ""
    before: list = field(default_factory=list)
    after: list = field(default_factory=list)

    @property
    def steps(self):
        settled = [("settle", settle(self.clocksource))]
        sysfs = [("current", CURRENT), ("available", "cat available_clocksource")]
        after = [("current-after", CURRENT), ("dmesg", "dmesg")]
        return [*self.before, *settled, *sysfs, *MEASURE, *after, *self.after]


# The hpet stands still for some milliseconds, as a virtual machine's may when its host is busy, and within half a
# second the kernel's watchdog sees the TSC run ahead of it. Offset 0x10 is the chip's configuration: bit 0 runs it,
# bit 1 is its legacy routing. No sleep in between: were the watchdog to run just then, the kernel would keep time by
# a chip that stands still, and the sleep would not end.
DEMOTE = amid("devmem 0xfed00010 32 2; devmem 0xfed00010 32 3")

# As soon as it says that it only waits, and the watcher has seen the switch: on a busy host both take a while.
TERMINATED = (
    "pg_timing clocksource use acpi_pm --for 300 --force >/tmp/told & "
    "until grep -q 'goes back at once' /tmp/told && grep -qx acpi_pm /tmp/seen; do usleep 50000; done; "
    "kill $!; wait $! && cat /tmp/told"
)
SWITCHING = [
    ("list", "pg_timing clocksource list"),
    ("unforced", "pg_timing clocksource use acpi_pm --for 1"),
    ("no-right", as_user("pg_timing clocksource use acpi_pm --for 1 --force")),
    ("refused", CURRENT),
    ("use", seen_during("pg_timing clocksource use acpi_pm --for 1 --force")),
    ("during-use", "cat /tmp/during"),
    ("terminated", seen_during(TERMINATED)),
    ("during-terminated", "cat /tmp/during"),
]

CPU1 = "/sys/devices/system/cpu/cpu1/online"


def and_on_again(command):
    return f"{command}; status=$?; echo 1 >{CPU1}; exit $status"


OFF_AND_ON = f"while :; do echo 0 >{CPU1}; usleep 50000; echo 1 >{CPU1}; usleep 50000; done"
OFFLINE = [
    ("flapping", and_on_again(f"({OFF_AND_ON}) & {CHECK}; status=$?; kill $!; wait $! 2>/dev/null; (exit $status)")),
    # Gone well before the CPUs are compared, which comes last, and back after that.
    ("away", and_on_again(amid(f"echo 0 >{CPU1}; cat /sys/devices/system/cpu/online >/tmp/online"))),
    ("away-online", "cat /tmp/online"),
    ("one-cpu", and_on_again(f"echo 0 >{CPU1}; {CHECK}")),
]

PAUSED = [("paused", amid(ask("pause", 3))), ("held-up", amid(ask("hold-up", 3)))]

SLEEP = "echo mem >/sys/power/state"
RTC = "/sys/class/rtc/rtc0"
RTC_TURNS = f"now=$(cat {RTC}/since_epoch); while [ $now = $(cat {RTC}/since_epoch) ]; do usleep 10000; done"
SUSPENDED = [
    # As the clocks are read for the first time.
    ("early", amid(f"{ask('wake', 2)}; {SLEEP}", ms=300)),
    # Woken by the RTC, as one of its seconds begins.
    ("slept", amid(f"echo +3 >{RTC}/wakealarm; {SLEEP}")),
    # By full seconds of the RTC the kernel tells how long it slept: in the midst of one, not at all.
    ("napped", amid(f"{RTC_TURNS}; usleep 300000; {ask('wake', 0.1)}; {SLEEP}")),
]

SCENARIOS = [
    # Two CPUs and a TSC that nobody calls invariant: the kernel takes hpet.
    Scenario("default", "hpet", slow=True, after=[("as-user", as_user("pg_timing -d 1 --format json"))]),
    Scenario("acpi_pm", "acpi_pm", slow=True, boot="clocksource=acpi_pm"),
    Scenario("tsc", "tsc", slow=False, cpus=1, cpu=GOOD_TSC),
    # Given up at boot, while PostgreSQL 19's `auto` (which goes by TSC_ADJUST) would still take it.
    Scenario("distrusted", "hpet", slow=True, cpu=GOOD_TSC, boot="tsc=unstable"),
    # Given up in the midst of a run. The kernel owns the chip's registers: iomem=relaxed lets us at them.
    Scenario(
        "demoted", "hpet", slow=True, cpu=WATCHED_TSC, boot="iomem=relaxed",
        before=[("settle-tsc", settle("tsc")), ("live", DEMOTE)],
        after=[("use-tsc", "pg_timing clocksource use tsc --force"), ("use-tsc-after", CURRENT)],
    ),
    Scenario("switching", "tsc", slow=False, cpu=GOOD_TSC, after=SWITCHING),
    # What befalls machines in the midst of a check; what comes after proves that they got over it.
    Scenario("offline", "tsc", slow=False, cpu=GOOD_TSC, before=[("settle-first", settle("tsc")), *OFFLINE]),
    Scenario("paused", "hpet", slow=True, before=[("settle-first", settle("hpet")), *PAUSED]),
    Scenario("suspended", "hpet", slow=True, before=[("settle-first", settle("hpet")), *SUSPENDED]),
]
