//! Whole stories of real logs.

use super::super::{parse, tests::DOCKER};
use super::*;

fn sentences(log: &str) -> Vec<String> {
    story(&parse(log).entries)
}

#[test]
fn story_of_docker_desktop() {
    let mut expected = [
        "at boot the kernel detected a TSC rate of 2900.000 MHz",
        "0.3 s after boot it selected the clock source tsc",
        "7823 s after boot CPU 2 found that tsc and the watchdog hpet disagree (tsc counted 16.255 s while hpet, at the usual \
         14.318180 MHz, counted 1.111 s, a difference of 15.144 s) and marked tsc unstable",
        "7823 s after boot the kernel switched to hpet",
    ];
    assert_eq!(sentences(DOCKER), expected);
    // The same log without times.
    let untimed: String = DOCKER.lines().map(|line| format!("{}\n", &line[15..])).collect();
    assert_eq!(sentences(&untimed)[3], "the kernel switched to hpet");
    // If the log contains the rate of the hpet, that rate is used.
    expected[2] = "7823 s after boot CPU 2 found that tsc and the watchdog hpet disagree (tsc counted 16.255 s while hpet \
                   counted 636.3 ms, a difference of 15.619 s) and marked tsc unstable";
    for hpet in [
        "[    0.2] hpet0: 3 comparators, 64-bit 25.000000 MHz counter\n",
        "[    0.2] clocksource: hpet: mask: 0xffffffff max_cycles: 0xffffffff, max_idle_ns: 76450417870 ns\n",
    ] {
        assert_eq!(sentences(&format!("{hpet}{DOCKER}")), expected);
    }
}

#[test]
fn story_of_a_laptop_with_a_firmware_bug() {
    let log = "\
[    0.000000] Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)
[    0.000000] tsc: Detected 3693.062 MHz processor
[    0.308000] clocksource: Switched to clocksource tsc-early
[    1.408000] tsc: Refined TSC clocksource calibration: 3693.060 MHz
[    1.500000] clocksource: Switched to clocksource tsc
[    8.502328] clocksource: timekeeping watchdog on CPU4: Marking clocksource 'tsc' as unstable because the skew is too large:
[    8.502335] clocksource:                       'hpet' wd_nsec: 495412266 wd_now: 74b2d4c wd_last: 6def0b2 mask: ffffffff
[    8.502343] clocksource:                       'tsc' cs_nsec: 496288695 cs_now: 1a21e4cda2 cs_last: 19b1b24352 mask: ffffffffffffffff
[    8.502349] clocksource:                       Clocksource 'tsc' skewed 876429 ns (0 ms) over watchdog 'hpet' interval of 495412266 ns (495 ms)
[    8.502355] clocksource:                       'tsc' is current clocksource.
[    8.502371] tsc: Marking TSC unstable due to clocksource watchdog
[    8.502392] TSC found unstable after boot, most likely due to broken BIOS. Use 'tsc=unstable'.
[    8.502394] sched_clock: Marking unstable (8511381561, -8990127)<-(8520197471, -17805900)
[    8.502614] clocksource: Checking clocksource tsc synchronization from CPU 4 to CPUs 0,5.
[    8.502620] clocksource:         CPUs 0 ahead of CPU 4 for clocksource tsc.
[    8.502630] clocksource: Override clocksource tsc is unstable and not HRT compatible - cannot switch while in HRT/NOHZ mode
[    8.502664] clocksource: Switched to clocksource hpet
";
    let expected = [
        "at boot the kernel detected a TSC rate of 3693.062 MHz",
        "0.3 s after boot it selected the clock source tsc-early (the TSC, before the kernel knows its exact rate)",
        "1.4 s after boot it refined the TSC rate to 3693.060 MHz",
        "1.5 s after boot it switched to tsc",
        "8.5 s after boot CPU 4 found that tsc and the watchdog hpet disagree (tsc went 876.4 us ahead in 495.4 ms) \
         and marked tsc unstable",
        "8.5 s after boot CPU 4 found that the tsc of CPUs 0 is ahead of this CPU",
        "8.5 s after boot the kernel refused the requested clock source tsc, because it is marked unstable",
        "8.5 s after boot it switched to hpet",
    ];
    assert_eq!(sentences(log), expected);
}

