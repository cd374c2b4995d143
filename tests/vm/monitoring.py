"""The monitor in a virtual machine: the clock source changes, the machine pauses, and its TSC goes bad."""

import json

INTERVAL_S = 0.5
# Root does not write directly to /tmp.
EVENTS = "/results/events"
# Each part lasts longer than a finding needs to clear: 20 intervals and two more.
PART_S = 13
# A mark between the events. Both programs append.
MARK = "echo \"{{\\\"mark\\\": \\\"{name}\\\", \\\"at\\\": $(date +%s)}}\" >>" + EVENTS


def part(name, command, seconds=PART_S):
    return f"{MARK.format(name=name)}; {command}; sleep {seconds}"


def switch(clocksource):
    return f"echo {clocksource} >current_clocksource"


def wait_until_demoted(demote):
    """Returns a command that repeats another one until the TSC is demoted. On a busy host, the kernel skips some checks."""
    return f"for i in $(seq 60); do {demote}; sleep 1; grep -qs hpet current_clocksource && break; done"


def watch(demote):
    """Returns a command that runs the monitor while the machine changes."""
    return "\n".join(
        [
            "ip link set lo up",
            f"pg_timing monitor --interval {INTERVAL_S} --events {EVENTS} --listen 9864 >/tmp/monitor.log 2>&1 & monitor=$!",
            f"for i in $(seq 100); do grep -qs monitor_started {EVENTS} && break; usleep 100000; done",
            # The noise of the read costs is known after eight samples.
            "sleep 8",
            part("clock source", switch("acpi_pm"), 6),
            part("clock source again", switch("tsc")),
            # The hardware clock shows a pause of at least 2.5 s.
            part("pause", "echo 'host: pause 6' >/dev/console"),
            part("stop", "echo 'host: stop 5' >/dev/console"),
            part("bad TSC", wait_until_demoted(demote), 6),
            "wget -q -O /tmp/metrics http://127.0.0.1:9864/metrics",
            "kill $monitor; wait $monitor; status=$?",
            f"cat {EVENTS}; grep tsc-demoted /tmp/metrics >&2; exit $status",
        ]
    )


SAMPLES = 10_000
# A sample takes about 20 ms in the emulation.
MANY_INTERVALS = f"pg_timing monitor --interval 0.05 --samples {SAMPLES} --events {EVENTS} >/dev/null; status=$?; cat {EVENTS}; exit $status"

# A read of a clock takes about 100 ns in the emulation, which is also the limit of clock-slow, and as much as the counter.
# So these can appear and clear at any time. A busy host interrupts the machine.
NOISE = {"clock-slow", "tsc-slow", "clock-gaps", "clock-syscall"}


def parts(text):
    """Returns the events of each part as a set of `NAME SUBJECT`, and the seconds from its start to each of them."""
    found, name, marked_at = {"start": []}, "start", 0.0
    for line in text.splitlines():
        event = json.loads(line)
        if "mark" in event:
            name, marked_at = event["mark"], event["at"]
            found[name] = []
        else:
            found[name].append(event | {"marked_at": marked_at})
    return found


def names(events):
    """Returns the names of the events with their subjects, without noise and without the kernel's messages."""
    wanted = [
        event for event in events
        if event.get("subject") not in NOISE and not event["event"].startswith(("kernel_message", "read_cost_"))
    ]
    return sorted({f"{event['event']} {event.get('subject', '')}".strip() for event in wanted})


EXPECTED = {
    "start": ["monitor_started"],
    "clock source": [
        "clocksource_changed acpi_pm", "finding_appeared clocksource-changed", "finding_appeared clocksource-not-persistent",
        "finding_appeared clocksource-slow",
    ],
    "clock source again": [
        "clocksource_changed tsc", "finding_cleared clocksource-changed", "finding_cleared clocksource-not-persistent",
        "finding_cleared clocksource-slow",
    ],
    "pause": ["pause"],
    "stop": ["pause"],
    "bad TSC": [
        "clocksource_changed hpet", "finding_appeared clocksource-changed", "finding_appeared clocksource-refused",
        "finding_appeared clocksource-slow", "finding_appeared tsc-demoted", "monitor_stopped",
    ],
}

# An event comes with the next sample. On a busy host, a sample can be late.
SOON_S = 2 * INTERVAL_S + 1.0
# The start of a part, and what begins with it. Findings clear later.
AT_ONCE = {"clock source": "clocksource_changed", "clock source again": "clocksource_changed"}


def check(step):
    """Yields the results as (passed, text)."""
    found = parts(step.out)
    metric = 'pg_timing_finding{id="tsc-demoted",severity="warning"} 1'
    yield metric in step.err, f"the metrics have the finding: {metric}"
    yield step.status == 0, f"SIGTERM ends it cleanly: exit status {step.status}"
    for name, expected in EXPECTED.items():
        seen = names(found.get(name, []))
        yield seen == expected, f"{name}: {', '.join(seen) if seen == expected else f'{seen}, not {expected}'}"
    for name, (first, *_) in ((name, events) for name, events in found.items() if name in AT_ONCE and events):
        late = first["unix_seconds"] - first["marked_at"]
        yield late <= SOON_S, f"{name}: the first event came after {late:.1f} s"


def check_many_intervals(step):
    """Yields the results as (passed, text)."""
    events = parts(step.out)["start"]
    seconds = events[-1]["unix_seconds"] - events[0]["unix_seconds"]
    yield step.status == 0, f"{SAMPLES} samples in {seconds:.0f} s: exit status {step.status}"
    seen, limit = names(events), [event for event in events if event.get("subject") in NOISE]
    expected = ["monitor_started", "monitor_stopped"]
    yield seen == expected, f"no alarm: {', '.join(seen)}; {len(limit)} events of figures at their limit"