#[test]
fn story_of_a_busy_large_host() {
    let log = "\
[  818.380354] clocksource: timekeeping watchdog on CPU336: hpet wd-wd read-back delay of 1203520ns
[  818.436160] clocksource: wd-tsc-wd read-back delay of 181880ns, clock-skew test skipped!
[  819.402962] clocksource: timekeeping watchdog on CPU338: hpet wd-wd read-back delay of 324000ns
[  819.448036] clocksource: wd-tsc-wd read-back delay of 337240ns, clock-skew test skipped!
[  819.880863] clocksource: timekeeping watchdog on CPU339: hpet read-back delay of 150280ns, attempt 3, marking unstable
[  819.936243] tsc: Marking TSC unstable due to clocksource watchdog
[  821.067990] clocksource: Switched to clocksource hpet
[  822.000000] clocksource: timekeeping watchdog on CPU1: hpet retried 3 times before success
";
    let expected = [
        "818 s after boot CPU 336 skipped comparing the clock with hpet, because reading took too long (the first of 2 times, \
         the last 819 s after boot)",
        "820 s after boot CPU 339 marked tsc unstable, because the comparison with hpet took 150.3 us; a busy machine can \
         also cause that",
        "821 s after boot the kernel switched to hpet",
        "822 s after boot CPU 1 needed 3 more tries to compare the clock with hpet, because reading took too long",
    ];
    assert_eq!(sentences(log), expected);
}

#[test]
fn story_of_two_boots_of_an_old_kernel() {
    let log = "\
Aug  9 16:12:45 db kernel: [    0.000000] Linux version 3.2.0-4-amd64 (debian-kernel)
Aug  9 16:12:45 db kernel: [    0.000000] Detected 2926.000 MHz processor.
Aug  9 16:12:45 db kernel: [    0.100000] Switching to clocksource tsc
Aug  9 16:14:25 db kernel: [  100.000000] Clocksource tsc unstable (delta = -62503714 ns)
Aug  9 16:14:25 db kernel: [  100.100000] Switching to clocksource acpi_pm
Aug 10 09:00:00 db kernel: [    0.000000] Linux version 3.2.0-5-amd64 (debian-kernel)
Aug 10 09:00:00 db kernel: [    0.000000] Detected 2926.000 MHz processor.
Aug 10 09:00:00 db kernel: [    0.070000] TSC synchronization [CPU#0 -> CPU#1]:
Aug 10 09:00:00 db kernel: [    0.070000] Measured 4294 cycles TSC warp between CPUs, turning off TSC clock.
Aug 10 09:00:00 db kernel: [    0.070000] TSC warped randomly between CPUs
Aug 10 09:00:00 db kernel: [    0.070000] Marking TSC unstable due to check_tsc_sync_source failed
Aug 10 09:00:00 db kernel: [    0.100000] Switching to clocksource acpi_pm
";
    let expected = [
        "at boot the kernel detected a TSC rate of 2926.000 MHz",
        "0.1 s after boot it selected the clock source tsc",
        "100 s after boot it found that tsc and another clock disagree by 62.5 ms and marked tsc unstable",
        "100 s after boot it switched to acpi_pm",
        "at Aug 10 09:00:00 the machine booted again with Linux 3.2.0-5-amd64",
        "at boot the kernel detected a TSC rate of 2926.000 MHz",
        "0.1 s after boot it found that the TSC went back between CPUs 0 and 1 by up to 4294 cycles, 1.5 us, in both \
         directions, and marked it unstable",
        "0.1 s after boot it selected the clock source acpi_pm",
    ];
    assert_eq!(sentences(log), expected);
}

#[test]
fn sleeps_are_one_sentence() {
    let once = "\
[ 100.0] PM: suspend entry (deep)
[ 100.1] printk: Suspending console(s) (use no_console_suspend to debug)
[ 101.0] ACPI: PM: Preparing to enter system sleep state S3
[ 101.0] PM: Timekeeping suspended for 3600.123 seconds
[ 101.1] ACPI: PM: Waking up from system sleep state S3
[ 102.0] PM: suspend exit
";
    let first = "100 s after boot the machine went to sleep, and it woke up 101 s after boot, after 3600 s of sleep";
    assert_eq!(sentences(once), [first]);
    let again = "[ 900.0] PM: suspend entry (deep)\n[ 901.0] PM: suspend exit\n";
    let both = ["100 s after boot the machine went to sleep 2 times; the last sleep ended 901 s after boot"];
    assert_eq!(sentences(&format!("{once}{again}")), both);
    assert_eq!(sentences("PM: suspend entry (deep)"), ["the machine went to sleep"]);
    assert_eq!(sentences("[  5.0] PM: suspend exit"), ["5.0 s after boot the machine woke up"]);
}

/// Lines with their sentences.
const SENTENCES: &[(&str, &str)] = &[
    (
        "vmware: TSC freq read from hypervisor : 2195.872 MHz",
        "the kernel got a TSC rate of 2195.872 MHz from the hypervisor",
    ),
    ("arch_timer: cp15 timer(s) running at 24.00MHz (virt).", "the kernel found a counter with a rate of 24.00 MHz"),
    (
        "tsc: TSC freq recalibrated by [HPET]: 1975.000 MHz",
        "the kernel measured the TSC with another timer at 1975.000 MHz",
    ),
    (
        "tsc: Warning: TSC freq calibrated by CPUID/MSR differs",
        "the kernel measured the TSC with another timer; its rate differs from the claimed one",
    ),
    ("Switched to clocksource jiffies", "the kernel selected the clock source jiffies"),
    ("[ 100.5] Switched to clocksource jiffies", "100 s after boot the kernel switched to jiffies"),
    (
        "Override clocksource acpi_pm is not currently HRT compatible - deferring",
        "the kernel deferred the requested clock source acpi_pm until it is verified",
    ),
    (
        "Override clocksource jiffies is not HRT compatible. Cannot switch while in HRT/NOHZ mode",
        "the kernel refused the requested clock source jiffies, because it may not be precise enough",
    ),
    ("kvm-clock: Using msrs 4b564d01 and 4b564d00", "the kernel found KVM's clock, kvm-clock"),
    (
        "Using 3.579545 MHz WALL PM GTOD PIT/TSC timer.",
        "the kernel uses the timer PM at 3.579545 MHz and reads it by PIT/TSC",
    ),
    (
        "[Firmware Bug]: TSC ADJUST differs: CPU3 0 --> -12345. Restoring",
        "the kernel found that the firmware had changed the TSC of CPU 3 by -12345 cycles, and corrected it",
    ),
    (
        "TSC ADJUST compensate: CPU1 observed 340 warp. Adjust: 340",
        "the kernel corrected the TSC of CPU 1, which differed by 340 cycles",
    ),
    (
        "TSC found unstable after boot, most likely due to broken BIOS.",
        "the kernel found the TSC unstable and suspects the firmware",
    ),
    ("sched_clock: Marking unstable (1, 2)", "the kernel stopped using the TSC in its scheduler"),
    (
        "tsc: Marking TSC unstable due to TSCs unsynchronized",
        "the kernel marked the TSC unstable because the CPUs may have different values \
         (\"TSCs unsynchronized\")",
    ),
    ("tsc: Marking TSC unstable due to magic", "the kernel marked the TSC unstable due to \"magic\""),
    (
        "Marking clocksource 'tsc' as unstable because the skew is too large:",
        "the kernel found that tsc and another clock disagree and marked tsc unstable",
    ),
    (
        "Marking clocksource tsc unstable due to inter CPU skew",
        "the kernel found that tsc differs between CPUs and marked tsc unstable",
    ),
    (
        "timekeeping watchdog on CPU13: wd-tsc-wd excessive read-back delay of 1000614ns vs. limit of 125000ns, wd-wd \
         read-back delay only 27ns, attempt 3, marking tsc unstable",
        "CPU 13 marked tsc unstable, because the comparison with the watchdog took 1.0 ms, more than 125.0 us; a busy \
         machine can also cause that",
    ),
];

#[test]
fn each_line_has_its_sentence() {
    for (line, sentence) in SENTENCES {
        assert_eq!(sentences(line), [*sentence], "{line}");
    }
    for silent in
        ["Skipped synchronization checks as TSC is reliable.", "hpet0: 3 comparators, 32-bit 100.000000 MHz counter"]
    {
        assert_eq!(sentences(silent), [""; 0], "{silent}");
    }
}

#[test]
fn repeated_lines_are_one_sentence() {
    let log = "\
tsc: Detected 1900.000 MHz processor
tsc: Detected 1896.000 MHz TSC
[Firmware Bug]: TSC ADJUST: CPU0: -23 force to 0
[Firmware Bug]: TSC ADJUST differs within socket(s), fixing all errors
tsc: Warning: TSC freq calibrated by CPUID/MSR differs from what is calibrated by HW timer, please check with vendor!!
tsc: Previous calibrated TSC freq:        1896.000 MHz
tsc: TSC freq recalibrated by [HPET]:     1975.000 MHz
clocksource: Marking clocksource tsc unstable due to inter CPU skew
clocksource: CPU0              1000 < CPU7              190600 (cycles)
";
    let expected = [
        "the kernel detected a TSC rate of 1896.000 MHz",
        "it found that the firmware had changed the TSC of CPU 0 by -23 cycles, and corrected it \
         (the first of 2 times)",
        "it measured the TSC with another timer at 1975.000 MHz; the claimed rate was 1896.000 MHz",
        "it found that tsc differs between CPUs (CPU 0 is 189600 cycles behind CPU 7, 100.0 us) and marked \
         tsc unstable",
    ];
    assert_eq!(sentences(log), expected);
}

#[test]
fn overflows_of_the_watchdog_are_explained() {
    let log = "\
tsc: Detected 2000.000 MHz TSC
clocksource: timekeeping watchdog on CPU0: Marking clocksource 'tsc' as unstable because the skew is too large:
clocksource:                       'acpi_pm' wd_now: 2231fa wd_last: 0 mask: ffffff
clocksource:                       'tsc' cs_now: 4a817c800 cs_last: 0 mask: ffffffffffffffff
";
    let sentence = "CPU 0 found that tsc and the watchdog acpi_pm disagree (tsc counted 10.000 s and acpi_pm 626.1 ms, \
                    but acpi_pm overflowed 2 times in between; with these overflows both clocks agree) and marked tsc unstable";
    assert_eq!(sentences(log)[1], sentence);
}
